"""The words of the documents beside it."""

TITLE = "Penguins of the South"
AUTHOR = "Ann Example"
SUBJECT = "Grüße vom Südpol"
HEADINGS = ("Colonies and counts", "Figures for each colony")
PARAGRAPHS = (
    "Emperor penguins breed on sea ice; naïve counts by Jérôme and Øyvind differ by a third.",
    "Всего пингвинов насчитали больше, чем в прошлом году. See also",
)
NOTE_AFTER = "sea ice"
NOTE = "Only one colony is known to breed on land."
LINK = "https://example.org/colonies"
LINK_TEXT = "the list of colonies"
ITEMS = ("Cape Crozier, on the Ross Sea", "Halley Bay, until 2016", "Snow Hill Island")
TABLE = (
    ("Colony", "Year", "Pairs"),
    ("Cape Crozier", "2014", "1,325"),
    ("Halley Bay", "2015", "14,300 | estimated"),
    ("Snow Hill", "2013", "4,000"),
)
SLIDES = (
    ("Where they live", ("On the sea ice", "Never north of sixty degrees"), "Show the map first."),
    ("What they eat", ("Krill and squid", "Antarctic silverfish"), "Mention the krill fishery."),
)
SHEETS = {
    "Colonies 2014": (
        ["Colony", "Pairs", "Counted"],
        ["Cape Crozier", 1325, True],
        [],
        ["Halley Bay", 14300.5, False],
    ),
    "Notes": (["Only | estimates"], ["Two\nlines"]),
}
FORMULA = "=SUM(B2:B4)"
SCANNED = "scanned"
PAGES = (
    ("Emperor penguins breed on the sea ice.", "They fast for 115 days."),
    "blank",
    SCANNED,
    ("A colony at Halley Bay failed in 2016.", "The ice broke up too early."),
)

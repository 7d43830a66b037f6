"""The page and the tables say what the cells say, and let nothing of the data out of its place."""

import re
from dataclasses import asdict
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from rlm_rag.evals.config import RunConfig
from rlm_rag.evals.reports.cells import cells_of
from rlm_rag.evals.reports.curves import Point, chart
from rlm_rag.evals.reports.markdown import to_markdown
from rlm_rag.evals.reports.page import to_html
from rlm_rag.evals.reports.report import Report, Summary
from rlm_rag.pages.document import theme_script
from tests.chromium import chromium, needs_chromium
from tests.evals.toys import record
from tests.markup import broken

HOSTILE = '"><script>alert(1)</script>|`x`\n# forged'


@pytest.fixture
def report():
    config = RunConfig(
        tasks=("toy",), strategies=("rlm",), judge="strict", versions={"rlm_rag": HOSTILE}
    )
    records = [
        record(n, score, strategy=strategy, length=length, usd=length / 1e6)
        for strategy, score in (("rlm", 1.0), (HOSTILE, 0.0))
        for length in (4096, 8192, 16384)
        for n in range(length, length + 3)
    ]
    summary = Summary(
        name=HOSTILE,
        model="m",
        total=20,
        asked=18,
        errors=1,
        spent_usd=0.5,
        config=asdict(config),
    )
    return Report(runs=(summary,), cells=tuple(cells_of(records)))


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags = []
        self.attributes = {}

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes.setdefault(tag, []).append(dict(attrs))


def test_the_page_needs_nothing_from_elsewhere_and_escapes_what_is_data(report):
    page = to_html(report)
    tags = Tags()
    tags.feed(page)
    assert not {"img", "iframe", "object"} & set(tags.tags)
    assert not re.search(r"https?:|url\(|@import|\son\w+=", page)
    assert re.findall(r"<script>(.*?)</script>", page, re.DOTALL) == [theme_script()]
    assert tags.tags.count("script") == 1
    assert HOSTILE not in page


@needs_chromium
def test_the_tags_of_the_page_keep_the_rules_of_accessible_pages(report, tmp_path):
    file = tmp_path / "report.html"
    file.write_text(to_html(report), "utf-8")
    with chromium() as tab:
        tab.send("Page.navigate", url=file.as_uri())
        tab.wait_for("document.readyState === 'complete' && document.querySelector('table')")
        assert broken(tab) == []


def test_the_page_has_curves_of_score_and_cost_a_line_for_each_strategy(report):
    drawn = re.findall(r"<svg.*?</svg>", to_html(report), re.DOTALL)
    assert len(drawn) == 2
    for svg, title in zip(drawn, ("score", "cost"), strict=True):
        root = ElementTree.fromstring(svg)
        assert root.attrib["aria-label"].startswith(title)
        lines = root.findall(".//polyline")
        assert [len(line.attrib["points"].split()) for line in lines] == [3, 3]
    tops = [float(p.split(",")[1]) for p in lines[0].attrib["points"].split()]
    assert tops == sorted(tops, reverse=True)  # cost rises with length, up the picture


def test_the_table_has_a_row_for_each_cell_and_no_row_is_forged(report):
    text = to_markdown(report)
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert len(rows) == 2 + len(report.cells)
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {16}
    assert "\n# forged" not in text
    assert "18 of 20 asked, 1 errors (partial), $0.5000 spent" in text
    assert "model m, seed 0, " in text and ", judged by strict;" in text


def test_an_axis_never_has_a_number_twice():
    svg = chart("t", {"a": [Point(8192, 0.0)]}, shown=lambda value: f"{value:.0f}")
    marks = re.findall(r'text-anchor="end">([^<]*)<', svg)
    assert marks == ["0", "", "", "", "1"]


def test_one_length_is_a_point_and_no_point_no_chart():
    svg = chart("t", {"a": [Point(8192, 0.5, 0.25, 0.75)]}, shown=str)
    ElementTree.fromstring(svg)
    assert "8k: 0.5 (0.25 to 0.75)" in svg
    assert chart("t", {"a": []}, shown=str) == ""

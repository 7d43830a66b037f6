"""The page in Debian's Chromium: what it shows, what its keys do, and what no text can do in it."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rlm_rag.trace.events import BlockStarted, Resumed
from rlm_rag.trace.reader import read_trace
from rlm_rag.trace.recorder import Recorder
from rlm_rag.trace.view.coverage import Documents
from rlm_rag.trace.view.page import Looked
from rlm_rag.trace.view.passages import Passage
from tests.chromium import Page, chromium, needs_chromium
from tests.markup import broken
from tests.trace.test_show import retrieval
from tests.trace.view.made import (
    EVERY,
    HOSTILE,
    LOOKED,
    answered,
    hostile,
    hostile_look_up,
    large,
    page,
    recorded,
    reply,
)

pytestmark = needs_chromium

NOTHING = Looked(passages=[], documents=Documents(None, "The source is gone."))
# Every text in sight with its contrast to what is behind it, where that is below 4.5
# (WCAG 2.2, 1.4.3). Colours are painted on a canvas, which knows all of their forms.
POOR_CONTRAST = """(() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const paint = (colours) => {
    for (const colour of colours) { canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); }
    return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const light = (rgb) => rgb.map((v) => v / 255)
    .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, at) => sum + v * [0.2126, 0.7152, 0.0722][at], 0);
  const poor = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !element.checkVisibility()) continue;
    if (element.closest("script, style, noscript, svg, .unseen")) continue;
    const behind = [];
    for (let at = element; at; at = at.parentElement) {
      behind.unshift(getComputedStyle(at).backgroundColor);
    }
    const own = [...behind, getComputedStyle(element).color];
    const [one, other] = [light(paint(behind)), light(paint(own))];
    const contrast = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    if (contrast < 4.5) poor.push(`${contrast.toFixed(2)}: ${walker.currentNode.data}`);
  }
  return poor;
})()"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Page]:
    with chromium() as tab:
        yield tab


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a run that has one of every event."""
    return page(recorded(tmp_path_factory.mktemp("every") / "t.jsonl", EVERY), LOOKED)


@pytest.fixture
def tab(browser: Page, every: Path) -> Page:
    browser.appear()
    browser.open(every)
    assert browser.complaints == []
    return browser


def text(tab: Page, selector: str) -> str:
    found = tab.run(
        f"((found) => found?.checkVisibility() ? found.innerText : '')"
        f"(document.querySelector({selector!r}))"
    )
    assert isinstance(found, str)
    return found


def click(tab: Page, selector: str, containing: str = "") -> None:
    """Click the first element of a selector that has this text."""
    tab.run(
        f"[...document.querySelectorAll({selector!r})]"
        f".find((each) => each.textContent.includes({containing!r})).click()"
    )


def focused(tab: Page) -> str:
    found = tab.run("document.activeElement.id || document.activeElement.textContent")
    assert isinstance(found, str)
    return found


def search(tab: Page, words: str) -> str:
    """What a search says when it is done."""
    tab.press("/")
    tab.run(f"document.getElementById('query').value = {words[:-1]!r}")
    tab.run("document.getElementById('found').textContent = ''")
    tab.press(words[-1])
    tab.wait_for("/^(Found|Nothing)/.test(document.getElementById('found').textContent)")
    return text(tab, "#found")


def test_a_citation_opens_its_lines_in_place_with_the_quote_marked(tab: Page) -> None:
    assert text(tab, "h1") == "Where is it?"
    assert "6 calls" in text(tab, "#figures")
    click(tab, ".prose .cite", "src/a.py:3")
    assert "2\tdef f():" in text(tab, ".prose .passage").replace("\n", "\t")
    assert text(tab, ".prose .passage mark") == "is it"
    assert text(tab, ".prose .passage .cited mark") == "is it"
    assert "Here." in text(tab, ".prose .passage")
    click(tab, ".prose .cite", "src/a.py:3")
    assert text(tab, ".prose .passage") == ""
    click(tab, ".citations .cite", "gone.py:1")
    assert "there are no such lines" in text(tab, ".citations .passage")


def test_a_table_of_the_answer_is_one_and_its_citations_open_below_it(tab: Page) -> None:
    rows = tab.run(
        "[...document.querySelectorAll('.prose tr')]"
        ".map((row) => [...row.children].map((cell) => cell.textContent))"
    )
    assert rows == [["file", "what | how"], ["src/a.py:3✓, verified", "is it"], ["only"]]
    assert tab.run("document.querySelector('.prose td.right strong').textContent") == "is"
    click(tab, ".prose td .cite", "src/a.py:3")
    assert text(tab, ".prose .table + .passage mark") == "is it"


def test_the_tree_is_walked_by_keys_and_its_details_are_read_by_enter(tab: Page) -> None:
    click(tab, "#tab-timeline")
    click(tab, ".row", "Where is it?")
    tab.press("ArrowDown", "ArrowDown", "ArrowDown")
    assert focused(tab).startswith("Turn 1")
    assert text(tab, "#panel h2") == "Turn 1"
    tab.press("ArrowLeft")
    rows = tab.run("document.querySelectorAll('.row').length")
    tab.press("ArrowRight", "ArrowRight", "ArrowDown", "ArrowDown")
    assert tab.run("document.querySelectorAll('.row').length") > rows
    assert focused(tab).startswith("Block 1")
    tab.press("Enter")
    assert focused(tab) == "Block 1"
    panel = text(tab, "#panel")
    for part in ("Code", "search('it')", "printed", "NameError: nope", "llm_query_batched"):
        assert part in panel
    tab.press("Escape")
    assert focused(tab).startswith("Block 1")
    tab.press("Home")
    assert focused(tab).startswith("Where is it?")
    tab.press("End")
    assert focused(tab).startswith("Answer")
    tab.press("ArrowUp", "ArrowUp", "ArrowLeft", "ArrowLeft", "ArrowLeft")
    assert focused(tab).startswith("Where is it?")


def test_a_screen_reader_is_told_the_tree_with_levels_places_and_figures(tab: Page) -> None:
    click(tab, "#tab-timeline")
    nodes = tab.send("Accessibility.getFullAXTree")["nodes"]
    told = [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes]
    roles = {role for role, _ in told}
    assert {"banner", "main", "search", "tab", "tabpanel", "tree", "treeitem", "region"} <= roles
    items = [node for node in nodes if node["role"]["value"] == "treeitem"]
    turn = next(node for node in items if node["name"]["value"].startswith("Turn 1"))
    properties = {each["name"]: each["value"].get("value") for each in turn["properties"]}
    assert (properties["level"], properties["expanded"]) == (2, True)
    assert turn["name"]["value"].startswith("Turn 1 550 tokens $1.25 ")
    assert all(name for role, name in told if role in ("button", "tab", "searchbox", "treeitem"))


def test_the_tags_of_every_view_keep_the_rules_of_accessible_pages(tab: Page) -> None:
    click(tab, ".prose .cite")
    click(tab, ".citations .cite")
    assert broken(tab) == []
    click(tab, "#tab-timeline")
    click(tab, ".row", "Block 1")
    assert broken(tab) == []
    search(tab, "is it")
    assert broken(tab) == []
    tab.press("Escape")
    click(tab, "#tab-coverage")
    click(tab, "#coverage tbody button")
    assert broken(tab) == []


def test_a_page_that_breaks_the_rules_is_told(browser: Page, tmp_path: Path) -> None:
    file = tmp_path / "bad.html"
    file.write_text(
        "<html data-ready=1><h3>x</h3><li>x</li><button></button><i id=a></i><i id=a></i>"
        "<table><tr><th></th></tr></table>"
        "<p aria-labelledby=no><b role=tab tabindex=3>x</b><svg></svg><div tabindex=0>x</div>"
        "<div aria-hidden=true><a href=x>x</a></div><ul><p>x</p></ul>"
    )
    browser.open(file)
    told = "\n".join(broken(browser))
    for rule in (
        *("no language", "no title", "0 first headings", "0 main parts", "left out", "twice: #a"),
        *("names nothing", "outside", "no list", "of its list", "empty heading", "no role"),
        *("order", "hidden, and", "picture", "a button without a name"),
    ):
        assert rule in told


def test_a_search_finds_what_was_said_run_and_found_and_leads_there(tab: Page) -> None:
    assert search(tab, "NAMEERROR") == "Found in 1 place"
    assert focused(tab) == "query"
    tab.press("ArrowDown", "Enter")
    assert text(tab, "#panel h2") == "Block 1"
    assert tab.run("CSS.highlights.get('found').size") == 1
    assert search(tab, "is it") == "Found in 3 places"
    assert search(tab, "(nowhere") == "Nothing was found"
    tab.press("Escape")
    assert tab.run("document.getElementById('results').hidden")
    assert focused(tab).startswith("Block 1")


def test_the_map_says_of_each_document_what_was_seen_and_where(tab: Page) -> None:
    click(tab, "#tab-coverage")
    assert "4 documents" in text(tab, "#coverage .figures")
    assert tab.run("document.querySelectorAll('.map .area').length") == 4
    assert tab.run("document.querySelectorAll('.map .searched').length") == 1
    assert text(tab, "#coverage tbody tr").split("\t") == ["src/a.py", "9", "9", "–", "–", "–"]
    click(tab, "#coverage tbody button", "src/a.py")
    assert "searched: 1-9" in text(tab, ".document")
    click(tab, ".document button", "search('it')")
    assert text(tab, "#panel h2").startswith("search('it')")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_can_be_read_in_both_themes(tab: Page, scheme: str) -> None:
    tab.appear(scheme=scheme)
    click(tab, ".prose .cite")
    assert tab.run(POOR_CONTRAST) == []
    click(tab, "#tab-timeline")
    click(tab, ".row", "Block 1")
    assert tab.run(POOR_CONTRAST) == []
    click(tab, "#tab-coverage")
    click(tab, "#coverage tbody button")
    assert tab.run(POOR_CONTRAST) == []


def test_the_theme_is_the_systems_until_another_is_chosen(tab: Page) -> None:
    def paper() -> Any:
        return tab.run("getComputedStyle(document.body).backgroundColor")

    light = paper()
    tab.appear(scheme="dark")
    dark = paper()
    assert light != dark
    click(tab, "#theme")
    assert (text(tab, "#theme"), paper()) == ("Theme: light", light)
    click(tab, "#theme")
    tab.appear(scheme="light")
    assert (text(tab, "#theme"), paper()) == ("Theme: dark", dark)
    click(tab, "#theme")
    assert paper() == light


def test_a_phone_shows_all_views_without_a_second_direction_to_scroll(tab: Page) -> None:
    tab.appear(width=360, height=740)
    for name in ("answer", "timeline", "coverage"):
        click(tab, f"#tab-{name}")
        assert tab.run("document.documentElement.scrollWidth") == 360
        assert tab.run(f"document.getElementById({name!r}).scrollWidth") <= 360
    click(tab, "#tab-timeline")
    click(tab, ".row", "Turn 1")
    assert tab.run("document.getElementById('panel').checkVisibility()")
    assert text(tab, "#panel h2") == "Turn 1"
    assert search(tab, "NameError: nope") == "Found in 1 place"
    assert not tab.run("document.getElementById('panel').checkVisibility()")
    click(tab, ".hit")
    assert text(tab, "#panel h2") == "Block 1"
    click(tab, ".back")
    assert not tab.run("document.getElementById('panel').checkVisibility()")
    assert focused(tab).startswith("Block 1")


def test_no_text_of_a_trace_can_run_load_or_hide_anything(browser: Page, tmp_path: Path) -> None:
    file = page(recorded(tmp_path / "t.jsonl", hostile()), hostile_look_up())
    browser.open(file)
    click(browser, ".cite")
    click(browser, "#tab-timeline")
    for number in range(browser.run("document.querySelectorAll('.row').length")):
        browser.run(f"document.querySelectorAll('.row')[{number}].click()")
        browser.run("document.querySelectorAll('#panel details').forEach((d) => { d.open = true })")
    assert "onerror='globalThis.pwned=2'" in text(browser, "#panel")
    click(browser, "#tab-coverage")
    click(browser, "#coverage tbody button")
    assert search(browser, "pwned").startswith("Found")
    click(browser, ".hit")
    assert browser.run("globalThis.pwned === undefined")
    assert browser.run("document.querySelectorAll('img, a, iframe, svg svg, b').length") == 0
    assert browser.run("document.querySelectorAll('script').length") == browser.run(
        "document.querySelectorAll('script[type=\"application/json\"]').length + 1"
    )
    assert browser.complaints == []
    assert browser.requests == [file.resolve().as_uri()]
    assert HOSTILE not in browser.run("document.body.innerText")


def test_where_a_run_was_resumed_the_axis_has_a_mark(browser: Page, tmp_path: Path) -> None:
    file = recorded(tmp_path / "t.jsonl", [*EVERY[:9], Resumed("r1", {}, "0.1.0")]).path
    *lines, last = file.read_text("utf-8").splitlines()
    later = json.loads(last) | {"time": "2099-01-01T00:00:00+00:00"}
    file.write_text("\n".join([*lines, json.dumps(later), ""]), "utf-8")
    browser.appear()
    browser.open(page(read_trace(file), NOTHING))
    assert "resumed after" in text(browser, "#legend .resumed")
    assert browser.run("document.querySelectorAll('.grid .pause').length") == 1
    assert browser.run("Data.index.seconds") < 60


@pytest.mark.deep
def test_no_text_keeps_the_page_from_answering(browser: Page, tmp_path: Path) -> None:
    texts = ["`" * 90_000, "`a" * 40_000, "**a" * 30_000, "*" * 90_000, "a:" * 40_000, "a" * 99_000]
    texts += [
        "- " * 40_000,
        "|-" * 40_000,
        "|-\n" * 30_000,
        "> \n" * 30_000,
        "```\n" * 25_000,
        "'" * 90_000,
        '"""' * 30_000,
    ]
    path = "/".join(["a"] * 3000)
    citation = {"path": path, "line": 1, "end_line": 1}
    events = [*hostile()[:3], *(reply(n, each) for n, each in enumerate(texts, start=2))]
    events += [BlockStarted(run="r1", turn=1, block=2, code="\n".join(texts))]
    events += [retrieval("read", {}, "", seen=[[f"{path}/{n}", 1, n] for n in range(1, 200)])]
    events += [answered(text="\n\n".join(texts)[:99_999], citations=[citation])]
    looked = Looked(passages=[Passage((), "")], documents=Documents(None, ""))
    file = page(recorded(tmp_path / "t.jsonl", events), looked)
    assert browser.open(file) < 5
    began = time.perf_counter()
    click(browser, "#tab-timeline")
    for number in range(browser.run("document.querySelectorAll('.row').length")):
        browser.run(f"document.querySelectorAll('.row')[{number}].click()")
    click(browser, "#tab-coverage")
    assert time.perf_counter() - began < 10
    assert browser.complaints == []


def test_a_run_without_an_answer_opens_at_its_timeline(browser: Page, tmp_path: Path) -> None:
    browser.open(page(recorded(tmp_path / "t.jsonl", EVERY[:9]), NOTHING))
    assert browser.run("document.querySelector('.row.open .title').textContent") == "Where is it?"
    assert "unfinished" in text(browser, "#figures")
    click(browser, "#tab-answer")
    assert "the run was cut off" in text(browser, "#answer")
    with Recorder(tmp_path / "on.jsonl") as recorder:
        recorder.record(EVERY[0])
        browser.open(page(read_trace(tmp_path / "on.jsonl"), NOTHING))
    assert "running" in text(browser, "#figures")
    click(browser, "#tab-answer")
    assert "no last answer yet" in text(browser, "#answer")
    empty = tmp_path / "empty.jsonl"
    empty.touch()
    browser.open(page(read_trace(empty), NOTHING))
    click(browser, "#tab-coverage")
    assert "The source is gone." in text(browser, "#coverage")
    assert browser.complaints == []


@pytest.mark.deep
def test_a_trace_of_50_mb_opens_within_3_seconds(browser: Page, tmp_path: Path) -> None:
    trace = recorded(tmp_path / "large.jsonl", large(50_000_000))
    assert trace.path.stat().st_size > 50_000_000
    browser.appear()
    file = page(trace, NOTHING)
    assert statistics.median(browser.open(file) for _ in range(3)) < 3
    click(browser, "#tab-timeline")
    assert browser.run("document.querySelectorAll('.row').length") < 100
    assert search(browser, "needleneedle") == "Found in 1 place"
    click(browser, ".hit")
    assert len(text(browser, "#panel pre:not(.code)")) == 20_000
    click(browser, "#panel .more")
    assert len(text(browser, "#panel pre:not(.code)")) == 120_000


def test_passages_are_as_many_as_citations(tmp_path: Path) -> None:
    trace = recorded(tmp_path / "t.jsonl", EVERY)
    with pytest.raises(ValueError, match="shorter"):
        page(trace, Looked(passages=[Passage((), "")], documents=Documents(None, "")))

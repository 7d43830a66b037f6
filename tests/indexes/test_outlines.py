"""Outlines within a budget and over many files, names with their scopes, and maps by rank."""

from __future__ import annotations

import queue
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from rlm_rag.indexes.answering import Answerer
from rlm_rag.indexes.parsers import Parsers
from rlm_rag.indexes.ranking import Weights
from rlm_rag.indexes.requests import (
    BordersRequest,
    BordersResult,
    OutlineRequest,
    RepoMapRequest,
    Request,
    SymbolsRequest,
    SymbolsResult,
    TextResult,
)
from rlm_rag.indexes.server import next_request
from rlm_rag.indexes.stamp import stamp_of
from rlm_rag.indexes.store import SegmentStore
from rlm_rag.packed import PackedCorpus

Answers = Callable[[Mapping[str, str]], Answerer]
Pack = Callable[[Mapping[str, str]], PackedCorpus]
PackFile = Callable[[Mapping[str, str]], Path]

SERVER = '''"""Servers."""

LIMIT = 3


class Server(Base):
    """Serves."""

    port: int = 80

    async def handle(self, request):
        """Answers one request."""
        return request

    def stop(self):
        self.handle(None)


def serve(): return Server()
'''
DOCUMENTS = {
    "app/server.py": SERVER,
    "app/main.py": "from app.server import serve\n\n\ndef main():\n    serve().stop()\n",
    "app/deep/er/x.py": "class X: pass\n",
    "docs/guide.md": "# Guide\n\n## Server\n\nserve() starts one.\n",
}


@pytest.fixture(scope="module")
def answerer(answers: Answers) -> Answerer:
    return answers(DOCUMENTS)


def text_of(answerer: Answerer, request: Request) -> TextResult:
    result = answerer.answer(request)
    assert isinstance(result, TextResult)
    assert result.error is None
    return result


def symbols_of(answerer: Answerer, request: SymbolsRequest) -> SymbolsResult:
    result = answerer.answer(request)
    assert isinstance(result, SymbolsResult)
    return result


def test_an_outline_shows_documentation_where_there_is_room(answerer: Answerer) -> None:
    assert text_of(answerer, OutlineRequest("app/server.py")).text == (
        "3: LIMIT = 3\n"
        "6: class Server(Base):  # Serves.\n"
        "9:   port: int = 80\n"
        "11:   async def handle(self, request):  # Answers one request.\n"
        "15:   def stop(self):\n"
        "19: def serve():"
    )


@pytest.mark.parametrize(
    ("budget", "shown"),
    [
        (140, ["LIMIT = 3", "class Server(Base):", "  port: int = 80",
               "  async def handle(self, request):", "  def stop(self):", "def serve():"]),
        (120, ["LIMIT = 3", "class Server(Base): [+1]", "  async def handle(self, request):",
               "  def stop(self):", "def serve():"]),
        (60, ["LIMIT = 3", "class Server(Base): [+3]", "def serve():"]),
        (20, ["LIMIT = 3"]),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_collapsed_from_the_least_on(
    answerer: Answerer, budget: int, shown: list[str]
) -> None:
    result = text_of(answerer, OutlineRequest("app/server.py", budget_chars=budget))
    assert [line.partition(": ")[2] for line in result.text.splitlines()] == shown
    assert len(result.text) <= budget
    assert (result.note is None) == (len(shown) == 6)


@pytest.mark.parametrize("path", ["app", "app/", "app/*.py", "**"])
def test_a_folder_or_a_glob_gives_one_line_a_file(answerer: Answerer, path: str) -> None:
    lines = text_of(answerer, OutlineRequest(path)).text.splitlines()
    assert lines[:2] == [
        "app/server.py (19 lines): LIMIT, Server, serve",
        "app/main.py (5 lines): main",
    ]
    assert len(lines) == {"app": 3, "app/": 3, "app/*.py": 2, "**": 4}[path]


def test_files_that_do_not_fit_are_counted_by_folder(answerer: Answerer) -> None:
    result = text_of(answerer, OutlineRequest("**", budget_chars=80))
    assert result.text == "app/ (2 files)\napp/deep/er/ (1 file)\ndocs/ (1 file)"
    less = text_of(answerer, OutlineRequest("**", budget_chars=32))
    assert less.text == "app/ (3 files)\ndocs/ (1 file)"
    least = text_of(answerer, OutlineRequest("**", budget_chars=4))
    assert least.text == ""
    assert least.note is not None


def test_a_name_of_many_thousand_folders_is_counted_by_those_that_fit(answers: Answers) -> None:
    deep = "a/" * 50_000 + "x.py"
    result = answers({deep: "x\n", "a/z.py": "y\n"}).answer(OutlineRequest("**", 50))
    assert isinstance(result, TextResult)
    assert result.text == "a/" * 14 + " (1 file)\na/ (1 file)"
    assert result.note == "2 files do not fit in budget_chars=50: folders are shown"


def test_of_many_thousand_levels_those_that_fit_are_shown(answers: Answers) -> None:
    deep = "function f(){" * 20_000 + "}" * 20_000
    result = answers({"deep.js": deep}).answer(OutlineRequest("deep.js", 100))
    assert isinstance(result, TextResult)
    assert result.text == "1: function f()\n1:   function f()\n1:     function f()\n" + (
        "1:       function f() [+19996]"
    )
    assert result.note == "4 of 20000 entries fit in budget_chars=100, outermost first"


def test_only_documents_in_view_are_listed(answerer: Answerer) -> None:
    inside = ("app/server.py", "docs/guide.md")
    text = text_of(answerer, OutlineRequest("**", within=inside)).text
    assert [line.split()[0] for line in text.splitlines()] == list(inside)


def test_a_definition_tells_its_scope_its_end_and_its_documentation(answerer: Answerer) -> None:
    (one,) = symbols_of(answerer, SymbolsRequest("Server.handle")).symbols
    assert (one.line, one.end_line, one.kind, one.name, one.scope, one.doc) == (
        11,
        13,
        "method",
        "handle",
        "Server",
        "Answers one request.",
    )


def test_a_use_tells_the_definition_around_it(answerer: Answerer) -> None:
    found = symbols_of(answerer, SymbolsRequest("serve", references=True)).symbols
    assert [(one.path, one.line, one.kind, one.scope) for one in found] == [
        ("app/server.py", 19, "function", ""),
        ("app/main.py", 1, "reference", ""),
        ("app/main.py", 5, "reference", "main"),
        ("docs/guide.md", 5, "reference", "Guide.Server"),
    ]


def test_a_document_that_cannot_be_parsed_is_scanned_and_says_so(pack: Pack) -> None:
    # No process answers in no time.
    parsers = Parsers(1, wait_seconds=0.0)
    answerer = Answerer.of(pack(DOCUMENTS), parsers=parsers)
    result = text_of(answerer, OutlineRequest("app/main.py"))
    assert result.text == "4: def main():"
    assert "a lexical scan found this" in str(result.note)
    assert "app/main.py did not end within 0 s" in str(result.note)
    found = symbols_of(answerer, SymbolsRequest("main"))
    assert [one.line for one in found.symbols] == [4]
    assert "a lexical scan found this" in str(found.note)
    assert text_of(answerer, OutlineRequest("docs/guide.md")).note is None
    parsers.close()


HASTY = {
    "a.py": "class Server:\n    pass\n",
    "b.py": "def use():\n    return Server()\n",
    "c.js": "const port = 1; class Server {}\n",
    "d.md": "# Server\n",
}


def test_without_time_a_name_is_found_by_the_scan_and_parsing_goes_on(
    answers: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlm_rag.indexes.symbols.LOOKUP_SECONDS", 0.0)
    answerer = answers(HASTY)
    hasty = symbols_of(answerer, SymbolsRequest("Server"))
    assert [one.path for one in hasty.symbols] == ["a.py", "d.md"]
    assert "not all documents are parsed yet" in str(hasty.note)
    none = symbols_of(answerer, SymbolsRequest("use.Server"))
    assert none.symbols == ()
    assert "not all documents are parsed yet" in str(none.note)
    while answerer.go_on(0.1):
        continue
    whole = symbols_of(answerer, SymbolsRequest("Server"))
    assert [(one.path, one.kind) for one in whole.symbols] == [
        ("a.py", "class"),
        ("c.js", "class"),
        ("d.md", "heading"),
    ]
    assert whole.note is None


def test_what_was_left_is_parsed_until_the_next_request_comes(
    answers: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlm_rag.indexes.symbols.LOOKUP_SECONDS", 0.0)
    answerer = answers(HASTY)
    symbols_of(answerer, SymbolsRequest("Server"))
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    lines.put(b"1")
    # One that waits is answered first.
    assert next_request(lines, answerer) == b"1"
    assert symbols_of(answerer, SymbolsRequest("Server")).note
    go_on = answerer.go_on

    def then_ask(seconds: float) -> bool:
        more = go_on(seconds)
        if not more:
            lines.put(b"2")
        return more

    monkeypatch.setattr(answerer, "go_on", then_ask)
    assert next_request(lines, answerer) == b"2"
    assert symbols_of(answerer, SymbolsRequest("Server")).note is None


def test_definitions_are_kept_beside_the_index(pack_file: PackFile, tmp_path: Path) -> None:
    packed = pack_file(DOCUMENTS)
    folder = tmp_path / "rlm-rag" / "indexes" / "one"
    first = Answerer.open(packed, index_folder=folder, origin="one")
    shown = text_of(first, OutlineRequest("app/server.py"))
    first.close()
    assert (folder / "definitions.sqlite").stat().st_mode & 0o777 == 0o600
    # What cannot parse any more still knows.
    parsers = Parsers(1, wait_seconds=0.0)
    store = SegmentStore(folder, stamp=stamp_of(Weights()), origin="one")
    second = Answerer.of(PackedCorpus.open(packed), store=store, parsers=parsers)
    assert text_of(second, OutlineRequest("app/server.py")) == shown
    second.close()
    parsers.close()


def test_texts_are_split_where_grammars_find_definitions(answerer: Answerer) -> None:
    of_path = answerer.answer(BordersRequest("app/server.py"))
    of_text = answerer.answer(BordersRequest("added:/a.py", text=SERVER))
    assert isinstance(of_path, BordersResult)
    assert of_path == of_text
    assert of_path.borders == ((6, 0), (11, 1), (15, 1), (19, 0))


HUBS = {
    "core/hub.py": "class HubThing:\n    pass\n\n\ndef lonely_helper():\n    pass\n",
    "core/second.py": "from core.hub import HubThing\n\n\nclass SecondThing(HubThing):\n    pass\n",
    **{f"users/u{n}.py": "from core.second import SecondThing\n" for n in range(6)},
    "other/o.py": "class OtherThing:\n    pass\n",
    "other/user.py": "from other.o import OtherThing\n",
    "tests/test_hub.py": "class TestsThing:\n    HubThing\n",
    "notes.md": "# OtherThing\nOtherThing OtherThing\n",
}


def test_a_map_follows_who_leans_on_whom(answers: Answers) -> None:
    text = text_of(answers(HUBS), RepoMapRequest()).text
    shown = [line.partition("class ")[2] for line in text.splitlines() if "class" in line]
    assert shown == ["HubThing:", "SecondThing(HubThing):", "OtherThing:"]
    assert "TestsThing" not in text
    assert text == text_of(answers(HUBS), RepoMapRequest()).text


def test_a_map_begins_at_what_is_in_focus(answers: Answers) -> None:
    answerer = answers(HUBS)
    focused = text_of(answerer, RepoMapRequest(focus="other/user.py")).text
    assert focused.splitlines()[0] == "other/o.py:"
    assert "HubThing" not in focused
    within = text_of(answerer, RepoMapRequest(within=("core/hub.py", "users/u1.py"))).text
    assert "SecondThing" not in within


def test_a_member_in_a_map_names_its_class_where_that_is_not_shown(answers: Answers) -> None:
    documents = {
        "a.py": "class Widget:\n    def draw_outline(self):\n        pass\n",
        **{f"u{n}.py": "x.draw_outline()\n" for n in range(9)},
    }
    text = text_of(answers(documents), RepoMapRequest(budget_chars=48)).text
    assert text == "a.py:\n  2: Widget: def draw_outline(self):"

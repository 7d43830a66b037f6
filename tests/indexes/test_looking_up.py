"""Outline, symbols, read and repo_map, and how they find the document that is meant."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlm_rag.errors import RetrievalError
from rlm_rag.indexes import parsers
from rlm_rag.indexes.answering import Answerer
from rlm_rag.indexes.read import MAX_READ_CHARS, MAX_READ_LINES
from rlm_rag.indexes.requests import (
    OutlineRequest,
    ReadRequest,
    RepoMapRequest,
    Request,
    SymbolsRequest,
    SymbolsResult,
    TextResult,
)
from rlm_rag.lines import split_lines

Answers = Callable[[Mapping[str, str]], Answerer]

TASKS = (
    "class Task:\n    def cancel(self):\n        pass\n\n\ndef cancel(task):\n    task.cancel()\n"
)
DOCUMENTS = {
    "lib/tasks.py": TASKS,
    "lib/__init__.py": "from lib.tasks import Task\n",
    "app/__init__.py": "from lib.tasks import Task, cancel\ncancel(Task())\n",
    "test/test_tasks.py": "def test_cancel():\n    Task().cancel()\n",
    "paper.pdf#page=1": "Abstract\n",
    "paper.pdf#page=2": "Methods\nand more\n",
    "notes.dat": "one two\nthree\n\nfour\n",
    "empty.txt": "",
}


@pytest.fixture(scope="module")
def answerer(answers: Answers) -> Answerer:
    return answers(DOCUMENTS)


def text_of(answerer: Answerer, request: Request) -> TextResult:
    result = answerer.answer(request)
    assert isinstance(result, TextResult)
    return result


def symbols_of(answerer: Answerer, name: str, **options: Any) -> list[tuple[str, int, str]]:
    result = answerer.answer(SymbolsRequest(name, **options))
    assert isinstance(result, SymbolsResult)
    return [(symbol.path, symbol.line, symbol.kind) for symbol in result.symbols]


def test_an_outline_shows_lines_and_nesting(answerer: Answerer) -> None:
    result = text_of(answerer, OutlineRequest("lib/tasks.py"))
    assert result.text == "1: class Task:\n2:   def cancel(self):\n6: def cancel(task):"
    assert result.path == "lib/tasks.py"


def test_a_budget_leaves_out_the_deepest_first_and_says_so(answerer: Answerer) -> None:
    result = text_of(answerer, OutlineRequest("lib/tasks.py", budget_chars=40))
    assert result.text == "1: class Task: [+1]\n6: def cancel(task):"
    assert result.note is not None
    assert "2 of 3" in result.note
    least = text_of(answerer, OutlineRequest("lib/tasks.py", budget_chars=1))
    assert least.text == ""
    assert least.note is not None


def test_a_document_of_parts_shows_its_parts(answerer: Answerer) -> None:
    text = text_of(answerer, OutlineRequest("paper.pdf")).text
    assert text == "paper.pdf#page=1 (1 lines)\npaper.pdf#page=2 (2 lines)"


def test_a_document_without_definitions_shows_its_paragraphs(answerer: Answerer) -> None:
    result = text_of(answerer, OutlineRequest("notes.dat"))
    assert result.text == "1: one two\n4: four"
    assert result.note is not None
    assert text_of(answerer, OutlineRequest("empty.txt")).note is not None


@pytest.mark.parametrize(
    "path", ["lib/tasks.py", "tasks.py", "./lib/tasks.py", "/lib/tasks.py", "lib\\tasks.py",
             "l*/tasks.py", "../lib/tasks.py"]
)  # fmt: skip
def test_a_path_is_found_as_people_write_it(answerer: Answerer, path: str) -> None:
    if path == "tasks.py":
        assert text_of(answerer, OutlineRequest(path)).path == "lib/tasks.py"
    assert text_of(answerer, ReadRequest(path)).path == "lib/tasks.py"


def test_an_ambiguous_path_names_its_candidates(answerer: Answerer) -> None:
    error = text_of(answerer, OutlineRequest("__init__.py")).error
    assert error is not None
    assert "lib/__init__.py" in error
    assert "app/__init__.py" in error


def test_an_unknown_path_names_close_ones(answerer: Answerer) -> None:
    error = text_of(answerer, ReadRequest("lib/taks.py")).error
    assert error is not None
    assert "lib/tasks.py" in error


@pytest.mark.parametrize("path", ["", "  ", "\x00", "[", "a" * 5000, "..", "/", "*#"])
def test_a_path_that_is_none_is_an_error_not_an_exception(answerer: Answerer, path: str) -> None:
    assert text_of(answerer, ReadRequest(path)).error
    assert text_of(answerer, OutlineRequest(path)).error


def test_symbols_are_where_a_name_is_defined(answerer: Answerer) -> None:
    assert symbols_of(answerer, "cancel") == [
        ("lib/tasks.py", 2, "method"),
        ("lib/tasks.py", 6, "function"),
    ]
    assert symbols_of(answerer, "Task") == [("lib/tasks.py", 1, "class")]


@pytest.mark.parametrize(
    "name", ["Task.cancel", "Task::cancel", "Task.cancel()", "lib.Task.cancel"]
)
def test_a_qualified_name_is_the_member_of_that_class(answerer: Answerer, name: str) -> None:
    assert symbols_of(answerer, name) == [("lib/tasks.py", 2, "method")]


def test_a_name_qualified_by_its_module_is_found(answerer: Answerer) -> None:
    assert symbols_of(answerer, "tasks.cancel") == [("lib/tasks.py", 6, "function")]


def test_a_receiver_qualifies_as_a_class_does(answers: Answers) -> None:
    source = "func (s *Server) Handle() {\n}\nfunc (c *Client) Handle() {\n}\n"
    assert symbols_of(answers({"a.go": source}), "Server.Handle") == [("a.go", 1, "method")]


@pytest.mark.parametrize(
    ("path", "text", "name"),
    [
        ("a.css", ".box, #top { color: red }\n", ".box"),
        ("a.css", ".box, #top { color: red }\n", "#top"),
        ("a.R", "print.shop <- function(x) x\n", "print.shop"),
        ("a.mk", "dep_x.mk = 1\n", "dep_x.mk"),
        ("a.tex", "\\newcommand{\\half}[1]{x}\n", "\\half"),
    ],
)
def test_a_name_with_a_mark_in_it_is_found_as_it_is_written(
    answers: Answers, path: str, text: str, name: str
) -> None:
    for asked in (name, name.upper()):
        found = answers({path: text}).answer(SymbolsRequest(asked))
        assert isinstance(found, SymbolsResult)
        assert [one.name for one in found.symbols] == [name]


def test_members_and_names_with_a_dot_come_in_the_order_of_the_documents(answers: Answers) -> None:
    text = "b.c = 1\na.b.c = 2\n"
    code = "class b:\n    def c(self): pass\n"
    documents = {"a.py": code, "b.mk": text, "c.py": code}
    found = answers(documents).answer(SymbolsRequest("b.c"))
    assert isinstance(found, SymbolsResult)
    assert [(one.path, one.line, one.name) for one in found.symbols] == [
        ("a.py", 2, "c"),
        ("b.mk", 1, "b.c"),
        ("c.py", 2, "c"),
    ]


def test_other_capitals_are_tried_and_said(answerer: Answerer) -> None:
    result = answerer.answer(SymbolsRequest("TASK"))
    assert isinstance(result, SymbolsResult)
    assert [symbol.name for symbol in result.symbols] == ["Task"]
    assert result.note is not None
    assert "capitals" in result.note


def test_references_are_the_lines_with_the_word(answerer: Answerer) -> None:
    assert symbols_of(answerer, "Task", references=True, path_glob="lib/") == [
        ("lib/tasks.py", 1, "class"),
        ("lib/__init__.py", 1, "reference"),
    ]


def test_a_name_that_nothing_defines_is_said(answerer: Answerer) -> None:
    result = answerer.answer(SymbolsRequest("no_such_thing"))
    assert isinstance(result, SymbolsResult)
    assert result.symbols == ()
    assert result.note is not None


def test_where_none_is_found_it_is_said_that_a_document_was_only_scanned(
    answers: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parsers, "MAX_PARSED_BYTES", 10)
    answerer = answers({"a.py": "def other():\n    no_such_thing\n"})
    result = answerer.answer(SymbolsRequest("no_such_thing"))
    assert isinstance(result, SymbolsResult)
    assert result.symbols == ()
    assert "no definition of 'no_such_thing' found" in str(result.note)
    assert "a lexical scan found this" in str(result.note)


def test_symbols_of_nothing_are_refused(answerer: Answerer) -> None:
    with pytest.raises(RetrievalError, match="name is empty"):
        answerer.answer(SymbolsRequest(" "))


def test_read_numbers_the_lines(answerer: Answerer) -> None:
    result = text_of(answerer, ReadRequest("lib/tasks.py", 2, 3))
    assert result.text == "2:     def cancel(self):\n3:         pass"
    assert (result.path, result.line, result.end_line) == ("lib/tasks.py", 2, 3)


def test_read_goes_to_the_end_and_not_beyond(answerer: Answerer) -> None:
    assert text_of(answerer, ReadRequest("lib/tasks.py", 6)).end_line == 7
    assert text_of(answerer, ReadRequest("lib/tasks.py", 6, 900)).end_line == 7


@pytest.mark.parametrize(
    ("start", "end", "said"),
    [(0, None, "from 1"), (-3, 2, "from 1"), (8, None, "7 lines"), (5, 2, "before start=5")],
)
def test_a_range_that_is_none_is_said(
    answerer: Answerer, start: int, end: int | None, said: str
) -> None:
    error = text_of(answerer, ReadRequest("lib/tasks.py", start, end)).error
    assert error is not None
    assert said in error


def test_an_empty_document_reads_as_empty(answerer: Answerer) -> None:
    result = text_of(answerer, ReadRequest("empty.txt"))
    assert (result.text, result.error) == ("", None)
    assert result.note is not None


def test_a_long_read_is_cut_and_says_how_to_go_on(answers: Answers) -> None:
    answerer = answers({"a.txt": "x\n" * 1000, "wide.txt": "y" * 50_000 + "\nz\n"})
    result = text_of(answerer, ReadRequest("a.txt", 10))
    assert result.end_line == 9 + MAX_READ_LINES
    assert result.note is not None
    assert f"start={10 + MAX_READ_LINES}" in result.note
    wide = text_of(answerer, ReadRequest("wide.txt"))
    assert len(wide.text) <= MAX_READ_CHARS
    assert wide.note is not None
    assert "50,000" in wide.note
    assert text_of(answerer, ReadRequest("wide.txt", 2)).text == "2: z"


@settings(max_examples=50, deadline=None)
@given(st.text(st.sampled_from("ab\n\r\u2028é"), min_size=1, max_size=60), st.integers(1, 9))
def test_what_is_read_is_what_the_lines_are(answers: Answers, text: str, start: int) -> None:
    lines = split_lines(text)
    result = text_of(answers({"a.txt": text}), ReadRequest("a.txt", start))
    if start > len(lines):
        assert result.error is not None
    else:
        expected = [f"{n}: {line}" for n, line in enumerate(lines, start=1) if n >= start]
        assert result.text == "\n".join(expected)


def test_a_repo_map_shows_what_others_lean_on(answerer: Answerer) -> None:
    result = text_of(answerer, RepoMapRequest())
    assert result.text.startswith("lib/tasks.py:\n  1: class Task:")
    assert "test_cancel" not in result.text


def test_a_repo_map_keeps_to_its_budget_and_its_focus(answers: Answers) -> None:
    answerer = answers({f"m{n}.py": f"class Thing{n}:\n    pass\n" for n in range(30)})
    small = text_of(answerer, RepoMapRequest(budget_chars=80))
    assert len(small.text) <= 80
    assert small.note is not None
    focused = text_of(answerer, RepoMapRequest("Thing7"))
    assert focused.text == "m7.py:\n  1: class Thing7:"
    assert text_of(answerer, RepoMapRequest("zzz")).note is not None


@pytest.mark.parametrize(
    "request_",
    [
        ReadRequest(3),  # type: ignore[arg-type]
        ReadRequest("a.py", "1"),  # type: ignore[arg-type]
        ReadRequest("a.py", 1, 2.5),  # type: ignore[arg-type]
        OutlineRequest(None),  # type: ignore[arg-type]
        OutlineRequest("a.py", 0),
        RepoMapRequest(budget_chars=0),
        RepoMapRequest(focus=3),  # type: ignore[arg-type]
    ],
)
def test_a_bad_argument_is_an_error_in_the_result(answerer: Answerer, request_: Request) -> None:
    assert text_of(answerer, request_).error

"""What a question is taken to ask for."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_rag.indexes.inflections import inflected
from rlm_rag.indexes.kinds import Kind, kind_of
from rlm_rag.indexes.query import Query, parse_query
from rlm_rag.indexes.ranking import PLAIN, Weights
from rlm_rag.indexes.reports import title_and_body

REPORT = """Reader stops at a blank line
<!-- Thank you for the report!
Please search for duplicates first. -->
- [x] I searched the tracker
- a list of ours

```
Traceback (most recent call last):
  File "/usr/lib/python3/site-packages/net/retry.py", line 12, in wait
  File "C:\\work\\net\\reader.py", line 7
ValueError: no terminator
```
"""


def parsed(text: str) -> Query:
    return parse_query(text, weights=Weights())


def test_the_form_of_a_report_is_not_asked_for() -> None:
    query = parsed(REPORT)
    assert query.is_report
    assert not {b"thank", b"duplicates", b"tracker"} & query.terms.keys()
    assert {b"terminator", b"list", b"valueerror"} <= query.terms.keys()


def test_files_of_a_stack_trace_are_named_however_the_machine_writes_paths() -> None:
    names = parsed(REPORT).file_names
    assert "usr/lib/python3/site-packages/net/retry.py" in names
    assert any(name.endswith("work/net/reader.py") for name in names)


def test_the_first_line_of_several_weighs_more() -> None:
    query = parsed("blank line\nthe reader meets a terminator")
    assert query.terms[b"blank"] == pytest.approx(Weights().title * query.terms[b"terminator"])
    assert parsed("blank line").terms[b"blank"] == 1.0


def test_words_that_a_report_has_in_quoted_code_alone_weigh_less() -> None:
    terms = parsed(REPORT).terms
    assert terms[b"valueerror"] == pytest.approx(Weights().report_code * terms[b"list"])
    indented = "it fails\n" + "because of the list\n" * 20 + "\n    quoted(list)\n"
    assert parsed(indented).terms[b"quoted"] == pytest.approx(Weights().report_code)
    assert parsed("a list of\n    quoted things").terms[b"quoted"] == 1.0


@pytest.mark.parametrize(
    ("word", "forms"),
    [
        ("files", {b"file"}),
        ("parsed", {b"pars", b"parse"} | {b"parseds"}),
        ("caching", {b"cach", b"cache"} | {b"cachings"}),
        ("token", {b"tokens"}),
        ("class", set()),
        ("файлы", set()),
    ],
)
def test_other_forms_of_a_word(word: str, forms: set[bytes]) -> None:
    assert set(inflected(word.encode())) == forms


def test_forms_weigh_less_and_never_stand_for_what_is_asked() -> None:
    query = parsed("files cached file")
    assert b"file" not in query.forms
    assert all(weight < 1 for weight in query.forms.values())
    assert parse_query("files", weights=PLAIN).forms == {}


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("tests/test_net.py", Kind.TEST),
        ("src/net_test.go", Kind.TEST),
        ("src/app.spec.ts", Kind.TEST),
        ("CHANGELOG.md", Kind.RECORD),
        ("docs/whatsnew/v0.7.0.rst", Kind.RECORD),
        ("CHANGES", Kind.RECORD),
        ("src/app.egg-info/PKG-INFO", Kind.RECORD),
        ("docs/guide.rst", Kind.PROSE),
        ("README", Kind.PROSE),
        ("docs/conf.py", Kind.PROSE),
        ("examples/plot_a.py", Kind.PROSE),
        ("src/documents.py", None),
        ("engine/history.py", None),
        ("src/changes.rs", None),
        ("contest/latest.py", None),
    ],
)
def test_the_kind_of_a_file(path: str, kind: Kind | None) -> None:
    assert kind_of(path) is kind


def test_records_are_asked_for_by_name() -> None:
    assert parsed("what does the changelog say of retries").about_records
    assert not parsed("how is a retry delayed").about_records


@given(st.text())
def test_any_text_is_a_query(text: str) -> None:
    query = parsed(text)
    assert all(weight > 0 for weight in query.terms.values())
    assert not query.terms.keys() & query.forms.keys()
    title, body = title_and_body(text)
    assert len(title) + len(body) <= len(text)


@pytest.mark.parametrize("unit", ["a", "a.", "/a", "`", "<!--", "- [x] ", "a_", "()", "\\", "A1"])
def test_no_text_takes_long_to_parse(unit: str) -> None:
    text = unit * (100_000 // len(unit))
    started = time.process_time()
    query = parsed(f"{text}\n{text}")
    # A pattern that tries again from every character would take minutes.
    assert time.process_time() - started < 10
    assert len(query.terms) <= 100
    assert len(query.identifiers) <= 100
    assert len(query.file_names) <= 100

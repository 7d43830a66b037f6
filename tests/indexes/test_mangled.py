"""Mangled and nested documents never end or stop what asks, whatever they do to a grammar."""

from __future__ import annotations

import time

import pytest

from rlm_rag.indexes.definitions import definitions
from rlm_rag.indexes.grammars import GRAMMARS, Grammar, grammar_named
from rlm_rag.indexes.parsers import Parsers
from rlm_rag.lines import count_lines

from .mangled import SEEDS, mangled

MANY = 2000
FEW = 6
SCANNED = ("a.md", "a.rst", "a.adoc", "a.org", "a.txt", "a.yaml", "a.toml", "a.json", "a.ini",
           "a.unknown")  # fmt: skip


def check(grammars: list[Grammar], count: int, parsers: Parsers) -> None:
    documents = {
        (grammar.name, number): (grammar, data)
        for grammar in grammars
        for number, data in enumerate(mangled(grammar.name, count))
    }
    found = dict(parsers.parse((key, grammar, data) for key, (grammar, data) in documents.items()))
    assert found.keys() == documents.keys()
    for key, parsed in found.items():
        assert parsed.installed
        lines = count_lines(documents[key][1])
        for one in parsed.definitions:
            assert one.name
            assert 1 <= one.line <= one.end_line <= max(lines, one.line) + 1
    good = dict(parsers.parse([(0, grammar_named("python"), b"def good(): pass\n")]))
    assert [one.name for one in good[0].definitions] == ["good"]


def test_every_language_has_a_seed() -> None:
    assert set(SEEDS) == {grammar.name for grammar in GRAMMARS}


@pytest.mark.parametrize("grammar", GRAMMARS, ids=lambda grammar: grammar.name)
def test_a_seed_is_a_text_of_its_language(grammar: Grammar, parsers: Parsers) -> None:
    found = dict(parsers.parse([(0, grammar, SEEDS[grammar.name].encode())]))
    assert found[0].failure is None
    assert found[0].definitions


def test_some_mangled_documents_of_each_language_do_no_harm(parsers: Parsers) -> None:
    check(list(GRAMMARS), FEW, parsers)


@pytest.mark.deep
@pytest.mark.parametrize("grammar", GRAMMARS, ids=lambda grammar: grammar.name)
def test_two_thousand_mangled_documents_do_no_harm(grammar: Grammar, parsers: Parsers) -> None:
    check([grammar], MANY, parsers)


@pytest.mark.parametrize("path", SCANNED)
def test_mangled_documents_are_scanned_in_no_time(path: str) -> None:
    sources = [data for name in ("ruby", "html", "make") for data in mangled(name, 20)]
    nested = [b">" * 255 + b" x\n", b"- " * 254 + b"a: b\n", b"{" * 9000, b'"a":{' * 9000,
              b"/*" * 20_000, b"[" * 20_000, b"a:\n " * 9000]  # fmt: skip
    started = time.process_time()
    for data in sources + nested:
        for one in definitions(path, data):
            assert 1 <= one.line <= one.end_line
    assert time.process_time() - started < 6

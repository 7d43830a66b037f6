"""The processes that parse: what a document that hangs or crashes one costs."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rlm_rag.errors import MissingExtraError
from rlm_rag.indexes.grammars import Grammar, grammar_named
from rlm_rag.indexes.nesting import MOST_PARENTS
from rlm_rag.indexes.parsers import MAX_PARSED_BYTES, Parsed, Parsers
from rlm_rag.indexes.tree import parsed

PYTHON = grammar_named("python")
GOOD = b"def good():\n    pass\n"
# Takes the grammar seconds.
SLOW = b"(" * 300_000


def parse(parsers: Parsers, *documents: bytes) -> dict[int, Parsed]:
    return dict(parsers.parse((n, PYTHON, data) for n, data in enumerate(documents)))


def names(parsed: Parsed) -> list[str]:
    return [one.name for one in parsed.definitions]


@pytest.fixture
def alone() -> Iterator[Parsers]:
    parsers = Parsers(1)
    yield parsers
    parsers.close()


def children() -> list[int]:
    return [
        int(pid)
        for task in Path("/proc/self/task").iterdir()
        for pid in (task / "children").read_text().split()
    ]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_process_that_dies_costs_the_document_that_it_was_busy_with(alone: Parsers) -> None:
    before = set(children())

    def kill() -> None:
        while not (started := set(children()) - before):
            time.sleep(0.01)
        time.sleep(0.3)
        os.kill(started.pop(), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    found = parse(alone, SLOW, GOOD)
    killer.join()
    assert found[0].failure == "crashed (SIGKILL)"
    assert names(found[1]) == ["good"]
    alone.close()
    assert set(children()) <= before


def test_a_process_that_is_late_is_ended_and_the_failure_does_not_last() -> None:
    parsers = Parsers(1, wait_seconds=0.3)
    found = parse(parsers, SLOW)
    assert found[0].failure == "did not end within 0.3 s"
    assert not found[0].lasting
    parsers.close()


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system counts no such time")
def test_what_is_nested_deeply_is_given_up_by_its_size_and_the_next_document_is_read() -> None:
    # On a loaded machine a second of its own may take a process minutes.
    parsers = Parsers(1, wait_seconds=300.0)
    found = parse(parsers, b"- " * 60_000, GOOD)
    parsers.close()
    assert found[0].failure == "took longer than 1.2 s"
    assert names(found[1]) == ["good"]


def test_many_documents_come_back_under_their_keys(parsers: Parsers) -> None:
    found = parse(parsers, *(b"def f%d(): pass\n" % n for n in range(200)))
    assert {key: names(one) for key, one in found.items()} == {n: [f"f{n}"] for n in range(200)}


def test_a_document_left_half_way_disturbs_no_later_one(alone: Parsers) -> None:
    documents = ((n, PYTHON, b"def f%d(): pass\n" % n) for n in range(9))
    left = alone.parse(documents)
    next(left)
    left.close()
    assert names(parse(alone, GOOD)[0]) == ["good"]


def test_a_document_that_is_too_large_is_not_parsed(parsers: Parsers) -> None:
    found = parse(parsers, b"#" * (MAX_PARSED_BYTES + 1), GOOD)
    assert "8 MiB" in str(found[0].failure)
    assert names(found[1]) == ["good"]


def test_a_grammar_that_is_not_installed_says_how_to_install_it() -> None:
    absent = Grammar("python", (), wheel="tree_sitter_of_nothing")
    with pytest.raises(MissingExtraError, match="python is not installed") as raised:
        parsed(GOOD, absent)
    assert raised.value.hint == "pip install 'rlm-rag[grammars]'"


@pytest.mark.deep
@pytest.mark.parametrize(
    ("grammar", "data"),
    [
        ("python", b"(" * 1_000_000),
        ("python", b"[" * 8_000_000),
        ("typescript", b"a<" * 500_000),
        ("rust", b'r#"\n' * 100_000),
        ("javascript", b"`${" * 300_000),
    ],
)
def test_what_hangs_or_crashes_a_grammar_ends_in_time(
    grammar: str, data: bytes, alone: Parsers
) -> None:
    started = time.monotonic()
    found = dict(alone.parse([(0, grammar_named(grammar), data)]))
    assert found[0].failure is not None or found[0].definitions == ()
    assert time.monotonic() - started < 40
    assert names(parse(alone, GOOD)[0]) == ["good"]


def test_what_is_nested_by_the_hundred_is_told_with_the_innermost_it_belongs_to(
    parsers: Parsers,
) -> None:
    text = "".join(f"{' ' * n}class C{n}:\n" for n in range(90)) + " " * 90 + "x = 1\n"
    found = parse(parsers, text.encode())[0]
    assert found.failure is None
    last = next(one for one in found.definitions if one.name == "C89")
    assert last.parents == tuple(f"C{n}" for n in range(89 - MOST_PARENTS, 89))
    assert last.depth == 89

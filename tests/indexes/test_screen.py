"""What looks for matches by a few of their characters passes none over."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlm_rag.indexes import grep as lines
from rlm_rag.indexes.grep_corpus import grep
from rlm_rag.indexes.patterns import compile_pattern
from rlm_rag.indexes.requests import GrepRequest
from rlm_rag.indexes.screen import Screen
from rlm_rag.lines import split_lines
from rlm_rag.packed import PackedCorpus

PATTERNS = [
    "kiss|Zebra|quay",
    "[A-Z]{4}[0-9]{2}",
    r"[A-Z]{2,}x?\d\d[-+]",
    r"(?:ab){2}Q[0-9](?=Z)|zz(?:X|Y)+Q",
    r"(?i)kiss|q[uv]ay",
    r"[^\W\d_]{3}[-+][PQ][0-9]\d",
    r"(?i)Q(?!x)Z\bK?|quay$",
]
WORDS = [
    *("kiss", "KISS", "\u212aI\u017f\u017f", "k\u0130ss", "k\u0131ss", "Zebra", "ZEBRA", "quay"),
    *("ABCD12", "ABCDx12-", "AB\u0663\u0663-", "ababQ1Z", "zzXYQ", "猫猫猫-Q0\u0663", "abc-Q12"),
    *("QZ", "QZK", " ", "é", "x" * 70, "\udc80"),
]
TEXTS = st.lists(st.sampled_from([*WORDS, "\n", "\n"]), max_size=30).map("".join)


@settings(max_examples=60, deadline=None)
@given(st.booleans(), st.sampled_from(PATTERNS), TEXTS)
def test_every_matching_line_has_a_place(ignore_case: bool, pattern: str, text: str) -> None:
    compiled = compile_pattern(pattern, ignore_case=ignore_case)
    assert compiled.runs
    # Far from all, so that places are not too many.
    padded = text + "\n" + "~" * 400 * (len(text) + 1)
    data = padded.encode("utf-8", "surrogatepass")
    told = Screen(compiled.runs).told(data)
    assert told is not None
    held = {data.count(b"\n", 0, at) for at in told.places.tolist()}
    matching = {
        number
        for number, line in enumerate(padded.split("\n"))
        if re.search(pattern, line, re.IGNORECASE if ignore_case else 0)
    }
    assert matching <= held


@pytest.mark.parametrize(
    "pattern",
    ["self", r"\w+ \w+", "a|b", r"(\w)\1", ".*", r"\d+\.\d+", "(?i:kiss)|Zebra"],
)
def test_what_is_found_otherwise_or_everywhere_has_no_runs(pattern: str) -> None:
    assert compile_pattern(pattern, ignore_case=False).runs == ()


@pytest.mark.parametrize("pattern", PATTERNS)
def test_large_corpora_give_the_same_lines(
    pack: Callable[[Mapping[str, str]], PackedCorpus],
    monkeypatch: pytest.MonkeyPatch,
    pattern: str,
) -> None:
    rest = "~" * 5000
    corpus = pack(
        {
            "a.txt": "\n".join([*WORDS[:12], rest]),
            "b.txt": f"{rest}\r\nkiss\r\nABCD12\r\n",
            "c.txt": f"{rest}\rZebra\rquay\r",
            "d.txt": rest,
            "e.txt": "\n".join([rest, *WORDS]),
            "f.txt": "kiss quay ABCD12\n" * 90,
        }
    )
    request = GrepRequest(pattern, k=7, before=1, after=1)
    expected = grep(corpus, request, None)
    monkeypatch.setattr(lines, "_WORTH_NUMPY_BYTES", 0)
    assert grep(corpus, request, None) == expected
    assert grep(corpus, GrepRequest(pattern, ignore_case=True), None).total >= expected.total


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["kiss|Zebra|quay", "zebra", "kiss", "(?i)is|ABCD", "Zebra|\u212a", *PATTERNS]),
    st.booleans(),
    st.lists(st.one_of(TEXTS, st.sampled_from(["Zeb", "ra", "k", "iss\r\n", "kiss"])), max_size=6),
    st.sampled_from([0, 2, 50]),
    st.integers(0, 6),
)
def test_documents_looked_through_at_once_give_the_lines_of_each(
    pack: Callable[[Mapping[str, str]], PackedCorpus],
    pattern: str,
    ignore_case: bool,
    texts: list[str],
    k: int,
    left_out: int,
) -> None:
    documents = {f"{number}.txt": text for number, text in enumerate(texts)}
    # Far from all, so that places are not too many.
    corpus = pack(documents | {"z.txt": "~" * 60_000})
    compiled = re.compile(pattern, re.IGNORECASE if ignore_case else 0)
    lines_of = {
        path: [line for line in split_lines(text) if compiled.search(line)]
        for path, text in documents.items()
        if path != f"{left_out}.txt"
    }
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(lines, "_WORTH_NUMPY_BYTES", 0)
        request = GrepRequest(pattern, k=k, ignore_case=ignore_case)
        result = grep(corpus, request, lambda path: path != f"{left_out}.txt")
    found = [line for path in lines_of for line in lines_of[path]]
    assert result.counts == {path: len(some) for path, some in lines_of.items() if some}
    assert [hit.text for hit in result.hits] == found[:k]


def test_lines_that_are_counted_alone_are_those_of_each_document(
    pack: Callable[[Mapping[str, str]], PackedCorpus], monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = {
        "a.txt": "kiss kiss\nquay\n\nkis\nZeb",
        "b.txt": "ra\nkiss",
        "c.txt": "kiss\nk\u0130ss\n\u212aI\u017f\u017f quay",
        "d.txt": "é kiss\nqua",
        "e.txt": "y\rkiss\rkiss",
        "f.txt": "\u0131x\nkiss\nand more",
        "g.txt": "~" * 60_000,
    }
    monkeypatch.setattr(lines, "_WORTH_NUMPY_BYTES", 0)
    counted = grep(pack(documents), GrepRequest("kiss|Zebra|quay", k=0), None)
    each = {"a.txt": 2, "b.txt": 1, "c.txt": 2, "d.txt": 1, "e.txt": 2, "f.txt": 1}
    assert counted.counts == each
    counted = grep(pack(documents), GrepRequest("KISS|ZEBRA|QUAY", k=0, ignore_case=True), None)
    assert counted.counts == each | {"c.txt": 3}


def test_a_long_literal_is_found_in_each_document_that_holds_it(
    pack: Callable[[Mapping[str, str]], PackedCorpus],
) -> None:
    corpus = pack(
        {
            "a.txt": "ThreadPool",
            "b.txt": "",
            "c.txt": "Thread",
            "d.txt": "Pool ThreadPool\r\nThreadPool ThreadPool",
            "e.txt": "\nThreadPool",
        }
    )
    result = grep(corpus, GrepRequest("ThreadPool"), None)
    assert dict(result.counts) == {"a.txt": 1, "d.txt": 2, "e.txt": 1}

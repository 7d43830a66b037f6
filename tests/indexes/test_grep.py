from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlm_rag.errors import RetrievalError
from rlm_rag.indexes.answering import Answerer
from rlm_rag.indexes.patterns import compile_pattern
from rlm_rag.indexes.requests import MAX_GREP_HITS, MAX_LINE_CHARS, GrepRequest, GrepResult
from rlm_rag.lines import split_lines

Answers = Callable[[Mapping[str, str]], Answerer]
PackFile = Callable[[Mapping[str, str]], Path]

PATTERNS = [
    "a", "ab", "^", "$", "^$", "^a", "a$", "b*", "a|b", r"\bab\b", r"\s", r"\S+", "[^a]", "[^a]+b",
    ".", ".*", "(?s)a.b", r"a\sb", r"\Aab", r"ab\Z", "(?<=a)b", "(?<!a)b", "(?!b)a", "(?=.*b)a",
    r"(a)\1", "(?i)AB", "(?i:A)b", r"a\r", r"\n", "é+", "(?>a+)b", "a{2,3}", "[a-c]$", r"\W",
    "(?m)^b", "a.?b", "x?$", r"(a|\n)b", r"[\r]", "ab(?!$)", "(?:ab)+", "(a)?(?(1)b|c)",
    "(?i)sK|ab", "ac|b c", "(ab|c)+$", "(?i)(?:ka|S)b?", "i|(?i:K)",
    r"\w+\s*a\s*b", r"a\s*$", r"a\s*+$", r"a(?!\s)", r"a(?=\s*$)", r"a\s*\Z", r"(?s)a.*b",
    r"(\w)a\1", r"b(a)?\1", r"(b)?a(?(1)b|c)", "a[^b]*b", "(?>a\\s*)b?", r"^a+b", r"a\b", "(?m)a$",
    "a$|b", "a()b*",
]  # fmt: skip
texts = st.text(
    st.sampled_from("ab cé\n\r\u2028\x0b\x0c\x85") | st.sampled_from("aABkKsS\u017f\u212aİı\n"),
    max_size=40,
)


def grep(answerer: Answerer, pattern: str, **options: Any) -> GrepResult:
    result = answerer.answer(GrepRequest(pattern, **options))
    assert isinstance(result, GrepResult)
    return result


@settings(max_examples=settings().max_examples * 4)
@given(texts, st.sampled_from(PATTERNS), st.booleans(), st.sampled_from([1, 50]))
def test_hits_are_those_of_a_search_line_by_line(
    answers: Answers, text: str, pattern: str, ignore_case: bool, k: int
) -> None:
    compiled = re.compile(pattern, re.IGNORECASE if ignore_case else 0)
    expected = [
        (number, line)
        for number, line in enumerate(split_lines(text), start=1)
        if compiled.search(line)
    ]
    result = grep(answers({"a.txt": text}), pattern, ignore_case=ignore_case, k=k)
    assert [(hit.line, hit.text) for hit in result.hits] == expected[:k]
    assert result.total == len(expected)
    assert result.counts == ({"a.txt": len(expected)} if expected else {})
    assert result.truncated == (len(expected) > k)


def test_counts_are_complete_when_hits_are_capped(answers: Answers) -> None:
    documents = {"a.txt": "x\n" * 300, "b.txt": "x\ny\n" * 5}
    result = grep(answers(documents), "x", k=3)
    assert len(result.hits) == 3
    assert result.counts == {"a.txt": 300, "b.txt": 5}
    assert (result.total, result.truncated, result.error) == (305, True, None)


def test_hits_are_never_more_than_the_most(answers: Answers) -> None:
    result = grep(answers({"a.txt": "x\n" * 300}), "x", k=5000)
    assert len(result.hits) == MAX_GREP_HITS
    assert result.note is not None
    assert str(MAX_GREP_HITS) in result.note


def test_neighbours_come_with_a_hit_where_they_are_asked_for(answers: Answers) -> None:
    result = grep(answers({"a.txt": "1\r\n2\r\nx\r\n4\r\n"}), "x", before=5, after=1)
    (hit,) = result.hits
    assert hit.before == ((1, "1"), (2, "2"))
    assert hit.after == ((4, "4"),)
    last = grep(answers({"a.txt": "1\nx"}), "x", before=1, after=3).hits[0]
    assert (last.before, last.after) == (((1, "1"),), ())


def test_a_long_line_is_cut_around_the_match(answers: Answers) -> None:
    text = "p" * 1000 + "needle" + "q" * 1000 + "\n" + "needle" + "z" * 1000
    first, second = grep(answers({"a.txt": text}), "needle").hits
    assert "needle" in first.text
    assert first.text.startswith("…")
    assert first.text.endswith("…")
    assert second.text.startswith("needle")
    assert max(len(first.text), len(second.text)) <= MAX_LINE_CHARS


@pytest.mark.parametrize(("pattern", "place"), [("(", "position 0"), ("a[", "position 1")])
def test_a_bad_pattern_is_an_error_with_its_place(
    answers: Answers, pattern: str, place: str
) -> None:
    result = grep(answers({"a.txt": "a\n"}), pattern)
    assert result.error is not None
    assert place in result.error
    assert result.truncated


def test_the_time_limit_holds_against_a_pattern_that_explodes(answers: Answers) -> None:
    documents = {"a.txt": "ok aa\n", "b.txt": "a" * 60 + "!\n"}
    started = time.monotonic()
    result = grep(answers(documents), "(a+)+$", timeout_seconds=0.2)
    assert time.monotonic() - started < 5
    assert result.error is not None
    assert "0.2 s" in result.error
    assert result.truncated
    assert result.counts == {"a.txt": 1}


def test_a_glob_narrows_the_search_and_one_without_a_file_is_said(answers: Answers) -> None:
    answerer = answers({"src/a.py": "x\n", "src/b/c.py": "x\n", "a.md": "x\n"})
    assert set(grep(answerer, "x", path_glob="src/**/*.py").counts) == {"src/a.py", "src/b/c.py"}
    assert "nothing/" in (grep(answerer, "x", path_glob="nothing/").note or "")


def test_lone_surrogates_and_nul_bytes_do_no_harm(answers: Answers) -> None:
    result = grep(answers({"a.txt": "a\x00b\n\udc80x\n"}), "\udc80|\x00")
    assert [hit.line for hit in result.hits] == [1, 2]


@pytest.mark.parametrize(
    "options", [{"k": 0}, {"before": -1}, {"after": "2"}, {"timeout_seconds": 0}]
)
def test_a_bad_argument_is_said(answers: Answers, options: dict[str, Any]) -> None:
    with pytest.raises(RetrievalError, match=next(iter(options))):
        grep(answers({"a.txt": "x\n"}), "x", **options)


def test_an_empty_pattern_is_refused(answers: Answers) -> None:
    with pytest.raises(RetrievalError, match="pattern is empty"):
        grep(answers({"a.txt": "x\n"}), "")


@pytest.mark.parametrize(
    ("pattern", "literals"),
    [
        ("kmalloc", ["kmalloc"]),
        (r"\bkmalloc\b", ["kmalloc"]),
        (r"def \w+_exc", ["def "]),
        ("(?:foo)+bar", ["bar"]),
        ("(?:foo)+", ["foo"]),
        (r"x(\w)foo\1", ["foo"]),
        (r"\w+_foo\(\w, \w+\)", ["_foo("]),
        ("a?foo", ["foo"]),
        ("foo|bar", ["foo", "bar"]),
        ("foo|x?", []),
        ("(fo+|ba+r)x|(?:zap){2}", ["x", "zap"]),
        ("(foo)?", []),
        ("(?i)Foo|Bar", ["foo", "bar"]),
        ("(?i)é+ab", ["ab"]),
        ("(?i:foo)x", ["x"]),
        ("|".join("abcdefghi"), []),
    ],
)
def test_what_every_match_holds_one_of_is_known(pattern: str, literals: list[str]) -> None:
    assert list(compile_pattern(pattern, ignore_case=False).literals) == literals


def test_a_pattern_that_is_too_long_is_refused() -> None:
    with pytest.raises(RetrievalError, match="10,000"):
        compile_pattern("a" * 10_001, ignore_case=False)


def shared(pack_file: PackFile, documents: Mapping[str, str]) -> Answerer:
    """Return what answers as the index process does, with the helper that it starts."""
    return Answerer.open(pack_file(documents))


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many pieces, and a helper for the second of them."""
    monkeypatch.setattr("rlm_rag.indexes.grep_corpus._PIECE_BYTES", 2000)
    monkeypatch.setattr("rlm_rag.indexes.grep_corpus._WORTH_A_HELPER_SECONDS", 0.0)


@pytest.mark.usefixtures("eager")
def test_two_processes_find_what_one_does(pack_file: PackFile, answers: Answers) -> None:
    documents = {f"d{n}.txt": f"one {n}\ntwo\n" * 400 + "last" for n in range(60)}
    with closing(shared(pack_file, documents)) as answerer:
        alone = answers(documents)
        for options in ({"k": 3}, {"k": 200, "after": 2}, {"path_glob": "d1*"}):
            for pattern in (r"[a-z]+ \d*7", "two|last", r"\w+\s1"):
                assert grep(answerer, pattern, **options) == grep(alone, pattern, **options)
        assert answerer._holdings._helper is not None
        assert answerer._holdings._helper.running


@pytest.mark.usefixtures("eager")
def test_a_helper_that_is_killed_loses_nothing_and_is_started_again(pack_file: PackFile) -> None:
    documents = {f"d{n}.txt": f"one {n}\ntwo\n" * 400 for n in range(150)}
    with closing(shared(pack_file, documents)) as answerer:
        helper = answerer._holdings._helper
        assert helper is not None
        assert grep(answerer, "two").total == 60_000
        for delay in (0.0, 0.02, 0.05):
            process = helper._process
            assert process is not None
            timer = threading.Timer(delay, process.kill)
            timer.start()
            assert grep(answerer, "two").total == 60_000
            timer.join()
        ended = helper._process
    assert ended is not None
    assert ended.returncode is not None


@pytest.mark.usefixtures("eager")
def test_the_time_limit_holds_in_both_processes(pack_file: PackFile) -> None:
    slow = "a" * 60 + "!\n"
    documents = {f"d{n}.txt": "ok\n" * 1000 for n in range(4)}
    for name in ("a", "e"):
        with closing(shared(pack_file, {**documents, f"{name}.txt": slow})) as answerer:
            started = time.monotonic()
            result = grep(answerer, "(a+)+$", timeout_seconds=1.0)
            assert time.monotonic() - started < 8
            assert result.error_kind == "time_limit"
            assert result.truncated
            assert grep(answerer, "ok").total == 4000

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlm_rag.errors import RetrievalError
from rlm_rag.indexes.answering import Answerer
from rlm_rag.indexes.ranking import Weights
from rlm_rag.indexes.requests import MAX_K, MAX_SNIPPET_CHARS, SearchRequest, SearchResult
from rlm_rag.indexes.terms import raw_words, word_terms
from rlm_rag.indexes.windows import window_count, window_lines
from rlm_rag.lines import split_lines

Answers = Callable[[Mapping[str, str]], Answerer]

line_ends = st.sampled_from(["\n", "\r\n", "\r", "\u2028", "\x0b", "\n\n"])
words = st.sampled_from(["load", "Parser", "retry_count", "getUser", "猫が", "мир", "x", "(", "é"])
texts = st.lists(
    st.tuples(st.lists(words, max_size=5).map(" ".join), line_ends).map("".join), max_size=100
).map("".join)


def search(answerer: Answerer, query: str, k: int = 10, glob: str | None = None) -> SearchResult:
    result = answerer.answer(SearchRequest(query, k, glob))
    assert isinstance(result, SearchResult)
    return result


def paths(answerer: Answerer, query: str, **options: int) -> list[str]:
    return [hit.path for hit in search(answerer, query, **options).hits]


@settings(max_examples=40, deadline=None)
@given(st.lists(texts, min_size=1, max_size=3), st.lists(words, min_size=1).map(" ".join))
def test_every_hit_and_every_line_of_its_snippet_is_the_documents(
    answers: Answers, contents: list[str], query: str
) -> None:
    documents = {f"d{number}.py": content for number, content in enumerate(contents)}
    for hit in search(answers(documents), query, k=50).hits:
        lines = split_lines(documents[hit.path])
        assert 1 <= hit.line <= hit.end_line <= len(lines)
        assert len(hit.snippet) <= MAX_SNIPPET_CHARS
        shown = [line for line in hit.snippet.split("\n") if re.match(r"\d+: ", line)]
        numbers = [int(line.partition(": ")[0]) for line in shown]
        assert numbers == sorted(set(numbers))
        for number, line in zip(numbers, shown, strict=True):
            assert hit.line <= number <= hit.end_line
            assert line.partition(": ")[2].strip("…") in lines[number - 1]


@settings(max_examples=25, deadline=None)
@given(st.lists(texts, min_size=1, max_size=3))
def test_every_window_is_reached_by_its_rarest_term(answers: Answers, contents: list[str]) -> None:
    documents = {f"d{number}.txt": content for number, content in enumerate(contents)}
    answerer = answers(documents)
    held: dict[tuple[str, int, int], set[bytes]] = {}
    for path, content in documents.items():
        lines = split_lines(content)
        for number in range(window_count(len(lines))):
            first, last = window_lines(number, len(lines))
            text = "\n".join(lines[first - 1 : last])
            held[path, first, last] = {t for w in raw_words(text) for t in word_terms(w)}
    for window, terms in held.items():
        if terms:
            rarest = min(terms, key=lambda term: (sum(term in t for t in held.values()), term))
            hits = search(answerer, rarest.decode(), k=MAX_K).hits
            assert window in {(hit.path, hit.line, hit.end_line) for hit in hits}


def test_the_definition_of_an_identifier_ranks_before_its_uses(answers: Answers) -> None:
    uses = "from a import parse_header\n" + "parse_header(parse_header(x))\n" * 30
    documents = {f"use{number}.py": uses for number in range(5)}
    answerer = answers(documents | {"a.py": "\n" * 20 + "def parse_header(line):\n    return 1\n"})
    assert paths(answerer, "where is parse_header defined")[0] == "a.py"
    assert paths(answerer, "parseHeader")[0] == "a.py"
    assert paths(answerer, "parse_header")[0] == "a.py"


@pytest.mark.parametrize("name", ["net/retry.py", "retry.py", "./net/retry.py"])
def test_a_file_named_in_the_query_ranks_first(answers: Answers, name: str) -> None:
    documents = {f"d{number}.py": "backoff = delay * 2  # backoff delay\n" for number in range(9)}
    answerer = answers(documents | {"net/retry.py": "import time\n"})
    assert paths(answerer, f"how does {name} compute the backoff delay")[0] == "net/retry.py"


def test_tests_rank_lower_unless_they_are_asked_for(answers: Answers) -> None:
    body = "backoff delay grows\n"
    answerer = answers({"a/test_net.py": body, "net.py": body})
    assert paths(answerer, "backoff delay")[0] == "net.py"
    assert set(paths(answerer, "tests of backoff delay")) == {"net.py", "a/test_net.py"}


def test_records_of_changes_rank_lower_unless_they_are_asked_for(answers: Answers) -> None:
    body = "backoff delay grows\n"
    answerer = answers({"CHANGELOG.md": body, "net.md": body})
    assert paths(answerer, "backoff delay")[0] == "net.md"
    assert paths(answerer, "backoff delay in the changelog")[0] == "CHANGELOG.md"


def test_a_report_asks_for_code_before_prose_and_a_question_does_not(answers: Answers) -> None:
    body = "backoff delay grows\n"
    answerer = answers({"a.md": body, "z.py": body})
    assert paths(answerer, "backoff delay grows")[0] == "a.md"
    report = "backoff delay grows\n```\nTraceback of the delay\n```\n"
    assert paths(answerer, report)[0] == "z.py"


def test_of_a_report_a_file_with_two_windows_about_it_comes_before_one_with_one(
    answers: Answers,
) -> None:
    about, filler = "backoff delay grows\n", "x = 1\n" * 60
    longer = about + filler + about + filler
    answerer = answers({"a.py": about + filler + filler, "b.py": longer})
    report = "backoff delay grows\n```\nTraceback of the delay\n```\n"
    assert paths(answerer, report)[0] == "b.py"
    plain = Answerer.of(
        answerer._corpus, weights=replace(Weights(), report_second=0.0, whole_file=0.0)
    )
    assert paths(plain, report)[0] == "a.py"


def test_a_test_that_alone_holds_all_that_is_asked_for_comes_first(answers: Answers) -> None:
    documents = {f"m{number}.py": "the code of the gate\n" * 9 for number in range(9)}
    answerer = answers(documents | {"tests/test_a.py": "x = 1\n# access code of Lisbon gate\n"})
    assert paths(answerer, "access code Lisbon gate")[0] == "tests/test_a.py"


def test_a_word_is_found_in_another_form(answers: Answers) -> None:
    answerer = answers({"a.py": "parse(token)\n", "b.py": "sing(song)\n"})
    assert paths(answerer, "parsing of tokens") == ["a.py"]


def test_a_file_of_a_stack_trace_from_another_machine_ranks_first(answers: Answers) -> None:
    documents = {f"d{number}.py": "delay failed at wait\n" * 5 for number in range(9)}
    answerer = answers(documents | {"net/retry.py": "def pause(): ...\n# wait\n"})
    trace = 'it failed\n  File "/opt/x/site-packages/net/retry.py", line 1, in wait\n'
    assert paths(answerer, trace)[0] == "net/retry.py"


def test_windows_of_one_file_do_not_crowd_the_others_out(answers: Answers) -> None:
    long = "".join(f"needle {number}\n" for number in range(200))
    answerer = answers({"long.txt": long, "short.txt": "filler\n" * 30 + "needle\n"})
    hits = search(answerer, "needle", k=5).hits
    spans = sorted((hit.line, hit.end_line) for hit in hits if hit.path == "long.txt")
    assert all(later[0] > earlier[1] for earlier, later in itertools.pairwise(spans))
    assert "short.txt" in {hit.path for hit in hits}


def test_copies_of_a_file_do_not_crowd_the_others_out(answers: Answers) -> None:
    copies = {f"copy{number}.txt": "needle needle\n" for number in range(9)}
    answerer = answers(copies | {"z.txt": "a needle in much other text\n" + "filler\n" * 20})
    assert paths(answerer, "needle", k=2) == ["copy0.txt", "z.txt"]
    assert len(paths(answerer, "needle", k=20)) == 10


def test_the_snippet_shows_the_line_that_answers_not_the_first_ones(answers: Answers) -> None:
    lines = [f"some_other_setting_{number} = {number}  # nothing" for number in range(35)]
    lines[30] = "retry_backoff_seconds = 1.5"
    hits = search(answers({"a.py": "\n".join(lines)}), "retry backoff seconds").hits
    assert "31: retry_backoff_seconds = 1.5" in hits[0].snippet


def test_a_long_line_is_cut_around_what_matches(answers: Answers) -> None:
    text = "x " * 3000 + "needle" + " y" * 3000
    hits = search(answers({"a.txt": text}), "needle").hits
    assert "needle" in hits[0].snippet
    assert len(hits[0].snippet) <= MAX_SNIPPET_CHARS


def test_equal_windows_are_ordered_by_path_then_line(answers: Answers) -> None:
    documents = {f"{name}.txt": "the same needle\n" for name in ("c", "a", "b")}
    assert paths(answers(documents), "needle") == ["a.txt", "b.txt", "c.txt"]


def test_a_query_of_stop_words_alone_still_finds(answers: Answers) -> None:
    assert paths(answers({"a.txt": "to be or not to be\n", "b.txt": "x\n"}), "to be") == ["a.txt"]


def test_a_glob_limits_the_hits_and_one_without_a_file_is_said(answers: Answers) -> None:
    answerer = answers({"src/a.py": "needle\n", "doc/a.md": "needle\n"})
    assert [h.path for h in search(answerer, "needle", glob="src/**/*.py").hits] == ["src/a.py"]
    missing = search(answerer, "needle", glob="*.rs")
    assert missing.hits == ()
    assert missing.note is not None
    assert "*.rs" in missing.note


def test_a_corpus_without_text_has_no_hits(answers: Answers) -> None:
    assert search(answers({"a.txt": "", "b.txt": "\n\n"}), "anything").hits == ()


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (SearchRequest(""), "query is empty"),
        (SearchRequest("  \n"), "query is empty"),
        (SearchRequest(3), "query must be a string"),  # type: ignore[arg-type]
        (SearchRequest("x", 0), "k=0"),
        (SearchRequest("x", -1), "k=-1"),
        (SearchRequest("x", 1.5), "whole number"),  # type: ignore[arg-type]
        (SearchRequest("x", True), "whole number"),
        (SearchRequest("x", path_glob=3), "path_glob"),  # type: ignore[arg-type]
    ],
)
def test_a_bad_argument_is_said(answers: Answers, request_: SearchRequest, said: str) -> None:
    with pytest.raises(RetrievalError, match=re.escape(said)):
        answers({"a.txt": "x\n"}).answer(request_)


def test_a_k_beyond_the_most_is_capped_and_said(answers: Answers) -> None:
    note = search(answers({"a.txt": "x\n"}), "x", k=MAX_K + 1).note
    assert note is not None
    assert str(MAX_K) in note


def test_a_question_as_long_as_an_issue_is_answered(answers: Answers) -> None:
    query = "Traceback: `load_config()` fails\n" + "lorem ipsum dolor sit amet 12.3 " * 2000
    documents = {"conf.py": "def load_config():\n    pass\n", "b.py": "print(1)\n"}
    assert paths(answers(documents), query)[0] == "conf.py"


def test_words_in_one_line_come_before_words_far_apart(answers: Answers) -> None:
    filler = [f"other {number}" for number in range(30)]
    apart = "\n".join(["gate", "Lisbon", "access", *filler, "gate"])
    together = "\n".join([*filler, "the Lisbon gate access", "with more words"])
    answerer = answers({"a.txt": apart, "z.txt": together})
    assert paths(answerer, "access gate Lisbon")[0] == "z.txt"
    plain = Answerer.of(answerer._corpus, weights=replace(Weights(), near=0.0))
    assert paths(plain, "access gate Lisbon")[0] == "a.txt"


FUNCTIONS = "".join(
    f"def f{number}(x):\n" + f"    y = {number}\n" * 24 + f"    return needle{number}\n\n\n"
    for number in range(9)
)


@pytest.mark.parametrize("number", range(9))
def test_a_hit_begins_where_the_definition_that_holds_its_best_line_does(
    answers: Answers, number: int
) -> None:
    hits = search(answers({"a.py": FUNCTIONS}), f"needle{number}", k=1).hits
    begins = 28 * number + 1
    assert hits[0].line <= begins < begins + 25 <= hits[0].end_line <= hits[0].line + 39
    assert f"{begins + 25}: return needle{number}" in hits[0].snippet


def test_a_neighbour_is_a_hit_where_its_best_line_is_not_shown_yet(answers: Answers) -> None:
    lines = ["filler"] * 70
    lines[2], lines[50], lines[66] = "gate of Lisbon", "gate", "gate and Lisbon"
    hits = search(answers({"a.txt": "\n".join(lines), "b.txt": "gate\n"}), "gate Lisbon", k=3).hits
    assert {(hit.path, hit.line) for hit in hits} == {("a.txt", 1), ("a.txt", 31), ("b.txt", 1)}


def test_the_name_of_a_definition_that_says_what_is_asked_for_comes_first(answers: Answers) -> None:
    named = "def close_idle_socket(x):\n    return x\n"
    text = "def other(x):\n    # close the socket that is idle, socket, close\n"
    answerer = answers({"a.py": text * 2, "z.py": named + text.replace("close", "shut")})
    assert paths(answerer, "close idle socket")[0] == "z.py"


def test_fewer_hits_are_the_first_of_more(answers: Answers) -> None:
    documents = {
        f"d{number}.txt": "x\n" * number + ("near gate\n" if number % 3 else "near\n\ngate gate\n")
        for number in range(40)
    }
    answerer = answers(documents)
    assert paths(answerer, "near gate", k=3) == paths(answerer, "near gate", k=30)[:3]

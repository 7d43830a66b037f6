"""The best hits go by parsed definitions, the same whatever was parsed before."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_rag.indexes import landmarks as landmarks_module
from rlm_rag.indexes.answering import Answerer
from rlm_rag.indexes.catalogue import Catalogue
from rlm_rag.indexes.landmarks import LATE, Landmarks, Survey
from rlm_rag.indexes.parsers import Parsed, Parsers
from rlm_rag.indexes.ranking import Weights
from rlm_rag.indexes.requests import Hit, SearchRequest, SearchResult, SymbolsRequest
from rlm_rag.indexes.skeleton import Definition
from rlm_rag.indexes.stamp import stamp_of
from rlm_rag.indexes.store import SegmentStore
from rlm_rag.packed import PackedCorpus

Pack = Callable[[Mapping[str, str]], PackedCorpus]
Answers = Callable[[Mapping[str, str]], Answerer]

QUERY = "close idle socket"
# A scan does not see that the name is on the line after `def`.
JOINED = "@wrapped\ndef \\\n  close_idle_socket(x):\n    return x\n"
SAID = "def other(x):\n    # close the socket that is idle, socket, close\n    return x\n"
QUOTED = 'TEXT = """\ndef close_idle_socket(x):\n    return x\n"""\n'
DOCUMENTS = {"a.py": SAID * 2, "z.py": JOINED + SAID.replace("close", "shut")}


class NoParsers(Parsers):
    """No process can be started."""

    def parse(self, documents: Iterable[Any], *, most: int | None = None) -> Iterator[Any]:
        raise OSError("no process")


class FailingParsers(Parsers):
    """Every parse fails, and would fail again."""

    lasting = True

    def parse(self, documents: Iterable[Any], *, most: int | None = None) -> Iterator[Any]:
        for key, _, _ in documents:
            yield key, Parsed(failure="crashed", lasting=self.lasting)


class LateParsers(FailingParsers):
    """Every parse is late, and might not be another time."""

    lasting = False


class CountingParsers(Parsers):
    """Counts the documents that are parsed."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def parse(self, documents: Iterable[Any], *, most: int | None = None) -> Iterator[Any]:
        for one in super().parse(documents, most=most):
            self.count += 1
            yield one


def search(answerer: Answerer, query: str = QUERY, k: int = 10) -> SearchResult:
    result = answerer.answer(SearchRequest(query, k))
    assert isinstance(result, SearchResult)
    return result


def first(answerer: Answerer, query: str = QUERY) -> Hit:
    return search(answerer, query).hits[0]


def test_a_definition_that_only_a_parser_sees_comes_first(pack: Pack, answers: Answers) -> None:
    assert first(answers(DOCUMENTS)).path == "z.py"
    assert first(Answerer.of(pack(DOCUMENTS), parsers=FailingParsers())).path == "a.py"


def test_what_looks_like_a_definition_in_a_text_raises_nothing(
    pack: Pack, answers: Answers
) -> None:
    documents = {"z.py": QUOTED + SAID}
    scanned = first(Answerer.of(pack(documents), parsers=FailingParsers()))
    plain = Answerer.of(pack(documents), weights=replace(Weights(), near_name=0.0))
    assert first(answers(documents)).score == first(plain).score < scanned.score


def test_a_hit_begins_where_the_parsed_definition_that_holds_its_best_line_does(
    answers: Answers,
) -> None:
    filler = "".join(f"    y{number} = {number}\n" for number in range(24))
    function = "def \\\n  f{0}(x):\n" + filler + "    return needle{0}\n\n"
    text = "".join(function.format(number) for number in range(6))
    for number in range(6):
        hit = first(answers({"a.py": text}), f"return needle{number}")
        begins = 28 * number + 2
        assert hit.line <= begins
        assert f"{begins}: f{number}(x):" in hit.snippet


@pytest.mark.parametrize("parsers", [FailingParsers, LateParsers, NoParsers])
def test_where_nothing_is_parsed_a_scan_stands_in(pack: Pack, parsers: type[Parsers]) -> None:
    result = search(Answerer.of(pack(DOCUMENTS), parsers=parsers()))
    assert [hit.path for hit in result.hits] == ["a.py", "z.py"]
    # Only what may be otherwise another time has to be said.
    assert result.note == (None if parsers is FailingParsers else LATE)


def test_what_there_was_no_time_for_is_parsed_before_it_is_asked_again(
    pack: Pack, parsers: Parsers, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = DOCUMENTS | {"b.py": SAID}
    answerer = Answerer.of(pack(documents), parsers=parsers)
    with monkeypatch.context() as patch:
        patch.setattr(landmarks_module, "SECONDS", -1.0)
        assert search(answerer).note == LATE
    while answerer.go_on(1.0):
        continue
    result = search(answerer)
    assert (result.note, result.hits[0].path) == (None, "z.py")


def test_what_was_parsed_before_changes_no_answer(
    pack: Pack, parsers: Parsers, tmp_path: Path
) -> None:
    documents = DOCUMENTS | {f"m{number}.py": SAID + QUOTED for number in range(12)}
    documents["big.py"] = SAID + "x = 1\n" * (landmarks_module.MAX_BYTES // 6)
    corpus = pack(documents)

    def opened() -> Answerer:
        store = SegmentStore(tmp_path / "kept" / "one", stamp=stamp_of(Weights()))
        return Answerer.of(corpus, store=store, parsers=parsers)

    fresh = search(opened(), k=50)
    again = opened()
    assert search(again, k=50) == fresh
    again.answer(SymbolsRequest("other"))
    search(again, "text return")
    assert search(again, k=50) == fresh
    assert search(opened(), k=50) == fresh
    assert fresh.note is None


def test_a_file_too_large_to_be_waited_for_is_not_parsed(pack: Pack) -> None:
    parsers = CountingParsers()
    big = SAID + "x = 1\n" * (landmarks_module.MAX_BYTES // 6)
    answerer = Answerer.of(pack({"a.py": SAID, "b.py": big}), parsers=parsers)
    assert {hit.path for hit in search(answerer).hits} == {"a.py", "b.py"}
    answerer.close()
    parsers.close()
    assert parsers.count == 1


def test_no_more_than_the_ten_best_windows_are_parsed(pack: Pack) -> None:
    parsers = CountingParsers()
    documents = {f"m{number}.py": f"{SAID}x = {number}\n" for number in range(30)}
    answerer = Answerer.of(pack(documents), parsers=parsers)
    assert len(search(answerer, k=25).hits) == 25
    assert parsers.count == 10
    search(answerer, k=25)
    answerer.close()
    parsers.close()
    assert parsers.count == 10


class Surveying:
    """Tells landmarks of its own, and what it was asked."""

    def __init__(self) -> None:
        self.asked: list[list[int]] = []

    def surveyed(
        self, numbers: Sequence[int], seconds: float
    ) -> tuple[list[Landmarks | None], bool]:
        assert seconds <= 2.0
        self.asked.append(list(numbers))
        return [Landmarks((1, 2), (2, 2), ((b"a", ()), (b"b", ()))) for _ in numbers], True


def test_all_documents_are_asked_for_at_once_and_only_once_where_there_is_room(pack: Pack) -> None:
    corpus, surveying = pack(dict.fromkeys("abcd", "x\n")), Surveying()
    survey = Survey(corpus, surveying, most=9)
    found, done = survey.of(["b", "a", "b"])
    assert done
    assert set(found) == {"a", "b"}
    survey.of(["a", "c", "b"])
    survey.of(["a"])
    # Three of three each are kept: the one that was used longest ago makes room.
    survey.of(["d"])
    survey.of(["a", "c"])
    survey.of(["b"])
    assert surveying.asked == [[1, 0], [2], [3], [1]]


def test_a_catalogue_reads_the_keys_of_the_documents_it_is_asked_for(
    pack: Pack, parsers: Parsers, monkeypatch: pytest.MonkeyPatch
) -> None:
    answerer = Answerer.of(pack(DOCUMENTS), parsers=parsers)
    with monkeypatch.context() as patch:
        patch.setattr(Catalogue, "_read_keys", None)
        assert first(answerer).path == "z.py"


DEFINITIONS = st.lists(
    st.builds(
        lambda line, length, name, kind: Definition(line, kind, name, name, end_line=line + length),
        st.integers(1, 30),
        st.integers(0, 20),
        st.sampled_from(["load", "Reader", "猫"]),
        st.sampled_from(["function", "class", "method"]),
    ),
    max_size=12,
)


@given(DEFINITIONS, st.integers(1, 40), st.integers(1, 40))
def test_landmarks_are_where_the_definitions_are(
    definitions: list[Definition], line: int, first: int
) -> None:
    known = Landmarks.of(definitions)
    begins = [one.line for one in definitions if one.line <= line <= one.end_line]
    assert known.around(line, first) == max(
        (begin for begin in begins if begin >= first), default=None
    )
    defined = [
        (one.line, (one.name.encode(), ())) for one in definitions if first <= one.line <= line
    ]
    assert sorted(known.between(first, line)) == sorted(defined)


def test_names_that_only_hold_a_value_are_no_landmarks() -> None:
    kinds = ("function", "constant", "variable", "field", "class", "package")
    definitions = [Definition(1, kind, kind, kind, end_line=9) for kind in kinds]
    assert sorted(Landmarks.of(definitions).names) == [(b"class", ()), (b"function", ())]


def test_of_two_methods_of_one_name_that_of_the_class_that_is_asked_for_comes_first(
    answers: Answers,
) -> None:
    method = "    def close(self, x):\n        # the idle socket of a reader and of a writer\n"
    filler = "\n\n".join(f"    y{number} = {number}" for number in range(9)) + "\n\n"
    documents = {
        "a.py": f"class Writer:\n{filler}{method}        return x\n",
        "z.py": f"class Reader:\n{filler}{method}        return x\n",
    }
    assert first(answers(documents), "reader close idle").path == "z.py"


def test_of_names_nested_by_the_thousand_the_innermost_count() -> None:
    parents = tuple(f"C{number}" for number in range(3000))
    definitions = [Definition(9, "method", "close", "close", parents, len(parents), 9)]
    (name,) = Landmarks.of(definitions).names
    assert name == (b"close", (b"C2996", b"C2997", b"C2998", b"C2999"))

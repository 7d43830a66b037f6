"""A corpus in parts ranks as it does whole: scores, order, snippets, ties included."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlm_rag.errors import RetrievalError
from rlm_rag.indexes.finding import Finder
from rlm_rag.indexes.holdings import OwnHoldings
from rlm_rag.indexes.index import build_index
from rlm_rag.indexes.path_filter import PathFilter
from rlm_rag.indexes.ranking import Weights
from rlm_rag.indexes.requests import Hit
from rlm_rag.indexes.search import Searcher
from rlm_rag.packed import PackedCorpus

R = TypeVar("R")
Pack = Callable[[Mapping[str, str]], PackedCorpus]

WEIGHTS = Weights()
PATHS = (
    *("src/retry.py", "src/net/retry.py", "tests/test_retry.py", "CHANGELOG.md", "docs/retry.md"),
    *("a/client.go", "b/client.go", "vendor/client.go", "package-lock.json", "notes.txt"),
)
LINES = st.sampled_from(
    [
        *("def retry_count(limit):", "    return retry(limit)", "class Client:", "", "x = 1"),
        *("func Retry() {", "}", "# when to retry", "* retry of the client", "猫が好き retry"),
        *("    def backoff(self):", "        pass", "from a import retry_count"),
    ]
)
# Of few kinds of lines, so that windows are often equal, and scores often tie.
TEXTS = st.lists(LINES, max_size=6).flatmap(
    lambda lines: st.integers(0, 20).map(lambda times: "\n".join(lines * times))
)
CORPORA = st.dictionaries(st.sampled_from(PATHS), TEXTS, min_size=1)
REPORT = (
    "retry fails\n\n`retry_count()` is wrong when the client waits:\n```\n"
    + 'File "/usr/lib/src/net/retry.py", line 3\n' * 9
    + "```\nIt should back off instead."
)
QUERIES = st.one_of(
    st.sampled_from(
        [
            "retry_count",
            "client.go",
            "lib/src/net/retry.py",
            "where is the backoff of retry",
            REPORT,
        ]
    ),
    st.lists(st.sampled_from(["retry", "client", "counts", "猫", "test", "the"]), min_size=1).map(
        " ".join
    ),
)


class InProcess:
    """Parts in this process; what they are asked is pickled, as if they were far away."""

    def __init__(self, finders: Sequence[Finder]) -> None:
        self._finders = finders

    def numbers(self) -> Sequence[int]:
        return range(len(self._finders))

    def ask(self, requests: Mapping[int, Callable[[Finder], R]]) -> Mapping[int, R]:
        sent: Mapping[int, Callable[[Finder], R]] = pickle.loads(pickle.dumps(requests))
        found = {number: request(self._finders[number]) for number, request in sent.items()}
        return pickle.loads(pickle.dumps(found))


def finder(corpus: PackedCorpus) -> Finder:
    return Finder(corpus, build_index(corpus, weights=WEIGHTS), weights=WEIGHTS)


def whole(pack: Pack, documents: Mapping[str, str]) -> Searcher:
    return Searcher(OwnHoldings(pack(documents)).parts, weights=WEIGHTS)


def in_parts(
    pack: Pack, documents: Mapping[str, str], owners: Sequence[int], count: int
) -> Searcher:
    """Return what searches documents that lie in the parts of these numbers."""
    parts: list[dict[str, str]] = [{} for _ in range(count)]
    for place, (path, content) in enumerate(documents.items()):
        parts[owners[place % len(owners)] % count][path] = content
    return Searcher(InProcess([finder(pack(part)) for part in parts]), weights=WEIGHTS)


@settings(max_examples=settings().max_examples // 2)
@given(
    CORPORA,
    st.lists(st.integers(0, 4), min_size=1),
    st.integers(1, 5),
    QUERIES,
    st.integers(1, 12) | st.just(1000),
)
def test_parts_rank_as_the_whole(
    pack: Pack, documents: dict[str, str], owners: list[int], count: int, query: str, k: int
) -> None:
    one, several = whole(pack, documents), in_parts(pack, documents, owners, count)
    assert several.search(query, k=k) == one.search(query, k=k)
    filtered = PathFilter("*.py", tuple(documents)[:6])
    narrowed = several.search(query, k=k, allowed=filtered)
    assert narrowed == one.search(query, k=k, allowed=filtered)


def test_ties_go_by_path_whatever_the_part(pack: Pack) -> None:
    documents = {f"{letter}.txt": f"retry {letter * 3}\n" for letter in "dbeca"}
    hits = in_parts(pack, documents, [3, 1, 0, 2], 4).search("retry", k=5)
    assert [hit.path for hit in hits] == ["a.txt", "b.txt", "c.txt", "d.txt", "e.txt"]
    assert len({hit.score for hit in hits}) == 1


def test_where_all_windows_are_alike_more_and_more_are_asked_for(pack: Pack) -> None:
    # Of 300 copies the search keeps one, and asks on until it knows that there is no other.
    documents = {f"copy{number:03}.txt": "retry the client\n" for number in range(300)}
    documents |= {f"x{number}.txt": "filler\n" * 30 + f"retry {number}\n" for number in range(3)}
    hits = in_parts(pack, documents, range(4), 4).search("retry client", k=4)
    assert hits == whole(pack, documents).search("retry client", k=4)
    assert [hit.path for hit in hits] == ["copy000.txt", "x0.txt", "x1.txt", "x2.txt"]


def test_a_part_without_documents_changes_nothing(pack: Pack) -> None:
    documents = {"a.py": "def retry(): pass\n"}
    assert in_parts(pack, documents, [1], 3).search("retry", k=3) == (
        *whole(pack, documents).search("retry", k=3),
    )


def test_a_part_that_gives_nothing_is_left_out(pack: Pack) -> None:
    class OneLost(InProcess):
        def ask(self, requests: Mapping[int, Callable[[Finder], R]]) -> Mapping[int, R]:
            return super().ask({at: one for at, one in requests.items() if at != 1})

    documents = {"a.py": "def retry(): pass\n", "b.py": "def retry(): return 1\n"}
    finders = [finder(pack({path: text})) for path, text in documents.items()]
    hits: tuple[Hit, ...] = Searcher(OneLost(finders), weights=WEIGHTS).search("retry", k=3)
    assert [hit.path for hit in hits] == ["a.py"]


def test_a_filter_of_paths_says_what_is_wrong_with_its_glob() -> None:
    with pytest.raises(RetrievalError, match="path_glob"):
        PathFilter(3)

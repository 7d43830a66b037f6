"""A corpus in shards answers as the whole does, whatever the request."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlm_rag.distributed.gathering import GatheringAnswerer
from rlm_rag.distributed.placement import numbers_by_shard, owner_of
from rlm_rag.distributed.shard import Shard, ShardsLost
from rlm_rag.errors import RetrievalError
from rlm_rag.holes import Holes, write_holes
from rlm_rag.indexes import parsers as parsing
from rlm_rag.indexes.answering import Answerer
from rlm_rag.indexes.holdings import OwnHoldings
from rlm_rag.indexes.parsers import Parsers
from rlm_rag.indexes.requests import (
    AnyRequest,
    BordersRequest,
    ExplainRequest,
    GrepRequest,
    GrepResult,
    IndexRequest,
    IndexResult,
    OutlineRequest,
    PathsRequest,
    ReadRequest,
    RepoMapRequest,
    SearchRequest,
    SearchResult,
    SymbolsRequest,
    SymbolsResult,
    TextResult,
)
from rlm_rag.packed import PackedCorpus
from rlm_rag.packing import pack

R = TypeVar("R")

NAMES = ("load", "Reader", "size", "parse", "Load")
LINES = st.sampled_from(
    [
        *(
            "def load(path):",
            "    return Reader(path).size",
            "class Reader:",
            "    def parse(self):",
        ),
        *("        return load(self)", "", "x = parse(size)", "## Loading", "Load it with `load`."),
        *("func Load(size int) int {", "}", "size: 3", "猫 load"),
    ]
)
TEXTS = st.lists(LINES, max_size=30).flatmap(
    lambda lines: st.sampled_from(["\n", "\r\n"]).map(lambda end: end.join(lines))
)
PATHS = (
    *("src/load.py", "src/reader.py", "src/deep/load.py", "tests/test_load.py", "README.md"),
    *(
        "guide.pdf#page=1",
        "guide.pdf#page=2",
        "cmd/main.go",
        "cmd/load.go",
        "conf.yaml",
        "a.min.js",
    ),
)
CORPORA = st.dictionaries(st.sampled_from(PATHS), TEXTS, min_size=1)
GLOBS = st.sampled_from([None, "*.py", "src/**", "none/*", "cmd/"])
WITHIN = st.sampled_from(
    [None, (), ("src/load.py", "README.md"), ("cmd/main.go", "guide.pdf#page=2", "absent.py")]
)
REQUESTS: st.SearchStrategy[AnyRequest] = st.one_of(
    st.builds(
        SearchRequest,
        st.sampled_from(["load", "size of Reader"]),
        st.integers(1, 9),
        GLOBS,
        WITHIN,
    ),
    st.builds(
        GrepRequest,
        st.sampled_from(["load", "L?oad", r"\bsize\b", "(", "^$"]),
        k=st.integers(1, 40),
        path_glob=GLOBS,
        before=st.integers(0, 2),
        ignore_case=st.booleans(),
        within=WITHIN,
    ),
    st.builds(
        SymbolsRequest,
        st.sampled_from([*NAMES, "READER", "Reader.parse", "absent"]),
        GLOBS,
        st.booleans(),
        WITHIN,
    ),
    st.builds(
        OutlineRequest,
        st.sampled_from(["load.py", "src/reader.py", "src", "*.go", "guide.pdf", "nowhere.py"]),
        st.sampled_from([None, 40, 400]),
        WITHIN,
    ),
    st.builds(
        ReadRequest,
        st.sampled_from(["reader.py", "load.py", "README.md"]),
        st.sampled_from([1, 3, 90]),
    ),
    st.builds(
        RepoMapRequest,
        st.sampled_from([None, "load", "src/load.py"]),
        st.sampled_from([60, 4000]),
        WITHIN,
    ),
    st.builds(BordersRequest, st.just("t.py"), st.just("def load():\n    pass\n")),
    st.builds(PathsRequest, st.just(("load.py", "src/", "*.go", "absent")), WITHIN),
    st.builds(ExplainRequest, st.just("load size"), st.sampled_from(["src/load.py", "conf.yaml"])),
)


class LocalShards:
    """Shards in this process; what they are asked and answer is pickled, as if far away."""

    def __init__(self, shards: Sequence[Shard]) -> None:
        self._shards = shards
        self.dying: set[int] = set()
        self.healed: set[int] = set()
        self._lost: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self._shards)

    def ask(self, requests: Mapping[int, Callable[[Shard], R]]) -> Mapping[int, R]:
        newly = self.dying & requests.keys() - self._lost.keys()
        if newly:
            self._lost.update(dict.fromkeys(newly, "its node died"))
            raise ShardsLost
        sent: Mapping[int, Callable[[Shard], R]] = pickle.loads(pickle.dumps(dict(requests)))
        left = {number: one for number, one in sent.items() if number not in self._lost}
        found = {number: one(self._shards[number]) for number, one in left.items()}
        return pickle.loads(pickle.dumps(found))

    def lost(self) -> Mapping[int, str]:
        return self._lost

    def renew(self) -> None:
        for number in self.healed:
            self._lost.pop(number, None)
        self.dying -= self.healed
        self.healed = set()

    def close(self) -> None:
        for shard in self._shards:
            shard.close()


@pytest.fixture(scope="module")
def parsers() -> Iterator[Parsers]:
    parsers = Parsers()
    yield parsers
    parsers.close()


def packed(folder: Path, name: str, documents: Mapping[str, str]) -> PackedCorpus:
    path = folder / name
    path.unlink(missing_ok=True)
    pack(documents.items(), path)
    return PackedCorpus.open(path)


@contextmanager
def in_shards(
    folder: Path,
    parsers: Parsers,
    documents: Mapping[str, str],
    count: int,
    *,
    has_holes: bool = False,
) -> Iterator[tuple[GatheringAnswerer, LocalShards]]:
    """Shards that answer; with holes the texts are in them alone, at `holes` in the folder."""
    corpus = packed(folder, "whole", documents)
    shards = []
    for at, numbers in enumerate(numbers_by_shard(corpus, count)):
        mine = {corpus.path(number): corpus.content(number) for number in numbers}
        part = packed(folder, f"part{at}", mine)
        shards.append(Shard(part, OwnHoldings(part, parsers=parsers), numbers))
    local, holes = LocalShards(shards), None
    if has_holes:
        write_holes(corpus, folder / "holes")
        corpus.close()
        corpus, holes = PackedCorpus.open(folder / "holes"), Holes(folder / "holes")
    gathering = GatheringAnswerer(corpus, local, holes=holes)
    yield gathering, local
    gathering.close()


def answered(answerer: Answerer | GatheringAnswerer, request: AnyRequest) -> object:
    try:
        return answerer.answer(request)
    except RetrievalError as error:
        return error.message, error.hint


@settings(max_examples=25, deadline=None)
@given(CORPORA, st.integers(1, 5), st.booleans(), st.lists(REQUESTS, min_size=1, max_size=6))
def test_shards_answer_as_the_whole(
    tmp_path_factory: pytest.TempPathFactory,
    parsers: Parsers,
    documents: dict[str, str],
    count: int,
    has_holes: bool,
    requests: list[AnyRequest],
) -> None:
    folder = tmp_path_factory.mktemp("shards")
    whole = Answerer.of(packed(folder, "alone", documents), parsers=parsers)
    spread = in_shards(folder, parsers, documents, count, has_holes=has_holes)
    with spread as (gathering, _):
        for request in requests:
            expected, found = answered(whole, request), answered(gathering, request)
            assert found == expected
            if isinstance(found, GrepResult) and isinstance(expected, GrepResult):
                assert list(found.counts.items()) == list(expected.counts.items())
    whole.close()


@settings(max_examples=25, deadline=None)
@given(
    st.dictionaries(
        st.integers(0, 40).map("part{:02}.txt".format),
        st.sampled_from(["load the size\n", "the size\n", "load\n"]),
        min_size=12,
    ),
    st.integers(2, 5),
    st.integers(1, 12),
)
def test_hits_of_one_score_come_in_the_order_and_number_of_the_whole(
    tmp_path_factory: pytest.TempPathFactory,
    parsers: Parsers,
    documents: dict[str, str],
    count: int,
    k: int,
) -> None:
    folder = tmp_path_factory.mktemp("ties")
    whole = Answerer.of(packed(folder, "alone", documents), parsers=parsers)
    with in_shards(folder, parsers, documents, count) as (gathering, _):
        for query in ("load size", "size"):
            request = SearchRequest(query, k)
            assert gathering.answer(request) == whole.answer(request)
    whole.close()


DOCUMENTS = {
    f"{letter}/load{letter}.py": f"def load{letter}():\n    return load\n" for letter in "abcdefgh"
}


def test_documents_are_spread_alike_on_every_machine_parts_together() -> None:
    assert [owner_of(path, 4) for path in ("a.py", "b.py", "src/c.go", "é.md")] == [3, 0, 1, 2]
    assert len({owner_of(f"guide.pdf#page={page}", 7) for page in range(9)}) == 1


def test_an_index_in_shards_is_described_as_one(tmp_path: Path, parsers: Parsers) -> None:
    with in_shards(tmp_path, parsers, DOCUMENTS, 3) as (gathering, _):
        built = gathering.answer(IndexRequest())
        assert isinstance(built, IndexResult)
        assert (built.documents, built.windows, built.added) == (8, 8, 8)


def test_where_no_shard_finds_a_name_what_was_only_scanned_is_said_as_of_the_whole(
    tmp_path: Path, parsers: Parsers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parsing, "MAX_PARSED_BYTES", 10)
    expected = Answerer.of(packed(tmp_path, "alone", DOCUMENTS), parsers=parsers)
    with in_shards(tmp_path, parsers, DOCUMENTS, 3) as (gathering, _):
        for name in ("load", "LOADA", "absent"):
            found = gathering.answer(SymbolsRequest(name))
            assert found == expected.answer(SymbolsRequest(name))
            assert isinstance(found, SymbolsResult)
            assert ("a lexical scan found this" in str(found.note)) == (name != "absent")
    expected.close()


def test_a_lost_shard_is_named_in_every_answer(tmp_path: Path, parsers: Parsers) -> None:
    with in_shards(tmp_path, parsers, DOCUMENTS, 3) as (gathering, shards):
        before = gathering.answer(GrepRequest("def"))
        shards.dying = {1}
        kept = {path for path in DOCUMENTS if owner_of(path, 3) != 1}
        assert 0 < len(kept) < len(DOCUMENTS)
        said = "partial: without shard 1 (its node died) of 3 shards"
        hits = gathering.answer(SearchRequest("load", 20))
        assert isinstance(hits, SearchResult)
        assert ({hit.path for hit in hits.hits}, hits.note) == (kept, said)
        lines = gathering.answer(GrepRequest("def"))
        assert isinstance(lines, GrepResult)
        assert isinstance(before, GrepResult)
        assert lines.counts == {path: n for path, n in before.counts.items() if path in kept}
        assert (lines.error, lines.error_kind, lines.truncated) == (said, "partial", True)
        symbols = gathering.answer(SymbolsRequest("loada"))
        assert isinstance(symbols, SymbolsResult)
        assert symbols.note is not None
        assert symbols.note.startswith(said)
        mapped = gathering.answer(RepoMapRequest())
        assert isinstance(mapped, TextResult)
        assert mapped.note == said


def test_a_lost_shard_that_is_there_again_is_asked_from_the_next_request_on(
    tmp_path: Path, parsers: Parsers
) -> None:
    with in_shards(tmp_path, parsers, DOCUMENTS, 3) as (gathering, shards):
        request = SearchRequest("load", 20)
        before = gathering.answer(request)
        shards.dying = {1}
        without = gathering.answer(request)
        assert isinstance(without, SearchResult)
        assert without.note is not None
        shards.healed = {1}
        assert gathering.answer(request) == before


def test_the_outline_of_a_document_whose_shard_is_lost_says_so(
    tmp_path: Path, parsers: Parsers
) -> None:
    with in_shards(tmp_path, parsers, DOCUMENTS, 3) as (gathering, shards):
        path = next(path for path in DOCUMENTS if owner_of(path, 3) == 2)
        shards.dying = {2}
        result = gathering.answer(OutlineRequest(path))
        assert isinstance(result, TextResult)
        assert result.error == f"{path} lies in shard 2, which is lost"
        shards.dying = {0, 1, 2}
        with pytest.raises(RetrievalError, match="all shards"):
            gathering.answer(BordersRequest("t.py", "def f(): pass\n"))

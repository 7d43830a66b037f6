"""Pieces are the same segments whichever process builds them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest

from rlm_rag.errors import RetrievalError
from rlm_rag.indexes import index, parallel, piece_helper
from rlm_rag.indexes.build import build_piece
from rlm_rag.indexes.index import build_index
from rlm_rag.indexes.piece_helper import PieceHelper, PieceHelpers, helpers_ahead, useful_cores
from rlm_rag.indexes.pieces import Work
from rlm_rag.indexes.ranking import Weights
from rlm_rag.indexes.shares import shares_of
from rlm_rag.indexes.stamp import stamp_of
from rlm_rag.indexes.store import SegmentStore
from rlm_rag.packed import PackedCorpus

from .segments import bytes_of

PackFile = Callable[[Mapping[str, str]], Path]

WEIGHTS = Weights()
CONTENTS = {
    f"src/m{number}.py": f"def name{number}():\n    return {number}\n" for number in range(9)
}


@pytest.fixture(scope="module")
def packed_path(pack_file: PackFile) -> Path:
    return pack_file(CONTENTS)


@pytest.fixture
def corpus(packed_path: Path) -> Iterator[PackedCorpus]:
    with PackedCorpus.open(packed_path) as corpus:
        yield corpus


@pytest.fixture
def helper(packed_path: Path) -> Iterator[PieceHelper]:
    helper = PieceHelper(packed_path, WEIGHTS)
    yield helper
    helper.end()


def test_a_helper_builds_one_piece_after_the_other_as_this_process_does(
    corpus: PackedCorpus, helper: PieceHelper
) -> None:
    for piece in ([0, 1, 2], [3], next(shares_of(corpus, 4, most_bytes=10)), []):
        assert bytes_of(helper.built(piece)) == bytes_of(
            build_piece(corpus, piece, weights=WEIGHTS)
        )


def test_a_helper_that_fails_says_why(tmp_path: Path) -> None:
    helper = PieceHelper(tmp_path / "missing.packed", WEIGHTS)
    with pytest.raises(RetrievalError, match="Cannot open the packed corpus"):
        helper.built([0])
    helper.end()


def test_a_helper_that_was_killed_is_told_of(helper: PieceHelper) -> None:
    helper.kill()
    with pytest.raises(RetrievalError, match="could not be built"):
        helper.built([0])


def test_who_waits_for_a_helper_that_failed_is_told_too(
    corpus: PackedCorpus, packed_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    helpers = PieceHelpers(packed_path, WEIGHTS)
    done = Work(corpus, WEIGHTS, packed_path, helpers).done([[number] for number in range(9)])
    with closing(done), pytest.raises(RetrievalError):
        while next(done):
            helpers.kill()
    with closing(helpers):
        assert helpers.start(1) == 1
        helpers.kill()
        for _ in range(2):
            with pytest.raises(RetrievalError):
                helpers.built([0])


def test_this_process_builds_all_where_no_other_can_be_started(
    corpus: PackedCorpus, packed_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Refused:
        def __init__(self, _path: Path, _weights: Weights) -> None:
            raise BlockingIOError

    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    monkeypatch.setattr(piece_helper, "SHARED_BYTES", 1)
    monkeypatch.setattr(piece_helper, "PieceHelper", Refused)
    with closing(helpers_ahead(corpus, packed_path, WEIGHTS)) as helpers:
        done = list(Work(corpus, WEIGHTS, packed_path, helpers).done([[0], [1], [2]]))
    assert [piece for piece, _ in done] == [[0], [1], [2]]


def test_every_piece_is_built_once_with_as_many_cores_as_there_are(
    corpus: PackedCorpus, packed_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    wanted = [[0, 1], [2], [3, 4, 5], [6], [7, 8]]
    done = list(Work(corpus, WEIGHTS, packed_path).done(wanted))
    assert sorted(list(piece) for piece, _ in done if isinstance(piece, list)) == wanted
    for piece, built in done:
        assert bytes_of(built) == bytes_of(build_piece(corpus, piece, weights=WEIGHTS))


def test_helpers_start_ahead_for_a_large_corpus_alone(
    corpus: PackedCorpus, packed_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    with closing(helpers_ahead(corpus, packed_path, WEIGHTS)) as helpers:
        assert not helpers.processes
    monkeypatch.setattr(piece_helper, "SHARED_BYTES", 1)
    with closing(helpers_ahead(corpus, packed_path, WEIGHTS)) as helpers:
        started = helpers.processes
        assert len(started) == 2
        work = Work(corpus, WEIGHTS, packed_path, helpers)
        assert {tuple(piece) for piece, _ in work.done([[0], [1], [2]])} == {(0,), (1,), (2,)}
    assert not helpers.processes


def test_a_text_is_not_cut_into_less_than_is_worth_it_however_many_cores_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    assert [useful_cores(size << 20) for size in (0, 1, 2, 9, 500)] == [1, 1, 1, 4, 64]


def test_a_change_leaves_what_many_cores_have_indexed(
    pack_file: PackFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(piece_helper, "SHARED_BYTES", 60_000)
    monkeypatch.setattr(parallel, "_AHEAD_BYTES", 20_000)
    monkeypatch.setattr(index, "_SMALL_BYTES", 10_000)
    contents = {f"m{number:02}.py": "x = 1\n" * 200 for number in range(60)}
    kept: list[set[str]] = []
    for text in ("y = 1\n", "y = 2\n"):
        path = pack_file({**contents, "changed.py": text})
        store = SegmentStore(tmp_path / "one", stamp=stamp_of(WEIGHTS))
        with PackedCorpus.open(path) as corpus:
            build_index(corpus, weights=WEIGHTS, store=store, packed_path=path)
        kept.append({one.name for one in (tmp_path / "one").glob("*.segment")})
    assert kept[0] < kept[1]


def test_helpers_end_when_nobody_asks_for_more(
    corpus: PackedCorpus, packed_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[PieceHelper] = []
    ended: list[PieceHelper] = []

    class Watched(PieceHelper):
        def __init__(self, path: Path, weights: Weights) -> None:
            super().__init__(path, weights)
            started.append(self)

        def end(self) -> None:
            super().end()
            ended.append(self)

    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    monkeypatch.setattr(piece_helper, "PieceHelper", Watched)
    with closing(Work(corpus, WEIGHTS, packed_path).done([[0], [1], [2], [3]])) as done:
        next(done)
    assert len(started) == 2
    assert ended == started

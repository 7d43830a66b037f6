"""A term that is read where it lies is held as one is whose windows are at hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rlm_rag.indexes import common, stored_terms
from rlm_rag.indexes.held_terms import HeldTerm, LooseTerm
from rlm_rag.indexes.index import build_index
from rlm_rag.indexes.live import LivePostings, Several, together
from rlm_rag.indexes.norms import Norms
from rlm_rag.indexes.ranking import PLAIN
from rlm_rag.indexes.scoring import totals_of
from rlm_rag.indexes.segment import Segment
from rlm_rag.indexes.stamp import stamp_of
from rlm_rag.indexes.stored_terms import StoredTerm
from rlm_rag.packed import PackedCorpus

from .segments import build_segment

Pack = Callable[[Mapping[str, str]], PackedCorpus]

LINES = st.sampled_from(["often", "Often x", "alone", "x", "", "often often_x"])
TEXTS = st.lists(LINES, max_size=90).map("\n".join)
TERMS = (b"often", b"alone", b"x", b"nothing")


@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(TEXTS, min_size=1, max_size=5), st.booleans(), st.data())
def test_a_stored_term_is_held_as_a_loose_one_is(
    pack: Pack, texts: list[str], often_asked: bool, data: st.DataObject
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(common, "COMMON_POSTINGS", 2)
        patch.setattr(stored_terms, "_LOADED_PER_LOOK", 1 << 20 if often_asked else 0)
        postings = build_index(
            pack({f"{n}.txt": f"-\n{text}" for n, text in enumerate(texts)}), weights=PLAIN
        ).postings
        norms = Norms(postings, PLAIN, totals_of(postings))
        runs = postings.runs(TERMS)
        assert runs is not None
        for term, of_term in zip(TERMS, runs, strict=True):
            found = postings.postings(term)
            check(
                StoredTerm(of_term, norms),
                LooseTerm(found.windows, found.counts, norms),
                subset(data, postings.window_count),
                subset(data, postings.document_count),
                np.append(postings.first_windows, postings.window_count).astype(np.uint32),
            )
        assert_same(together(runs), postings.several(TERMS))


def test_a_segment_without_a_line_hides_nothing_of_another(pack: Pack) -> None:
    corpus, stamp = pack({"a.txt": "often x\n", "empty.txt": ""}), stamp_of(PLAIN)
    segments = [Segment(build_segment(corpus, [number], weights=PLAIN), stamp) for number in (0, 1)]
    postings = LivePostings(segments, [(0, 0), (1, 0)])
    (runs,) = postings.runs([b"often"]) or ()
    stored = StoredTerm(runs, Norms(postings, PLAIN, totals_of(postings)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stored_terms, "_LOADED_PER_LOOK", 0)
        assert stored.in_windows(np.zeros(1, np.intp))[0].tolist() == [0]
        documents, firsts, ends = np.array([[0], [0], [1]], np.uint32)
        held, _ = stored.in_documents(documents.astype(np.intp), firsts, ends)
        assert held.tolist() == [0]


def test_a_segment_that_another_holds_too_leaves_terms_where_they_lie(pack: Pack) -> None:
    corpus, stamp = pack({"a.txt": "often x\n"}), stamp_of(PLAIN)
    data = build_segment(corpus, [0], weights=PLAIN)
    postings = LivePostings([Segment(data, stamp), Segment(data, stamp)], [(0, 0)])
    ((run,),) = postings.runs([b"often"]) or ()
    assert run.postings.tolist() == [1]


def subset(data: st.DataObject, count: int) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    return np.array(sorted(data.draw(st.sets(st.integers(0, count - 1)))), np.intp)


def check(
    stored: HeldTerm,
    loose: HeldTerm,
    windows: np.ndarray[tuple[int], np.dtype[np.intp]],
    documents: np.ndarray[tuple[int], np.dtype[np.intp]],
    borders: np.ndarray[tuple[int], np.dtype[np.uint32]],
) -> None:
    assert (stored.window_count, stored.document_count) == (
        loose.window_count,
        loose.document_count,
    )
    one, other = stored.impacts(), loose.impacts()
    for name in ("windows", "scores", "documents", "document_scores"):
        assert getattr(one, name).tolist() == getattr(other, name).tolist()
    numbers = windows.astype(np.uint32)
    for found in (loose.in_windows(windows), one.in_windows(numbers)):
        assert_found(stored.in_windows(windows), found)
    inside = (documents, borders.take(documents), borders.take(documents + 1))
    for found in (loose.in_documents(*inside), one.in_documents(documents.astype(np.uint32))):
        assert_found(stored.in_documents(*inside), found)


def assert_found(one: tuple[object, object], other: tuple[object, object]) -> None:
    for mine, theirs in zip(one, other, strict=True):
        assert np.asarray(mine).tolist() == np.asarray(theirs).tolist()


def assert_same(one: Several, other: Several) -> None:
    for name in ("windows", "counts", "borders"):
        assert getattr(one, name).tolist() == getattr(other, name).tolist()

"""The postings of common terms are what those of their words add up to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlm_rag.indexes import common
from rlm_rag.indexes.index import build_index
from rlm_rag.indexes.ranking import PLAIN
from rlm_rag.indexes.segment import COMMON
from rlm_rag.indexes.terms import raw_words, word_terms
from rlm_rag.packed import PackedCorpus

Pack = Callable[[Mapping[str, str]], PackedCorpus]

WORDS = st.sampled_from(["get", "Get", "getUser", "get_user", "user", "USER", "x", "usér", "a1"])
TEXTS = st.lists(
    st.tuples(st.lists(WORDS, max_size=4).map(" ".join), st.sampled_from([1, 1, 90, 700])),
    max_size=60,
).map(lambda lines: "\n".join(f"{line} " * times for line, times in lines))


@settings(max_examples=25)
@given(st.lists(TEXTS, min_size=1, max_size=4))
def test_postings_of_common_terms_are_those_of_their_words(pack: Pack, texts: list[str]) -> None:
    corpus = pack({f"{number}.txt": text for number, text in enumerate(texts)})
    plain = build_index(corpus, weights=PLAIN)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(common, "COMMON_POSTINGS", 2)
        merged = build_index(corpus, weights=PLAIN)
    for term in (b"get", b"user", b"getuser", b"x", b"a", b"a1", b"nothing"):
        one, other = plain.postings.postings(term), merged.postings.postings(term)
        assert one.windows.tolist() == other.windows.tolist()
        assert one.counts.tolist() == other.counts.tolist()
    of_windows = np.array(merged.postings.window_documents, np.uint32)
    for segment in merged.segments:
        table = segment.table(COMMON)
        windows, documents = (segment.numbers(f"{COMMON}.{of}") for of in ("windows", "documents"))
        for number in range(table.count):
            found = merged.postings.postings(table.key(number)).windows
            assert windows[number] == len(found)
            assert documents[number] == len(np.unique(of_windows[found]))


def test_a_term_is_common_by_all_of_its_words_and_only_where_it_has_several(pack: Pack) -> None:
    half = common.COMMON_POSTINGS // 2
    lines = "\n" * 60
    text = f"getUser{lines}" * half + f"get plain{lines}" * half + f"seldom Seldom{lines}"
    (segment,) = build_index(pack({"a.txt": text}), weights=PLAIN).segments
    table = segment.table(COMMON)
    assert [table.key(number) for number in range(table.count)] == [b"get"]


OFTEN = st.sampled_from(["often " * 300, "Often " * 200, "x often", "rare x", "x_often\n" * 9])


@given(st.lists(st.lists(OFTEN, max_size=3).map(" ".join), max_size=6))
def test_terms_looked_up_together_occur_as_often_as_their_words(
    pack: Pack, texts: list[str]
) -> None:
    index = build_index(
        pack({f"{n}.txt": f"-\n{text}" for n, text in enumerate(texts)}), weights=PLAIN
    )
    terms = [b"often", b"none", b"x", b"rare", b"xoften"]
    found = index.postings.several(terms)
    expected = {}
    for at, term in enumerate(terms):
        for window, text in enumerate(texts):
            words = Counter(word for word in raw_words(text) if term in word_terms(word))
            # A word's count takes one byte.
            if words:
                expected[at, window] = sum(min(count, 255) for count in words.values())
    places = np.repeat(np.arange(len(terms)), np.diff(found.borders)).tolist()
    keys = list(zip(places, found.windows.tolist(), strict=True))
    assert dict(zip(keys, found.counts.tolist(), strict=True)) == expected
    assert keys == sorted(expected)

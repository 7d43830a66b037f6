"""The postings of common terms are what those of their words add up to."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlm_rag.indexes import common
from rlm_rag.indexes.index import build_index
from rlm_rag.indexes.ranking import PLAIN
from rlm_rag.indexes.segment import COMMON
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


def test_a_term_is_common_by_all_of_its_words_and_only_where_it_has_several(pack: Pack) -> None:
    half = common.COMMON_POSTINGS // 2
    lines = "\n" * 60
    text = f"getUser{lines}" * half + f"get plain{lines}" * half + f"seldom Seldom{lines}"
    (segment,) = build_index(pack({"a.txt": text}), weights=PLAIN).segments
    table = segment.table(COMMON)
    assert [table.key(number) for number in range(table.count)] == [b"get"]

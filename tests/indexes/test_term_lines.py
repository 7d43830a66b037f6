from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlm_rag.indexes import postings, segment
from rlm_rag.indexes.index import build_index
from rlm_rag.indexes.ranking import PLAIN
from rlm_rag.indexes.stamp import stamp_of
from rlm_rag.indexes.store import SegmentStore
from rlm_rag.indexes.term_lines import term_lines
from rlm_rag.indexes.windows import stretch_first, window_lines
from rlm_rag.lines import split_lines
from rlm_rag.packed import PackedCorpus
from tests.indexes.held import held_by

Pack = Callable[[Mapping[str, str]], PackedCorpus]

TERMS = [
    *(b"user", b"getuser", b"get", b"aa", b"caf\xc3\xa9", b"cafe", "猫".encode(), b"2", b"x"),
    *(b"name", b"username", b"23", b"http", b"httpserver2name"),
    *(b"a", b"b", b"ab", b"ba", b"aba", b"aab", b"abab", b"1", b"12", b"a1b", b"ab12ab"),
]
WORDS = [
    "getUser",
    "get_user",
    "GETUSER",
    "users",
    "a_a",
    "aaa",
    "a_aa",
    "café",
    "_",
    "x2",
    "吾輩は猫",
    "“x”",
    "HTTPServer2Name",
    "HTTP__Server_2Name",
    "username",
    "__user__name__",
    "user_2_3",
    "x23",
    "name2",
]
words = st.sampled_from(WORDS) | st.text("aAbB_12é", min_size=1, max_size=8)
lines = st.lists(words, max_size=4).map(" ".join)
blocks = st.tuples(st.lists(lines, max_size=4), st.integers(1, 40), st.sampled_from("\n\r"))
texts = blocks.map(lambda block: block[2].join(block[0] * block[1]))
corpora = st.dictionaries(st.sampled_from(["a.txt", "b.py", "c.md"]), texts, min_size=1)


def check(
    corpus: PackedCorpus, documents: Mapping[str, str], terms: list[bytes], store: SegmentStore
) -> None:
    """Hold what every window has against what its lines and those above it say."""
    index = build_index(corpus, weights=PLAIN, store=store)
    windows = range(index.postings.window_count)
    contents = [split_lines(documents[path]) for path in index.paths]
    for window, held in zip(windows, term_lines(index.postings, windows, terms), strict=True):
        document, number = index.postings.place(window)
        first, last = window_lines(number, len(contents[document]))
        first = stretch_first(first)
        expected = held_by(terms, contents[document][first - 1 : last], first)
        assert list(held) == sorted(held)
        assert {line: bits for line, bits in held.items() if line >= first} == expected


@settings(max_examples=25, deadline=None)
@given(
    st.lists(corpora, min_size=1, max_size=3),
    st.lists(st.sampled_from(TERMS), min_size=1, unique=True),
    st.booleans(),
)
def test_lines_hold_the_terms_of_their_words(
    pack: Pack,
    tmp_path_factory: pytest.TempPathFactory,
    versions: list[dict[str, str]],
    terms: list[bytes],
    is_wide: bool,
) -> None:
    folder: Path = tmp_path_factory.mktemp("stored")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(postings, "_PIECE_WORDS", 50)
        patch.setattr(segment, "_MOST_SHORT_NUMBERS", 0 if is_wide else 1 << 16)
        for documents in versions:
            store = SegmentStore(folder, stamp=stamp_of(PLAIN))
            check(pack(documents), documents, terms, store)


def test_of_more_terms_than_a_word_has_bits_none_is_missed(pack: Pack) -> None:
    said = [f"w{chr(97 + at // 26)}{chr(97 + at % 26)}" for at in range(150)]
    documents = {
        "a.txt": "\n".join(f"{one} {two}" for one, two in zip(said, said[::-1], strict=True))
    }
    terms = [word.encode() for word in said]
    store = SegmentStore(None, stamp=stamp_of(PLAIN))
    check(pack(documents), documents, terms, store)


def test_windows_of_no_term_hold_nothing(pack: Pack) -> None:
    found = build_index(pack({"a.txt": "one\ntwo\n"}), weights=PLAIN).postings
    assert term_lines(found, [0], [b"three"]) == [{}]
    assert term_lines(found, [0], []) == [{}]
    assert term_lines(found, [], [b"one"]) == []

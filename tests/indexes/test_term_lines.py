from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rlm_rag.indexes.term_lines import TermLines
from rlm_rag.indexes.terms import raw_words, word_terms

TERMS = [b"user", b"getuser", b"get", b"aa", b"caf\xc3\xa9", b"cafe", "猫".encode(), b"2", b"x"]
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
]
lines = st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join)
texts = st.lists(st.lists(lines, max_size=4).map("\n".join), max_size=4)


@given(texts, st.sets(st.sampled_from(TERMS), min_size=1))
def test_lines_hold_the_terms_of_their_words(texts: list[str], terms: set[bytes]) -> None:
    expected = []
    for text in texts:
        held = {
            at: terms.intersection(term for word in raw_words(line) for term in word_terms(word))
            for at, line in enumerate(text.split("\n"))
        }
        expected.append({at: found for at, found in held.items() if found})
    finder = TermLines(terms)
    assert finder.of([text.encode() for text in texts]) == expected
    assert [finder.of([text.encode()])[0] for text in texts] == expected

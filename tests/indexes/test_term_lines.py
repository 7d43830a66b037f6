from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rlm_rag.indexes.term_lines import TermLines
from rlm_rag.indexes.terms import raw_words, word_terms

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
texts = st.lists(st.lists(lines, max_size=4).map("\n".join), max_size=4)


@given(texts, st.sets(st.sampled_from(TERMS), min_size=1))
def test_lines_hold_the_terms_of_their_words(texts: list[str], terms: set[bytes]) -> None:
    asked = [term for term in TERMS if term in terms]
    expected = []
    for text in texts:
        held = {
            at: terms.intersection(term for word in raw_words(line) for term in word_terms(word))
            for at, line in enumerate(text.split("\n"))
        }
        expected.append(
            {
                at: sum(1 << asked.index(term) for term in found)
                for at, found in held.items()
                if found
            }
        )
    finder = TermLines(asked)
    assert finder.of([text.encode() for text in texts]) == expected
    assert [finder.of([text.encode()])[0] for text in texts] == expected

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_rag.indexes import line_texts
from rlm_rag.indexes.finding import Finder
from rlm_rag.indexes.index import build_index
from rlm_rag.indexes.line_texts import LineTexts, line_ends
from rlm_rag.indexes.ranking import Weights
from rlm_rag.indexes.segment import FAR
from rlm_rag.indexes.windows import window_lines
from rlm_rag.lines import split_lines
from rlm_rag.packed import PackedCorpus

Pack = Callable[[Mapping[str, str]], PackedCorpus]

texts = st.lists(st.sampled_from(["a", "é", "\n", "\r\n", "\r", "\u2028", "\x0b"])).map("".join)


@given(texts, st.data())
def test_lines_are_those_of_the_document(pack: Pack, text: str, data: st.DataObject) -> None:
    corpus = pack({"a.txt": text})
    lines = split_lines(text)
    assert corpus.line_count(0) == len(lines)
    if lines:
        first = data.draw(st.integers(1, len(lines)))
        last = data.draw(st.integers(first, len(lines)))
        read = LineTexts(corpus).lines(0, first, last).decode()
        assert read == "\n".join(lines[first - 1 : last])


ENDS = st.sampled_from(["\n", "\r\n", "\r", "a\rb\n"])
LONG = st.tuples(st.integers(1, 120), ENDS, st.sampled_from(["", "\n", "\r", "é"])).map(
    lambda drawn: "".join(f"line {n}{drawn[1]}" for n in range(drawn[0])) + drawn[2]
)


@given(st.lists(LONG, min_size=1, max_size=2))
def test_a_stretch_has_the_lines_of_its_window_and_those_above(
    pack: Pack, texts: list[str]
) -> None:
    corpus = pack({f"{number}.txt": text for number, text in enumerate(texts)})
    index = build_index(corpus, weights=Weights())
    windows = range(index.postings.window_count)
    found = Finder(corpus, index, weights=Weights()).stretches(windows, [])
    for window, stretch in zip(windows, found, strict=True):
        document, number = index.postings.place(window)
        lines = split_lines(texts[document])
        first, last = window_lines(number, len(lines))
        assert stretch.first == max(1, first - 60)
        assert stretch.text.decode().split("\n") == lines[stretch.first - 1 : last]


def test_lines_far_into_a_text_are_counted_from_its_start(pack: Pack) -> None:
    texts = LineTexts(pack({"a.txt": "one\ntwo\nthree\n"}))
    assert texts.between(0, 2, 3, FAR, None) == b"two\nthree"
    assert texts.between(0, 1, 2, 0, FAR) == b"one\ntwo"
    assert texts.between(0, 1, 2, 0, 8) == b"one\ntwo"


@given(texts, st.integers(1, 9))
def test_ends_of_lines_are_the_same_however_many_bytes_are_compared_at_once(
    text: str, piece_bytes: int
) -> None:
    expected = line_ends(text.encode()).tolist()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(line_texts, "_PIECE_BYTES", piece_bytes)
        assert line_ends(text.encode()).tolist() == expected

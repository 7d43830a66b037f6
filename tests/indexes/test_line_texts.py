from __future__ import annotations

from collections.abc import Callable, Mapping

from hypothesis import given
from hypothesis import strategies as st

from rlm_rag.indexes.line_texts import LineTexts
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

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rlm_rag.indexes.parallel import _pieces


@given(st.lists(st.integers(0, 1000)), st.integers(1, 20))
def test_pieces_hold_all_documents_in_order_and_are_about_as_large_as_each_other(
    sizes: list[int], count: int
) -> None:
    documents = list(range(100, 100 + len(sizes)))
    pieces = _pieces(documents, sizes, count)
    assert [number for piece in pieces for number in piece] == documents
    assert len(pieces) <= count
    assert all(pieces)
    held = [sum(sizes[number - 100] + 1 for number in piece) for piece in pieces]
    assert max(held, default=0) <= (sum(sizes) + len(sizes)) / count + 2 * max(sizes, default=0) + 2


@given(st.lists(st.integers(1, 100), min_size=20), st.integers(2, 4))
def test_the_last_piece_has_so_much_more_as_is_done_ahead(sizes: list[int], count: int) -> None:
    ahead = (sum(sizes) + len(sizes)) // 2
    pieces = _pieces(range(len(sizes)), sizes, count, ahead_bytes=ahead)
    assert [number for piece in pieces for number in piece] == list(range(len(sizes)))
    *others, last = (sum(sizes[number] + 1 for number in piece) for piece in pieces)
    each = (sum(sizes) + len(sizes) - ahead) / count
    assert max(others) <= each + 2 * max(sizes) + 2
    assert last >= each + ahead - max(sizes) - 2

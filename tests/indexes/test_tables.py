"""Sorted tables, looked up where they lie."""

from __future__ import annotations

from array import array

from hypothesis import given
from hypothesis import strategies as st

from rlm_rag.indexes.tables import Table, table_parts

# Of two letters, so that keys begin with others, hold them, and run on from one into the next.
KEYS = st.text("ab", min_size=1, max_size=6).map(str.encode)


@given(st.sets(KEYS, max_size=100), st.lists(KEYS))
def test_a_key_is_found_where_it_stands_and_no_other_is(
    keys: set[bytes], asked: list[bytes]
) -> None:
    ordered = sorted(keys)
    ends = array("I", range(1, len(ordered) + 1)).tobytes()
    parts = table_parts(ordered, ends, b"")
    table = Table(*(memoryview(parts[name]) for name in ("keys", "key_ends", "value_ends")))
    assert [table.find(key) for key in ordered] == list(range(len(ordered)))
    for key in asked:
        assert table.find(key) == (ordered.index(key) if key in keys else -1)

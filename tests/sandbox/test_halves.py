"""Values cut in two until they fit, and put together again."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rlm_rag.sandbox.halves import halves, join

_JSON = st.recursive(
    st.none() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=40,
)


def pieces(value: Any, most_chars: int) -> list[Any]:
    parts = halves(value) if len(json.dumps(value)) > most_chars else None
    return [value] if parts is None else [x for part in parts for x in pieces(part, most_chars)]


@given(_JSON, st.integers(1, 60))
def test_the_parts_of_a_value_make_it_again(value: Any, most_chars: int) -> None:
    first, *rest = json.loads(json.dumps(pieces(value, most_chars)))
    for part in rest:
        join(first, part)
    assert first == value
    assert not isinstance(value, dict) or list(first) == list(value)


def test_a_list_within_a_dict_is_cut_where_the_rest_is_small() -> None:
    state = {"id": 3, "value": [{"text": "x" * 50}] * 8}
    assert max(len(json.dumps(piece)) for piece in pieces(state, 200)) <= 200


def test_what_has_no_two_parts_is_left_as_it_is() -> None:
    for value in ("long text", 7, None, [], {}, ["one"], {"a": "one"}, {"a": ["one"]}):
        assert halves(value) is None

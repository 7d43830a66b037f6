"""What is written as TOML is read back the same."""

import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlm_rag.evals.toml import to_toml

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
plain = st.one_of(
    texts,
    st.booleans(),
    st.integers(-(2**60), 2**60),
    st.floats(allow_nan=False),
    st.lists(texts | st.dictionaries(texts, st.integers(0, 9), max_size=2), max_size=3),
)
tables = st.dictionaries(texts, plain, max_size=3)


@settings(max_examples=40)
@given(st.dictionaries(texts, plain | tables | st.dictionaries(texts, tables, max_size=2)))
def test_values_come_back(values):
    assert tomllib.loads(to_toml(values)) == values


def test_none_is_left_out_and_a_lone_surrogate_is_escaped():
    assert tomllib.loads(to_toml({"a": None, "b": "x\udcff"})) == {"b": "x\\udcff"}


def test_what_toml_cannot_say_is_refused():
    with pytest.raises(TypeError, match="set"):
        to_toml({"a": {1, 2}})

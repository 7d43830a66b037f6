from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_rag.errors import RetrievalError
from rlm_rag.indexes.requests import (
    GrepHit,
    GrepRequest,
    GrepResult,
    Hit,
    OutlineRequest,
    ReadRequest,
    RepoMapRequest,
    Request,
    Result,
    SearchRequest,
    SearchResult,
    Symbol,
    SymbolsRequest,
    SymbolsResult,
    TextResult,
)
from rlm_rag.indexes.wire import (
    decode_request,
    decode_result,
    encode_failure,
    encode_request,
    encode_result,
    to_json,
)

requests = st.one_of(
    st.builds(SearchRequest, st.text(), st.integers(), st.none() | st.text()),
    st.builds(GrepRequest, st.text()),
    st.builds(OutlineRequest, st.text()),
    st.builds(SymbolsRequest, st.text(), references=st.booleans()),
    st.builds(ReadRequest, st.text(), st.integers(), st.none() | st.integers()),
    st.builds(RepoMapRequest, st.none() | st.text()),
)
lines = st.lists(st.tuples(st.integers(), st.text()), max_size=2).map(tuple)
grep_hits = st.builds(GrepHit, st.text(), st.integers(), st.text(), lines, lines)
# A score is a sum of finite weights; a NaN would not even equal itself.
hits = st.builds(Hit, score=st.floats(allow_nan=False, allow_infinity=False))
results = st.one_of(
    st.builds(SearchResult, st.lists(hits, max_size=2).map(tuple), st.none() | st.text()),
    st.builds(
        GrepResult,
        st.lists(grep_hits, max_size=2).map(tuple),
        st.dictionaries(st.text(), st.integers()),
        error=st.none() | st.text(),
    ),
    st.builds(SymbolsResult, st.lists(st.builds(Symbol), max_size=2).map(tuple)),
    st.builds(TextResult, st.text(), st.none() | st.text(), error=st.none() | st.text()),
)


@given(st.integers(), requests)
def test_a_request_comes_out_as_it_went_in(number: int, request: Request) -> None:
    line = encode_request(number, request)
    assert line.count(b"\n") == 1
    assert decode_request(line) == (number, request)


@given(st.integers(), results)
def test_a_result_comes_out_as_it_went_in(number: int, result: Result) -> None:
    assert decode_result(encode_result(number, result)) == (number, result)
    json.dumps(to_json(result))


def test_a_failure_comes_out_as_an_error_with_its_hint() -> None:
    number, error = decode_result(encode_failure(3, "no", "try"))
    assert number == 3
    assert isinstance(error, RetrievalError)
    assert (error.message, error.hint) == ("no", "try")


def test_a_request_that_is_no_json_is_refused() -> None:
    with pytest.raises(RetrievalError, match="cannot be sent"):
        encode_request(1, SearchRequest({1}))  # type: ignore[arg-type]


def test_json_values_have_the_shapes_of_the_repl() -> None:
    assert to_json(SearchResult((Hit("a", 1, 2, 3.5, "s"),))) == [
        {"path": "a", "line": 1, "end_line": 2, "score": 3.5, "snippet": "s"}
    ]
    plain = GrepResult((GrepHit("a", 1, "t"),), {"a": 1}, 1)
    assert to_json(plain) == {
        "hits": [{"path": "a", "line": 1, "text": "t"}],
        "counts": {"a": 1},
        "total": 1,
        "truncated": False,
    }
    told = to_json(GrepResult((GrepHit("a", 2, "t", ((1, "s"),)),), error="bad", note="none"))
    assert told["error"] == "bad"
    assert told["note"] == "none"
    assert told["hits"][0]["before"] == [{"line": 1, "text": "s"}]
    symbol = Symbol("a", 1, "class", "A", "class A:", 3, "B", "Of letters.")
    assert to_json(SymbolsResult((symbol,))) == [
        {
            "path": "a",
            "line": 1,
            "kind": "class",
            "name": "A",
            "signature": "class A:",
            "end_line": 3,
            "scope": "B",
            "doc": "Of letters.",
        }
    ]
    assert to_json(TextResult("text")) == "text"
    assert to_json(TextResult("", error="what")) == "Error: what"

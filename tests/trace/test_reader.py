"""Traces come back as typed events; damage is named by its line."""

import json
from dataclasses import fields

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlm_rag.errors import TraceError
from rlm_rag.trace.events import EVENT_TYPES, Answered, LimitReached, Resumed
from rlm_rag.trace.reader import read_trace
from rlm_rag.trace.recorder import Recorder
from tests.trace.test_show import start

VALUES = {
    "str": st.text(max_size=20),
    "int": st.integers(-(2**53), 2**53),
    "float": st.floats(allow_nan=False, allow_infinity=False),
    "bool": st.booleans(),
    "str | None": st.none() | st.text(max_size=20),
    "int | None": st.none() | st.integers(0, 1000),
    "Any": st.none() | st.lists(st.integers(), max_size=3) | st.text(max_size=5),
    "Mapping[str, str]": st.dictionaries(st.text(max_size=5), st.text(max_size=5)),
    "Mapping[str, Any]": st.dictionaries(st.text(max_size=5), st.none() | st.integers()),
    "Sequence[Sequence[Any]]": st.lists(st.lists(st.integers(), max_size=3), max_size=3),
    "Sequence[Mapping[str, str]]": st.lists(
        st.dictionaries(st.text(max_size=5), st.text(max_size=5)), max_size=3
    ),
    "Sequence[Mapping[str, Any]]": st.lists(
        st.dictionaries(st.text(max_size=5), st.integers()), max_size=3
    ),
}


def events():
    return st.one_of(
        *(
            st.builds(kind, **{item.name: VALUES[item.type] for item in fields(kind)})
            for kind in EVENT_TYPES.values()
        )
    )


@settings(max_examples=60, deadline=None)
@given(st.lists(events(), min_size=1, max_size=8))
def test_every_event_comes_back_equal(tmp_path_factory, written):
    path = tmp_path_factory.mktemp("trace") / "run.jsonl"
    with Recorder(path) as recorder:
        for event in written:
            recorder.record(event)
    trace = read_trace(path)
    assert list(trace.events) == written
    assert not trace.torn


@pytest.fixture
def lines(tmp_path):
    path = tmp_path / "run.jsonl"
    with Recorder(path) as recorder:
        for number in range(3):
            recorder.record(LimitReached(run="r", name="timeout", detail=str(number)))
    return path.read_bytes().splitlines(keepends=True)


def write(tmp_path, *lines):
    path = tmp_path / "copy.jsonl"
    path.write_bytes(b"".join(lines))
    return path


def changed(line, /, **values):
    entry = json.loads(line) | values
    return json.dumps({k: v for k, v in entry.items() if v is not ...}).encode() + b"\n"


def test_a_torn_last_line_is_left_out_and_told(tmp_path, lines):
    for cut in range(1, len(lines[2]) - 1, 7):
        trace = read_trace(write(tmp_path, lines[0], lines[1], lines[2][:cut]))
        assert (len(trace.records), trace.torn) == (2, True)


def test_a_last_line_that_only_lacks_its_end_is_whole(tmp_path, lines):
    trace = read_trace(write(tmp_path, lines[0], lines[1].rstrip(b"\n")))
    assert (len(trace.records), trace.torn) == (2, False)


@pytest.mark.parametrize(
    "damage",
    [
        lambda line: b"{\n",
        lambda line: b"\n",
        lambda line: b"[]\n",
        lambda line: b"\xff\xfe\n",
        lambda line: b"[" * 100_000 + b"\n",
        lambda line: changed(line, line=9),
        lambda line: changed(line, line="2"),
        lambda line: changed(line, type="unheard"),
        lambda line: changed(line, type=["limit"]),
        lambda line: changed(line, detail=3),
        lambda line: changed(line, detail=...),
        lambda line: changed(line, schema_version=...),
        lambda line: changed(line, time=None),
    ],
)
def test_damage_elsewhere_is_named_by_its_line(tmp_path, lines, damage):
    path = write(tmp_path, lines[0], damage(lines[1]), lines[2])
    with pytest.raises(TraceError, match="line 2"):
        read_trace(path)


def test_a_trace_of_a_newer_version_says_so(tmp_path, lines):
    with pytest.raises(TraceError, match="newer version") as error:
        read_trace(write(tmp_path, changed(lines[0], schema_version=99)))
    assert "update" in error.value.hint


def test_fields_of_later_versions_are_passed_over(tmp_path, lines):
    trace = read_trace(write(tmp_path, changed(lines[0], later=1)))
    assert trace.events[0].detail == "0"


def test_an_empty_file_holds_no_events(tmp_path):
    trace = read_trace(write(tmp_path))
    assert (trace.records, trace.torn, trace.root) == ((), False, None)


def test_a_missing_file_is_a_trace_error(tmp_path):
    with pytest.raises(TraceError, match="cannot be read"):
        read_trace(tmp_path / "none.jsonl")


def test_a_run_goes_on_while_it_is_written_to_and_has_no_end(tmp_path):
    path = tmp_path / "run.jsonl"
    with Recorder(path) as recorder:
        recorder.record(start())
        assert read_trace(path).goes_on
        recorder.record(Answered(run="r1", text="", stop_reason="interrupted"))
        assert not read_trace(path).goes_on
    with Recorder(path, after=2) as recorder:
        recorder.record(Resumed(run="r1", version="0.1.0", limits={}))
        assert read_trace(path).goes_on
    assert not read_trace(path).goes_on

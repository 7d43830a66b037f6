"""Results whose values repeat are short in a trace, and come back as they were."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_rag.errors import TraceError
from rlm_rag.trace.events import Served, TaskEnded
from rlm_rag.trace.reader import read_trace
from rlm_rag.trace.recorder import Recorder

REFUSED = {"text": "Error: not sent: the limit of 3 calls", "ok": False, "error": "the limit"}


def served(result):
    return Served("r", block=1, seq=1, name="llm_query_batched", asked="x", result=result)


def written(path, *events):
    with Recorder(path) as recorder:
        for event in events:
            recorder.record(event)
    return path


values = st.sampled_from([REFUSED, {"text": "yes", "ok": True}, [1], [1.0], [True], None, "a", 0])
many = st.lists(values, min_size=30, max_size=80)
results = st.one_of(
    many,
    many.map(lambda items: {str(place): item for place, item in enumerate(items)}),
    many.map(lambda items: {"id": 1, "status": "done", "value": items}),
    many.map(lambda items: {"id": 1, "value": {str(n): item for n, item in enumerate(items)}}),
)


@given(results)
def test_whatever_repeats_comes_back_as_it_was(tmp_path_factory, result):
    path = written(tmp_path_factory.mktemp("trace") / "run.jsonl", served(result))
    (found,) = read_trace(path).events
    # Numbers that are equal and not the same, as 1 and True, stay what they are.
    assert json.dumps(found.result) == json.dumps(result)


def test_a_hundred_thousand_refusals_are_some_hundred_bytes(tmp_path):
    refusals = [{"text": "yes", "ok": True}] * 3 + [REFUSED] * 100_000
    ended = TaskEnded("r", task=1, status="done", result=refusals, usage={}, seconds=0.0)
    fetched = served({"id": 1, "status": "done", "value": refusals})
    events = [served(refusals), ended, fetched]
    path = written(tmp_path / "run.jsonl", *events)
    assert path.stat().st_size < 3 * 600
    assert list(read_trace(path).events) == events


def test_results_that_differ_or_are_few_are_written_as_they_are(tmp_path):
    differing = [{"text": str(number)} for number in range(100)]
    path = written(tmp_path / "run.jsonl", served(differing), served([REFUSED] * 5))
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["result"] for line in lines] == [differing, [REFUSED] * 5]


@pytest.mark.parametrize(
    "folded",
    [
        {"in_task": False, "runs": [[5, 40]], "keys": None},
        {"in_task": False, "runs": [[-1, 40]], "keys": None},
        {"in_task": False, "runs": [[0, 1 << 40]], "keys": None},
        {"in_task": False, "runs": [[0, 40]], "keys": ["a"]},
        {"in_task": False, "runs": "many", "keys": None},
        {"in_task": True, "runs": [[0, 40]], "keys": None},
        {"runs": []},
        7,
    ],
)
def test_a_fold_that_nobody_wrote_is_damage_and_named_by_its_line(tmp_path, folded):
    path = written(tmp_path / "run.jsonl", served([REFUSED] * 40))
    entry = json.loads(path.read_text())
    path.write_text(json.dumps({**entry, "repeats": folded}) + "\n")
    with pytest.raises(TraceError, match="line 1"):
        read_trace(path)

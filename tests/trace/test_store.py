"""Traces are named by time, found by little, and kept few."""

import stat
import sys
from pathlib import Path

import pytest

from rlm_rag.errors import TraceError
from rlm_rag.trace.events import LimitReached
from rlm_rag.trace.store import TraceStore, default_state_folder, new_run_id


@pytest.fixture
def store(tmp_path):
    return TraceStore(tmp_path / "runs")


def fill(store, *ids, size=10):
    store.folder.mkdir(exist_ok=True, mode=0o700)
    for run_id in ids:
        store.path_of(run_id).write_bytes(b"x" * size)


IDS = [f"20250102-0304{second:02}-000000-abcdef" for second in range(5)]


def test_run_ids_are_unique_and_sort_by_time():
    ids = [new_run_id() for _ in range(200)]
    assert len(set(ids)) == 200
    assert [run_id[:22] for run_id in ids] == sorted(run_id[:22] for run_id in ids)


def test_a_created_trace_is_listed_with_its_start(store):
    run_id = new_run_id()
    heard = []
    with store.create(run_id, listener=heard.append) as recorder:
        recorder.record(LimitReached(run=run_id, name="timeout", detail=""))
    (run,) = store.list_runs()
    assert (run.id, run.path) == (run_id, store.path_of(run_id))
    assert run.size_bytes == run.path.stat().st_size > 0
    assert run.started.startswith(f"{run_id[:4]}-{run_id[4:6]}-{run_id[6:8]}T")
    assert len(heard) == 1
    assert stat.S_IMODE(store.folder.stat().st_mode) == 0o700


def test_a_store_that_cannot_be_written_tells_and_ends_nothing(tmp_path):
    (tmp_path / "file").write_text("")
    with TraceStore(tmp_path / "file").create(new_run_id()) as recorder:
        assert recorder.failure is not None


def test_only_traces_are_listed(store):
    fill(store, *IDS)
    (store.folder / "notes.jsonl").write_text("")
    (store.folder / "20250102-030405-000000-abcdef.txt").write_text("")
    assert [run.id for run in store.list_runs()] == IDS


def test_a_store_that_was_never_used_lists_nothing(store):
    assert store.list_runs() == ()
    assert store.clear() == 0
    with pytest.raises(TraceError, match="no traces"):
        store.find_run("last")


def test_a_run_is_found_by_its_id_its_start_its_path_or_as_the_last(store):
    fill(store, *IDS)
    assert store.find_run(IDS[1]) == store.path_of(IDS[1])
    assert store.find_run(IDS[2][:15]) == store.path_of(IDS[2])
    assert store.find_run("last") == store.path_of(IDS[-1])
    assert store.find_run(str(store.path_of(IDS[0]))) == store.path_of(IDS[0])


def test_any_file_is_a_trace_where_no_run_begins_so(store, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("kept.log", "2025"):
        (tmp_path / name).write_text("")
        assert store.find_run(name) == Path(name)
    fill(store, *IDS)
    assert store.find_run("kept.log") == Path("kept.log")
    with pytest.raises(TraceError, match="5 runs begin"):
        store.find_run("2025")


def test_an_unclear_or_unknown_name_says_what_there_is(store):
    fill(store, *IDS)
    with pytest.raises(TraceError, match="5 runs begin") as error:
        store.find_run("2025")
    assert IDS[-1] in error.value.hint
    with pytest.raises(TraceError, match="no run is called") as error:
        store.find_run("20250102-030400-000000-abcdee")
    assert IDS[0] in error.value.hint
    for name in ("", "*", "../secret.jsonl", str(store.folder)):
        with pytest.raises(TraceError):
            store.find_run(name)


def test_the_oldest_traces_go_first(store):
    fill(store, *IDS, size=10)
    assert store.prune(max_runs=3) == 2
    assert [run.id for run in store.list_runs()] == IDS[2:]
    assert store.prune(max_bytes=20) == 1
    assert [run.id for run in store.list_runs()] == IDS[3:]
    assert store.prune(max_bytes=1) == 1
    assert [run.id for run in store.list_runs()] == IDS[4:]


def test_clear_removes_traces_and_nothing_else(store):
    fill(store, *IDS)
    (store.folder / "notes.txt").write_text("")
    assert store.clear() == 5
    assert [path.name for path in store.folder.iterdir()] == ["notes.txt"]


@pytest.mark.skipif(sys.platform != "linux", reason="each platform has its own folder")
def test_the_state_folder_is_the_users_own():
    assert default_state_folder({"XDG_STATE_HOME": "/state"}) == Path("/state/rlm-rag")
    own = Path.home() / ".local" / "state" / "rlm-rag"
    assert default_state_folder({}) == own
    assert default_state_folder({"XDG_STATE_HOME": "relative"}) == own

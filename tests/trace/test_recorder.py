"""A run's events are in its file as they happen, whatever they hold and whatever fails."""

import json
import os
import stat
import subprocess
import sys
import threading
from types import MappingProxyType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlm_rag.errors import TraceError
from rlm_rag.trace.events import Answered, LimitReached, Retrieved, TurnStarted
from rlm_rag.trace.reader import read_trace
from rlm_rag.trace.recorder import Recorder


def limit(detail="x"):
    return LimitReached(run="r", name="timeout", detail=detail)


def test_each_event_is_one_line_of_ascii_json_that_is_there_at_once(tmp_path):
    path = tmp_path / "run.jsonl"
    with Recorder(path) as recorder:
        recorder.record(limit("naïve\n\x1b[31m"))
        entry = json.loads(path.read_bytes())
        recorder.record(limit("second"))
    assert entry["detail"] == "naïve\n\x1b[31m"
    assert (entry["schema_version"], entry["type"], entry["line"]) == (1, "limit", 1)
    assert entry["time"].endswith("+00:00")
    lines = path.read_bytes().split(b"\n")
    assert len(lines) == 3
    assert path.read_bytes().isascii()


def test_only_the_user_can_read_a_trace(tmp_path):
    path = tmp_path / "state" / "run.jsonl"
    old = os.umask(0)
    try:
        with Recorder(path) as recorder:
            recorder.record(limit())
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_an_existing_file_is_never_touched(tmp_path):
    path = tmp_path / "run.jsonl"
    path.write_text("mine")
    with pytest.raises(TraceError, match="exists"):
        Recorder(path)
    assert path.read_text() == "mine"


def test_a_link_is_not_followed(tmp_path):
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(TraceError):
        Recorder(tmp_path / "link.jsonl")
    assert not (tmp_path / "elsewhere").exists()


def test_without_a_path_only_the_listener_hears(tmp_path):
    heard = []
    with Recorder(None, listener=heard.append) as recorder:
        recorder.record(limit())
    assert heard == [limit()]
    assert recorder.path is None
    assert recorder.failure is None


def test_the_listener_hears_an_event_after_it_was_written(tmp_path):
    path = tmp_path / "run.jsonl"
    sizes = []
    with Recorder(path, listener=lambda event: sizes.append(path.stat().st_size)) as recorder:
        recorder.record(limit())
    assert sizes[0] > 0


@settings(max_examples=50, deadline=None)
@given(text=st.text(st.characters(), max_size=50))
def test_any_text_comes_back_as_it_was(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("trace") / "run.jsonl"
    lone = text + "\ud800\udc00\udfff\x00"
    with Recorder(path) as recorder:
        recorder.record(limit(lone))
    (event,) = read_trace(path).events
    # A pair of surrogates is one character in JSON, as it is in UTF-16.
    assert event.detail.encode("utf-16", "surrogatepass") == lone.encode("utf-16", "surrogatepass")


def test_values_that_json_lacks_are_still_recorded(tmp_path):
    path = tmp_path / "run.jsonl"
    result = MappingProxyType({"score": float("nan"), "more": (1, float("inf"))})
    event = Retrieved(
        run="r", block=1, seq=1, name="search", arguments={}, result=result, seconds=0.1
    )
    with Recorder(path) as recorder:
        recorder.record(event)
    (read,) = read_trace(path).events
    assert read.result == {"score": None, "more": [1, None]}


def test_a_value_that_is_no_json_at_all_is_an_error_and_leaves_the_file_whole(tmp_path):
    path = tmp_path / "run.jsonl"
    with Recorder(path) as recorder:
        with pytest.raises(TypeError, match="bytes"):
            recorder.record(TurnStarted(run="r", turn=1, messages=[{"content": b"x"}]))
        recorder.record(limit())
    assert [record.line for record in read_trace(path).records] == [1]


def test_closing_twice_and_recording_after_it_do_no_harm(tmp_path):
    path = tmp_path / "run.jsonl"
    recorder = Recorder(path)
    recorder.record(limit())
    recorder.close()
    recorder.close()
    recorder.record(limit())
    assert len(path.read_bytes().splitlines()) == 1


def test_a_trace_without_an_event_leaves_no_file(tmp_path):
    path = tmp_path / "run.jsonl"
    with Recorder(path) as recorder:
        assert path.exists()
        assert recorder.path is None
    assert not path.exists()


def test_threads_do_not_mix_their_lines(tmp_path):
    path = tmp_path / "run.jsonl"
    with Recorder(path) as recorder:
        threads = [
            threading.Thread(target=lambda: [recorder.record(limit("y" * 5000)) for _ in range(20)])
            for _ in range(5)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(read_trace(path).records) == 100


def test_a_folder_that_cannot_be_made_is_told_and_ends_nothing(tmp_path):
    (tmp_path / "file").write_text("")
    with Recorder(tmp_path / "file" / "run.jsonl") as recorder:
        recorder.record(limit())
    assert "cannot be written" in recorder.failure


FULL = """
import resource, signal, sys
from pathlib import Path
from rlm_rag.trace.events import LimitReached
from rlm_rag.trace.recorder import Recorder
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
heard = []
recorder = Recorder(Path(sys.argv[1]), listener=heard.append)
for _ in range(20):
    recorder.record(LimitReached(run="r", name="timeout", detail="x" * 100))
recorder.close()
print(len(heard), recorder.failure)
"""


def test_a_full_disk_ends_the_recording_with_whole_lines_and_not_the_run(tmp_path):
    path = tmp_path / "run.jsonl"
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("20 ")
    assert "ends early" in done.stdout
    trace = read_trace(path)
    assert not trace.torn
    assert 0 < len(trace.records) < 20
    assert path.read_bytes().endswith(b"\n")


def test_a_trace_that_would_grow_without_end_ends_early_with_whole_lines(tmp_path, monkeypatch):
    monkeypatch.setattr("rlm_rag.trace.recorder.MAX_BYTES", 1000)
    path = tmp_path / "run.jsonl"
    heard = []
    with Recorder(path, listener=heard.append) as recorder:
        for _ in range(20):
            recorder.record(LimitReached(run="r", name="timeout", detail="x" * 100))
        assert "ends early: it may have 1,000 bytes" in recorder.failure
    assert len(heard) == 20
    assert 0 < len(read_trace(path).records) < 10
    assert path.stat().st_size <= 1000


def test_what_was_recorded_outlives_a_killed_process(tmp_path):
    path = tmp_path / "run.jsonl"
    code = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from rlm_rag.trace.events import LimitReached\n"
        "from rlm_rag.trace.recorder import Recorder\n"
        "recorder = Recorder(Path(sys.argv[1]))\n"
        "recorder.record(LimitReached(run='r', name='timeout', detail='x'))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(path)], check=False)
    assert read_trace(path).events == (limit(),)


def test_the_answer_is_synced_when_the_recorder_is_closed(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", synced.append)
    with Recorder(tmp_path / "run.jsonl") as recorder:
        recorder.record(limit())
        recorder.close()
    assert synced == []
    with Recorder(tmp_path / "run2.jsonl") as recorder:
        recorder.record(Answered(run="r", text="", stop_reason="answered"))
        recorder.close()
        assert len(synced) == 1


def test_a_slow_disk_does_not_hold_up_the_run(tmp_path, monkeypatch):
    released = threading.Event()
    synced = []

    def slow(fd):
        released.wait(10)
        synced.append(fd)

    monkeypatch.setattr(os, "fsync", slow)
    path = tmp_path / "run.jsonl"
    with Recorder(path) as recorder:
        for _ in range(50):
            recorder.record(Answered(run="r", text="", stop_reason="answered"))
        assert len(path.read_bytes().splitlines()) == 50
        assert synced == []
        released.set()
    assert 1 <= len(synced) <= 2


def test_a_sync_that_fails_is_told(tmp_path, monkeypatch):
    def fail(fd):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with Recorder(tmp_path / "run.jsonl") as recorder:
        recorder.record(Answered(run="r", text="", stop_reason="answered"))
    assert "Input/output error" in recorder.failure
    assert len(read_trace(tmp_path / "run.jsonl").records) == 1

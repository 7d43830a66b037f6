"""Whatever way model code writes to descriptors 1 and 2, it is caught and bounded."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_rag.sandbox.inside.capture import Tape
from tests.sandbox.raw_worker import RawWorker


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[RawWorker]:
    with RawWorker(tmp_path, services=()) as worker:
        yield worker


@pytest.mark.parametrize(
    ("code", "stdout", "stderr"),
    [
        ("print('a'); print('b', end='')", "a\nb", ""),
        ("import sys; sys.stderr.write('e'); sys.stdout.write('o')", "o", "e"),
        ("import os; os.write(1, b'raw'); os.write(2, b'err')", "raw", "err"),
        ("import sys; sys.stdout.buffer.write(b'bin')", "bin", ""),
        ("import sys; print('é\\ud800\\x00\\x1b[1m')", "é\\ud800\x00\x1b[1m\n", ""),
        ("import os; os.write(1, b'a\\xff\\xc3')", "a��", ""),
        (
            "import threading as th\nt = th.Thread(target=print, args=('t',))\nt.start(); t.join()",
            "t\n",
            "",
        ),
        ("import subprocess\n_ = subprocess.run(['/bin/echo', 'child'])", "child\n", ""),
        ("import os; _ = os.system('echo shell >&2')", "", "shell\n"),
        (
            "import ctypes\nlib = ctypes.CDLL(None)\n_ = lib.puts(b'c'), lib.fflush(None)",
            "c\n",
            "",
        ),
        (
            "import os\npid = os.fork()\nif not pid: os.write(1, b'f'); os._exit(0)\n_ = os.wait()",
            "f",
            "",
        ),
    ],
)
def test_every_way_of_writing_is_caught(
    code: str, stdout: str, stderr: str, worker: RawWorker
) -> None:
    done = worker.run(code)
    assert done["error"] is None, done["error"]
    assert (done["stdout"], done["stderr"]) == (stdout, stderr)
    assert worker.run("print('next')")["stdout"] == "next\n"


@pytest.mark.parametrize(
    "code",
    [
        "import os; os.close(1); os.close(2)",
        "import os; os.close(0)",
        "import os; os.dup2(os.open(os.devnull, os.O_WRONLY), 1)",
        "import sys; sys.stdout = sys.stderr = None",
        "import sys; sys.stdout.close(); sys.stderr.close()",
        "import sys; sys.stdout.detach()",
        "import sys; del sys.stdout, sys.stderr",
        "import sys, io; sys.stdout = io.StringIO()",
        "import sys, io; sys.stdout = io.TextIOWrapper(sys.stdout.buffer)\nsys.stdout.write('z')",
        "import sys; sys.stdout = object()",
        "import sys\nclass F:\n    def flush(self): 1/0\nsys.stdout = F()",
    ],
)
def test_broken_streams_are_whole_again_in_the_next_block(code: str, worker: RawWorker) -> None:
    worker.run(code)
    done = worker.run(
        "import sys, os\nprint('out')\nprint('err', file=sys.stderr)\nos.write(1, b'!')"
    )
    assert (done["stdout"], done["stderr"]) in (("out\n!", "err\n"), ("!out\n", "err\n"))


def test_reading_stdin_finds_its_end(worker: RawWorker) -> None:
    assert worker.run("import sys, os\nsys.stdin.read(), os.read(0, 9)")["value"] == "('', b'')"


def test_output_beyond_the_cap_keeps_head_and_tail_and_says_how_much_was_cut(
    worker: RawWorker,
) -> None:
    done = worker.run("for n in range(200_000): print(n)", output_chars=1000)
    total = sum(len(str(n)) + 1 for n in range(200_000))
    assert done["stdout"].startswith("0\n1\n")
    assert done["stdout"].endswith("199999\n")
    assert done["stdout_cut"] == total - 1000
    assert f"{total - 1000:,} characters cut" in done["stdout"]
    assert worker.run("print('short')")["stdout"] == "short\n"


def test_what_a_thread_prints_late_belongs_to_the_next_block(worker: RawWorker) -> None:
    code = "import threading\nthreading.Timer(0.1, print, ['late']).start()\nprint('now')"
    assert worker.run(code)["stdout"] == "now\n"
    time.sleep(0.3)
    assert worker.run("1")["stdout"] == "late\n"


def test_a_thread_that_never_stops_printing_does_not_hold_up_its_block(worker: RawWorker) -> None:
    code = (
        "import threading, os\ndef spam():\n    while True: os.write(1, b'x' * 4096)\n"
        "threading.Thread(target=spam, daemon=True).start()"
    )
    worker.start(code)
    assert worker.finish(timeout_seconds=5)["error"] is None
    worker.start("2 + 2")
    assert worker.finish(timeout_seconds=5)["value"] == "4"


@given(text=st.text(max_size=60), limit=st.integers(1, 40), size=st.integers(1, 7))
def test_a_tape_keeps_the_head_and_the_tail(text: str, limit: int, size: int) -> None:
    tape = Tape()
    tape.limit_chars = limit
    data = text.encode()
    for start in range(0, len(data), size):
        tape.feed(data[start : start + size])
    kept, cut = tape.take()
    assert cut == max(len(text) - limit, 0)
    if not cut:
        assert kept == text
    else:
        head, tail = limit // 2, limit - limit // 2
        assert kept.startswith(text[:head])
        assert kept.endswith(text[len(text) - tail :])
    assert tape.take() == ("", 0)

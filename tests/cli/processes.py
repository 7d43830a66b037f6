"""The real command as a process: what it leaves behind, and what it may use of the machine."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import pytest

from rlm_rag.trace.events import Answered
from rlm_rag.trace.reader import Trace, read_trace

ROOT = Path(__file__).resolve().parents[2]
COMMAND = (sys.executable, "-m", "rlm_rag")
_SET_CHILD_SUBREAPER = 36
_WITHOUT_OVERRIDE = "-dac_override,-dac_read_search"
KEY = "sk-0123456789-never-to-be-shown"


@dataclass
class Place:
    """The folders of one user who runs the command, all empty at first."""

    root: Path
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for folder in (self.home, self.temporary, self.state, self.work):
            folder.mkdir()
        kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
        self.environment = kept | {
            "HOME": str(self.home),
            "TMPDIR": str(self.temporary),
            "XDG_STATE_HOME": str(self.state),
            "PYTHONPATH": str(ROOT),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONIOENCODING": "utf-8",
            # Corpora of a few lines would be sent whole otherwise.
            "RLM_RAG_STRATEGY": "rlm",
            "OPENAI_API_KEY": KEY,
            "ANTHROPIC_API_KEY": KEY,
        }

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def temporary(self) -> Path:
        return self.root / "tmp"

    @property
    def state(self) -> Path:
        return self.root / "state"

    @property
    def work(self) -> Path:
        return self.root / "work"

    def start(
        self,
        *arguments: str,
        stdin: int | IO[Any] = subprocess.DEVNULL,
        stdout: int | IO[Any] = subprocess.PIPE,
        stderr: int | IO[Any] = subprocess.PIPE,
        prefix: Sequence[str] = (),
        without: Sequence[str] = (),
        **variables: str,
    ) -> subprocess.Popen[str]:
        """Start the command as the leader of a session, which is how a terminal starts it."""
        environment = self.environment | variables
        return subprocess.Popen(
            [*prefix, *COMMAND, *arguments],
            env={name: value for name, value in environment.items() if name not in without},
            cwd=self.work,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            encoding="utf-8",
            errors="surrogateescape",
            start_new_session=True,
        )

    def run(self, *arguments: str, timeout_seconds: float = 60.0, **options: Any) -> Ended:
        """Run the command to its end; it leaves nothing, shows no traceback and no key."""
        with self.start(*arguments, **options) as process:
            return self.end(process, timeout_seconds=timeout_seconds)

    def end(
        self, process: subprocess.Popen[str], *, timeout_seconds: float = 30.0, seen: str = ""
    ) -> Ended:
        """Read a command to its end, with the same demands; `seen` was read from stderr before."""
        stdout, stderr = process.communicate(timeout=timeout_seconds)
        ended = Ended(process.returncode, stdout or "", seen + (stderr or ""))
        assert_clean(ended.stdout + ended.stderr)
        assert list(self.temporary.iterdir()) == []
        return ended

    def traces(self) -> list[Trace]:
        """The traces of all runs, oldest first, each of whole lines but perhaps the last."""
        return [read_trace(path) for path in sorted(self.state.rglob("*.jsonl"))]


@dataclass(frozen=True)
class Ended:
    code: int
    stdout: str
    stderr: str

    @property
    def error(self) -> dict[str, Any]:
        """The error object that `--json` printed, and that nothing was printed besides it."""
        shown = json.loads(self.stdout)
        assert set(shown) == {"schema_version", "error"}
        assert set(shown["error"]) == {"kind", "message", "hint"}
        assert self.stderr == ""
        return dict(shown["error"])


def assert_clean(shown: str) -> None:
    """Nothing of Python's own is shown, and no key."""
    for word in ("Traceback", "Warning", "Exception ignored", "Fatal Python", "unexpected ", KEY):
        assert word not in shown, shown


def last_answer(trace: Trace) -> Answered:
    """The last event, which ends every run that had begun."""
    assert not trace.torn
    last = trace.events[-1]
    assert isinstance(last, Answered)
    return last


@contextmanager
def adopting() -> Iterator[Callable[[], dict[int, str]]]:
    """Adopt the processes that lose their parent; call the value for those that are left.

    Left means: still alive two seconds after the call, by id and name.
    """
    if sys.platform != "linux":
        pytest.skip("orphans can be adopted on Linux alone")
    libc = ctypes.CDLL(None)
    known = set(_descendants())
    libc.prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield lambda: _left(known)
    finally:
        libc.prctl(_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
        for pid in _descendants().keys() - known:
            os.kill(pid, signal.SIGKILL)


def _left(known: set[int]) -> dict[int, str]:
    deadline = time.monotonic() + 2
    while True:
        left = {pid: name for pid, name in _descendants().items() if pid not in known}
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.02)


def _descendants() -> dict[int, str]:
    """The living processes below this one; dead ones that it adopted are reaped on the way."""
    children: dict[int, list[tuple[int, str, str]]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            before, _, after = stat.read_text().rpartition(")")
        except OSError:
            continue
        status, parent, *_ = after.split()
        children.setdefault(int(parent), []).append(
            (int(stat.parent.name), before.partition("(")[2], status)
        )
    found: dict[int, str] = {}
    pending = [os.getpid()]
    while pending:
        parent = pending.pop()
        for pid, name, status in children.get(parent, ()):
            pending.append(pid)
            if status != "Z":
                found[pid] = name
            elif parent == os.getpid():
                _reap(pid)
    return found


def _reap(pid: int) -> None:
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return


def without_privileges() -> list[str]:
    """A prefix that makes a command of root's obey the permissions of root's own files."""
    if os.getuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        pytest.skip("root may read and write everything here, and there is no setpriv")
    return [
        "setpriv",
        f"--bounding-set={_WITHOUT_OVERRIDE}",
        f"--inh-caps={_WITHOUT_OVERRIDE}",
    ]


@contextmanager
def small_disk(folder: Path, kibibytes: int) -> Iterator[Path]:
    """A file system of that size at `folder`."""
    folder.mkdir(exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={kibibytes}k,mode=700", "tmpfs", str(folder)]
    done = subprocess.run(mount, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"a small disk cannot be mounted here: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def fill(folder: Path, *, but_bytes: int = 0) -> None:
    """Use up the room of a file system, all but so many bytes."""
    status = os.statvfs(folder)
    with (folder / "filler").open("wb") as file:
        file.write(b"\0" * max(0, status.f_bavail * status.f_frsize - but_bytes))

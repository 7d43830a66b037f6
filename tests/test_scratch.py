"""Temporary folders go with their owner, whatever way it ended."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rlm_rag import scratch
from rlm_rag.scratch import ScratchFolder

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]

HOLD = (
    "from rlm_rag.scratch import ScratchFolder; import sys, time;"
    "folder = ScratchFolder(); (folder.path / 'file').write_text('x');"
    "print(folder.path, flush=True);"
)
ROOT = Path(__file__).parent.parent


@pytest.fixture(autouse=True)
def own_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def start(code: str) -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD + code], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_a_folder_goes_at_exit() -> None:
    process, folder = start("pass")
    with process:
        assert process.wait() == 0
    assert not folder.exists()


def test_a_folder_goes_when_its_owner_raises() -> None:
    process, folder = start("sys.stderr = None; raise SystemExit(3)")
    with process:
        assert process.wait() == 3
    assert not folder.exists()


def test_what_a_killed_process_left_is_removed_by_the_next_and_the_living_are_spared() -> None:
    dead, left = start("time.sleep(60)")
    alive, held = start("time.sleep(60)")
    with dead, alive:
        dead.send_signal(signal.SIGKILL)
        dead.wait()
        assert left.exists()
        ScratchFolder().close()
        assert not left.exists()
        assert (held / "file").exists()
        alive.kill()


def test_a_stranger_of_the_same_name_is_left_alone(own_temporary_folder: Path) -> None:
    stranger = own_temporary_folder / "rlm-rag-host-mine"
    stranger.mkdir()
    (own_temporary_folder / "rlm-rag-host-link").symlink_to(stranger)
    ScratchFolder().close()
    assert len(list(own_temporary_folder.iterdir())) == 2


def close(folder: ScratchFolder) -> None:
    folder.close()
    os._exit(0)


def test_a_forked_child_does_not_remove_its_parents_folder() -> None:
    folder = ScratchFolder()
    child = multiprocessing.get_context("fork").Process(target=close, args=(folder,))
    child.start()
    child.join()
    child.close()
    assert folder.path.exists()
    folder.close()
    folder.close()
    assert not folder.path.exists()


def dying(remove: Callable[..., None], left: Iterator[int], *path: Any, **options: Any) -> None:
    if next(left, None) is None:
        os.kill(os.getpid(), signal.SIGKILL)
    remove(*path, **options)


def die_removing(after: int) -> None:
    folder = ScratchFolder()
    for name in "abcd":
        (folder.path / name).mkdir()
        (folder.path / name / "file").touch()
        (folder.path / f"{name}.txt").touch()
    left = iter(range(after))
    for function in ("unlink", "rmdir"):
        setattr(os, function, partial(dying, getattr(os, function), left))
    folder.close()


@pytest.mark.parametrize("after", range(0, 14, 3))
def test_what_a_process_left_that_died_removing_it_is_removed_by_the_next(
    own_temporary_folder: Path, after: int
) -> None:
    child = multiprocessing.get_context("fork").Process(target=die_removing, args=(after,))
    child.start()
    child.join()
    assert child.exitcode == -signal.SIGKILL
    child.close()
    assert len(list(own_temporary_folder.iterdir())) == 1
    ScratchFolder().close()
    assert list(own_temporary_folder.iterdir()) == []


class Msvcrt:
    """Windows' locks, by those of this system."""

    LK_NBLCK = 2

    @staticmethod
    def locking(descriptor: int, mode: int, size: int) -> None:
        assert (mode, size) == (Msvcrt.LK_NBLCK, 1)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


@pytest.mark.skipif(fcntl is None, reason="Windows needs no stand-in")
def test_windows_locks_tell_the_living_from_the_dead_too(
    own_temporary_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scratch, "fcntl", None)
    monkeypatch.setattr(scratch, "msvcrt", Msvcrt)
    monkeypatch.delattr(os, "getuid")
    left = own_temporary_folder / "rlm-rag-host-left"
    left.mkdir()
    (left / "lock").touch()
    with closing(ScratchFolder()) as living:
        # It may be about to be locked.
        assert left.exists()
        monkeypatch.setattr(scratch, "_LOCKED_SECONDS", 0)
        ScratchFolder().close()
        assert not left.exists()
        assert living.path.exists()
    assert list(own_temporary_folder.iterdir()) == []

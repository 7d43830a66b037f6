"""Starts the process of a launch, from a thread that lasts as long as this process does.

The kernel sends the parent-death signal when the thread that started a process ends, not only
when its process does: a worker must not end with whichever thread happened to ask for it.
"""

from __future__ import annotations

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor

from rlm_rag.errors import SandboxUnavailableError
from rlm_rag.sandbox.confine.view import Launch


class _Lasting:
    """One thread, started at the first use and again after a fork, which leaves threads behind."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(1, "rlm-rag-start")
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        self._executor = ThreadPoolExecutor(1, "rlm-rag-start")

    def start(
        self, launch: Launch, argv: tuple[str, ...], ends: tuple[int, int, int], passed: set[int]
    ) -> subprocess.Popen[bytes]:
        return self._executor.submit(_popen, launch, argv, ends, passed).result()


_lasting = _Lasting()


class Spawned:
    """A started process and this side's ends of its pipes."""

    __slots__ = ("process", "stderr", "stdin", "stdout", "worker", "worker_handle")

    def __init__(self, process: subprocess.Popen[bytes], ends: list[int]) -> None:
        self.process = process
        self.stdin, self.stdout, self.stderr = ends
        self.worker = process.pid
        self.worker_handle: int | None = None


def spawn(launch: Launch, info_fd: int) -> Spawned:
    """Start a launch's process on new pipes.

    Raises:
        SandboxUnavailableError: its program could not be started; its folder is closed.
    """
    pipes = [os.pipe() for _ in range(3)]
    theirs = (pipes[0][0], pipes[1][1], pipes[2][1])
    ours = [pipes[0][1], pipes[1][0], pipes[2][0]]
    try:
        return Spawned(start_process(launch, theirs, info_fd), ours)
    except OSError as error:
        for descriptor in ours:
            os.close(descriptor)
        if launch.folder is not None:
            launch.folder.close()
        raise SandboxUnavailableError(f"cannot start {launch.argv[0]}: {error}") from error
    finally:
        for descriptor in theirs:
            os.close(descriptor)


def start_process(
    launch: Launch, ends: tuple[int, int, int], info_fd: int
) -> subprocess.Popen[bytes]:
    """Start a launch's process with `ends` as its stdin, stdout and stderr.

    Raises:
        OSError: its program could not be started.
    """
    passed = {info_fd} if launch.reports_pid else set()
    argv = launch.argv
    if launch.takes_ends:
        argv = (*argv, str(ends[0]), str(ends[1]))
        passed |= set(ends[:2])
        ends = (subprocess.DEVNULL, subprocess.DEVNULL, ends[2])
    return _lasting.start(launch, argv, ends, passed)


def _popen(
    launch: Launch, argv: tuple[str, ...], ends: tuple[int, int, int], passed: set[int]
) -> subprocess.Popen[bytes]:
    stdin, stdout, stderr = ends
    return subprocess.Popen(
        argv,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        env=launch.environment,
        cwd="/",
        pass_fds=tuple(passed),
        start_new_session=True,
    )

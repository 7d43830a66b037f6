"""Starts the process of a launch, from a thread that lasts as long as this process does.

The kernel sends the parent-death signal when the thread that started a process ends, not only
when its process does: a worker must not end with whichever thread happened to ask for it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from rlm_rag.errors import SandboxUnavailableError
from rlm_rag.sandbox.confine.view import Launch
from rlm_rag.sandbox.holds import Hold

if TYPE_CHECKING:
    from rlm_rag.sandbox.confine.job import Job

# DETACHED_PROCESS: a worker could write to the console of its host, and read what is typed there.
_WITHOUT_CONSOLE = 0x8


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

    __slots__ = ("_job", "process", "stderr", "stdin", "stdout", "worker", "worker_handle")

    def __init__(self, process: subprocess.Popen[bytes], job: Job | None, ends: list[int]) -> None:
        self.process = process
        self._job = job
        self.stdin, self.stdout, self.stderr = ends
        self.worker = process.pid
        self.worker_handle: int | None = None

    def hold(self) -> Hold | Job:
        """Return what interrupts and ends the worker."""
        return self._job or Hold(self.process, self.worker, self.worker_handle)


def spawn(launch: Launch, info_fd: int) -> Spawned:
    """Start a launch's process on new pipes.

    Raises:
        SandboxUnavailableError: its program could not be started; its folder is closed.
    """
    pipes = [os.pipe() for _ in range(3)]
    theirs = (pipes[0][0], pipes[1][1], pipes[2][1])
    ours = [pipes[0][1], pipes[1][0], pipes[2][0]]
    try:
        return Spawned(*start_process(launch, theirs, info_fd), ours)
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
) -> tuple[subprocess.Popen[bytes], Job | None]:
    """Start a launch's process with `ends` as its stdin, stdout and stderr.

    On Windows it is in a job, which is returned too.

    Raises:
        OSError: its program could not be started.
    """
    passed = {info_fd} if launch.reports_pid else set()
    argv = launch.argv
    if launch.takes_ends:
        argv = (*argv, str(ends[0]), str(ends[1]))
        passed |= set(ends[:2])
        ends = (subprocess.DEVNULL, subprocess.DEVNULL, ends[2])
    process = _lasting.start(launch, argv, ends, passed)
    return process, _job_around(process, launch) if sys.platform == "win32" else None


def _job_around(process: subprocess.Popen[bytes], launch: Launch) -> Job:
    # `ctypes` takes a tenth of the time that the sandbox takes to import.
    from rlm_rag.sandbox.confine.job import Job

    # It was not started suspended, as which it would stay for ever if this host ended here: until
    # it is sent a frame it runs no code but ours.
    try:
        job = Job.around(process.pid, launch.job_memory_bytes)
        if not job.holds():
            job.close()
            raise OSError("the system says that the worker is not in its job object")
    except OSError:
        process.kill()
        process.wait()
        raise
    return job


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
        creationflags=_WITHOUT_CONSOLE if sys.platform == "win32" else 0,
    )

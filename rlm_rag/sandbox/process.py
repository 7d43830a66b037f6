"""A worker as a process of this machine, under any layer, behind the `Transport` protocol."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from rlm_rag.errors import ProtocolError, SandboxError, SandboxUnavailableError
from rlm_rag.sandbox import frames
from rlm_rag.sandbox.boot import boot_command
from rlm_rag.sandbox.confine.verify import unsealed
from rlm_rag.sandbox.confine.view import Launch, Layer, Program, WorkerLimits, report_file
from rlm_rag.sandbox.holds import ended
from rlm_rag.sandbox.pipes import Inbox, Tail, open_outbox
from rlm_rag.sandbox.spawn import Spawned, spawn

_KILL_GRACE_SECONDS = 5.0
# What a sealed worker waits for before it seals itself.
_GO = b"\n"
_STOP_SECONDS = 30.0
_INFO_SECONDS = 5.0
_INFO_POLL_SECONDS = 0.001
_INFO_BYTES = 4096
# Thread libraries reserve 64 MiB or more for each thread, and touch little of it.
_MAPPED_BYTES = 64 << 30
_STACK_BYTES = 8 << 20


class ProcessTransport:
    """Frames over the pipes of one local process; made by `open_worker`, used in one loop."""

    def __init__(self, layer_name: str, launch: Launch, spawned: Spawned) -> None:
        self._layer_name = layer_name
        self.corpus = launch.corpus
        self.libraries = launch.libraries
        self._folder = launch.folder
        self._process = spawned.process
        self._launch = launch
        self._worker = spawned.worker
        self._verified = False
        self._hold = spawned.hold()
        self._outbox = open_outbox(spawned.stdin)
        self._inbox = Inbox(spawned.stdout)
        self._stderr = Tail(spawned.stderr)
        self._kill: asyncio.Task[None] | None = None

    @property
    def isolation(self) -> str:
        """The name of the layer that confines the worker."""
        return self._layer_name

    @property
    def pid(self) -> int:
        """The process that this host started: the worker's launcher, or the worker."""
        return self._process.pid

    @property
    def ending(self) -> str:
        """How the worker ended and the last that its interpreter said; "" while it lives."""
        code = self._process.poll()
        if code is None:
            return ""
        number = -code if code < 0 else code - 128
        try:
            how = f"signal {signal.Signals(number).name}"
        except ValueError:
            # Windows has a number of 32 bits for each way to crash.
            how = f"exit code {code}" if code < 1 << 16 else f"exit code {code:#x}"
        said = self._stderr.text().strip()
        return f"{how}: {said}" if said else how

    def cpu_seconds(self) -> float:
        """Return what the worker has computed so far; 0 where it is gone, or the system is odd."""
        return self._hold.cpu_seconds()

    def send(self, data: bytes) -> asyncio.Future[None]:
        """Write whole frames, newline included, in the order of the calls; done once written.

        Raises:
            WorkerLostError: the worker is gone; here, or where what is returned is awaited.
        """
        return self._outbox.send(data)

    async def receive(self) -> bytes:
        """Return the next frame without its newline; `b""` once the worker closed its end.

        Raises:
            ProtocolError: a frame of `frames.MAX_FRAME_BYTES` or more, or a first one of a
                worker that is not sealed as its layer would have it.
        """
        frame = await self._inbox.receive()
        if frame and not self._verified:
            self._verify()
        return frame

    def _verify(self) -> None:
        if self._launch.kept is not None:
            spaces = 1 if self._launch.reports_pid else 0
            try:
                missing = unsealed(self._worker, kept=self._launch.kept, others=spaces)
            except (FileNotFoundError, ProcessLookupError):
                missing = []  # It ended meanwhile, and what it had said may be read.
            if missing:
                raise ProtocolError(f"the worker is not sealed: {', '.join(missing)}")
        self._verified = True

    async def interrupt(self) -> None:
        """Ask the running block to stop.

        Raises:
            WorkerLostError: the worker is gone.
        """
        await self.send(frames.encode({"t": "interrupt"}))
        # A frame does not reach code that holds the interpreter's lock; a signal may.
        self._hold.interrupt()

    async def kill(self) -> None:
        """End the worker and all it started; idempotent; nothing of it is left on return."""
        if self._kill is None:
            self._hold.end()
            self._kill = asyncio.ensure_future(self._reap())
        # A cancelled caller leaves the reaping to itself, so that nothing is left half ended.
        await asyncio.shield(self._kill)

    async def _reap(self) -> None:
        await self._hold.gone(_KILL_GRACE_SECONDS)
        if not await ended(self._process, _KILL_GRACE_SECONDS):
            self._process.kill()
            await ended(self._process, _KILL_GRACE_SECONDS)
        if self._launch.stop:
            await asyncio.to_thread(run_stop, self._launch)
        self._stderr.close()
        self._outbox.close()
        self._inbox.close()
        self._hold.close()
        if self._folder is not None:
            self._folder.close()
        if self._process.poll() is None:
            raise SandboxError(f"process {self._process.pid} could not be ended")


async def open_worker(
    layer: Layer,
    packed_path: Path | None,
    *,
    limits: WorkerLimits | None = None,
    program: Program = boot_command,
) -> ProcessTransport:
    """Start a worker under `layer`, its corpus bound read-only, and return its transport.

    It ends with this process, and not with the thread that asked for it.

    Raises:
        SandboxUnavailableError: the layer, or the process, could not be started.
    """
    limits = limits or WorkerLimits()
    packed = None if packed_path is None else str(packed_path)
    with report_file() as info:
        launch = layer.launch(program, packed_path=packed, limits=limits, info_fd=info.fileno())
        spawned = spawn(launch, info.fileno())
        try:
            _offer_to_oom_killer(spawned.process.pid)
            if launch.reports_pid:
                spawned.worker = await _reported_pid(info.fileno(), spawned.process)
                spawned.worker_handle = os.pidfd_open(spawned.worker)
            if not launch.stop:
                _limit(spawned.worker, limits, packed_path)
            if launch.kept is not None:
                os.write(spawned.stdin, _GO)
            return ProcessTransport(layer.name, launch, spawned)
        except BaseException as error:
            transport = ProcessTransport(layer.name, launch, spawned)
            ending = transport.ending
            await transport.kill()
            if isinstance(error, OSError):
                raise SandboxUnavailableError(
                    f"the {layer.name} layer did not start a worker ({ending or error})"
                ) from error
            raise


def run_stop(launch: Launch) -> None:
    """Run a launch's `stop`, whose failure means that nothing was left to end.

    Raises:
        SandboxError: it did not come to an end itself.
    """
    try:
        subprocess.run(
            launch.stop,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=launch.environment,
            timeout=_STOP_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise SandboxError(f"{' '.join(launch.stop)} does not end") from error


async def _reported_pid(descriptor: int, process: subprocess.Popen[bytes]) -> int:
    """Return the worker's process id, which its launcher writes once it is known."""
    deadline = time.monotonic() + _INFO_SECONDS
    while time.monotonic() < deadline:
        with contextlib.suppress(ValueError):  # Not written yet, or not to its end.
            return int(json.loads(os.pread(descriptor, _INFO_BYTES, 0))["child-pid"])
        if process.poll() is not None:
            raise ChildProcessError("its launcher ended before the worker began")
        await asyncio.sleep(_INFO_POLL_SECONDS)
    raise ChildProcessError(f"its launcher did not begin within {_INFO_SECONDS:g} s")


def _offer_to_oom_killer(pid: int) -> None:
    """Where memory runs out, the kernel takes the worker before anything of the user's.

    At once, since what is started later inherits it, and a sealed process cannot be told.
    """
    if sys.platform == "linux":
        Path(f"/proc/{pid}/oom_score_adj").write_text("1000")


def _limit(pid: int, limits: WorkerLimits, packed_path: Path | None) -> None:
    """Bound what the worker may use, from outside, before it has any code of the model's.

    Only Linux can limit another process; on Windows its job does.
    """
    if sys.platform != "linux":
        return
    import resource

    corpus_bytes = 0 if packed_path is None else packed_path.stat().st_size
    for what, most in (
        (resource.RLIMIT_DATA, limits.memory_bytes + limits.reserved_bytes),
        # Maps of nothing cost page tables alone, a 512th of their size, which nothing else bounds.
        (resource.RLIMIT_AS, limits.memory_bytes + _MAPPED_BYTES + corpus_bytes),
        (resource.RLIMIT_STACK, _STACK_BYTES),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_NPROC, _process_limit(limits)),
        (resource.RLIMIT_NOFILE, limits.open_files),
        (resource.RLIMIT_FSIZE, limits.scratch_bytes),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.prlimit(pid, what)
        bound = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.prlimit(pid, what, (bound, bound))
    _, most = resource.prlimit(pid, resource.RLIMIT_DATA)
    resource.prlimit(pid, resource.RLIMIT_DATA, (min(limits.memory_bytes, most), most))


def _process_limit(limits: WorkerLimits) -> int:
    """Kernels before 5.14 count every process of the user, not the namespace's own."""
    major, minor = (int(part) for part in os.uname().release.split("-")[0].split(".")[:2])
    return limits.processes if (major, minor) >= (5, 14) else max(limits.processes, 1 << 15)

"""A worker in a sandbox that a provider runs elsewhere, over the streams of one command there."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from rlm_rag.errors import ProtocolError, SandboxUnavailableError, UsageError, WorkerLostError
from rlm_rag.sandbox import frames
from rlm_rag.sandbox.boot import SOURCE_ROOT, WORKER_FILES
from rlm_rag.sandbox.confine.libraries import library_files
from rlm_rag.sandbox.confine.view import Program, WorkerLimits, inside_environment
from rlm_rag.scratch import ScratchFolder

if TYPE_CHECKING:
    from tarfile import TarInfo

# Where files are put in the provider's sandbox, which is the worker's alone.
ROOT = "/tmp/rlm-rag"
_ARCHIVE = f"{ROOT}/worker.tar"
_CORPUS = f"{ROOT}/corpus.packed"
_SEARCHED = "/usr/local/bin:/usr/bin:/bin"
# Longer than any of the SDKs takes for one message.
_WRITE_BYTES = 1 << 18
_AHEAD_FRAMES = 64

Feed = Callable[[bytes], Awaitable[None]]


class Remote(Protocol):
    """One sandbox of a provider; each SDK's errors are its own, and end the worker."""

    async def start(
        self, files: Mapping[str, Path], command: Sequence[str], feed: Feed
    ) -> Awaitable[object]:
        """Create the sandbox without a network, put `files` there, and start `command`.

        `files` are local files by their path in the sandbox. What the command prints to its
        standard output goes to `feed`; what is returned ends, or raises, with the command.
        """
        ...

    async def write(self, data: bytes) -> None:
        """Write to the command's standard input."""
        ...

    async def close(self) -> None:
        """Delete the sandbox and all in it; idempotent."""
        ...


@dataclass(frozen=True, slots=True)
class Cloud:
    """The layer of a provider: `make` returns a new remote of `limits`, nothing created yet."""

    name: str
    make: Callable[[WorkerLimits], Remote]


async def open_remote(
    cloud: Cloud, packed_path: Path | None, *, limits: WorkerLimits | None, program: Program
) -> RemoteTransport:
    """Start a worker at the provider, its files and the corpus uploaded.

    Raises:
        UsageError: packages were named, which are those of the provider's image.
        SandboxUnavailableError: the provider did not start it.
    """
    limits = limits or WorkerLimits()
    if limits.packages:
        raise UsageError(f"the packages of a {cloud.name} sandbox are those of its image")
    transport = RemoteTransport(cloud.name, cloud.make(limits), has_corpus=packed_path is not None)
    with contextlib.closing(ScratchFolder()) as folder:
        files = {_ARCHIVE: _archive(folder.path / "worker.tar")}
        if packed_path is not None:
            files[_CORPUS] = packed_path
        try:
            await transport.start(files, _command(program, limits))
        except BaseException as error:
            await transport.kill()
            if isinstance(error, Exception):
                raise SandboxUnavailableError(
                    f"{cloud.name} did not start a sandbox: {error}"
                ) from error
            raise
    return transport


def _command(program: Program, limits: WorkerLimits) -> list[str]:
    """Return the shell command that unpacks the archive and becomes the worker."""
    # Without -S, the image's own packages are importable.
    worker = [part for part in program(ROOT, "python3") if part != "-S"]
    unpack = f"import tarfile; tarfile.open({_ARCHIVE!r}).extractall({ROOT!r})"
    scratch = f"{ROOT}/scratch"
    environment = {**inside_environment(scratch), "PATH": _SEARCHED}
    assignments = [f"{name}={value}" for name, value in environment.items()]
    kibibytes = limits.memory_bytes >> 10, (limits.memory_bytes + limits.reserved_bytes) >> 10
    script = (
        f"mkdir -p {scratch} && cd {scratch} && python3 -c {shlex.quote(unpack)} && "
        f"ulimit -Sd {kibibytes[0]} && ulimit -Hd {kibibytes[1]} && "
        f"exec env -i {shlex.join([*assignments, *worker])}"
    )
    return ["sh", "-c", script]


def _archive(path: Path) -> Path:
    import tarfile

    with tarfile.open(path, "w") as archive:
        for name in WORKER_FILES:
            archive.add(SOURCE_ROOT / name, name)
        for source, name in library_files(()):
            archive.add(source, f"libraries/{name}", filter=_without_caches)
    return path


def _without_caches(member: TarInfo) -> TarInfo | None:
    return None if "__pycache__" in member.name else member


class RemoteTransport:
    """Frames over the streams of a provider's command; made by `open_remote`."""

    def __init__(self, name: str, remote: Remote, *, has_corpus: bool) -> None:
        self.isolation = name
        self.corpus = _CORPUS if has_corpus else None
        self.libraries = f"{ROOT}/libraries"
        self.ending = ""
        self._remote = remote
        self._frames: asyncio.Queue[bytes | ProtocolError] = asyncio.Queue(_AHEAD_FRAMES)
        self._pieces: list[bytes] = []
        self._size = 0
        self._writing = asyncio.Lock()
        self._following: asyncio.Future[None] | None = None
        self._closing: asyncio.Future[None] | None = None

    async def start(self, files: Mapping[str, Path], command: Sequence[str]) -> None:
        """Start the command; raises whatever the provider's SDK raises."""
        ended = await self._remote.start(files, command, self._feed)
        self._following = asyncio.ensure_future(self._follow(ended))

    async def _follow(self, ended: Awaitable[object]) -> None:
        try:
            await ended
        except Exception as error:  # noqa: BLE001 - each SDK has exceptions of its own
            self.ending = self.ending or f"{type(error).__name__}: {error}"[:500]
        await self._frames.put(b"")

    async def _feed(self, data: bytes) -> None:
        """Split what came into frames; waits while the receiver is far behind."""
        *whole, rest = data.split(b"\n")
        for piece in whole:
            frame = b"".join((*self._pieces, piece))
            self._pieces, self._size = [], 0
            await self._frames.put(frame or ProtocolError("the worker sent an empty frame"))
        self._pieces.append(rest)
        self._size += len(rest)
        if self._size >= frames.MAX_FRAME_BYTES:
            self._pieces, self._size = [], 0
            await self._frames.put(
                ProtocolError(f"a frame is longer than {frames.MAX_FRAME_BYTES:,} bytes")
            )

    def send(self, data: bytes) -> asyncio.Future[None]:
        """Write whole frames, newline included, in the order of the calls; done once written.

        What is returned raises:
            WorkerLostError: the sandbox is gone, or the provider cannot be reached.
        """
        return asyncio.ensure_future(self._write(data))

    async def _write(self, data: bytes) -> None:
        async with self._writing:
            for piece in _pieces(data):
                if self._closing is not None:
                    raise WorkerLostError("the worker is gone")
                try:
                    await self._remote.write(piece)
                except Exception as error:
                    self.ending = f"{type(error).__name__}: {error}"[:500]
                    raise WorkerLostError(
                        f"{self.isolation} took no more input: {self.ending}"
                    ) from error

    async def receive(self) -> bytes:
        """Return the next frame without its newline; `b""` once the worker closed its end.

        Raises:
            ProtocolError: a frame that is empty, or of `frames.MAX_FRAME_BYTES` or more.
        """
        frame = await self._frames.get()
        if isinstance(frame, ProtocolError):
            raise frame
        return frame

    def cpu_seconds(self) -> float:
        """Return 0: a provider does not tell."""
        return 0.0

    async def interrupt(self) -> None:
        """Ask the running block to stop.

        Raises:
            WorkerLostError: the worker is gone.
        """
        await self.send(frames.encode({"t": "interrupt"}))

    async def kill(self) -> None:
        """Delete the sandbox; idempotent; nothing of it is left on return."""
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        try:
            await self._remote.close()
        finally:
            if self._following is not None:
                self._following.cancel()
                await asyncio.wait({self._following})


def _pieces(data: bytes) -> Iterator[bytes]:
    for start in range(0, len(data), _WRITE_BYTES):
        yield data[start : start + _WRITE_BYTES]

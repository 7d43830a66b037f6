"""The face of the indexes: retrieval in a process of its own, for any number of callers."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Callable
from pathlib import Path

from rlm_rag.child import command, environment
from rlm_rag.errors import RetrievalError
from rlm_rag.indexes.requests import (
    AnyRequest,
    BordersRequest,
    GrepRequest,
    OutlineRequest,
    PathsRequest,
    ReadRequest,
    Result,
    check_lengths,
    checked_timeout,
)
from rlm_rag.indexes.wire import decode_progress, decode_result, encode_request, to_json

__all__ = ["ProcessRetriever", "to_json"]

# The process stops a pattern itself; beyond this it does not answer, and is ended.
_GREP_GRACE_SECONDS = 5.0
_LOOKUP_SECONDS = 60.0
# The first search builds the index: about 8 MB of text a second.
_BUILD_SECONDS = 3600.0
_END_SECONDS = 2.0
_MAX_REPLY_BYTES = 1 << 30
_MAX_SHOWN_CHARS = 300


class ProcessRetriever:
    """Answers requests about one packed corpus, first come first served, in a child process.

    The process starts with the first request and is started again for the next one if it
    died or had to be ended; only the request it was busy with fails. Callers may be
    cancelled at any moment. All calls must come from one event loop, `aclose` the last.
    """

    def __init__(
        self, packed_path: str | Path, *, index_folder: Path | None = None, origin: str = ""
    ) -> None:
        """`index_folder` keeps the search index of `origin`; None keeps it in memory."""
        self._begin(
            "rlm_rag.indexes.server",
            str(Path(packed_path).absolute()),
            str(index_folder.absolute()) if index_folder else "",
            origin,
        )

    def _begin(self, module: str, *arguments: str, start_seconds: float = 0.0) -> None:
        """Take `main` of a module for the process; any request may be its first, and start it."""
        self._command = command(module, *arguments)
        self._environment = environment()
        self._start_seconds = start_seconds
        self._numbers = itertools.count(1)
        self._turn: asyncio.Lock | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._tasks: set[asyncio.Task[Result]] = set()
        self._closed = False
        self.on_progress: Callable[[int, int], object] | None = None
        """Told, on the event loop, how many documents are indexed while an index is built."""

    @property
    def pid(self) -> int | None:
        """The process's id, or None while there is none."""
        return self._process.pid if self._process is not None else None

    @property
    def waiting(self) -> int:
        """How many requests are not answered yet, those of callers that are gone too."""
        return len(self._tasks)

    def check(self) -> None:
        """Raise what would keep every request from an answer, before the first is sent."""

    async def retrieve(self, request: AnyRequest) -> Result:
        """Answer one request.

        Raises:
            RetrievalError: an argument cannot be used, the process died while it worked on
                this request, it took too long, or the retriever is closed.
        """
        if self._closed:
            raise _closed()
        check_lengths(request)
        seconds = self._start_seconds + _seconds(request)
        line = encode_request(number := next(self._numbers), request)
        if self._turn is None:
            self._turn = asyncio.Lock()
        # A task of its own: a cancelled caller must not leave a reply unread.
        task = asyncio.create_task(self._serve(self._turn, number, line, seconds))
        self._tasks.add(task)
        task.add_done_callback(self._forget)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if self._closed and task.cancelled():
                raise _closed() from None
            raise

    async def aclose(self) -> None:
        """End the process; requests under way fail. Idempotent."""
        self._closed = True
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._end()
        self._turn = None

    def _forget(self, task: asyncio.Task[Result]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            # Marks it as seen where the caller is gone.
            task.exception()

    async def _serve(self, turn: asyncio.Lock, number: int, line: bytes, seconds: float) -> Result:
        async with turn:
            try:
                async with asyncio.timeout(seconds):
                    reply = await self._asked(number, line)
            except TimeoutError:
                await self._end()
                raise RetrievalError(
                    f"the index process did not answer within {seconds:g} s and was ended",
                    hint="make the request simpler; the next one starts a new process",
                ) from None
            except asyncio.CancelledError:
                await self._end()
                raise
        if isinstance(reply, RetrievalError):
            raise reply
        return reply

    async def _asked(self, number: int, line: bytes) -> Result | RetrievalError:
        """Send a request; once more to a new process, where it met one that had died idle."""
        used = self._process
        reply = await self._exchange(await self._started(), number, line)
        if reply is None and self._process is used:
            await self._ended()
            reply = await self._exchange(await self._started(), number, line)
        if reply is not None:
            return reply
        how = await self._ended()
        return RetrievalError(
            f"the index process ended while it worked on this request{how}",
            hint="the next request starts a new one",
        )

    async def _exchange(
        self, process: asyncio.subprocess.Process, number: int, line: bytes
    ) -> Result | RetrievalError | None:
        """Return the reply to a request, or None where the process ended before it."""
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(line)
            await process.stdin.drain()
        except ConnectionError:
            return None
        while (reply := await process.stdout.readline()).endswith(b"\n"):
            far = decode_progress(reply)
            if far is not None:
                if self.on_progress is not None:
                    self.on_progress(*far)
                continue
            answered, result = decode_result(reply)
            if answered == number:
                return result
        return None

    async def _started(self) -> asyncio.subprocess.Process:
        if self._process is not None and self._process.returncode is None:
            return self._process
        await self._end()
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=self._environment,
                limit=_MAX_REPLY_BYTES,
                start_new_session=True,
            )
        except OSError as error:
            raise RetrievalError(f"the index process could not be started: {error}") from error
        return self._process

    async def _ended(self) -> str:
        """Clear away a process that closed its output; say how it ended, and its last words."""
        process = self._process
        if process is None or process.stderr is None:
            return ""
        said = b""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_END_SECONDS):
                said = await process.stderr.read()
                # Waited for rather than killed: to signal a process that is being reaped
                # would take its exit status from the event loop.
                await process.wait()
        status = process.returncode
        await self._end()
        lines = said.decode("utf-8", "replace").strip().splitlines()
        last = f": {lines[-1][:_MAX_SHOWN_CHARS]}" if lines else ""
        return f" (exit status {status}){last}"

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.returncode is None:
            await self._stop(process)
        # Reads what is left and waits, so that no pipe outlives the process.
        await process.communicate()

    async def _stop(self, process: asyncio.subprocess.Process) -> None:
        with contextlib.suppress(ProcessLookupError):
            process.kill()


def _closed() -> RetrievalError:
    return RetrievalError("the corpus is closed", hint="load it again")


def _seconds(request: AnyRequest) -> float:
    """Return how long the process may take over a request."""
    if isinstance(request, GrepRequest):
        return checked_timeout(request.timeout_seconds) + _GREP_GRACE_SECONDS
    if isinstance(request, (BordersRequest, OutlineRequest, PathsRequest, ReadRequest)):
        return _LOOKUP_SECONDS
    return _BUILD_SECONDS

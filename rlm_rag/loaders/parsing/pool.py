"""The processes that parse documents: reused, bounded, killed when they hang, never orphaned."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from contextlib import suppress
from functools import cache

from rlm_rag.child import command, environment
from rlm_rag.errors import DocumentError
from rlm_rag.loaders.parsing import wire
from rlm_rag.loaders.parsing.parts import ParsedDocument

PROCESSOR_SECONDS = 60
"""What one document may use; PDF pages take 1 to 20 ms, so that this is thousands of them."""
WALL_SECONDS = 3 * PROCESSOR_SECONDS
MEMORY_BYTES = 1 << 30
MAX_PROCESSES = 4

_WORKER = "rlm_rag.loaders.parsing.worker"


class ParserPool:
    """Parser processes, at most one a core, started when a document needs one.

    One that has waited a few seconds for the next document ends itself.
    """

    def __init__(
        self,
        *,
        processor_seconds: float = PROCESSOR_SECONDS,
        wall_seconds: float = WALL_SECONDS,
        memory_bytes: int = MEMORY_BYTES,
    ) -> None:
        self._limits = (str(processor_seconds), str(memory_bytes))
        self._wall_seconds = wall_seconds
        self._processor_seconds = processor_seconds
        self._places = threading.BoundedSemaphore(max(1, min(os.cpu_count() or 1, MAX_PROCESSES)))
        self._idle: list[_ParserProcess] = []

    def parse(self, module: str, data: bytes) -> ParsedDocument:
        """Parse a document with the parser of `module`.

        Raises:
            DocumentError: it cannot be parsed, needs more than the limits, or kills its parser.
        """
        with self._places:
            while (process := self._waiting()) is not None:
                if process.takes(module, data):
                    return self._result(process)
                process.end()
            process = _ParserProcess(self._limits)
            if not process.takes(module, data):
                raise DocumentError(f"its parser could not be started{process.how_it_ended()}")
            return self._result(process)

    def close(self) -> None:
        """End the processes that wait; idempotent, and the pool can be used again."""
        while (process := self._waiting()) is not None:
            process.end()

    def _waiting(self) -> _ParserProcess | None:
        with suppress(IndexError):
            return self._idle.pop()
        return None

    def _result(self, process: _ParserProcess) -> ParsedDocument:
        done = False
        try:
            reply = process.reply(self._wall_seconds)
            if reply is None:
                raise DocumentError(self._why(process))
            result = wire.decode_reply(reply)
            done = True
        finally:
            if not done:
                process.end()
        self._idle.append(process)
        if isinstance(result, str):
            raise DocumentError(result)
        return result

    def _why(self, process: _ParserProcess) -> str:
        if process.timed_out:
            return f"parsing took longer than {self._wall_seconds:g} s and was stopped"
        if process.signal == getattr(signal, "SIGPROF", 0):
            seconds = self._processor_seconds
            return f"parsing took more than {seconds:g} s of processor time and was stopped"
        return f"its parser crashed{process.how_it_ended()}"


class _ParserProcess:
    """One process, with a thread that starts it, outlives it and reaps it.

    Linux ends a process that asked for it with the thread that started it, hence this thread.
    """

    def __init__(self, limits: tuple[str, ...]) -> None:
        self._command = command(_WORKER, *limits)
        self._started = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._failure = ""
        self.timed_out = False
        threading.Thread(target=self._tend, name="rlm-rag parser", daemon=True).start()
        self._started.wait()

    @property
    def signal(self) -> int:
        """The signal that ended it, 0 if none did."""
        status = self._status()
        return -status if status is not None and status < 0 else 0

    def takes(self, module: str, data: bytes) -> bool:
        """Send a document; false where the process had ended before."""
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            return False
        try:
            for piece in wire.encode_request(module, data):
                process.stdin.write(piece)
            process.stdin.flush()
            return process.stdout.read(len(wire.TAKEN)) == wire.TAKEN
        except OSError:
            return False

    def reply(self, seconds: float) -> bytes | None:
        """Return the reply to the document that it took; None where the process ended first."""
        process = self._process
        assert process is not None and process.stdout is not None
        clock = threading.Timer(seconds, self._time_out)
        clock.daemon = True
        clock.start()
        try:
            return wire.read_framed(process.stdout)
        finally:
            clock.cancel()

    def how_it_ended(self) -> str:
        """Say so in parentheses."""
        if self._failure:
            return f" ({self._failure})"
        if self.signal:
            with suppress(ValueError):
                return f" ({signal.Signals(self.signal).name})"
        return f" (exit status {self._status()})"

    def end(self) -> None:
        """Kill it; idempotent."""
        process = self._process
        if process is None:
            return
        process.kill()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()

    def _time_out(self) -> None:
        self.timed_out = True
        if self._process is not None:
            self._process.kill()

    def _status(self) -> int | None:
        return None if self._process is None else self._process.wait()

    def _tend(self) -> None:
        try:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment(),
                start_new_session=True,
            )
        except OSError as error:
            self._failure = error.strerror or type(error).__name__
            return
        finally:
            self._started.set()
        self._process.wait()


@cache
def parser_pool() -> ParserPool:
    """Return the pool that all loads of this process share."""
    return ParserPool()


if hasattr(os, "register_at_fork"):
    # The processes are the parent's.
    os.register_at_fork(after_in_child=parser_pool.cache_clear)

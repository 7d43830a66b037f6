"""Processes that parse documents: each can be ended, and one document's failure is its alone."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import threading
import time
import weakref
from binascii import a2b_base64
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import IO, TypeVar

from rlm_rag.child import command, environment
from rlm_rag.indexes.grammars import EXTRA, Grammar
from rlm_rag.indexes.parsing import parse_seconds
from rlm_rag.indexes.skeleton import Definition, from_rows

MAX_PARSED_BYTES = 8 << 20

# A process counts its own time; this is for one that sleeps, or a machine that is overloaded.
_WAIT_SECONDS = 6.0 * parse_seconds(MAX_PARSED_BYTES)
_MOST_PROCESSES = 4

Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a grammar made of a document: its definitions, or why there are none.

    `installed` is false where the grammar is not there, `lasting` where another try may fare
    better: the process was late, not at its limit. `rows` are the definitions as JSON, and
    `landmarks` as a search needs them, as bytes.
    """

    rows: bytes = b"[]"
    landmarks: bytes = b""
    failure: str | None = None
    installed: bool = True
    lasting: bool = True

    @property
    def definitions(self) -> tuple[Definition, ...]:
        """The definitions, made whenever they are asked for."""
        return from_rows(json.loads(self.rows))


@dataclass(eq=False, slots=True)
class _Process:
    popen: subprocess.Popen[bytes]
    stdin: IO[bytes]
    since: float = 0.0
    allowed_seconds: float = 0.0


@dataclass(slots=True)
class _Work:
    """The processes that there are; apart from their pool, so that they can outlive it to end."""

    processes: list[_Process] = field(default_factory=list)

    def end(self) -> None:
        for process in self.processes:
            _end(process)
        self.processes.clear()


class Parsers:
    """Parses with up to four processes, started when needed and kept until closed.

    Not safe for threads.
    """

    def __init__(self, most: int | None = None, *, wait_seconds: float = _WAIT_SECONDS) -> None:
        self._most = most or max(1, min(_MOST_PROCESSES, os.cpu_count() or 1))
        self._wait_seconds = wait_seconds
        self._work = _Work()
        self._replies: queue.SimpleQueue[tuple[_Process, bytes]] = queue.SimpleQueue()
        self._end = weakref.finalize(self, self._work.end)

    def close(self) -> None:
        """End the processes; another call starts new ones."""
        self._work.end()

    def parse(
        self, documents: Iterable[tuple[Key, Grammar, bytes]], *, most: int | None = None
    ) -> Iterator[tuple[Key, Parsed]]:
        """Yield what became of each document, under its key, as they are done.

        No more than `most` processes are started; those that there are take part.
        """
        most = max(min(most or self._most, self._most), len(self._work.processes))
        waiting = iter(documents)
        idle = deque(self._work.processes)
        busy: dict[_Process, Key] = {}
        more = True
        try:
            while True:
                while more and len(busy) < most:
                    following = next(waiting, None)
                    if following is None:
                        more = False
                        break
                    key, grammar, data = following
                    if is_too_large(data):
                        yield key, Parsed(failure=_too_large(data))
                        continue
                    process = idle.popleft() if idle else self._start()
                    busy[process] = key
                    self._send(process, grammar, data)
                if not busy:
                    return
                process, parsed = self._next(busy)
                yield busy.pop(process), parsed
                if process in self._work.processes:
                    idle.append(process)
        finally:
            # Left half way: what these would still say belongs to nobody.
            for process in busy:
                self._drop(process)

    def _start(self) -> _Process:
        popen = subprocess.Popen(
            command("rlm_rag.indexes.parsing"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment(),
        )
        assert popen.stdin is not None
        assert popen.stdout is not None
        process = _Process(popen, popen.stdin)
        reading = threading.Thread(
            target=_read, args=(process, popen.stdout, self._replies), daemon=True
        )
        reading.start()
        self._work.processes.append(process)
        return process

    def _send(self, process: _Process, grammar: Grammar, data: bytes) -> None:
        process.since = time.monotonic()
        process.allowed_seconds = parse_seconds(len(data))
        header = json.dumps({"grammar": grammar.name, "bytes": len(data)})
        try:
            process.stdin.write(header.encode() + b"\n" + data)
            process.stdin.flush()
        except OSError:
            # It died before it read all; that it did is learnt where its reply is awaited.
            return

    def _next(self, busy: dict[_Process, Key]) -> tuple[_Process, Parsed]:
        """Wait for one of the processes to reply, to die, or to be late."""
        while True:
            oldest = min(busy, key=lambda one: one.since)
            left = oldest.since + self._wait_seconds - time.monotonic()
            try:
                process, line = self._replies.get(timeout=max(0.0, left))
            except queue.Empty:
                self._drop(oldest)
                said = f"did not end within {self._wait_seconds:g} s"
                return oldest, Parsed(failure=said, lasting=False)
            if process in busy and process in self._work.processes:
                return process, self._parsed(process, line)

    def _parsed(self, process: _Process, line: bytes) -> Parsed:
        if not line.endswith(b"\n"):
            self._drop(process)
            return Parsed(failure=_how(process))
        told, _, rows = line.partition(b"\t")
        reply = json.loads(told)
        if "missing" in reply:
            return Parsed(failure=f"{reply['missing']}: {EXTRA}", installed=False)
        if "failed" in reply:
            return Parsed(failure=reply["failed"])
        return Parsed(rows, a2b_base64(reply["landmarks"]))

    def _drop(self, process: _Process) -> None:
        if process in self._work.processes:
            self._work.processes.remove(process)
        _end(process)


def _read(
    process: _Process, stdout: IO[bytes], replies: queue.SimpleQueue[tuple[_Process, bytes]]
) -> None:
    """Hand over each reply; an empty one when the process ended."""
    with stdout:
        while line := stdout.readline():
            replies.put((process, line))
    replies.put((process, b""))


def _end(process: _Process) -> None:
    if process.popen.poll() is None:
        process.popen.kill()
    process.popen.wait()
    try:
        process.stdin.close()
    except OSError:
        # What it never read cannot be flushed any more.
        return


def _how(process: _Process) -> str:
    status = process.popen.returncode
    if status == -getattr(signal, "SIGPROF", 0):
        return f"took longer than {process.allowed_seconds:.1f} s"
    if status < 0:
        return f"crashed ({signal.Signals(-status).name})"
    return f"ended (exit status {status})"


def is_too_large(data: bytes) -> bool:
    """Whether a document is never parsed for its size."""
    return len(data) > MAX_PARSED_BYTES


def _too_large(data: bytes) -> str:
    return f"is not asked for more than {MAX_PARSED_BYTES >> 20} MiB, and this is {len(data):,} B"

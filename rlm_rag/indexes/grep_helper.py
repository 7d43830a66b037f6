"""A second process that searches a part of the corpus, since `re` keeps a process to one core."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from rlm_rag.child import command, end_with_parent, environment, hand_over_lines
from rlm_rag.indexes.grep import Found, search_documents
from rlm_rag.indexes.patterns import compile_pattern
from rlm_rag.indexes.requests import GrepRequest, GrepResult
from rlm_rag.indexes.time_limit import TimeLimitReached, time_limit
from rlm_rag.indexes.wire import decode_request, decode_result, encode_request, encode_result
from rlm_rag.packed import PackedCorpus


class GrepHelper:
    """A process over the same packed corpus; it ends with this one, whatever it is doing."""

    def __init__(self, packed_path: Path) -> None:
        self._command = command(__name__, str(packed_path.absolute()))
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> bool:
        """Start it where it is not running, and tell whether it is then.

        To be called by a thread that lasts: on Linux the process ends with that.
        """
        if self.running:
            return True
        self.end()
        if (os.cpu_count() or 1) < 2:
            return False
        try:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment(),
            )
        except OSError:
            # One core does it too.
            return False
        return True

    def search(self, request: GrepRequest, documents: Sequence[int]) -> GrepResult | None:
        """Return what these documents hold; None where the process has ended."""
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            return None
        try:
            process.stdin.write(encode_request(0, request))
            process.stdin.write(json.dumps(documents).encode("ascii") + b"\n")
            process.stdin.flush()
            reply = process.stdout.readline()
        except (OSError, ValueError):
            # Ended, and its pipes perhaps closed, meanwhile.
            return None
        if not reply.endswith(b"\n"):
            return None
        _, result = decode_result(reply)
        return result if isinstance(result, GrepResult) else None

    def end(self) -> None:
        """End it; idempotent."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            # What was not sent has no reader any more.
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()


def main(packed_path: str) -> None:
    """Answer searches, each a request and the numbers of documents, until stdin ends."""
    end_with_parent()
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=hand_over_lines, args=(sys.stdin.buffer, lines), daemon=True).start()
    with PackedCorpus.open(packed_path) as corpus:
        while True:
            _, request = decode_request(lines.get())
            documents = json.loads(lines.get())
            assert isinstance(request, GrepRequest)
            sys.stdout.buffer.write(encode_result(0, _searched(corpus, request, documents)))
            sys.stdout.buffer.flush()


def _searched(corpus: PackedCorpus, request: GrepRequest, documents: Sequence[int]) -> GrepResult:
    found = Found()
    error: str | None = None
    try:
        with time_limit(request.timeout_seconds):
            pattern = compile_pattern(request.pattern, ignore_case=request.ignore_case)
            search_documents(corpus, pattern, request, documents, found)
    except TimeLimitReached:
        error = "time limit"
    return GrepResult(tuple(found.hits), found.counts, error=error)

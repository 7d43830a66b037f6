"""Another process that builds the segments of pieces."""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import suppress
from dataclasses import asdict
from io import BufferedReader
from pathlib import Path
from queue import SimpleQueue

from rlm_rag.child import command, environment
from rlm_rag.errors import RetrievalError
from rlm_rag.indexes.encoded import EncodedSegment
from rlm_rag.indexes.ranking import Weights
from rlm_rag.indexes.segment import SIZE_BYTES
from rlm_rag.indexes.shares import Piece, Share
from rlm_rag.packed import PackedCorpus

# Below this, starting another process costs more than it saves.
SHARED_BYTES = 6 << 20
_MAX_SHOWN_CHARS = 300


class PieceHelper:
    """A process that opens a packed corpus and builds one piece of it after the other."""

    def __init__(self, packed_path: Path, weights: Weights) -> None:
        """Start it; OSError where that cannot be."""
        self._process = subprocess.Popen(
            command(
                "rlm_rag.indexes.piece_work",
                str(packed_path.absolute()),
                json.dumps(asdict(weights)),
            ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
        )

    def built(self, piece: Piece) -> EncodedSegment:
        """Return the segment of a piece.

        Raises:
            RetrievalError: the process failed, now or before; it is of no use then.
        """
        requests, replies = self._process.stdin, self._process.stdout
        assert requests is not None
        assert isinstance(replies, BufferedReader)
        record = piece.to_record() if isinstance(piece, Share) else list(piece)
        if requests.closed:
            raise RetrievalError("a process that builds parts of the index had ended")
        try:
            requests.write(json.dumps(record).encode() + b"\n")
            requests.flush()
        except OSError:
            raise self._failure() from None
        size = replies.read(SIZE_BYTES)
        segment = bytearray(int.from_bytes(size, "little"))
        if len(size) < SIZE_BYTES or replies.readinto(segment) < len(segment):
            raise self._failure()
        return EncodedSegment.received(segment)

    def kill(self) -> None:
        """End the process, whatever it is doing; who waits for a piece is told that it failed."""
        self._process.kill()

    def end(self) -> None:
        """End the process, and let go of it; nobody waits for a piece any more."""
        self.kill()
        # What was not sent needs no pipe any more.
        with suppress(BrokenPipeError), self._process:
            pass

    def _failure(self) -> RetrievalError:
        _, errors = self._process.communicate()
        said = errors.decode("utf-8", "replace").strip().splitlines()
        last = f": {said[-1][:_MAX_SHOWN_CHARS]}" if said else ""
        return RetrievalError(
            f"a part of the index could not be built (exit status {self._process.returncode})"
            f"{last}",
            hint="load a part of it: give a folder, or --include and --exclude globs",
        )


class PieceHelpers:
    """Processes that build pieces, each for one thread at a time."""

    def __init__(self, packed_path: Path, weights: Weights) -> None:
        self._packed_path = packed_path
        self._weights = weights
        self._all: list[PieceHelper] = []
        self._idle: SimpleQueue[PieceHelper] = SimpleQueue()

    @property
    def processes(self) -> tuple[PieceHelper, ...]:
        """Those that were started and not ended."""
        return tuple(self._all)

    def start(self, count: int) -> int:
        """Have so many at least, or as many as can be started; return how many there are."""
        with suppress(OSError):
            while len(self._all) < count:
                self._all.append(PieceHelper(self._packed_path, self._weights))
                self._idle.put(self._all[-1])
        return len(self._all)

    def built(self, piece: Piece) -> EncodedSegment:
        """Return the segment of a piece, by a process that has nothing to do.

        Raises:
            RetrievalError: that process failed, now or before.
        """
        helper = self._idle.get()
        try:
            return helper.built(piece)
        finally:
            # One that failed too: nobody else would wake who waits for it.
            self._idle.put(helper)

    def kill(self) -> None:
        """End them all, whatever they are doing."""
        for helper in self._all:
            helper.kill()

    def close(self) -> None:
        """Let go of them all, when nobody waits for them any more; others may be started after."""
        for helper in self._all:
            helper.end()
        self._all.clear()
        self._idle = SimpleQueue()


def helpers_ahead(corpus: PackedCorpus, packed_path: Path, weights: Weights) -> PieceHelpers:
    """Start as many processes as will help to index the whole of a corpus, if any."""
    helpers = PieceHelpers(packed_path, weights)
    helpers.start(useful_cores(corpus.total_bytes) - 1)
    return helpers


def useful_cores(total_bytes: int) -> int:
    """Return among how many of the cores a text of that size is shared out, at least one.

    Pieces of less than a third of `SHARED_BYTES` take longer to begin than to build, and many
    small segments are made anew, all of them, by the next change.
    """
    if total_bytes < SHARED_BYTES:
        return 1
    return max(1, min(os.cpu_count() or 1, total_bytes // max(1, SHARED_BYTES // 3)))

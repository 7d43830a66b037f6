"""What a load has read so far, kept now and then, so that one that was killed goes on there.

Beside what is kept of the source lies a second name of the packed file that is being written,
and a table as that of a kept corpus, followed by all that the packed file lacks to be whole.
"""

from __future__ import annotations

import struct
import time
import zlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from rlm_rag import kept
from rlm_rag.errors import PackedCorpusError
from rlm_rag.loaders.kept_corpus import KeptCorpus, link, sync
from rlm_rag.loaders.kept_table import (
    PACKED_SUFFIX,
    CorpusVersion,
    packed_name,
    read_table,
    written_table,
)
from rlm_rag.loaders.memory import FileMemory, ReadFile
from rlm_rag.packing import PackedWriter

INTERVAL_SECONDS = 30.0
"""How long a load reads before it keeps what it has; where that is slow, ten times as long as it
took."""

_TABLE = "begun.table"
_TIMES_COST = 10.0
_SIZE = struct.Struct("=Q")
_BLOCK_BYTES = 1 << 20


class Begun:
    """Keeps what a load of the source `origin` has read: `files`, as they are read.

    Nothing before they are more than those of `before`, where that was begun and not ended.
    """

    def __init__(
        self,
        folder: Path,
        origin: str,
        files: Sequence[ReadFile | None],
        memory: FileMemory,
        stamp: bytes,
        *,
        before: KeptCorpus | None,
    ) -> None:
        self._folder = folder
        self._origin = origin
        self._files = files
        self._memory = memory
        self._stamp = stamp
        self._known = before.file_count if before is not None and before.is_begun else 0
        self._name: str | None = None
        self._due = time.monotonic() + INTERVAL_SECONDS

    def __call__(self, writer: PackedWriter) -> None:
        """Keep what is written so far, where it is time for that.

        A folder that cannot be written is left alone from then on: the end of the load says so.
        """
        started = time.monotonic()
        if started < self._due or self._memory.recalled + self._memory.learned <= self._known:
            return
        try:
            self._keep(writer)
        except OSError:
            self._due = float("inf")
            return
        now = time.monotonic()
        self._due = now + max(INTERVAL_SECONDS, _TIMES_COST * (now - started))

    def remove(self) -> None:
        """Remove what is kept of loads that were begun: one has come to its end."""
        # Where the folder cannot be written it stays, and is met again.
        with suppress(OSError):
            self._remove(self._named_by_table())
            self._remove(self._name)
            (self._folder / _TABLE).unlink(missing_ok=True)

    def _named_by_table(self) -> str | None:
        table = self._folder / _TABLE
        return packed_name(table.read_bytes()[_SIZE.size :]) if table.exists() else None

    def _remove(self, name: str | None) -> None:
        if name is not None:
            (self._folder / name).unlink(missing_ok=True)

    def _keep(self, writer: PackedWriter) -> None:
        kept.prepare(self._folder, self._origin)
        so_far = writer.so_far()
        path = Path(so_far.path)
        older = None
        if self._name is None:
            older = self._named_by_table()
            name = kept.fresh_name(PACKED_SUFFIX)
            link(path, self._folder / name)
            self._name = name
        sync(path)
        told = {
            "packed": self._name,
            "content_end": so_far.content_end,
            "tables_sum": zlib.crc32(so_far.tables),
        }
        version = CorpusVersion(path, self._files[: so_far.documents], self._memory)
        table = written_table(version, told, stamp=self._stamp)
        whole = (_SIZE.pack(len(table)), table, so_far.tables)
        kept.write(self._folder / _TABLE, lambda file: file.writelines(whole))
        self._remove(older)


def open_begun(folder: Path, path: Path, stamp: bytes) -> KeptCorpus | None:
    """Open, as `path`, what a load that was killed had kept; None where nothing can be used."""
    try:
        begun = (folder / _TABLE).read_bytes()
        (size,) = _SIZE.unpack_from(begun)
        numbers, told = read_table(begun[_SIZE.size : _SIZE.size + size], stamp)
        _copy(folder / str(told["packed"]), path, told["content_end"], begun[_SIZE.size + size :])
        return KeptCorpus(path, numbers, told, is_begun=True)
    except (OSError, ValueError, KeyError, TypeError, struct.error, PackedCorpusError):
        # Never there, gone meanwhile, damaged, of another version, or no room for the copy.
        path.unlink(missing_ok=True)
        return None


def _copy(source: Path, target: Path, size: int, end: bytes) -> None:
    """Copy so many bytes, and what follows them: whoever has begun the file may still write it."""
    with source.open("rb") as data, target.open("xb") as copy:
        while size:
            block = data.read(min(size, _BLOCK_BYTES))
            if not block:
                raise ValueError("its end is missing")
            copy.write(block)
            size -= len(block)
        copy.write(end)

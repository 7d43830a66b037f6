"""Which files of one source are taken, and what of them is told to its report."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from rlm_rag.loaders.files import format_bytes
from rlm_rag.loaders.memory import FileMemory
from rlm_rag.loaders.options import NOT_SELECTED, Entry, LoadOptions, LoadReport
from rlm_rag.loaders.reading import read_bytes, read_file
from rlm_rag.loaders.secrets import SECRET_REASON, may_hold_secrets


@dataclass(slots=True)
class Intake:
    """Takes the files of one source that its options choose, up to their limits.

    Those that it does not own, by their paths, are neither taken nor told of; `is_whole` says
    that it owns all.
    """

    options: LoadOptions
    report: LoadReport
    memory: FileMemory
    owns: Callable[[str], bool] = lambda path: True
    is_whole: bool = True
    _selects: Callable[[str], bool] = field(init=False)
    _is_limited: bool = field(init=False)
    _files: int = 0
    _bytes: int = 0

    def __post_init__(self) -> None:
        self._selects = self.options.selector()
        limits = (self.options.max_files, self.options.max_total_bytes)
        self._is_limited = limits != (None, None)

    def wants(self, path: str) -> bool:
        """Tell whether a file is to be read: by its path, and by what was taken before it."""
        return self._passes(path, SECRET_REASON if may_hold_secrets(path) else None)

    def chooses(self, path: str) -> bool:
        """Tell whether the options choose a file, be it owned or not, whatever came before it."""
        return self._selects(path) and not may_hold_secrets(path)

    def is_new(self, path: str, location: str) -> bool:
        """Tell whether the options choose a file that no earlier load remembers as it is."""
        return self.owns(path) and self._selects(path) and not self.memory.remembers(path, location)

    def read(self, path: str, location: str) -> list[Entry]:
        """Return the documents of the file at `location`, which `wants` has let pass."""
        return self._counted(path, self.memory.read(path, location, self.report, self._fresh))

    def take(self, path: str, data: bytes, *, charset: str | None = None) -> list[Entry]:
        """Return the documents of a file's bytes; `charset` is what their carrier says of them."""
        limit = self.options.max_file_bytes
        entries = read_bytes(path, data, self.report, max_file_bytes=limit, charset=charset)
        return self._counted(path, entries)

    def keep(self, entry: Entry) -> list[Entry]:
        """Return a document that is none of a file's, where the options let it pass."""
        if not self._passes(entry.path):
            return []
        return self._counted(entry.path, [entry])

    @property
    def is_full(self) -> bool:
        """Whether a limit is reached, so that nothing more is taken."""
        return self._limit_reached() is not None

    def _fresh(self, path: str, location: str, status: os.stat_result | None) -> list[Entry]:
        limit = self.options.max_file_bytes
        return read_file(path, location, self.report, max_file_bytes=limit, status=status)

    def _passes(self, path: str, reason: str | None = None) -> bool:
        if not self.owns(path):
            return False
        if not self._selects(path):
            reason = NOT_SELECTED
        elif reason is None and self._is_limited:
            reason = self._limit_reached()
        if reason is not None:
            self.report.miss(path, reason)
        return reason is None

    def _limit_reached(self) -> str | None:
        options = self.options
        if options.max_files is not None and self._files >= options.max_files:
            return f"beyond the limit of {options.max_files:,} files (max_files)"
        if options.max_total_bytes is not None and self._bytes >= options.max_total_bytes:
            return _beyond_bytes(options.max_total_bytes)
        return None

    def has_room_for(self, path: str, entries: Sequence[Entry]) -> bool:
        """Count the documents of a file; False where they pass `max_total_bytes`, which is told.

        Nothing comes after such a file either: what is taken is what comes first.
        """
        if self.options.max_total_bytes is None:
            return True
        self._bytes += sum(entry.size_bytes for entry in entries)
        if self._bytes <= self.options.max_total_bytes:
            return True
        self.report.miss(path, _beyond_bytes(self.options.max_total_bytes))
        return False

    def _counted(self, path: str, entries: list[Entry]) -> list[Entry]:
        if not self.has_room_for(path, entries):
            return []
        self._files += bool(entries)
        return entries


def _beyond_bytes(limit: int) -> str:
    return f"beyond the limit of {format_bytes(limit)} (max_total_bytes)"

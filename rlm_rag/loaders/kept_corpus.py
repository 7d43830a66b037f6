"""The packed corpus of a source as it is kept: with the files that it was read from.

Two files in the source's folder: the packed corpus, under a new name for each version, and a
table that names it and says of each file what its status was. The table is replaced at once, so
that whoever reads it sees one version or the other, whole.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import struct
import sys
from array import array
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from rlm_rag import kept
from rlm_rag.corpus import Skipped
from rlm_rag.errors import PackedCorpusError
from rlm_rag.loaders.documents import parser_packages
from rlm_rag.loaders.installed import release_of
from rlm_rag.loaders.kept_rows import ODD, PLACE_NUMBERS, RowChanges, Rows
from rlm_rag.loaders.kept_table import (
    HEAD_BYTES,
    PACKED_SUFFIX,
    CorpusVersion,
    Outcome,
    encoded_table,
    first_documents,
    packed_name,
    read_table,
    split_names,
    told_outcome,
    written_table,
)
from rlm_rag.loaders.memory import (
    STATUS_NUMBERS,
    FileStatus,
    ReadFile,
    differing,
)
from rlm_rag.packed import PackedCorpus
from rlm_rag.packing import StoredText

_TABLE = "corpus.table"
# They guess encodings, and find keys.
_DECIDING_PACKAGES = ("chardet", "detect_secrets")
_SOURCES = (
    "counts.py",
    "globs.py",
    "lines.py",
    "own_folders.py",
    "packed.py",
    "packed_tables.py",
    "packing.py",
    "shown.py",
    "traits.py",
)


@dataclass(frozen=True, slots=True)
class KeptPlace:
    """The `folder` of the source `origin`; others go where all take more than `most_bytes`."""

    folder: Path
    origin: str
    most_bytes: int


class KeptFile(NamedTuple):
    """A file of a kept corpus; `document` is None unless it came to one, with nothing told."""

    row: int
    location: str
    path: str
    document: int | None


# A path, its status, its first document, how many, and its place.
_Row = tuple[str, tuple[int, ...], int, int, int]


class KeptCorpus:
    """One version of a kept corpus, opened for a load that may reuse it.

    It is what a `FileMemory` knows. The packed file is `path`, a name of the caller's own
    for it, so that nothing that becomes of the kept one matters.
    """

    def __init__(
        self, path: Path, numbers: array[int], told: dict[str, Any], *, is_begun: bool = False
    ) -> None:
        """With `is_begun` it is no version yet, and holds a part of the source."""
        self.packed = PackedCorpus.open(path)
        if self.packed.tables_sum() != told["tables_sum"]:
            raise PackedCorpusError("The kept corpus is damaged.")
        self.path = path
        self.is_begun = is_begun
        self.name = str(told["packed"])
        self.told = told
        locations, paths = split_names(told["locations"]), split_names(told["paths"])
        places_at = STATUS_NUMBERS * len(locations)
        seen_at = places_at + PLACE_NUMBERS * len(locations)
        places, self._seen = numbers[places_at:seen_at], numbers[seen_at:]
        if len(places) != PLACE_NUMBERS * len(paths):
            raise PackedCorpusError("The table of the kept corpus is damaged.")
        odd = {name: told[name] for name in ODD}
        self._rows = Rows(locations, paths, numbers[:places_at], places, odd)
        # The rows of files that are not one document of which nothing was told.
        self._odd = {int(row) for name in ODD for row in told[name]}

    @classmethod
    def open(cls, folder: Path, path: Path, stamp: bytes) -> KeptCorpus | None:
        """Open what is kept in `folder` as `path`; None where nothing is that can be used.

        Raises:
            OSError: `path` cannot be written.
        """
        try:
            table = (folder / _TABLE).read_bytes()
            numbers, told = read_table(table, stamp)
            stored = folder / str(told["packed"])
            status = stored.stat()
            if [status.st_size, status.st_mtime_ns] != told["status"]:
                return None
        except (OSError, ValueError, KeyError, TypeError, struct.error):
            # Never there, gone meanwhile, damaged, or of another version.
            return None
        link(stored, path)
        try:
            return cls(path, numbers, told)
        except (PackedCorpusError, KeyError, TypeError):
            path.unlink()
            return None

    @property
    def file_count(self) -> int:
        """How many files it remembers."""
        return len(self._rows.paths)

    @property
    def locations(self) -> Sequence[str]:
        """Where its files are, by their rows."""
        return self._rows.locations

    def outcome(self) -> Outcome | None:
        """Return what the load told that made it, and what tells if it holds; None if unknown."""
        told = self.told.get("outcome")
        if told is None:
            return None
        try:
            return told_outcome(told, self._seen)
        except (KeyError, TypeError, ValueError, AttributeError):
            # Of somebody's making.
            return None

    def changed(self, most: int) -> list[KeptFile] | None:
        """Return which files have another status now; None where they are more than `most`."""
        rows = differing(self._rows.locations, self._rows.statuses, most=most)
        if len(rows) > most:
            return None
        return [self.file(row) for row in rows]

    def rows_after(self, changes: RowChanges) -> Rows:
        """Return the rows of its table after some changes."""
        return self._rows.after(changes)

    def file(self, row: int) -> KeptFile:
        """Return the file of a row."""
        rows = self._rows
        first, count = rows.places[PLACE_NUMBERS * row : PLACE_NUMBERS * (row + 1)]
        is_plain = row not in self._odd and count == 1
        return KeptFile(row, rows.locations[row], rows.paths[row], first if is_plain else None)

    def is_only_skipped(self, row: int) -> bool:
        """Tell whether a file came to no document, which is all that is told of it."""
        told, key = self.told, str(row)
        count = self._rows.places[PLACE_NUMBERS * row + 1]
        return not count and len(told["skipped"].get(key, ())) == 1 and key not in told["warnings"]

    def files_in_order(self) -> list[tuple[str, int]] | None:
        """Return the files that came to documents, by their paths, each with its first document.

        None where their documents are in another order, or not all of the corpus.
        """
        rows = self._rows
        firsts, counts = rows.places[::PLACE_NUMBERS], rows.places[1::PLACE_NUMBERS]
        placed = zip(rows.paths, firsts, counts, strict=True)
        files = sorted((path, first) for path, first, count in placed if count)
        is_sorted = all(one[1] < other[1] for one, other in pairwise(files))
        return files if is_sorted and sum(counts) == len(self.packed) else None

    def skips_by_their_paths(self) -> bool:
        """Tell whether of a file that was skipped the path is told, and of no part of one."""
        paths, told = self._rows.paths, self.told["skipped"]
        return all(one[0] == paths[int(row)] for row, skips in told.items() for one in skips)

    @cached_property
    def _by_location(self) -> dict[str, _Row]:
        rows = self._rows
        statuses = (rows.statuses[column::STATUS_NUMBERS] for column in range(STATUS_NUMBERS))
        places = (rows.places[column::PLACE_NUMBERS] for column in range(PLACE_NUMBERS))
        numbers = range(len(rows.paths))
        found = zip(rows.paths, zip(*statuses, strict=True), *places, numbers, strict=True)
        return dict(zip(rows.locations, found, strict=True))

    def recall(
        self, location: str, path: str, status: FileStatus
    ) -> tuple[ReadFile, list[StoredText]] | None:
        row = self._by_location.get(location)
        if row is None:
            return None
        kept_path, kept_status, first, parts, number = row
        if kept_status != status or kept_path != path:
            return None
        if number not in self._odd:
            return ReadFile(location, path, status), [StoredText(self.packed, first)]
        texts = [StoredText(self.packed, first + part) for part in range(parts)]
        told, key = self.told, str(number)
        file = ReadFile(
            location,
            path,
            status,
            tuple(told["parts"].get(key, ("",) * parts)),
            tuple(Skipped(*one) for one in told["skipped"].get(key, ())),
            tuple(told["warnings"].get(key, ())),
        )
        return file, texts

    def different(self, version: CorpusVersion) -> list[str]:
        """Return the paths of which something else was kept than is in a version read afresh.

        Only files count whose status says that they are the same, for the others nothing is
        claimed.
        """
        wrong = []
        with PackedCorpus.open(version.packed_path) as fresh:
            for first, file in first_documents(version.files):
                known = file.status and self.recall(file.location, file.path, file.status)
                if not known:
                    continue
                numbers = range(first, first + len(file.parts))
                now = [fresh.digest(number) for number in numbers]
                told = [self.packed.digest(text.number) for text in known[1]]
                whole = all(self.packed.is_whole(text.number) for text in known[1])
                if now != told or not whole:
                    wrong.append(fresh.path(first))
        return wrong


def keep(
    place: KeptPlace, version: CorpusVersion, *, stamp: bytes, before: KeptCorpus | None
) -> None:
    """Keep a version in place of the one before; nothing is written where nothing is new.

    Raises:
        OSError: the folder cannot be written.
    """
    name = old = None if before is None or version.is_new else before.name
    memory = version.memory
    if name is None:
        name = kept.fresh_name(PACKED_SUFFIX)
    elif (
        version.outcome is None
        and before is not None
        and (memory.recalled, memory.learned) == (before.file_count, 0)
    ):
        kept.mark_used(place.folder)
        return
    table = written_table(version, _named(version.packed_path, name), stamp=stamp)
    _put(place, name, table, None if old else version.packed_path)


def keep_again(
    place: KeptPlace,
    before: KeptCorpus,
    changes: RowChanges,
    outcome: Outcome,
    *,
    stamp: bytes,
    packed_path: Path | None,
) -> None:
    """Keep what there was, after changes of some rows, with what a load tells now.

    There is another packed file where texts are otherwise, too.

    Raises:
        OSError: the folder cannot be written.
    """
    name = before.name if packed_path is None else kept.fresh_name(PACKED_SUFFIX)
    told = _named(packed_path, name) if packed_path is not None else {}
    table = encoded_table(before.rows_after(changes), outcome, before.told | told, stamp=stamp)
    _put(place, name, table, packed_path)


def _put(place: KeptPlace, name: str, table: bytes, packed_path: Path | None) -> None:
    folder = place.folder
    kept.prepare(folder, place.origin)
    if packed_path is not None:
        sync(packed_path)
        link(packed_path, folder / name)
    # Of another process, where it was faster.
    replaced = _named_by_table(folder)
    kept.write(folder / _TABLE, lambda file: file.write(table))
    kept.mark_used(folder)
    _remove_older(folder, name, replaced)
    kept.evict(folder.parent, place.most_bytes, spared=folder)


@cache
def stamp() -> bytes:
    """Return 16 bytes that differ where the same files could be loaded otherwise."""
    here = Path(__file__).parent
    loaders = sorted(path.relative_to(here).as_posix() for path in here.rglob("*.py"))
    digest = kept.sources_digest((*(f"loaders/{name}" for name in loaders), *_SOURCES))
    packages = (*parser_packages(), *_DECIDING_PACKAGES)
    releases = " ".join(f"{name}={release_of(name)}" for name in packages)
    told = f"{digest} {releases} {sys.byteorder} {sys.version_info[:2]}"
    return hashlib.blake2b(told.encode(), digest_size=16).digest()


def _named(packed_path: Path, name: str) -> dict[str, Any]:
    """Return how a table names a packed file."""
    status = packed_path.stat()
    with PackedCorpus.open(packed_path) as packed:
        tables_sum = packed.tables_sum()
    return {
        "packed": name,
        "status": [status.st_size, status.st_mtime_ns],
        "tables_sum": tables_sum,
    }


def link(source: Path, target: Path) -> None:
    """Give a file another name, or make a copy of it where there are no links.

    Raises:
        OSError: neither can be done.
    """
    try:
        os.link(source, target)
    except FileNotFoundError:
        raise
    except OSError:
        # A file system without links, or two of them.
        shutil.copy2(source, target)


def sync(path: Path) -> None:
    """Have a file's content on the disk before a table names it, come what may."""
    # Windows syncs what may be written alone.
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _named_by_table(folder: Path) -> str | None:
    try:
        with (folder / _TABLE).open("rb") as table:
            return packed_name(table.read(HEAD_BYTES))
    except OSError:
        return None


def _remove_older(folder: Path, name: str, old: str | None) -> None:
    with suppress(OSError):
        if old is not None and old != name:
            (folder / old).unlink(missing_ok=True)
        for path in folder.glob(f"*{PACKED_SUFFIX}"):
            if path.name != name:
                kept.remove_abandoned(path)

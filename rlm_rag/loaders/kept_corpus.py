"""The packed corpus of a source as it is kept: with the files that it was read from.

Two files in the source's folder: the packed corpus, under a new name for each version, and a
table that names it and says of each file what its status was. The table is replaced at once, so
that whoever reads it sees one version or the other, whole.

Layout of the table: magic | stamp | CRC-32 of the rest | bytes of the JSON | JSON | the status of
each file | of each its first document, and how many | the status of each path of the witness.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import struct
import sys
import zlib
from array import array
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from rlm_rag import kept
from rlm_rag.corpus import Skipped
from rlm_rag.errors import PackedCorpusError
from rlm_rag.loaders.documents import parser_packages
from rlm_rag.loaders.installed import release_of
from rlm_rag.loaders.memory import (
    STATUS_NUMBERS,
    FileMemory,
    FileStatus,
    ReadFile,
    have_statuses,
    status_numbers,
)
from rlm_rag.loaders.witness import Witness
from rlm_rag.packed import PackedCorpus
from rlm_rag.packing import StoredText

_TABLE = "corpus.table"
PACKED_SUFFIX = ".packed"
_MAGIC = b"RLMKEPT\x02"
_HEAD = struct.Struct("=8s16sIQ")
_PLACE_NUMBERS = 2
_ODD = ("parts", "skipped", "warnings")
# Names lie in one string each kind, which is read ten times as fast; none holds this.
_BETWEEN = "\0"
# They guess encodings, and find keys.
_DECIDING_PACKAGES = ("chardet", "detect_secrets")
_SOURCES = ("lines.py", "packed.py", "packing.py")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a load told of its source: true while `witness` holds and its files are the same."""

    witness: Witness
    skipped: Sequence[Skipped]
    warnings: Sequence[str]


@dataclass(frozen=True, slots=True)
class CorpusVersion:
    """What a load made: `files` says of each document what it was read from.

    Without `is_new`, the packed file is that of the version before. `outcome` is None where more
    decides it than files and folders.
    """

    packed_path: Path
    files: Sequence[ReadFile | None]
    memory: FileMemory
    is_new: bool = True
    outcome: Outcome | None = None


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
        self._told = told
        self._locations, self._paths = _split(told["locations"]), _split(told["paths"])
        places_at = STATUS_NUMBERS * len(self._locations)
        self._statuses = numbers[:places_at]
        seen_at = places_at + _PLACE_NUMBERS * len(self._locations)
        self._places, self._seen = numbers[places_at:seen_at], numbers[seen_at:]
        if len(self._places) != _PLACE_NUMBERS * len(self._paths):
            raise PackedCorpusError("The table of the kept corpus is damaged.")
        # The rows of files that are not one document of which nothing was told.
        self._odd = {int(row) for name in _ODD for row in told[name]}

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
        return len(self._rows)

    def unchanged(self) -> Outcome | None:
        """Return what the load told that made it, where another would come to the same.

        That is known by the folders and files that there are; None where it is not.
        """
        told = self._told.get("outcome")
        if told is None:
            return None
        try:
            paths, absent = _split(told["paths"]), _split(told["absent"])
            witness = Witness(told["environment"], paths, self._seen, absent)
            if not witness.holds() or not have_statuses(self._locations, self._statuses):
                return None
            return Outcome(witness, [Skipped(*one) for one in told["skipped"]], told["warnings"])
        except (KeyError, TypeError, ValueError, AttributeError):
            # Of somebody's making.
            return None

    @cached_property
    def _rows(self) -> dict[str, _Row]:
        paths = self._paths
        statuses = (self._statuses[column::STATUS_NUMBERS] for column in range(STATUS_NUMBERS))
        places = (self._places[column::_PLACE_NUMBERS] for column in range(_PLACE_NUMBERS))
        rows = zip(paths, zip(*statuses, strict=True), *places, range(len(paths)), strict=True)
        return dict(zip(self._locations, rows, strict=True))

    def recall(
        self, location: str, path: str, status: FileStatus
    ) -> tuple[ReadFile, list[StoredText]] | None:
        row = self._rows.get(location)
        if row is None:
            return None
        kept_path, kept_status, first, parts, number = row
        if kept_status != status or kept_path != path:
            return None
        if number not in self._odd:
            return ReadFile(location, path, status), [StoredText(self.packed, first)]
        texts = [StoredText(self.packed, first + part) for part in range(parts)]
        told, key = self._told, str(number)
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
            for first, file in _firsts(version.files):
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
    folder: Path, origin: str, version: CorpusVersion, *, stamp: bytes, before: KeptCorpus | None
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
        kept.mark_used(folder)
        return
    table = _table_of(version, name, stamp)
    kept.prepare(folder, origin)
    if old is None:
        sync(version.packed_path)
        link(version.packed_path, folder / name)
    # Of another process, where it was faster.
    replaced = _named_by_table(folder)
    kept.write(folder / _TABLE, lambda file: file.write(table))
    kept.mark_used(folder)
    _remove_older(folder, name, replaced)
    kept.evict(folder.parent, kept.MAX_KEPT_BYTES, spared=folder)


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


def _table_of(version: CorpusVersion, name: str, stamp: bytes) -> bytes:
    status = version.packed_path.stat()
    told: dict[str, Any] = {"packed": name, "status": [status.st_size, status.st_mtime_ns]}
    with PackedCorpus.open(version.packed_path) as packed:
        told["tables_sum"] = packed.tables_sum()
    return written_table(version, told, stamp=stamp)


def written_table(version: CorpusVersion, told: dict[str, Any], *, stamp: bytes) -> bytes:
    """Return a table that says what each document was read from, and what is `told` besides."""
    locations: list[str] = []
    paths: list[str] = []
    statuses: list[FileStatus] = []
    places: array[int] = array("q")
    odd: dict[str, dict[str, Any]] = {name: {} for name in _ODD}
    empty = ((0, file) for file in version.memory.empty)
    for first, file in [*_firsts(version.files), *empty]:
        if not file.can_be_recalled or file.status is None:
            continue
        key = str(len(locations))
        locations.append(file.location)
        paths.append(file.path)
        statuses.append(file.status)
        places.extend((first, len(file.parts)))
        if file.parts != ("",):
            odd["parts"][key] = file.parts
        if file.skipped:
            odd["skipped"][key] = [(one.path, one.reason) for one in file.skipped]
        if file.warnings:
            odd["warnings"][key] = file.warnings
    numbers = status_numbers(statuses) + places
    rows: dict[str, Any] = {"locations": _BETWEEN.join(locations), "paths": _BETWEEN.join(paths)}
    rows |= odd
    memory, outcome = version.memory, version.outcome
    # Else a file decided that no table tells of.
    if outcome is not None and (memory.recalled + memory.learned, memory.passing) == (
        len(paths),
        0,
    ):
        rows["outcome"] = _outcome_rows(outcome)
        numbers += outcome.witness.statuses
    text = json.dumps(told | rows, separators=(",", ":")).encode("ascii")
    text += b" " * (-(_HEAD.size + len(text)) % 8)
    body = text + numbers.tobytes()
    return _HEAD.pack(_MAGIC, stamp, zlib.crc32(body), len(text)) + body


def _firsts(files: Sequence[ReadFile | None]) -> list[tuple[int, ReadFile]]:
    """Pair each file with its first document; one whose documents are not all here is left out."""
    pairs: list[tuple[int, ReadFile]] = []
    number = 0
    while number < len(files):
        file = files[number]
        count = 1
        while file is not None and number + count < len(files) and files[number + count] is file:
            count += 1
        if file is not None and count == len(file.parts):
            pairs.append((number, file))
        number += count
    return pairs


def _outcome_rows(outcome: Outcome) -> dict[str, Any]:
    witness = outcome.witness
    return {
        "environment": witness.environment,
        "paths": _BETWEEN.join(witness.paths),
        "absent": _BETWEEN.join(witness.absent),
        "skipped": [(one.path, one.reason) for one in outcome.skipped],
        "warnings": outcome.warnings,
    }


def _split(names: str) -> list[str]:
    return names.split(_BETWEEN) if names else []


def read_table(table: bytes, stamp: bytes) -> tuple[array[int], dict[str, Any]]:
    """Return the numbers of a table, and what is told in it.

    Raises:
        ValueError, struct.error: it is damaged, or of another version.
    """
    magic, stamped, checked, told = _parts_of(table)
    body = memoryview(table)[_HEAD.size :]
    if (magic, stamped) != (_MAGIC, stamp) or zlib.crc32(body) != checked:
        raise ValueError("damaged, or of another version")
    numbers: array[int] = array("q")
    numbers.frombytes(body[len(told) :])
    return numbers, json.loads(told)


def _parts_of(table: bytes) -> tuple[bytes, bytes, int, bytes]:
    magic, stamped, checked, size = _HEAD.unpack_from(table)
    return magic, stamped, checked, table[_HEAD.size : _HEAD.size + size]


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
        return packed_name((folder / _TABLE).read_bytes())
    except OSError:
        return None


def packed_name(table: bytes) -> str | None:
    """Return the name of the packed file that a table is of; None where it is damaged."""
    try:
        name = json.loads(_parts_of(table)[3])["packed"]
    except (ValueError, KeyError, TypeError, struct.error):
        return None
    usable = isinstance(name, str) and name == Path(name).name and name.endswith(PACKED_SUFFIX)
    return name if usable else None


def _remove_older(folder: Path, name: str, old: str | None) -> None:
    with suppress(OSError):
        if old is not None and old != name:
            (folder / old).unlink(missing_ok=True)
        for path in folder.glob(f"*{PACKED_SUFFIX}"):
            if path.name != name:
                kept.remove_abandoned(path)

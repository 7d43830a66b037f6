"""What is told of a kept corpus: which files it was read from, and what else a load said.

Layout: magic | stamp | CRC-32 of the rest | bytes of the JSON | JSON | the status of each file | of
each its first document, and how many | the status of each path of the witness.
"""

from __future__ import annotations

import json
import struct
import zlib
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlm_rag.corpus import Skipped
from rlm_rag.loaders.kept_rows import ODD, Rows
from rlm_rag.loaders.listing import LeftOut
from rlm_rag.loaders.memory import FileMemory, FileStatus, ReadFile, status_numbers
from rlm_rag.loaders.witness import Witness

PACKED_SUFFIX = ".packed"
ONE_DOCUMENT = ("",)

_MAGIC = b"RLMKEPT\x02"
_HEAD = struct.Struct("=8s16sIQ")
# Names lie in one string each kind, which is read ten times as fast; none holds this.
_BETWEEN = "\0"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a load told of its source: true while `witness` holds and its files are the same.

    `left_out` is what git left out of the folder that was loaded; None where there was more to it.
    """

    witness: Witness
    skipped: Sequence[Skipped]
    warnings: Sequence[str]
    left_out: LeftOut | None = None


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


def written_table(version: CorpusVersion, told: dict[str, Any], *, stamp: bytes) -> bytes:
    """Return a table that says what each document was read from, and what is `told` besides."""
    locations: list[str] = []
    paths: list[str] = []
    statuses: list[FileStatus] = []
    places: array[int] = array("q")
    odd: dict[str, dict[str, Any]] = {name: {} for name in ODD}
    empty = ((0, file) for file in version.memory.empty)
    for first, file in [*first_documents(version.files), *empty]:
        location, path, status, parts, skipped, warnings = file
        if status is None or not (parts or file.can_be_recalled):
            continue
        locations.append(location)
        paths.append(path)
        statuses.append(status)
        places.extend((first, len(parts)))
        if parts == ONE_DOCUMENT and not skipped and not warnings:
            continue
        key = str(len(locations) - 1)
        if parts != ONE_DOCUMENT:
            odd["parts"][key] = parts
        if skipped:
            odd["skipped"][key] = [(one.path, one.reason) for one in skipped]
        if warnings:
            odd["warnings"][key] = warnings
    rows = Rows(locations, paths, status_numbers(statuses), places, odd)
    memory = version.memory
    # Else a file decided that no table tells of.
    told_all = memory.recalled + memory.learned == len(paths) and not memory.passing
    return encoded_table(rows, version.outcome if told_all else None, told, stamp=stamp)


def encoded_table(
    rows: Rows, outcome: Outcome | None, told: dict[str, Any], *, stamp: bytes
) -> bytes:
    """Return a table of some rows, as `read_table` takes it apart, with what is `told` besides."""
    locations, paths = _BETWEEN.join(rows.locations), _BETWEEN.join(rows.paths)
    told = {**told, "locations": locations, "paths": paths, **rows.odd}
    numbers = rows.statuses + rows.places
    if outcome is not None:
        told["outcome"] = _outcome_rows(outcome)
        numbers += outcome.witness.statuses
    text = json.dumps(told, separators=(",", ":")).encode("ascii")
    text += b" " * (-(_HEAD.size + len(text)) % 8)
    body = text + numbers.tobytes()
    return _HEAD.pack(_MAGIC, stamp, zlib.crc32(body), len(text)) + body


def first_documents(files: Sequence[ReadFile | None]) -> list[tuple[int, ReadFile]]:
    """Pair each file with its first document; one whose documents are not all here is left out."""
    pairs: list[tuple[int, ReadFile]] = []
    number = 0
    while number < len(files):
        file = files[number]
        # Most by far.
        if file is not None and file.parts == ONE_DOCUMENT:
            pairs.append((number, file))
            number += 1
            continue
        count = 1
        while file is not None and number + count < len(files) and files[number + count] is file:
            count += 1
        if file is not None and count == len(file.parts):
            pairs.append((number, file))
        number += count
    return pairs


def _outcome_rows(outcome: Outcome) -> dict[str, Any]:
    """Return an outcome as a table tells it, but for the statuses of its witness."""
    witness, left_out = outcome.witness, outcome.left_out
    return {
        "environment": witness.environment,
        "paths": _BETWEEN.join(witness.paths),
        "absent": _BETWEEN.join(witness.absent),
        "gone": _BETWEEN.join(witness.gone),
        "contents": _BETWEEN.join(witness.contents),
        "left_out": left_out and [_BETWEEN.join(left_out.names), left_out.outside],
        "skipped": [(one.path, one.reason) for one in outcome.skipped],
        "warnings": outcome.warnings,
    }


def told_outcome(rows: dict[str, Any], statuses: array[int]) -> Outcome:
    """Return the outcome that a table tells.

    Raises:
        KeyError, TypeError, ValueError, AttributeError: it is of somebody's making.
    """
    paths, absent = split_names(rows["paths"]), split_names(rows["absent"])
    # Of a folder that is empty nothing stands between two others.
    contents = rows["contents"].split(_BETWEEN)
    gone = split_names(rows["gone"])
    witness = Witness(rows["environment"], paths, statuses, absent, contents, gone)
    left_out = rows["left_out"]
    if left_out is not None:
        left_out = LeftOut(split_names(left_out[0]), left_out[1])
    return Outcome(witness, [Skipped(*one) for one in rows["skipped"]], rows["warnings"], left_out)


def split_names(names: str) -> list[str]:
    """Return the names that a table tells as one string."""
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


def packed_name(table: bytes) -> str | None:
    """Return the name of the packed file that a table is of; None where it is damaged."""
    try:
        name = json.loads(_parts_of(table)[3])["packed"]
    except (ValueError, KeyError, TypeError, struct.error):
        return None
    usable = isinstance(name, str) and name == Path(name).name and name.endswith(PACKED_SUFFIX)
    return name if usable else None

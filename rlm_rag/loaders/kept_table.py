"""What is told of a kept corpus: which files it was read from, and what else a load said.

Layout: magic | stamp | CRC-32 of the rest | bytes of the JSON, and of the texts | name of the
packed file | JSON | texts | the status of each file | of each its first document, and how many |
the status of each path of the witness.
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

_MAGIC = b"RLMKEPT\x03"
_HEAD = struct.Struct("=8s16sIQQ64s")
HEAD_BYTES = _HEAD.size
"""So many are enough to tell the name of the packed file."""

# Names lie in one string each kind, which is read ten times as fast; none holds this.
_BETWEEN = "\0"
# Of what is told, and of the outcome in it: too long for JSON, which looks at each character.
_LONG = ("locations", "paths")
_LONG_OF_OUTCOME = ("paths", "contents")
_TOLD_BY_ROWS = (*_LONG, "outcome")


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
    told = {name: one for name, one in told.items() if name not in _TOLD_BY_ROWS} | dict(rows.odd)
    long = [_BETWEEN.join(rows.locations), _BETWEEN.join(rows.paths)]
    numbers = rows.statuses + rows.places
    if outcome is not None:
        witness = outcome.witness
        told["outcome"] = _outcome_rows(outcome)
        long += [_BETWEEN.join(witness.paths), _BETWEEN.join(witness.contents)]
        numbers += witness.statuses
    texts = [text.encode("utf-8", "surrogatepass") for text in long]
    name = told.pop("packed").encode("ascii")
    told["sizes"] = [len(text) for text in texts]
    return _put_together(name, told, texts, numbers, stamp)


def _put_together(
    name: bytes, told: dict[str, Any], texts: Sequence[bytes], numbers: array[int], stamp: bytes
) -> bytes:
    text = json.dumps(told, separators=(",", ":")).encode("ascii")
    texts_size = sum(map(len, texts))
    filling = b"\0" * (-(_HEAD.size + len(text) + texts_size) % 8)
    # Put together once: megabytes, whose pages cost more than what stands on them.
    parts: list[bytes | memoryview] = [text, *texts, filling, memoryview(numbers)]
    head = (_checked(name, *parts), len(text), texts_size + len(filling), name)
    return b"".join((_HEAD.pack(_MAGIC, stamp, *head), *parts))


def _checked(*parts: bytes | memoryview) -> int:
    checked = 0
    for part in parts:
        checked = zlib.crc32(part, checked)
    return checked


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
    """Return an outcome as a table tells it, but for what is long and the witness's statuses."""
    witness, left_out = outcome.witness, outcome.left_out
    return {
        "environment": witness.environment,
        "absent": _BETWEEN.join(witness.absent),
        "gone": _BETWEEN.join(witness.gone),
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
    magic, stamped, checked, text_size, texts_size, packed = _HEAD.unpack_from(table)
    body = memoryview(table)[_HEAD.size :]
    name = packed.rstrip(b"\0")
    if (magic, stamped) != (_MAGIC, stamp) or _checked(name, body) != checked:
        raise ValueError("damaged, or of another version")
    told = json.loads(bytes(body[:text_size]))
    told["packed"] = name.decode("ascii")
    numbers_at = text_size + texts_size
    _add_long(told, body[text_size:numbers_at])
    numbers: array[int] = array("q")
    numbers.frombytes(body[numbers_at:])
    return numbers, told


def _add_long(told: dict[str, Any], texts: memoryview) -> None:
    """Put the texts of a table where they belong."""
    places = [(told, name) for name in _LONG]
    if "outcome" in told:
        places += [(told["outcome"], name) for name in _LONG_OF_OUTCOME]
    start = 0
    for (into, name), size in zip(places, told.pop("sizes"), strict=True):
        into[name] = str(texts[start : start + size], "utf-8", "surrogatepass")
        start += size


def packed_name(table: bytes) -> str | None:
    """Return the name of the packed file that a table is of; None where it is damaged."""
    try:
        name = _HEAD.unpack_from(table)[-1].rstrip(b"\0").decode("ascii")
    except (ValueError, struct.error):
        return None
    usable = name == Path(name).name and name.endswith(PACKED_SUFFIX)
    return name if usable else None

"""A kept corpus brought up to date where nothing changed but the texts of some files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rlm_rag.loaders.intake import Intake
from rlm_rag.loaders.kept_corpus import KeptCorpus
from rlm_rag.loaders.memory import FileMemory, FileStatus
from rlm_rag.loaders.options import Entry, LoadReport
from rlm_rag.packed import PackedCorpus, encode
from rlm_rag.packing import PackedWriter

# Of more, documents are worth being parsed ahead.
_MOST_FILES = 256
# What no file has: one that may change without a trace is read again the next time.
_UNSETTLED = FileStatus(-1, -1, -1, -1)


@dataclass(frozen=True, slots=True)
class Amended:
    """The statuses that some rows of the table have now, and whether there are other texts."""

    statuses: Mapping[int, Sequence[int]]
    has_new_texts: bool


def amend(before: KeptCorpus, intake: Intake, packed_path: Path) -> Amended | None:
    """Read what changed, and write the texts that there are then, if they are others.

    The files must be those of `before`. None where one came to anything but one text, before or
    now, or where they are many.

    Raises:
        PackedCorpusError: the packed file cannot be written, or the one before is damaged.
    """
    changed = before.changed(_MOST_FILES)
    if changed is None or any(file.document is None for file in changed):
        return None
    # What it counts and tells is not the load's, which may read all in the end.
    own = Intake(
        intake.options,
        LoadReport(),
        FileMemory(settled_before_ns=intake.memory.settled_before_ns),
    )
    statuses: dict[int, FileStatus] = {}
    texts: dict[int, Entry] = {}
    for file in changed:
        entries = own.read(file.path, file.location)
        is_plain = len(entries) == 1 and entries[0].path == file.path
        is_told = own.report.skipped or own.report.warnings
        if file.document is None or not is_plain or is_told:
            return None
        read = entries[0].file
        statuses[file.row] = (read and read.status) or _UNSETTLED
        if not _holds(before.packed, file.document, entries[0]):
            texts[file.document] = entries[0]
    if texts:
        _write(before.packed, texts, packed_path)
    return Amended(statuses, bool(texts))


def _holds(packed: PackedCorpus, number: int, entry: Entry) -> bool:
    content = entry.content
    return (
        isinstance(content, str)
        and packed.encoding(number) == entry.encoding
        and packed.content_bytes(number) == encode(content)
    )


def _write(packed: PackedCorpus, texts: Mapping[int, Entry], packed_path: Path) -> None:
    with PackedWriter(packed_path, shape=packed.shape) as writer:
        done = 0
        for number, entry in sorted(texts.items()):
            writer.copy_all(packed, range(done, number))
            writer.add(packed.path(number), str(entry.content), encoding=entry.encoding)
            done = number + 1
        writer.copy_all(packed, range(done, len(packed)))

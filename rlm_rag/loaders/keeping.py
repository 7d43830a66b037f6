"""From entries to a corpus, reusing what is kept of its source and keeping what is new."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from rlm_rag import kept
from rlm_rag.corpus import Corpus
from rlm_rag.errors import PackedCorpusError
from rlm_rag.loaders.amending import amend
from rlm_rag.loaders.begun import Begun, open_begun
from rlm_rag.loaders.kept_corpus import KeptCorpus, KeptPlace, keep, keep_again, stamp
from rlm_rag.loaders.kept_table import CorpusVersion, Outcome
from rlm_rag.loaders.listing import LeftOut
from rlm_rag.loaders.memory import FileMemory, ReadFile
from rlm_rag.loaders.options import Entry, LoadReport
from rlm_rag.loaders.witness import Sighting, witness_of
from rlm_rag.packing import pack
from rlm_rag.scratch import ScratchFolder

# A larger text is kept where the disk has room for so many of it.
_ALWAYS_KEPT_BYTES = kept.MAX_KEPT_BYTES // 2
_TIMES_FREE = 2
_OPEN = "open"


class NotKept(Exception):
    """The cache folder cannot be used; the same source can be loaded without it."""


@dataclass(frozen=True, slots=True)
class Keeping:
    """Where corpora are kept, and whether to read every file again and compare it.

    The sources used longest ago go where all of them take more than `most_bytes`.
    """

    root: Path
    verify: bool = False
    most_bytes: int = kept.MAX_KEPT_BYTES


@dataclass(frozen=True, slots=True)
class Reading:
    """The entries of a source, which `memory` recalls or has read, and `report` tells of.

    `sightings` are as in `OpenedSource`.
    """

    entries: Iterable[Entry]
    shape: str
    report: LoadReport
    memory: FileMemory
    sightings: Sequence[Sighting] = ()


def load_kept(reading: Reading, origin: str, keeping: Keeping) -> Corpus:
    """Pack what is read of the source `origin`, and keep it.

    Raises:
        NotKept: the cache folder cannot be written, or is full; some entries were consumed.
        SourceError: two documents have the same path.
    """
    try:
        kept.make_cache(keeping.root.parent)
        # Of the same file system, so that a link costs nothing; out of the reach of who clears.
        scratch = ScratchFolder(keeping.root.parent / _OPEN)
    except OSError as error:
        raise NotKept(error.strerror or str(error)) from error
    try:
        packed_path = scratch.path / "corpus.packed"
        folder = kept.folder_of(keeping.root, origin)
        place = KeptPlace(folder, origin, keeping.most_bytes)
        before = _before(folder, scratch.path / "before.packed")
        known = None if keeping.verify else before
        if not _amended(known, reading, packed_path, place):
            files: list[ReadFile | None] = []
            begun = Begun(folder, origin, files, reading.memory, stamp(), before=before)
            version = _pack(reading, packed_path, before, files, begun, verify=keeping.verify)
            _keep(version, place, reading.report, before)
            begun.remove()
        return Corpus(
            packed_path,
            scratch=scratch,
            skipped=reading.report.skipped,
            warnings=reading.report.warnings,
            origin=origin,
        )
    except (OSError, PackedCorpusError) as error:
        scratch.close()
        raise NotKept(str(error)) from error
    except BaseException:
        scratch.close()
        raise


def _before(folder: Path, path: Path) -> KeptCorpus | None:
    return KeptCorpus.open(folder, path, stamp()) or open_begun(folder, path, stamp())


def _amended(
    before: KeptCorpus | None, reading: Reading, packed_path: Path, place: KeptPlace
) -> bool:
    """Come to the result by what is kept and the files that changed; False where that is not all.

    The report is then what reading all of the source would make it.
    """
    if before is None or not reading.sightings:
        return False
    outcome = before.outcome()
    if outcome is None:
        return False
    amended = amend(before, outcome, reading.sightings[0], packed_path)
    if amended is None:
        return False
    report, now = reading.report, amended.outcome
    report.skipped[:], report.warnings[:] = now.skipped, now.warnings
    if not amended.rows and now.witness == outcome.witness:
        kept.mark_used(place.folder)
    elif _has_room(packed_path if amended.has_new_texts else before.path):
        new_path = packed_path if amended.has_new_texts else None
        with _told_if_not(place.folder, report):
            keep_again(place, before, amended.rows, now, stamp=stamp(), packed_path=new_path)
    _end(before, None if amended.has_new_texts else packed_path)
    return True


def _end(before: KeptCorpus, packed_path: Path | None) -> None:
    """Let go of the version before; it is the packed file where it is given a path."""
    before.packed.close()
    if packed_path is not None:
        before.path.rename(packed_path)
        return
    # As large as the new one, and else there for as long as that is open.
    with suppress(OSError):
        before.path.unlink()


def _pack(
    reading: Reading,
    packed_path: Path,
    before: KeptCorpus | None,
    files: list[ReadFile | None],
    begun: Begun,
    *,
    verify: bool,
) -> CorpusVersion:
    entries = _noted(reading.entries, files)
    reading.memory.known = None if verify else before
    like = None if before is None or before.is_begun else before.packed
    # Where there is a version the next load goes on from that, whatever was begun.
    watch = begun if like is None else None
    is_new = pack(entries, packed_path, shape=reading.shape, like=like, watch=watch)
    version = CorpusVersion(packed_path, files, reading.memory, is_new, _outcome_of(reading))
    if before is None:
        return version
    if verify:
        # Before all others: what is shown may be the first of them alone.
        reading.report.warnings[:0] = [
            f"{path}: what was kept of it was wrong; it was read again"
            for path in before.different(version)
        ]
    _end(before, None if is_new else packed_path)
    return version


def _outcome_of(reading: Reading) -> Outcome | None:
    witness = None
    if reading.sightings and not reading.memory.passing:
        witness = witness_of(reading.sightings, reading.memory.settled_before_ns)
    if witness is None:
        return None
    report, first = reading.report, reading.sightings[0]
    is_alone = len(reading.sightings) == 1 and not first.is_prefixed and not first.own
    left_out = None
    if is_alone and first.listing is not None:
        left_out = LeftOut(first.listing.ignored, first.listing.outside)
    return Outcome(witness, report.skipped[:], report.warnings[:], left_out)


def _has_room(packed_path: Path) -> bool:
    size = packed_path.stat().st_size
    if size <= _ALWAYS_KEPT_BYTES:
        return True
    return size * _TIMES_FREE <= shutil.disk_usage(packed_path.parent).free


def _noted(entries: Iterable[Entry], files: list[ReadFile | None]) -> Iterator[Entry]:
    for entry in entries:
        files.append(entry.file)
        yield entry


def _keep(
    version: CorpusVersion, place: KeptPlace, report: LoadReport, before: KeptCorpus | None
) -> None:
    if not version.files or not _has_room(version.packed_path):
        return
    with _told_if_not(place.folder, report):
        keep(place, version, stamp=stamp(), before=before)


@contextmanager
def _told_if_not(folder: Path, report: LoadReport) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        report.warnings.insert(0, f"{folder}: the text is not kept: {error.strerror or error}")

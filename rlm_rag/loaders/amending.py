"""A kept corpus brought up to date by the files that changed, came and went, and by no others."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from rlm_rag.loaders.ahead import parsing_ahead
from rlm_rag.loaders.git import printable_path
from rlm_rag.loaders.holders import holders
from rlm_rag.loaders.ignore import OWN_IGNORE_FILES, IgnoreFiles
from rlm_rag.loaders.intake import Intake
from rlm_rag.loaders.kept_corpus import KeptCorpus
from rlm_rag.loaders.kept_rows import RowChanges
from rlm_rag.loaders.kept_table import Outcome
from rlm_rag.loaders.listing import LeftOut
from rlm_rag.loaders.memory import UNSETTLED, FileMemory, ReadFile
from rlm_rag.loaders.options import Entry, LoadReport
from rlm_rag.loaders.own import OwnFolders
from rlm_rag.loaders.relisting import Relisted, relist
from rlm_rag.loaders.skips import Skips, has_special, skips_by_git
from rlm_rag.loaders.witness import Sighting
from rlm_rag.own_folders import CACHE_TAG_NAME
from rlm_rag.packed import PackedCorpus, encode
from rlm_rag.packing import PackedWriter, StoredText, Utf8Text

# What is read is held until it is written, as reading all does not.
_MOST_FILES = 2000
_MOST_CHARS = 32 << 20


@dataclass(frozen=True, slots=True)
class Amended:
    """What a source is now: its outcome, how the rows of its table changed, and if texts did."""

    outcome: Outcome
    rows: RowChanges
    has_new_texts: bool


def amend(
    before: KeptCorpus, outcome: Outcome, sighting: Sighting, packed_path: Path
) -> Amended | None:
    """Read what changed and came, and write the texts that there are then, if they are others.

    `outcome` is that of `before`, and `sighting` of one of the folders that were loaded. None
    where that is not enough to tell what reading all would come to.

    Raises:
        PackedCorpusError: the packed file cannot be written, or the one before is damaged.
    """
    intake = sighting.intake
    settled_before_ns = intake.memory.settled_before_ns
    relisted = relist(
        outcome.witness, outcome.left_out, before.locations, intake.options, settled_before_ns
    )
    if relisted is None:
        return None
    amending = _Amending(before, outcome, sighting, relisted)
    if not amending.take_edited() or not amending.take_moved():
        return None
    return amending.amended(packed_path)


@dataclass(slots=True)
class _Amending:
    """What becomes of a kept corpus: its documents by their numbers in it, its files by rows.

    `texts` are what documents are instead, `dropped` those that are no more, `new` what comes.
    """

    before: KeptCorpus
    outcome: Outcome
    sighting: Sighting
    relisted: Relisted
    own: Intake = field(init=False)
    skips: Skips | None = None
    statuses: dict[int, Sequence[int]] = field(default_factory=dict)
    texts: dict[int, Entry] = field(default_factory=dict)
    gone: set[int] = field(default_factory=set)
    dropped: set[int] = field(default_factory=set)
    new: list[ReadFile] = field(default_factory=list)
    new_texts: dict[str, Entry] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # What it counts and tells is not the load's, which may read all in the end.
        intake = self.sighting.intake
        memory = FileMemory(settled_before_ns=intake.memory.settled_before_ns)
        self.own = Intake(intake.options, LoadReport(), memory, intake.owns)

    def take_edited(self) -> bool:
        """Read the files that have another status and are where they were; False if in vain."""
        changed = self.before.changed(_MOST_FILES)
        if changed is None:
            return False
        start = len(self.relisted.root) + 1
        elsewhere = self.relisted.removed.union(self.relisted.listed)
        edited = {one.location: one for one in changed if one.location[start:] not in elsewhere}
        # A tag may come to be one of ours.
        tag = f"/{CACHE_TAG_NAME}"
        if any(one.document is None or one.location.endswith(tag) for one in edited.values()):
            return False
        for location, read in self._read_all((one.path, one.location) for one in edited.values()):
            row, number = edited[location].row, edited[location].document
            if read is None or read[1] is None or number is None:
                return False
            self.statuses[row] = read[0].status or UNSETTLED
            if not _holds(self.before.packed, number, read[1]):
                self.texts[number] = read[1]
        return True

    def take_moved(self) -> bool:
        """Let go of the files that went, and read those that came; False where that is in vain."""
        relisted, outcome, sighting = self.relisted, self.outcome, self.sighting
        names = {*relisted.removed, *relisted.listed}
        if not names and relisted.left_out is None:
            return True
        options, left_out = sighting.intake.options, outcome.left_out
        plain = all(printable_path(name) == name and "\\" not in name for name in names)
        if left_out is None or options.has_limits or not plain:
            return False
        if has_special(relisted.witness.contents) or not self.before.skips_by_their_paths():
            return False
        # Where such a folder was there before, `left_out` is None.
        if OwnFolders.beneath(relisted.root).leave_out([*relisted.listed], LoadReport())[1]:
            return False
        self.skips = Skips.of(outcome.skipped, left_out, sighting.only, options)
        names = {name for name in names if sighting.only(name)}
        return (
            self.skips is not None
            and self._let_go(names, left_out, self.skips)
            and self._take_new(names.intersection(relisted.listed), self.skips)
        )

    def _let_go(self, names: set[str], left_out: LeftOut, skips: Skips) -> bool:
        rows = {location: row for row, location in enumerate(self.before.locations)}
        holder_of = holders(name.removesuffix("/") for name in left_out.names)
        for name in names:
            row = rows.get(f"{self.relisted.root}/{name}")
            if row is not None:
                file = self.before.file(row)
                self.gone.add(row)
                if file.document is not None:
                    self.dropped.add(file.document)
                    continue
                if not self.before.is_only_skipped(row):
                    return False
            # What is left out at another place of the report has not been listed.
            is_told = skips.by_file.pop(name, None) is not None
            is_known = name in self.relisted.listed and row is None
            if not is_told and not is_known and holder_of(f"{name}/") is None:
                return False
        return True

    def _take_new(self, names: set[str], skips: Skips) -> bool:
        root, packed = self.relisted.root, self.before.packed
        ignore = IgnoreFiles(root, lambda _: OWN_IGNORE_FILES, lambda _path, _pattern: None)
        wanted: list[tuple[str, str]] = []
        for name in sorted(names):
            known = packed.index_of(name)
            is_taken = name in skips.by_file or (known is not None and known not in self.dropped)
            if is_taken or ignore.leaves_out(name):
                return False
            if self.own.wants(name):
                wanted.append((name, f"{root}/{name}"))
        skips.by_file.update((one.path, one.reason) for one in self.own.report.skipped)
        self.own.report.skipped.clear()
        if len(wanted) > _MOST_FILES:
            return False
        for _, read in self._read_all(wanted):
            if read is None:
                return False
            file, entry = read
            if entry is not None:
                self.new_texts[file.path] = entry
            skips.by_file.update((one.path, one.reason) for one in file.skipped)
            if not file.is_gone:
                self.new.append(file)
        return True

    def _read_all(
        self, files: Iterable[tuple[str, str]]
    ) -> Iterator[tuple[str, tuple[ReadFile, Entry | None] | None]]:
        """Yield where each file is, and what it comes to as `_read` has it; None from too much."""
        limit = self.own.options.max_file_bytes
        chars = 0
        for path, location in parsing_ahead([*files], self.own.is_new, max_file_bytes=limit):
            read = self._read(path, location)
            if read is not None and read[1] is not None:
                text = _text(read[1])
                chars += len(text.data if isinstance(text, Utf8Text) else text)
            yield location, read if chars <= _MOST_CHARS else None

    def _read(self, path: str, location: str) -> tuple[ReadFile, Entry | None] | None:
        """Read a file that comes to one text or is skipped; None where it is another one."""
        own = self.own
        entries = own.read(path, location)
        skipped = [*own.report.skipped]
        own.report.skipped.clear()
        if own.report.warnings:
            return None
        if entries:
            entry = entries[0]
            is_plain = len(entries) == 1 and entry.path == path and not skipped
            return (entry.file, entry) if is_plain and entry.file is not None else None
        if location in own.memory.gone[-1:]:
            return ReadFile(location, path, None, (), tuple(skipped)), None
        file = own.memory.empty[-1]
        return (file, None) if file.lasts and [one.path for one in skipped] == [path] else None

    def amended(self, packed_path: Path) -> Amended | None:
        """Write what there is now; None where that is nothing, or in no order of its own."""
        if not (self.texts or self.dropped or self.new_texts):
            rows = RowChanges(self.statuses, self.gone, self.new)
            return Amended(self._outcome_now(), rows, False)
        packed = self.before.packed
        comes = self._coming()
        if comes is None or len(packed) + len(self.new_texts) == len(self.dropped):
            return None
        places, found = _write(self.before, self.texts, self.dropped, comes, packed_path)
        documents = places if self.dropped or comes else None
        rows = RowChanges(self.statuses, self.gone, self.new, documents, found)
        return Amended(self._outcome_now(), rows, True)

    def _coming(self) -> dict[int, list[Entry]] | None:
        """Return before which documents others come, in the order of the paths of their files."""
        comes: dict[int, list[Entry]] = {}
        if not self.new_texts:
            return comes
        files = self.before.files_in_order()
        if files is None:
            return None
        paths = [path for path, _ in files]
        ends = [*(number for _, number in files), len(self.before.packed)]
        for name, entry in sorted(self.new_texts.items()):
            comes.setdefault(ends[bisect_left(paths, name)], []).append(entry)
        return comes

    def _outcome_now(self) -> Outcome:
        outcome, relisted, sighting = self.outcome, self.relisted, self.sighting
        if self.skips is None or relisted.left_out is None:
            return replace(outcome, witness=relisted.witness)
        by_git = skips_by_git(relisted.left_out, sighting.only, sighting.intake.options)
        touched = relisted.removed.union(relisted.listed)
        start = len(relisted.root) + 1
        gone = [one for one in relisted.witness.gone if one[start:] not in touched]
        return replace(
            outcome,
            witness=replace(relisted.witness, gone=[*gone, *self.own.memory.gone]),
            skipped=self.skips.all_of(by_git),
            left_out=relisted.left_out,
        )


def _text(entry: Entry) -> str | Utf8Text:
    """Return a text to be written: of bytes that are UTF-8 none is made, which may be large."""
    content = entry.content
    return content if isinstance(content, Utf8Text) else str(content)


def _holds(packed: PackedCorpus, number: int, entry: Entry) -> bool:
    if isinstance(entry.content, StoredText) or packed.encoding(number) != entry.encoding:
        return False
    text = _text(entry)
    data = text.data if isinstance(text, Utf8Text) else encode(text)
    return packed.content_bytes(number) == data


def _write(
    before: KeptCorpus,
    texts: Mapping[int, Entry],
    dropped: Collection[int],
    comes: Mapping[int, Sequence[Entry]],
    packed_path: Path,
) -> tuple[list[int], dict[str, int]]:
    """Write the documents that there are now; return what the numbers of the old and new are."""
    places: list[int] = []
    found: dict[str, int] = {}
    packed = before.packed
    shape = packed.shape
    with before.path.open("rb", 0) as file, PackedWriter(packed_path, shape=shape) as writer:
        done = written = 0
        for number in sorted({*texts, *dropped, *comes, len(packed)}):
            writer.copy_all(packed, range(done, number), file=file)
            places.extend(range(written, written + number - done))
            written += number - done
            for entry in comes.get(number, ()):
                writer.add(entry.path, _text(entry), encoding=entry.encoding)
                found[entry.path] = written
                written += 1
            if number in texts:
                entry = texts[number]
                writer.add(packed.path(number), _text(entry), encoding=entry.encoding)
                places.append(written)
                written += 1
                done = number + 1
            elif number in dropped:
                places.append(-1)
                done = number + 1
            else:
                done = number
    return places, found

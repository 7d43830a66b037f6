"""The face of the loaders: whatever a person calls a source becomes a corpus."""

from __future__ import annotations

import os
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Unpack

from rlm_rag.corpus import Corpus
from rlm_rag.errors import EmptyCorpusError, UsageError
from rlm_rag.globs import without_part
from rlm_rag.loaders.addresses import lies_here
from rlm_rag.loaders.intake import Intake
from rlm_rag.loaders.keeping import Keeping, Reading, load_kept
from rlm_rag.loaders.memory import FileMemory
from rlm_rag.loaders.opened import OpenedSource
from rlm_rag.loaders.opening import MAGIC, expand, open_source, open_text
from rlm_rag.loaders.options import Entry, LoadArguments, LoadOptions, LoadReport, Progress
from rlm_rag.loaders.paths import numbered_path
from rlm_rag.loaders.stdin import STDIN

NO_DOCUMENT = "no document in it"
"""The warning of one of several sources."""
NO_TABLE = "no table (CSV, JSON Lines, Parquet), so --column takes nothing"
"""The warning where columns are chosen; tables within a folder or an archive stay as they are."""

Source = str | os.PathLike[str] | Mapping[str, str] | Iterable[object]

# A name that a source has of itself may hold anything but a slash; an origin has it before a path.
_NAMED_SOURCE = re.compile(r"([^/]+(?==/)|[\w.+-]+)=(.+)")


def load_corpus(
    source: Source | None = None,
    *,
    text: str | None = None,
    keeping: Keeping | None = None,
    **given: Unpack[LoadArguments],
) -> Corpus:
    """Load one source, or the `text` itself.

    `source` is a folder, a file (a `.jsonl` of documents, an archive or a mailbox is taken
    apart), `-` for standard input, `FOLDER@REVISION`, an address of git or the web, a glob, a
    list of `{"path", "content"}`, of `(path, content)`, of `Document` or of texts, a
    mapping of paths to texts, or a text: a str that has a newline, or more than 4096
    characters, and names no file. The options are those of `LoadOptions`. `keeping` says where
    the corpus of what lies in files is kept, so that they are not read again while unchanged;
    by default nowhere.

    Raises:
        SourceError: the source is missing, unreadable, or of no known kind.
        EmptyCorpusError: it holds no readable document.
        UsageError: a glob or an option cannot be used, or `text` is none.
        PackedCorpusError: the temporary folder cannot be written, or is full.
        NotKept: the corpus cannot be kept; load it without.
    """
    options = LoadOptions.of(given)
    if source is None and text is None:
        raise UsageError("A source is missing.", hint="Give a source, or a text as text=.")
    if source is not None and text is not None:
        raise UsageError("Give a source or text=, and not both.")
    if not isinstance(text, str | None):
        hint = "Decode bytes first, or give the path of a file, whose encoding is found out."
        raise UsageError(f"text= must be a str, not {type(text).__name__}.", hint=hint)
    report, memory = LoadReport(), FileMemory()
    intake = Intake(options, report, memory)
    opened = open_source(source, intake) if text is None else open_text(text, intake)
    _tell_of_columns([(opened.name, opened)], options, report)
    return _pack(opened, options, report, memory, _origin([opened], options), keeping)


@dataclass(frozen=True, slots=True)
class Part:
    """Some of the documents of a source, those that it `owns` by their paths; it may be empty.

    `name` is what follows the origin of the whole where the part is kept.
    """

    name: str
    owns: Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Places:
    """A source that is folders and files of this machine, all read by paths and in their order.

    `names` are the first parts of the paths of each, none where it is one without a name.
    """

    origin: str
    places: tuple[str, ...]
    names: tuple[str, ...]


def find_places(sources: Sequence[str], **given: Unpack[LoadArguments]) -> Places | None:
    """Return sources that can be loaded in parts, elsewhere; None where they cannot.

    Raises:
        SourceError, UsageError: as `load_corpus`.
    """
    options = LoadOptions.of(given)
    if options.has_limits or not sources or not all(map(_may_lie_here, sources)):
        return None
    named = _open(sources, options, FileMemory())
    names = tuple(one.name for one in named if one.name is not None)
    origin = _origin([one.opened for one in named], options, names)
    places = tuple(one.opened.place for one in named if one.opened.place is not None)
    if origin is None or len(places) < len(named):
        return None
    return Places(origin, places, names)


def _may_lie_here(source: str) -> bool:
    """Tell whether a source may be a folder, a file or a glob, before it is opened."""
    named = split_name(source)[1]
    place = expand(named)
    is_glob = named.isprintable() and not MAGIC.isdisjoint(named) and lies_here(named)
    return place.is_dir() or place.is_file() or is_glob


def load_sources(
    sources: Sequence[str],
    *,
    keeping: Keeping | None = None,
    part: Part | None = None,
    **given: Unpack[LoadArguments],
) -> Corpus:
    """Load what a command line names: one source as `load_corpus` does, several under prefixes.

    Each of several has its last component as the first part of its paths (a single file is
    that component alone), `repo~2` or `file~2.py` on a collision; `NAME=SOURCE` chooses
    another. Globs see the paths without it. Only the documents of a `part` are read, where it is
    given.

    Raises:
        SourceError, EmptyCorpusError, UsageError, PackedCorpusError, NotKept: as `load_corpus`.
    """
    options = LoadOptions.of(given)
    if not sources:
        raise UsageError("No source was given.")
    memory = FileMemory()
    named = _open(sources, options, memory, part)
    opened = [one.opened for one in named]
    if len(named) == 1 and named[0].name is None:
        report = named[0].report
        _tell_of_columns([(opened[0].name, opened[0])], options, report)
        return _pack(opened[0], options, report, memory, _origin(opened, options), keeping, part)
    names = [one.name or "" for one in named]
    merged = LoadReport()
    _tell_of_columns(list(zip(names, opened, strict=True)), options, merged)
    entries = _prefixed(named, merged, is_whole=part is None)
    label = "any of: " + ", ".join(one.label for one in opened)
    all_seen = all(one.sightings for one in opened)
    sightings = tuple(seen for one in opened for seen in one.sightings) if all_seen else ()
    for seen in sightings:
        seen.is_prefixed = True
    joined = OpenedSource("documents", entries, "sources", label, sightings=sightings)
    origin = _origin(opened, options, names)
    return _pack(joined, options, merged, memory, origin, keeping, part)


@dataclass(frozen=True, slots=True)
class _Named:
    """A source that was opened; `name` is None for one alone that was given none."""

    name: str | None
    opened: OpenedSource
    report: LoadReport


def _open(
    sources: Sequence[str], options: LoadOptions, memory: FileMemory, part: Part | None = None
) -> list[_Named]:
    chosen = [split_name(source) for source in sources]
    intakes = [Intake(options, LoadReport(), memory) for _ in chosen]
    opened = [
        open_source(source, intake) for (_, source), intake in zip(chosen, intakes, strict=True)
    ]
    names: Sequence[str | None] = [None]
    if len(opened) > 1 or chosen[0][0] is not None:
        wanted = zip(chosen, opened, strict=True)
        names = _unique([(name or one.name, one.is_document) for (name, _), one in wanted])
    named = list(map(_Named, names, opened, (intake.report for intake in intakes)))
    if part is not None:
        for one, intake in zip(named, intakes, strict=True):
            intake.owns, intake.is_whole = partial(_owns, part, one), False
    return named


def _tell_of_columns(
    named: Sequence[tuple[str, OpenedSource]], options: LoadOptions, report: LoadReport
) -> None:
    """Warn of each source where columns are chosen and none of them is a table."""
    if options.chooses_columns and not any(one.heeds_columns for _, one in named):
        for name, _ in named:
            report.warn(name, NO_TABLE)


def _owns(part: Part, named: _Named, path: str) -> bool:
    return part.owns(path if named.name is None else _path_in(named.name, path, named.opened))


def check_source(source: str) -> None:
    """Look whether a source of this machine is there; addresses are left to be fetched later.

    Raises:
        SourceError: it is missing, unreadable, or of no known kind.
    """
    if source != STDIN and lies_here(source):
        open_source(source, Intake(LoadOptions(), LoadReport(), FileMemory()))


def _pack(
    opened: OpenedSource,
    options: LoadOptions,
    report: LoadReport,
    memory: FileMemory,
    origin: str | None,
    keeping: Keeping | None,
    part: Part | None = None,
) -> Corpus:
    entries = _watched(opened.entries, options.on_progress)
    if part is not None and origin is not None:
        origin += part.name
    if keeping is not None and origin is not None:
        reading = Reading(entries, opened.shape, report, memory, opened.sightings)
        corpus = load_kept(reading, origin, keeping)
    else:
        corpus = Corpus.from_documents(
            entries,
            shape=opened.shape,
            skipped=report.skipped,
            warnings=report.warnings,
            origin=origin,
        )
    if len(corpus) == 0 and part is None:
        corpus.close()
        raise _empty(opened.label, options, report)
    return corpus


def _watched(entries: Iterator[Entry], on_progress: Progress | None) -> Iterator[Entry]:
    if on_progress is None:
        yield from entries
        return
    size_bytes = 0
    for number, entry in enumerate(entries, start=1):
        size_bytes += entry.size_bytes
        on_progress(number, size_bytes)
        yield entry


def _origin(
    opened: Sequence[OpenedSource], options: LoadOptions, names: Sequence[str] = ()
) -> str | None:
    """Return what is loaded as a command line would say it; None where it cannot be again."""
    words: list[str] = []
    for number, one in enumerate(opened):
        if one.origin is None:
            return None
        words.append(f"{names[number]}={one.origin}" if names else one.origin)
    return shlex.join([*words, *options.words()])


def _empty(label: str, options: LoadOptions, report: LoadReport) -> EmptyCorpusError:
    hint = "Give a source that holds text."
    if options.include or options.exclude:
        hint = "Check the include and exclude globs."
    if not report.skipped:
        return EmptyCorpusError(f"There is no document in {label}.", hint=hint)
    counts = Counter(skipped.reason for skipped in report.skipped).most_common(8)
    for limit in ("max_file_bytes", "max_total_bytes", "max_files"):
        if any(limit in reason for reason, _ in counts):
            hint = f"Raise the limit: --{limit.replace('_', '-')}, or {limit}=."
            break
    reasons = "; ".join(f"{count} {reason}" for reason, count in counts)
    return EmptyCorpusError(f"There is no readable text in {label}. Skipped: {reasons}.", hint=hint)


def split_name(source: str) -> tuple[str | None, str]:
    """Return NAME, None where there is none, and SOURCE of a source as it is given."""
    found = _NAMED_SOURCE.fullmatch(source)
    if found is None or os.path.lexists(source):
        return None, source
    return found[1], found[2]


def _unique(wanted: Sequence[tuple[str, bool]]) -> list[str]:
    """Number the names that came before; `wanted` says of each whether it is a file's."""
    all_wanted = {name for name, _ in wanted}
    names: list[str] = []
    for name, is_file in wanted:
        unique, number = name, 2
        while unique in names or (number > 2 and unique in all_wanted):
            unique = numbered_path(name, number) if is_file else f"{name}~{number}"
            number += 1
        names.append(unique)
    return names


def _prefixed(parts: list[_Named], merged: LoadReport, *, is_whole: bool) -> Iterator[Entry]:
    for one in parts:
        name, opened, taken = one.name or "", one.opened, 0
        for entry in opened.entries:
            path = _path_in(name, entry.path, opened)
            yield entry._replace(path=path)
            taken += 1
        merged.skipped += [
            replace(skipped, path=_path_in(name, skipped.path, opened))
            for skipped in one.report.skipped
        ]
        merged.warnings += [_warning_in(name, warning, opened) for warning in one.report.warnings]
        if taken == 0 and is_whole:
            merged.warn(name, NO_DOCUMENT)


def _warning_in(name: str, warning: str, opened: OpenedSource) -> str:
    if opened.is_document and warning.startswith(opened.name):
        return name + warning.removeprefix(opened.name)
    return f"{name}/{warning}"


def _path_in(name: str, path: str, opened: OpenedSource) -> str:
    if not opened.is_document:
        return f"{name}/{path}"
    # A document's parts keep theirs.
    return name + path.removeprefix(without_part(path)) if opened.shape == "documents" else name

"""The face of the loaders: whatever a person calls a source becomes a corpus."""

from __future__ import annotations

import os
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from rlm_rag.corpus import Corpus
from rlm_rag.errors import EmptyCorpusError, UsageError
from rlm_rag.loaders.opening import OpenedSource, open_source, open_text
from rlm_rag.loaders.options import DEFAULT_MAX_FILE_BYTES, Entry, LoadOptions, LoadReport
from rlm_rag.loaders.tree import numbered_path

Source = str | os.PathLike[str] | Mapping[str, str] | Iterable[object]

_NAMED_SOURCE = re.compile(r"([\w.+-]+)=(.+)")


def load_corpus(
    source: Source | None = None,
    *,
    text: str | None = None,
    include: str | Sequence[str] = (),
    exclude: str | Sequence[str] = (),
    hidden: bool = False,
    ignore: bool = True,
    max_file_bytes: int | None = None,
) -> Corpus:
    """Load one source, or the `text` itself.

    `source` is a folder, a file (a `.jsonl` of documents is taken apart), `-` for standard
    input, a list of `{"path", "content"}`, of `(path, content)`, of `Document` or of texts, a
    mapping of paths to texts, or a text: a str that has a newline, or more than 4096
    characters, and names no file. The options are those of `LoadOptions`; `max_file_bytes`
    defaults to `DEFAULT_MAX_FILE_BYTES`.

    Raises:
        SourceError: the source is missing, unreadable, or of no known kind.
        EmptyCorpusError: it holds no readable document.
        UsageError: a glob or an option cannot be used.
        PackedCorpusError: the temporary folder cannot be written, or is full.
    """
    options = _options(include, exclude, hidden, ignore, max_file_bytes)
    if (source is None) == (text is None):
        raise UsageError("Give a source or text=, and not both.")
    report = LoadReport()
    opened = open_source(source, options, report) if text is None else open_text(text)
    return _pack(opened, options, report, _origin([opened], options))


def load_sources(
    sources: Sequence[str],
    *,
    include: str | Sequence[str] = (),
    exclude: str | Sequence[str] = (),
    hidden: bool = False,
    ignore: bool = True,
    max_file_bytes: int | None = None,
) -> Corpus:
    """Load what a command line names: one source as `load_corpus` does, several under prefixes.

    Each of several has its last component as the first part of its paths (a single file is
    that component alone), `repo~2` or `file~2.py` on a collision; `NAME=SOURCE` chooses
    another. Globs see the paths without it.

    Raises:
        SourceError, EmptyCorpusError, UsageError, PackedCorpusError: as `load_corpus`.
    """
    options = _options(include, exclude, hidden, ignore, max_file_bytes)
    if not sources:
        raise UsageError("No source was given.")
    chosen = [_split_name(source) for source in sources]
    reports = [LoadReport() for _ in chosen]
    opened = [
        open_source(source, options, report)
        for (_, source), report in zip(chosen, reports, strict=True)
    ]
    if len(opened) == 1 and chosen[0][0] is None:
        return _pack(opened[0], options, reports[0], _origin(opened, options))
    names = _unique(
        [(name or one.name, one.is_document) for (name, _), one in zip(chosen, opened, strict=True)]
    )
    merged = LoadReport()
    entries = _prefixed(list(zip(names, opened, reports, strict=True)), merged)
    label = "any of: " + ", ".join(one.label for one in opened)
    joined = OpenedSource("documents", entries, "sources", label)
    return _pack(joined, options, merged, _origin(opened, options, names))


def _options(
    include: str | Sequence[str],
    exclude: str | Sequence[str],
    hidden: bool,
    ignore: bool,
    max_file_bytes: int | None,
) -> LoadOptions:
    limit = DEFAULT_MAX_FILE_BYTES if max_file_bytes is None else max_file_bytes
    if limit < 1:
        raise UsageError(f"max_file_bytes must be at least 1, not {limit}.")
    included = (include,) if isinstance(include, str) else tuple(include)
    excluded = (exclude,) if isinstance(exclude, str) else tuple(exclude)
    options = LoadOptions(included, excluded, hidden, ignore, limit)
    options.selector()
    return options


def _pack(
    opened: OpenedSource, options: LoadOptions, report: LoadReport, origin: str | None
) -> Corpus:
    corpus = Corpus.from_documents(
        opened.entries,
        shape=opened.shape,
        skipped=report.skipped,
        warnings=report.warnings,
        origin=origin,
    )
    if len(corpus) == 0:
        corpus.close()
        raise _empty(opened.label, options, report)
    return corpus


def _origin(
    opened: Sequence[OpenedSource], options: LoadOptions, names: Sequence[str] = ()
) -> str | None:
    """Return what is loaded as a command line would say it; None where it is no file's."""
    words: list[str] = []
    for number, one in enumerate(opened):
        if one.location is None:
            return None
        real = os.path.realpath(one.location)
        words.append(f"{names[number]}={real}" if names else real)
    words += [word for glob in options.include for word in ("--include", glob)]
    words += [word for glob in options.exclude for word in ("--exclude", glob)]
    words += ["--hidden"] * options.hidden + ["--no-ignore"] * (not options.ignore)
    if options.max_file_bytes != DEFAULT_MAX_FILE_BYTES:
        words += ["--max-file-bytes", str(options.max_file_bytes)]
    return shlex.join(words)


def _empty(label: str, options: LoadOptions, report: LoadReport) -> EmptyCorpusError:
    hint = "Give a source that holds text."
    if options.include or options.exclude:
        hint = "Check the include and exclude globs."
    if not report.skipped:
        return EmptyCorpusError(f"There is no document in {label}.", hint=hint)
    counts = Counter(skipped.reason for skipped in report.skipped).most_common(8)
    reasons = "; ".join(f"{count} {reason}" for reason, count in counts)
    return EmptyCorpusError(f"There is no readable text in {label}. Skipped: {reasons}.", hint=hint)


def _split_name(source: str) -> tuple[str | None, str]:
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


def _prefixed(
    parts: list[tuple[str, OpenedSource, LoadReport]], merged: LoadReport
) -> Iterator[Entry]:
    for name, opened, report in parts:
        taken = 0
        for entry in opened.entries:
            path = name if opened.is_document else f"{name}/{entry.path}"
            yield entry._replace(path=path)
            taken += 1
        merged.skipped += [replace(one, path=f"{name}/{one.path}") for one in report.skipped]
        merged.warnings += [f"{name}/{warning}" for warning in report.warnings]
        if taken == 0:
            merged.warn(name, "no document in it")

"""What one source is: found, told apart from the others, and ready to be read."""

from __future__ import annotations

import difflib
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO

from rlm_rag.errors import SourceError
from rlm_rag.globs import compile_glob
from rlm_rag.loaders.addresses import without_credentials
from rlm_rag.loaders.archives import read_archive, read_compressed
from rlm_rag.loaders.documents import NOT_PARSED, require_parser
from rlm_rag.loaders.files import CHECK_FILE_HINT, unreadable
from rlm_rag.loaders.git import printable_path
from rlm_rag.loaders.intake import Intake
from rlm_rag.loaders.mailbox import SUFFIXES as MAILBOX_SUFFIXES
from rlm_rag.loaders.mailbox import read_mailbox
from rlm_rag.loaders.opened import OpenedSource
from rlm_rag.loaders.options import NOT_SELECTED, Entry
from rlm_rag.loaders.packed_names import is_archive, is_compressed, unpacked_name
from rlm_rag.loaders.reading import BINARY_REASON
from rlm_rag.loaders.records import holds_documents, read_documents
from rlm_rag.loaders.remote import open_elsewhere, open_revision
from rlm_rag.loaders.revisions import find_revision
from rlm_rag.loaders.secrets import SECRET_REASON
from rlm_rag.loaders.stdin import STDIN, read_named_files, read_stdin
from rlm_rag.loaders.tables import is_table, read_table
from rlm_rag.loaders.tree import read_tree
from rlm_rag.loaders.values import read_text, read_values
from rlm_rag.loaders.witness import Sighting

_LONGEST_PATH_CHARS = 4096
_TEXT_HINT = f"A text itself: pipe it in and give {STDIN} as the source, or in Python use text=."
_REVISION_HINT = "Give a tag, a branch, a commit, or a range such as v1.0..v1.1."
_PATH_HINT = " A path within it goes into --include."
WORKING_FOLDER_GONE = "The working folder is gone: it was deleted, or moved away."
WORKING_FOLDER_HINT = "Go to a folder that is there (cd), or give whole paths."
MAGIC = frozenset("*?[")
"""What makes a glob of a path."""
_SPECIAL_FILES = (stat.S_ISFIFO, stat.S_ISSOCK, stat.S_ISCHR, stat.S_ISBLK)


def open_source(source: object, intake: Intake) -> OpenedSource:
    """Find out what `source` is; its documents that the globs leave out are not among `entries`.

    Raises:
        SourceError: it is missing, unreadable, or of no known kind.
        EmptyCorpusError: it is standard input, and empty.
    """
    if isinstance(source, str) and source == STDIN:
        return _open_stdin(intake)
    if isinstance(source, (str, os.PathLike)):
        return _open_named(source, intake)
    shape, entries = read_values(source)
    kind = type(source).__name__
    return OpenedSource(shape, _selected(entries, intake), kind, f"the {kind}")


def open_text(text: str, intake: Intake) -> OpenedSource:
    """Take `text` as the source itself.

    Raises:
        SourceError: it is larger than the options allow.
    """
    shape, entries = read_text(text)
    return OpenedSource(
        shape, _whole(entries, intake, "the text"), "text", "the text", is_document=True
    )


def _whole(entries: Iterator[Entry], intake: Intake, label: str) -> Iterator[Entry]:
    """Return what is all of a source, or fail where it passes a limit of the options."""
    taken = [*entries]
    if not intake.has_room_for(label, taken):
        reason = intake.report.skipped[-1].reason
        raise SourceError(f"Cannot load {label}: {reason}.", hint=_hint(reason))
    return iter(taken)


def _selected(entries: Iterator[Entry], intake: Intake) -> Iterator[Entry]:
    for entry in entries:
        yield from intake.keep(entry)


def _open_stdin(intake: Intake) -> OpenedSource:
    if intake.options.null_paths:
        return OpenedSource("documents", read_named_files(intake), "files", "the files named")
    shape, entries = read_stdin(intake)
    entries = _whole(entries, intake, "standard input")
    return OpenedSource(shape, entries, "stdin", "standard input", is_document=True)


def _open_named(source: str | os.PathLike[str], intake: Intake) -> OpenedSource:
    named = os.fspath(source)
    if not isinstance(named, str):
        raise SourceError("A path of bytes cannot be loaded.", hint="Use os.fsdecode on it.")
    if not named:
        raise SourceError("The source is an empty string.", hint="Give a path; `.` is this folder.")
    location = expand(named)
    try:
        mode = location.stat().st_mode
    except (OSError, ValueError) as error:
        found = _open_otherwise(source, intake) if isinstance(source, str) else None
        if found is None:
            _check_start(location)
            raise _missing(named, location, error) from error
        return found
    _check_start(location)
    if stat.S_ISDIR(mode):
        return _open_folder(location, intake)
    if any(is_kind(mode) for is_kind in _SPECIAL_FILES):
        raise SourceError(
            f"Not a regular file: {location}.", hint=f"Pipe it in and give {STDIN} as the source."
        )
    return _open_file(location, intake)


def _check_start(location: Path) -> None:
    """Raise if a relative path has no folder to start from.

    Raises:
        SourceError: it has none.
    """
    if location.is_absolute():
        return
    try:
        Path.cwd()
    except FileNotFoundError as error:
        raise SourceError(WORKING_FOLDER_GONE, hint=WORKING_FOLDER_HINT) from error


def _open_otherwise(source: str, intake: Intake) -> OpenedSource | None:
    """Open a text that is no path: as an address, a revision, a glob, or as itself."""
    if "\n" in source or len(source) > _LONGEST_PATH_CHARS:
        return open_text(source, intake)
    if "\0" in source:
        return None
    found = None if _is_revision_path(source) else open_elsewhere(source, intake)
    if isinstance(found, str):
        return _open_named(found, intake)
    if found is None:
        _check_start(expand(source))
    return found or _open_at_revision(source, intake) or _open_glob(source, intake)


def _is_revision_path(source: str) -> bool:
    """Tell `FOLDER@REVISION:PATH`, which is git's and no source, from `user@host:path`."""
    named, _, rest = source.partition("@")
    revision, colon, _ = rest.partition(":")
    if not (named and revision and colon) or "://" in source:
        return False
    folder = expand(named)
    return folder.is_dir() and find_revision(str(folder), revision) is not None


def _open_at_revision(source: str, intake: Intake) -> OpenedSource | None:
    """Open `FOLDER@REVISION` or `FOLDER@FROM..TO`; the folder is this one where there is none."""
    places = [place for place, character in enumerate(source) if character == "@"]
    for place in reversed(places):
        folder = expand(source[:place] or ".")
        if not folder.is_dir():
            continue
        revision = find_revision(str(folder), source[place + 1 :])
        if revision is None:
            raise SourceError(
                f"The repository {folder} has no revision {source[place + 1 :]!r}.",
                hint=_REVISION_HINT + (_PATH_HINT if ":" in source[place:] else ""),
            )
        place_name = os.path.realpath(folder)
        return open_revision(revision, intake, name=_name_of(folder), place=place_name)
    if ".." in source and (revision := find_revision(".", source)) is not None:
        here = Path(os.path.realpath("."))
        return open_revision(revision, intake, name=here.name, place=str(here))
    return None


def _open_glob(source: str, intake: Intake) -> OpenedSource | None:
    """Open the files that a glob names: those of the folder before its first star or bracket."""
    parts = source.split("/")
    plain = next(
        (place for place, part in enumerate(parts) if not MAGIC.isdisjoint(part)), len(parts)
    )
    folder = expand("/".join(parts[:plain]) or ("/" if source.startswith("/") else "."))
    if plain == len(parts) or not folder.is_dir():
        return None
    pattern = "/".join(parts[plain:])
    sighting = Sighting(intake, only=compile_glob(f"/{pattern}"))
    entries = read_tree(str(folder), intake, sighting=sighting)
    place, name, seen = os.path.realpath(folder), _name_of(folder), (sighting,)
    origin = f"{place}/{pattern}"
    return OpenedSource(
        "documents", entries, name, source, origin=origin, sightings=seen, place=place
    )


def _open_folder(location: Path, intake: Intake) -> OpenedSource:
    sighting = Sighting(intake)
    entries = read_tree(str(location), intake, sighting=sighting)
    label, origin = f"the folder {location}", os.path.realpath(location)
    name, seen = _name_of(location), (sighting,)
    return OpenedSource(
        "documents", entries, name, label, origin=origin, sightings=seen, place=origin
    )


def _open_file(location: Path, intake: Intake) -> OpenedSource:
    name, label, origin = _name_of(location), f"the file {location}", os.path.realpath(location)
    limit = intake.options.max_file_bytes
    # What it is goes by its name, which is another one where a link led to it.
    place = origin if Path(origin).name == name else None
    if is_table(name, intake):
        entries = read_table(location, name, intake)
        return OpenedSource("documents", entries, name, label, origin=origin, heeds_columns=True)
    if name.lower().endswith(MAILBOX_SUFFIXES):
        entries = read_mailbox(location, name, intake)
        return OpenedSource("documents", entries, name, label, origin=origin, place=place)
    if holds_documents(location, max_file_bytes=limit):
        entries = _selected(read_documents(location, max_file_bytes=limit), intake)
        return OpenedSource("documents", entries, name, label, origin=origin)
    if is_archive(name) or is_compressed(name):
        # That it cannot be opened is told at once, though it may never be read.
        _open_to_read(location).close()
    if is_archive(name):
        label, entries = f"the archive {location}", _unpacked(read_archive, location, name, intake)
        return OpenedSource("documents", entries, name, label, origin=origin, place=place)
    if is_compressed(name):
        require_parser(unpacked_name(name))
        entries = _unpacked(read_compressed, location, name, intake)
        name = unpacked_name(name)
    else:
        require_parser(name)
        entries = _read_single(location, name, intake)
    return OpenedSource(
        "documents", entries, name, label, is_document=True, origin=origin, place=place
    )


def _unpacked(
    read: Callable[[str, IO[bytes], Intake], Iterator[Entry]],
    location: Path,
    name: str,
    intake: Intake,
) -> Iterator[Entry]:
    yield from read(name, _open_to_read(location), intake)


def _open_to_read(location: Path) -> IO[bytes]:
    try:
        return location.open("rb")
    except OSError as error:
        raise unreadable(location, error) from error


def _read_single(location: Path, name: str, intake: Intake) -> Iterator[Entry]:
    if not intake.owns(name):
        return
    if not intake.wants(name):
        if intake.report.skipped[-1].reason == NOT_SELECTED:
            return
        entries: list[Entry] = []
    else:
        entries = intake.read(name, os.path.realpath(location))
    if not entries:
        reason = intake.report.skipped[-1].reason
        raise SourceError(f"Cannot load {location}: {reason}.", hint=_hint(reason))
    yield from entries


def _hint(reason: str) -> str:
    if reason == BINARY_REASON:
        return "Only text can be loaded; convert it first."
    if reason.startswith(NOT_PARSED):
        return "Save it anew, or in another format, with the program that it comes from."
    if reason == SECRET_REASON:
        return "Copy it to another name if a model may see its text."
    if "max_file_bytes" in reason:
        return "Raise the limit (--max-file-bytes, max_file_bytes=), or split the file."
    if "max_total_bytes" in reason:
        return "Raise the limit (--max-total-bytes, max_total_bytes=), or split the file."
    return CHECK_FILE_HINT


def _name_of(location: Path) -> str:
    return printable_path(
        location.name if location.name not in ("", "..") else _real_name(location)
    )


def _missing(named: str, location: Path, error: OSError | ValueError) -> SourceError:
    shown = repr(named if len(named) <= 200 else named[:200] + "...")
    if "://" in named:
        return SourceError(
            f"Cannot load {without_credentials(shown)}: no loader is known for its scheme.",
            hint="http, https, ssh, git and file are; others by packages that bring a loader.",
        )
    absent = isinstance(error, (FileNotFoundError, NotADirectoryError, ValueError))
    if not absent and isinstance(error, OSError):
        return SourceError(
            f"Cannot open {shown}: {error.strerror}.", hint="Check the path and its permissions."
        )
    if location.is_symlink():
        return SourceError(
            f"{shown} is a link to what is not there: {str(location.readlink())!r}.",
            hint="Give the place that is meant, or set the link anew.",
        )
    close: list[str] = []
    # Where the folder cannot be listed there is nothing to suggest.
    with suppress(OSError, ValueError):
        siblings = [sibling.name for sibling in location.parent.iterdir()]
        close = difflib.get_close_matches(location.name, siblings, n=3)
    hint = f"Did you mean {' or '.join(close)}?" if close else _TEXT_HINT
    return SourceError(f"No such file or folder: {shown}.", hint=hint)


def expand(named: str) -> Path:
    """Return the place of this machine that a name stands for, whether there is one or not."""
    # A user that is not known leaves the path as it is, and it is then missing.
    with suppress(RuntimeError):
        return Path(named).expanduser()
    return Path(named)


def _real_name(location: Path) -> str:
    return location.resolve().name or "root"

"""What a caller may ask of a load, and what a load has to tell besides the documents."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

from rlm_rag.corpus import Skipped
from rlm_rag.errors import UsageError
from rlm_rag.globs import compile_globs
from rlm_rag.packing import StoredText, Utf8Text

if TYPE_CHECKING:
    from rlm_rag.loaders.memory import ReadFile

DEFAULT_MAX_FILE_BYTES = 64 * 1024 * 1024
"""More than any source file that people wrote; a corpus larger than that is many files."""

NOT_SELECTED = "left out by include or exclude"
# Why text that somebody may miss was left out; for the rest a look at the list is enough.
TELLING_REASONS = ("not readable", "larger than", "beyond the limit", "not parsed")


class Entry(NamedTuple):
    """A document on its way into the packed file; `file` is what it was read from, if a file."""

    path: str
    content: str | Utf8Text | StoredText
    encoding: str | None = None
    file: ReadFile | None = None

    @property
    def size_bytes(self) -> int:
        """The length of the content in UTF-8."""
        if isinstance(self.content, str):
            return len(self.content.encode("utf-8", "surrogatepass"))
        if isinstance(self.content, Utf8Text):
            return len(self.content.data)
        return self.content.corpus.size(self.content.number)


Progress = Callable[[int, int], object]
"""Called now and then during a load with how many documents and bytes of text there are."""


class LoadArguments(TypedDict, total=False):
    """What `load` may be told of how a source is read; `LoadOptions` says what each means."""

    include: str | Sequence[str]
    exclude: str | Sequence[str]
    hidden: bool
    ignore: bool
    follow_symlinks: bool
    max_file_bytes: int | None
    max_files: int | None
    max_total_bytes: int | None
    columns: str | Sequence[str]
    path_column: str | None
    null_paths: bool
    on_progress: Progress | None


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """How a source is read.

    `include` and `exclude` are gitignore globs on the documents' paths; without `include`
    everything is in. `hidden` takes dot files outside a git work tree too (inside one, git
    decides). `ignore` false takes what ignore files and habit (node_modules) leave out.
    `follow_symlinks` reads what links within the source lead to, never what lies outside.
    Of the files of each source at most `max_files` are taken, of at most `max_total_bytes` of
    text together: those that come first (None: no limit). `columns` and `path_column` choose
    what of a table's records is text and what names them. `null_paths` takes standard input for
    the names of files, each ended by NUL.
    """

    include: Sequence[str] = ()
    exclude: Sequence[str] = ()
    hidden: bool = False
    ignore: bool = True
    follow_symlinks: bool = False
    max_file_bytes: int = DEFAULT_MAX_FILE_BYTES
    max_files: int | None = None
    max_total_bytes: int | None = None
    columns: Sequence[str] = ()
    path_column: str | None = None
    null_paths: bool = False
    on_progress: Progress | None = None

    @classmethod
    def of(cls, given: LoadArguments) -> LoadOptions:
        """Check what a caller gave.

        Raises:
            UsageError: an option is not known, a limit is below 1, or a glob is none.
        """
        known = {item.name for item in fields(cls)}
        unknown = sorted(given.keys() - known)
        if unknown:
            raise UsageError(f"There is no option {unknown[0]!r}.", hint="See help(rlm_rag.load).")
        values: dict[str, Any] = {name: one for name, one in given.items() if one is not None}
        for name in ("include", "exclude", "columns"):
            one = values.get(name, ())
            values[name] = (one,) if isinstance(one, str) else tuple(one)
        for name in ("max_file_bytes", "max_files", "max_total_bytes"):
            if values.get(name, 1) < 1:
                raise UsageError(f"{name} must be at least 1, not {values[name]}.")
        options = cls(**values)
        options.selector()
        return options

    @property
    def has_limits(self) -> bool:
        """Whether what is taken hangs on what came before it."""
        return self.max_files is not None or self.max_total_bytes is not None

    @property
    def chooses_columns(self) -> bool:
        """Whether a table's records are to be taken apart, by columns of theirs."""
        return bool(self.columns) or self.path_column is not None

    def words(self) -> list[str]:
        """Return what differs from the defaults as a command line would say it."""
        words = [word for glob in self.include for word in ("--include", glob)]
        words += [word for glob in self.exclude for word in ("--exclude", glob)]
        words += ["--hidden"] * self.hidden + ["--no-ignore"] * (not self.ignore)
        words += ["--follow-symlinks"] * self.follow_symlinks
        if self.max_file_bytes != DEFAULT_MAX_FILE_BYTES:
            words += ["--max-file-bytes", str(self.max_file_bytes)]
        if self.max_files is not None:
            words += ["--max-files", str(self.max_files)]
        if self.max_total_bytes is not None:
            words += ["--max-total-bytes", str(self.max_total_bytes)]
        words += [word for column in self.columns for word in ("--column", column)]
        if self.path_column is not None:
            words += ["--path-column", self.path_column]
        return words

    def selector(self) -> Callable[[str], bool]:
        """Return the test of paths that `include` and `exclude` make.

        Raises:
            UsageError: one of them is no glob.
        """
        if not self.include and not self.exclude:
            return lambda path: True
        included = compile_globs(self.include) if self.include else None
        excluded = compile_globs(self.exclude) if self.exclude else None

        def selects(path: str) -> bool:
            return (included is None or included(path)) and not (excluded and excluded(path))

        return selects


def sources_and_options(origin: str | None) -> tuple[list[str], dict[str, Any]]:
    """Return the sources that the `origin` of a corpus names, and its options as `load` has them.

    An origin is spelled as a command line, its options by `LoadOptions.words`; None names none.
    """
    left = iter(shlex.split(origin or ""))
    sources: list[str] = []
    options: dict[str, Any] = {}
    for word in left:
        name = word.removeprefix("--").replace("-", "_")
        if not word.startswith("--"):
            sources.append(word)
        elif name in ("include", "exclude"):
            options.setdefault(name, []).append(next(left))
        elif name == "column":
            options.setdefault("columns", []).append(next(left))
        elif name == "path_column":
            options[name] = next(left)
        elif name.startswith("max_"):
            options[name] = int(next(left))
        else:
            options[name.removeprefix("no_")] = not name.startswith("no_")
    return sources, options


@dataclass(slots=True)
class LoadReport:
    """What was left out, and what was loaded in part or by a guess; grows during a load."""

    skipped: list[Skipped] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def skip(self, path: str, reason: str) -> None:
        self.skipped.append(Skipped(path, reason))

    def miss(self, path: str, reason: str) -> None:
        """Note that a file was skipped, with a warning where somebody may miss its text."""
        self.skip(path, reason)
        if reason.startswith(TELLING_REASONS):
            self.warn(path, f"{reason}, so it was left out")

    def warn(self, path: str, text: str) -> None:
        self.warnings.append(f"{path}: {text}")

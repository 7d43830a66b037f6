"""What a caller may ask of a load, and what a load has to tell besides the documents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from rlm_rag.corpus import Skipped
from rlm_rag.globs import compile_globs

DEFAULT_MAX_FILE_BYTES = 64 * 1024 * 1024
"""More than any source file that people wrote; a corpus larger than that is many files."""

NOT_SELECTED = "left out by include or exclude"


class Entry(NamedTuple):
    """A document on its way into the packed file."""

    path: str
    content: str
    encoding: str | None = None


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """How a source is read.

    `include` and `exclude` are gitignore globs on the documents' paths; without `include`
    everything is in. `hidden` takes dot files outside a git work tree too (inside one, git
    decides). `ignore` false takes what ignore files and habit (node_modules) leave out.
    """

    include: Sequence[str] = ()
    exclude: Sequence[str] = ()
    hidden: bool = False
    ignore: bool = True
    max_file_bytes: int = DEFAULT_MAX_FILE_BYTES

    def selector(self) -> Callable[[str], bool]:
        """Return the test of paths that `include` and `exclude` make.

        Raises:
            UsageError: one of them is no glob.
        """
        included = compile_globs(self.include) if self.include else None
        excluded = compile_globs(self.exclude) if self.exclude else None

        def selects(path: str) -> bool:
            return (included is None or included(path)) and not (excluded and excluded(path))

        return selects


@dataclass(slots=True)
class LoadReport:
    """What was left out, and what was loaded in part or by a guess; grows during a load."""

    skipped: list[Skipped] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def skip(self, path: str, reason: str) -> None:
        self.skipped.append(Skipped(path, reason))

    def warn(self, path: str, text: str) -> None:
        self.warnings.append(f"{path}: {text}")

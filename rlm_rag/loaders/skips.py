"""What a load of one folder told of what it left out, so that it can be told of other files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile

from rlm_rag.corpus import Skipped
from rlm_rag.loaders.folders import SPECIAL
from rlm_rag.loaders.ignore import OWN_IGNORE_REASON
from rlm_rag.loaders.listing import ENVIRONMENT_REASON, LeftOut, skip_of
from rlm_rag.loaders.options import LoadOptions


@dataclass(slots=True)
class Skips:
    """In the order of a report: by git's rules, by ignore files of our own, and file by file.

    Of the last each has another path, and they are in the order of these.
    """

    by_own: Sequence[Skipped]
    by_file: dict[str, str]

    @classmethod
    def of(
        cls,
        skipped: Sequence[Skipped],
        left_out: LeftOut,
        only: Callable[[str], bool],
        options: LoadOptions,
    ) -> Skips | None:
        """Take a report apart; None where more was left out than for these reasons."""
        by_git = skips_by_git(left_out, only, options)
        rest = skipped[len(by_git) :]
        if skipped[: len(by_git)] != by_git:
            return None
        by_own = [*takewhile(lambda one: one.reason == OWN_IGNORE_REASON, rest)]
        by_file = {one.path: one.reason for one in rest[len(by_own) :]}
        in_order = len(by_own) + len(by_file) == len(rest) and [*by_file] == sorted(by_file)
        if not in_order or ENVIRONMENT_REASON in by_file.values():
            return None
        return cls(by_own, by_file)

    def all_of(self, by_git: Sequence[Skipped]) -> list[Skipped]:
        """Return what a report tells."""
        by_file = [Skipped(path, reason) for path, reason in sorted(self.by_file.items())]
        return [*by_git, *self.by_own, *by_file]


def skips_by_git(
    left_out: LeftOut, only: Callable[[str], bool], options: LoadOptions
) -> list[Skipped]:
    """Return what a report tells of what git's rules leave out."""
    told = (skip_of(name, options, outside=left_out.outside) for name in left_out.names)
    return [Skipped(path, reason) for path, reason in told if only(path)]


def has_special(contents: Sequence[str]) -> bool:
    """Tell whether a folder holds what is no file: it is told when a file there is met first."""
    return any(one.startswith(SPECIAL) or f"/{SPECIAL}" in one for one in contents)

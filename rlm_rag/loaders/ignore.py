"""Ignore files read without git: which paths of a tree they leave out."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from rlm_rag.globs import gitignore_regex
from rlm_rag.loaders.files import read_regular

IGNORE_FILE_NAME = ".gitignore"
_MAX_IGNORE_FILE_BYTES = 1 << 20


class _Rule(NamedTuple):
    regex: re.Pattern[str]
    ignores: bool
    folders_only: bool


@dataclass(frozen=True, slots=True)
class IgnoreRules:
    """The rules that hold in one folder: its own ignore file's, then those of its parents.

    `base` is the folder's path with a final `/`, `""` at the root. `unfollowed` are the
    patterns of its own file that could not be read.
    """

    base: str = ""
    rules: tuple[_Rule, ...] = ()
    parent: IgnoreRules | None = None
    unfollowed: tuple[str, ...] = ()

    def ignores(self, path: str, *, folder: bool) -> bool:
        """Tell whether a file or folder is left out; that its parents are not is taken as given."""
        level: IgnoreRules | None = self
        while level is not None:
            bare = path[len(level.base) :]
            for rule in reversed(level.rules):
                if _matches(rule, bare, folder):
                    return rule.ignores
            level = level.parent
        return False

    def within(self, base: str, location: str) -> IgnoreRules:
        """Return the rules of the folder `base`, whose ignore file would lie at `location`."""
        data = _read(location)
        if not data:
            return self
        rules, unfollowed = [], []
        for line in data.decode("utf-8-sig", "surrogateescape").split("\n"):
            pattern = line.removesuffix("\r")
            if not pattern.strip() or pattern.startswith("#"):
                continue
            rule = _rule(pattern)
            if rule is None:
                unfollowed.append(pattern)
            else:
                rules.append(rule)
        return IgnoreRules(base, tuple(rules), self, tuple(unfollowed))


def _rule(pattern: str) -> _Rule | None:
    negated = pattern.startswith("!")
    body = pattern[1:] if negated else pattern
    regex = gitignore_regex("\\" + body if body.startswith(("#", "!")) else body)
    if regex is None:
        return None
    return _Rule(regex, not negated, body.rstrip(" ").endswith("/"))


def _matches(rule: _Rule, path: str, folder: bool) -> bool:
    target = f"{path}/" if folder and rule.folders_only else path
    # `ps_d` is the slash after a folder: before the end, it was a parent that matched.
    return any(
        found.lastgroup != "ps_d" or found.end() == len(target)
        for found in rule.regex.finditer(target)
    )


def _read(location: str) -> bytes:
    try:
        data = read_regular(location, _MAX_IGNORE_FILE_BYTES)
    except OSError:
        # Missing nearly everywhere; git takes one that it cannot read as absent, too.
        return b""
    return b"" if isinstance(data, str) else data

"""Ignore files read without git: which paths of a tree they leave out."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from rlm_rag.globs import gitignore_regex
from rlm_rag.loaders.files import read_regular

GIT_IGNORE_FILES = (".gitignore",)
OWN_IGNORE_FILES = (".ignore", ".rlmignore")
OWN_IGNORE_REASON = f"ignored by {' or '.join(OWN_IGNORE_FILES)}"
_MAX_IGNORE_FILE_BYTES = 1 << 20
# Paths are no longer (PATH_MAX of Linux), and a pattern takes time by the square of its length.
_MAX_PATTERN_CHARS = 4096
# git reads stars beside other characters in a way of its own, that depends on what is before.
_UNBOUND_STARS = re.compile(r"[^/!]\*\*|\*\*[^/]")
# A backslash that pathspec takes for a character of the class, and git for an escape.
_ESCAPE_IN_CLASS = re.compile(r"(?:^|[^\\])(?:\\\\)*\[[!^]?\]?[^]\\]*\\")
_CLASS = re.compile(r"\\.|\[\^?\]?[^]]*\]", re.DOTALL)
_NO_SLASH = "[^/]"


class _Rule(NamedTuple):
    regex: re.Pattern[str]
    ignores: bool
    folders_only: bool


@dataclass(frozen=True, slots=True)
class IgnoreRules:
    """The rules that hold in one folder: its own ignore files', then those of its parents.

    `base` is the folder's path with a final `/`, `""` at the root.
    """

    base: str = ""
    rules: tuple[_Rule, ...] = ()
    parent: IgnoreRules | None = None

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


@dataclass(slots=True)
class IgnoreFiles:
    """Reads ignore files beneath `root`.

    `names_in` says which to look for in a folder, the later ones over the earlier. A pattern that
    cannot be followed as git would is told to `unfollowed`, with its file.
    """

    root: str
    names_in: Callable[[str], Sequence[str]]
    unfollowed: Callable[[str, str], None]
    _known: dict[str, IgnoreRules | str] = field(default_factory=dict)

    def within(self, rules: IgnoreRules, base: str) -> IgnoreRules:
        """Return the rules of the folder `base` (with a final `/`), whose parent's are `rules`."""
        found: list[_Rule] = []
        for name in self.names_in(base):
            found += self.read(f"{base}{name}")
        return IgnoreRules(base, tuple(found), rules) if found else rules

    def read(self, path: str) -> list[_Rule]:
        """Return the rules of one ignore file; none where it is missing."""
        rules = []
        for pattern in _patterns(f"{self.root}/{path}"):
            rule = _rule(pattern)
            if rule is None:
                self.unfollowed(path, pattern)
            else:
                rules.append(rule)
        return rules

    def leaves_out(self, path: str) -> str | None:
        """Return what of a file's path is left out: a folder above it or itself; None if nothing.

        Folders are looked at once.
        """
        folder = path.rpartition("/")[0]
        rules = self._known.get(folder)
        if rules is None:
            rules = self._rules_in(folder)
        if rules is _NO_RULES:
            return None
        if isinstance(rules, str):
            return rules
        return path if rules.ignores(path, folder=False) else None

    def _rules_in(self, folder: str) -> IgnoreRules | str:
        """Return the rules of a folder, or the folder at or above it that is left out."""
        pending: list[str] = []
        while folder and folder not in self._known:
            pending.append(folder)
            folder = folder.rpartition("/")[0]
        if not folder and "" not in self._known:
            self._known[""] = self.within(_NO_RULES, "")
        rules = self._known[folder]
        for inner in reversed(pending):
            if not isinstance(rules, str):
                ignored = rules is not _NO_RULES and rules.ignores(inner, folder=True)
                rules = inner if ignored else self.within(rules, f"{inner}/")
            self._known[inner] = rules
        return rules


_NO_RULES = IgnoreRules()


def _patterns(location: str) -> list[str]:
    try:
        data = read_regular(location, _MAX_IGNORE_FILE_BYTES)
    except OSError:
        # Missing nearly everywhere; git takes one that it cannot read as absent, too.
        return []
    if isinstance(data, str):
        return []
    lines = data.decode("utf-8-sig", "surrogateescape").split("\n")
    patterns = (line.removesuffix("\r") for line in lines)
    return [pattern for pattern in patterns if pattern.strip() and not pattern.startswith("#")]


def _rule(pattern: str) -> _Rule | None:
    negated = pattern.startswith("!")
    body = _without_spaces(pattern[1:] if negated else pattern)
    if len(body) > _MAX_PATTERN_CHARS:
        return None
    if _UNBOUND_STARS.search(body) or _ESCAPE_IN_CLASS.search(body):
        return None
    regex = gitignore_regex("\\" + body if body.startswith(("#", "!")) else body)
    if regex is None:
        return None
    regex = re.compile(_CLASS.sub(_without_slash, regex.pattern), regex.flags)
    return _Rule(regex, not negated, body.endswith("/"))


def _without_spaces(body: str) -> str:
    """Return a pattern without the spaces that it ends with, but one that is escaped."""
    bare = body.rstrip(" ")
    is_escaped = bare != body and (len(bare) - len(bare.rstrip("\\"))) % 2
    return f"{bare} " if is_escaped else bare


def _without_slash(found: re.Match[str]) -> str:
    """Return a class, or an escape, as git reads it: a class never takes a slash."""
    may_take_one = found[0].startswith("[") and found[0] != _NO_SLASH
    return f"(?!/){found[0]}" if may_take_one else found[0]


def _matches(rule: _Rule, path: str, folder: bool) -> bool:
    target = f"{path}/" if folder and rule.folders_only else path
    # `ps_d` is the slash after a folder: before the end, it was a parent that matched.
    return any(
        found.lastgroup != "ps_d" or found.end() == len(target)
        for found in rule.regex.finditer(target)
    )

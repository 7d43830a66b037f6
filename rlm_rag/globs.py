"""Path globs in gitignore syntax, as every `path_glob`, include and exclude takes them."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence

from rlm_rag.errors import UsageError

# A matcher tries every way to share a path among the stars: with 60 it takes a second a path.
MAX_STARS = 40
# How pathspec writes `/**/` between folders, and a pattern that may begin in any of them.
_ANY_FOLDERS = "(?:/.+)?/"
_LEADING = "^(?:.+/)?"
# A star, and what has to come before the next star of the same name: letters, `?`, plain classes.
_STAR_AND_NEXT = re.compile(
    r"\[\^/\]\*("
    r"(?:\\[^/]|[^\\/()\[\]|^$.*+?{}]|\[\^/\](?![*+])"
    r"|\[(?!\^)(?:[A-Za-z0-9]-[A-Za-z0-9]|[^\]\\/-])+\])+"
    r")(?=\[\^/\]\*)"
)
_STARS = re.compile(r"(?:\[\^/\]\*){2,}")
_STAR = re.compile(r"\[\^/\]\*")
# A class that excludes may take a slash, so that the stars beside it are tried in every way:
# quadratic time at most, for a name or a path.
_EXCLUDING = re.compile(r"\[\^(?!/\])")
_MOST_RETRIED = 2
_PART = re.compile(r"#[a-z]+=")


def without_part(path: str) -> str:
    """Return a document's path without the part that names a page, sheet or cell of it."""
    found = _PART.search(path)
    return path[: found.start()] if found else path


def compile_glob(pattern: str) -> Callable[[str], bool]:
    """Return a test of paths for one gitignore pattern.

    It is case-sensitive and looks at the path before its part (`a.pdf#page=3`). Without a
    slash the pattern matches at any depth, a folder matches all beneath it, and
    `src/**/*.py` matches `src/a.py`. A leading `!` turns the test around.

    Raises:
        UsageError: the pattern is empty or no gitignore pattern.
    """
    return compile_globs((pattern,))


def compile_globs(patterns: Sequence[str]) -> Callable[[str], bool]:
    """Return a test of paths for several patterns, of which the last that matches decides.

    A pattern with `!` excepts what it matches; where the first one does, paths that no
    pattern matches pass.

    Raises:
        UsageError: a pattern is empty or no gitignore pattern.
    """
    rules = [_rule(pattern) for pattern in patterns]
    default = bool(rules) and not rules[0][1]

    def matches(path: str) -> bool:
        bare = without_part(path)
        for search, include in reversed(rules):
            if search(bare):
                return include
        return default

    return matches


def _rule(pattern: str) -> tuple[Callable[[str], object], bool]:
    negated = pattern.startswith("!")
    body = pattern[1:] if negated else pattern
    body = body.removeprefix("./")
    if body.startswith(("#", "!")):
        body = "\\" + body
    # Longer runs of stars mean what two mean, and cost the matcher dearly.
    body = re.sub(r"\*{3,}", "**", body)
    if body.count("*") > MAX_STARS:
        raise UsageError(
            f"A glob may hold at most {MAX_STARS} stars, not {body.count('*')}.",
            hint="Give several globs, or filter the paths in code.",
        )
    regex = gitignore_regex(body)
    if regex is None:
        raise UsageError(
            f"Not a glob that can match a path: {pattern!r}.",
            hint="Globs are written as in .gitignore: *.py, src/, src/**/*.py, [ab].txt.",
        )
    return regex.search, not negated


def gitignore_regex(pattern: str) -> re.Pattern[str] | None:
    """Return the expression that finds a gitignore pattern in a path; folders end with `/`.

    None where the pattern is blank, a comment, or cannot be followed.
    """
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

    try:
        with warnings.catch_warnings():
            # A character class that Python reads otherwise than git comes with this warning.
            warnings.simplefilter("error", FutureWarning)
            regex: re.Pattern[str] | None = GitIgnoreSpecPattern(pattern).regex
            return None if regex is None else _without_retries(regex)
    except (ValueError, re.error, FutureWarning):
        return None


def _without_retries(regex: re.Pattern[str]) -> re.Pattern[str] | None:
    """Return the same expression, told to try each star once; None where that cannot be told.

    What stands between two stars is best taken where it comes first: that leaves the most for
    the rest. A matcher that does not know it tries every way to share a path among the stars.
    """
    text = regex.pattern
    if _EXCLUDING.search(text) is None:
        text = _folders_once(text)
    text = _STARS.sub("[^/]*", text)
    text = _STAR_AND_NEXT.sub(r"(?>[^/]*?\1)", text)
    names = _STAR.sub("*", text.replace("[^/]*?", "")).replace("[^/]", "?").split("/")
    retried = max(name.count("*") for name in names)
    folders = text.count(_ANY_FOLDERS)
    return None if max(retried, folders) > _MOST_RETRIED else re.compile(text, regex.flags)


def _folders_once(text: str) -> str:
    first, *others = text.split(_ANY_FOLDERS)
    if others and first.startswith(_LEADING):
        first = f"^(?>(?:.+?/)??{first.removeprefix(_LEADING)}(?=/))"
    between = [f"(?>(?:/.+?)??/{part}(?=/))" for part in others[:-1]]
    last = [f"{_ANY_FOLDERS}{part}" for part in others[-1:]]
    return "".join([first, *between, *last])

"""Path globs in gitignore syntax, as every `path_glob`, include and exclude takes them."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence

from rlm_rag.errors import UsageError

# A matcher tries every way to share a path among the stars: with 60 it takes a second a path.
MAX_STARS = 40
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
    except (ValueError, re.error, FutureWarning):
        return None
    return regex

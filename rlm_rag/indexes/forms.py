"""How a language's definitions are told of: forms that begin at a line's start, and a mask.

The patterns are lexical and meant for whole corpora: each matches within a bounded stretch and
cannot backtrack far, since the text may be hostile.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

VARIABLE = "variable"
NAME = rb"[A-Za-z_$\x80-\xff][\w$\x80-\xff]{0,200}"


@dataclass(frozen=True, slots=True)
class Rule:
    """One form of definition; `(?P<name>...)` in `pattern` becomes the definition's name.

    `ends` is set where the form also fits calls, so that what follows the name must be a
    parameter list and then one of these bytes: `{` a body, `;` a declaration without one.
    With `declares`, `;` after a form at the margin makes it of the kind `declaration`.
    """

    kind: str
    pattern: bytes
    ends: bytes = b""
    declares: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Language:
    """`mask` matches the strings and comments in which nothing is a definition.

    `begins` holds, as a class of a pattern, the bytes that forms other than variables begin with.
    Its patterns are compiled when they are asked for: few languages are in one corpus.
    """

    name: str
    suffixes: tuple[str, ...]
    rules: tuple[Rule, ...]
    mask: bytes = rb"(?!)"
    filenames: tuple[str, ...] = ()
    begins: bytes = b""

    @property
    def pattern(self) -> re.Pattern[bytes]:
        """What every form matches, as a definition's line feed, `indent` and form."""
        return _any_of(self, variables=True)

    @property
    def lasting_pattern(self) -> re.Pattern[bytes]:
        """The pattern of all forms but variables."""
        return _any_of(self, variables=False)

    @property
    def mask_pattern(self) -> re.Pattern[bytes]:
        """The pattern of strings and comments."""
        return _mask(self)


@cache
def _any_of(language: Language, *, variables: bool) -> re.Pattern[bytes]:
    rules = [rule for rule in language.rules if variables or rule.kind != VARIABLE]
    ahead = b"(?=[" + language.begins + b"])" if language.begins and not variables else b""
    forms = (
        rule.pattern.replace(b"(?P<name>", b"(?P<r%d>" % language.rules.index(rule))
        for rule in rules
    )
    any_form = b"(?:" + b"|".join(forms).replace(b"NAME", NAME) + b")"
    # A literal line feed first: the scanner then skips from line to line with memchr.
    # No form begins with a space, so that none is tried after a part of the indent.
    return re.compile(rb"\n(?P<indent>[ \t]{0,120}+)" + ahead + any_form)


@cache
def _mask(language: Language) -> re.Pattern[bytes]:
    return re.compile(language.mask, re.DOTALL)


QUOTED = rb"'(?:[^'\\\n]|\\.){0,4000}'|" rb'"(?:[^"\\\n]|\\.){0,4000}"'
SLASHED = rb"//[^\n]*|/\*.*?(?:\*/|\Z)"
C_MASK = SLASHED + rb"|" + QUOTED
BACKTICKS = rb"`(?>(?:[^`\\]|\\.)*)`"
HASH = rb"#[^\n]*"

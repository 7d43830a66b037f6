"""How a language's definitions are told of: forms that begin at a line's start, and a mask.

The patterns are lexical and meant for whole corpora: each matches within a bounded stretch and
cannot backtrack far, since the text may be hostile.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

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


@dataclass(frozen=True, slots=True)
class Language:
    """`mask` matches the strings and comments in which nothing is a definition.

    `begins` holds, as a class of a pattern, the bytes that forms other than variables begin with.
    """

    name: str
    suffixes: tuple[str, ...]
    rules: tuple[Rule, ...]
    mask: bytes = rb"(?!)"
    filenames: tuple[str, ...] = ()
    begins: bytes = b""
    pattern: re.Pattern[bytes] = field(init=False, repr=False, compare=False)
    lasting_pattern: re.Pattern[bytes] = field(init=False, repr=False, compare=False)
    mask_pattern: re.Pattern[bytes] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        lasting = tuple(rule for rule in self.rules if rule.kind != VARIABLE)
        ahead = b"(?=[" + self.begins + b"])" if self.begins else b""
        object.__setattr__(self, "pattern", self._any_of(self.rules, b""))
        object.__setattr__(self, "lasting_pattern", self._any_of(lasting, ahead))
        object.__setattr__(self, "mask_pattern", re.compile(self.mask, re.DOTALL))

    def _any_of(self, rules: Sequence[Rule], ahead: bytes) -> re.Pattern[bytes]:
        forms = (
            rule.pattern.replace(b"(?P<name>", b"(?P<r%d>" % self.rules.index(rule))
            for rule in rules
        )
        any_form = b"(?:" + b"|".join(forms).replace(b"NAME", NAME) + b")"
        # A literal line feed first: the scanner then skips from line to line with memchr.
        # No form begins with a space, so that none is tried after a part of the indent.
        return re.compile(rb"\n(?P<indent>[ \t]{0,120}+)" + ahead + any_form)


QUOTED = rb"'(?:[^'\\\n]|\\.){0,4000}'|" rb'"(?:[^"\\\n]|\\.){0,4000}"'
SLASHED = rb"//[^\n]*|/\*.*?(?:\*/|\Z)"
C_MASK = SLASHED + rb"|" + QUOTED
BACKTICKS = rb"`(?>(?:[^`\\]|\\.)*)`"
HASH = rb"#[^\n]*"

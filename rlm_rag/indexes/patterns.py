"""What can be known of a regular expression before it runs: a literal it needs, what follows
that, and whether a search of the whole text finds the same lines as a search line by line.

Read from the parse tree of `re`, which has no public face; where it cannot be read, the
answers are the ones that are always right.
"""

from __future__ import annotations

import importlib
import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from rlm_rag.errors import RetrievalError
from rlm_rag.indexes.requests import MAX_PATTERN_CHARS
from rlm_rag.indexes.steps import MOST_TESTS, Run, runs_of

# Looking for more than these, one after the other, is no faster than the pattern itself.
_MAX_LITERALS = 8
# How rare a character is in code and prose, 1 where it is not listed.
_RARITY = {" ": 0.2, "_": 0.4, **dict.fromkeys("etaoinsr", 0.5), **dict.fromkeys(".,()=:'\"-", 0.6)}
_RARE_ENOUGH = 1.2
_WORTH_OF_A_STEP = 0.15
_TELLING_STEPS = 4
_HINT = "escape ( [ { * + ? . ^ $ | with a backslash to search for the characters themselves"


@dataclass(frozen=True, slots=True)
class LinePattern:
    """A compiled pattern, searched for within lines.

    One of `literals` occurs in every match (none of them where none is known); with `folded`
    they are ASCII in lower case, and occur so in the match of an ASCII text. With
    `spans_no_line`, `whole` (the pattern with `^` and `$` at each line) finds in a text exactly
    the lines that `by_line` finds one by one. `tail` begins with the one literal, and in a text
    finds the end of every match that `by_line` finds in a line of it, and perhaps more; `once`
    takes the rest of a line with a match, so that it finds each line once. Both are None where
    that cannot be, or is no faster. `needed` are the literals as documents hold them. Every
    match has one of `runs`, where there are any: these are then faster to look for. With
    `is_runs_alone` each run of ASCII is a match.
    """

    by_line: re.Pattern[str]
    whole: re.Pattern[str]
    literals: tuple[str, ...]
    folded: bool
    spans_no_line: bool
    tail: re.Pattern[str] | None = None
    once: re.Pattern[str] | None = None
    runs: tuple[Run, ...] = ()
    is_runs_alone: bool = False
    needed: tuple[bytes, ...] = field(init=False)

    def __post_init__(self) -> None:
        encoded = (literal.encode("utf-8", "surrogatepass") for literal in self.literals)
        object.__setattr__(self, "needed", tuple(encoded))


def compile_pattern(pattern: str, *, ignore_case: bool) -> LinePattern:
    """Compile a pattern for lines.

    Raises:
        RetrievalError: it is no regular expression; the message says where.
    """
    if len(pattern) > MAX_PATTERN_CHARS:
        raise RetrievalError(
            f"the pattern has {len(pattern):,} characters, of at most {MAX_PATTERN_CHARS:,}",
            hint="search for a distinctive part of it",
        )
    flags = re.IGNORECASE if ignore_case else re.NOFLAG
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            by_line = re.compile(pattern, flags)
            whole = re.compile(pattern, flags | re.MULTILINE)
            tree = _parse(pattern, flags)
    except re.error as error:
        place = "" if error.pos is None else f" at position {error.pos}"
        raise RetrievalError(
            f"bad regular expression {_shown(pattern)}: {error.msg}{place}", hint=_HINT
        ) from error
    except (RecursionError, OverflowError, MemoryError) as error:
        raise RetrievalError(
            f"the regular expression {_shown(pattern)} is too large", hint=_HINT
        ) from error
    if tree is None:
        return LinePattern(by_line, whole, (), False, False)
    return _told_by(tree, by_line, whole, flags)


def _told_by(
    tree: Any, by_line: re.Pattern[str], whole: re.Pattern[str], flags: int
) -> LinePattern:
    folded = bool(by_line.flags & re.IGNORECASE)
    literals = () if by_line.flags & re.LOCALE else _literals(tree, folded=folded)
    safe = not by_line.flags & re.DOTALL and _spans_no_line(tree)
    run = _telling_run(tree) if literals and not folded else None
    if run is None:
        # From the literal's places on, it would be slower.
        once = _once(tree, flags) if safe and not literals else None
        runs = runs_of(tree, partial(_one_step, tree, flags))
        alone = safe and _is_of_characters(tree) and all(len(run) <= MOST_TESTS for run in runs)
        return LinePattern(
            by_line, whole, literals, folded, safe, once=once, runs=runs, is_runs_alone=alone
        )
    first, literal = run
    tail = _compiled(tree, tree[first:], flags) if first + len(literal) < len(tree) else None
    once = _once(tree, flags) if safe and first == 0 else None
    return LinePattern(by_line, whole, (literal,), folded, safe, tail, once)


def _is_of_characters(tree: Any) -> bool:
    """Tell whether a pattern is characters alone, or a choice of them."""
    steps = list(tree)
    if len(steps) == 1 and str(steps[0][0]) == "BRANCH":
        return all(_is_of_characters(branch) for branch in steps[0][1][1])
    return bool(steps) and all(
        str(name) == "LITERAL" and argument < 0x80 for name, argument in steps
    )


def _shown(pattern: str) -> str:
    return repr(pattern if len(pattern) <= 80 else pattern[:79] + "…")


def _telling_run(tree: Any) -> tuple[int, str] | None:
    """Return where the run of characters is from which it is fastest to look, and the run.

    Rare ones are found seldom, and what follows a run throws out what it found.
    """
    steps = list(tree)
    best: tuple[float, int, str] | None = None
    at = 0
    while at < len(steps):
        end = at
        while end < len(steps) and str(steps[end][0]) == "LITERAL":
            end += 1
        run = "".join(chr(argument) for _, argument in steps[at:end])
        if run and all(_step_sees_alike(str(name), step) for name, step in steps[end:]):
            rare = min(sum(_RARITY.get(character, 1.0) for character in run), _RARE_ENOUGH)
            worth = rare + _WORTH_OF_A_STEP * min(len(steps) - end, _TELLING_STEPS)
            if best is None or worth > best[0]:
                best = (worth, at, run)
        at = max(end, at + 1)
    return best[1:] if best is not None else None


def _step_sees_alike(name: str, argument: Any) -> bool:
    """Say that a step which matches in a line by itself can match so where other lines follow."""
    if name in ("GROUPREF", "GROUPREF_EXISTS"):
        # To what came before the run.
        return False
    if name == "AT":
        return _step_stays(name, argument)
    if name in ("MAX_REPEAT", "MIN_REPEAT"):
        return all(_step_sees_alike(str(inner), step) for inner, step in argument[2])
    if name == "SUBPATTERN":
        return all(_step_sees_alike(str(inner), step) for inner, step in argument[3])
    if name == "BRANCH":
        return all(
            _step_sees_alike(str(inner), step) for branch in argument[1] for inner, step in branch
        )
    if name in ("ASSERT", "ASSERT_NOT", "ATOMIC_GROUP", "POSSESSIVE_REPEAT"):
        # What these take is not given back.
        return _step_stays(name, argument)
    return True


def _once(tree: Any, flags: int) -> re.Pattern[str] | None:
    if tree.getwidth()[0] == 0:
        return None
    rest = importlib.import_module("re._parser").parse("[^\n]*")
    return _compiled(tree, [*tree, *rest], flags)


def _one_step(tree: Any, flags: int, step: Any) -> re.Pattern[str]:
    return _compiled(tree, [step], flags)


def _compiled(tree: Any, steps: Any, flags: int) -> re.Pattern[str]:
    """Compile steps of a tree, `^` and `$` at each line."""
    parser = importlib.import_module("re._parser")
    compiler = importlib.import_module("re._compiler")
    sub = parser.SubPattern(tree.state, list(steps))
    compiled: re.Pattern[str] = compiler.compile(sub, flags | re.MULTILINE)
    return compiled


def _parse(pattern: str, flags: int) -> Any:
    try:
        parser = importlib.import_module("re._parser")
    except ImportError:
        return None
    return parser.parse(pattern, flags)


def _literals(tree: Iterable[tuple[Any, Any]], *, folded: bool) -> tuple[str, ...]:
    """Return runs of characters of which every match holds one: the best there are, or none."""
    best: tuple[str, ...] = ()
    run = ""
    for operation, argument in tree:
        name = str(operation)
        if name == "LITERAL" and not (folded and argument >= 0x80):
            run += chr(argument).lower() if folded else chr(argument)
            continue
        best, run = _better(best, (run,) if run else ()), ""
        if name == "SUBPATTERN" and not argument[1] and not argument[2]:
            best = _better(best, _literals(argument[3], folded=folded))
        elif name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT") and argument[0] > 0:
            best = _better(best, _literals(argument[2], folded=folded))
        elif name == "ATOMIC_GROUP":
            best = _better(best, _literals(argument, folded=folded))
        elif name == "BRANCH":
            each = [_literals(branch, folded=folded) for branch in argument[1]]
            found = tuple(dict.fromkeys(literal for one in each for literal in one))
            if all(each) and len(found) <= _MAX_LITERALS:
                best = _better(best, found)
    return _better(best, (run,) if run else ())


def _better(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    """Choose by the shortest, which is found most often, then by how few there are."""
    if not one or not other:
        return one or other
    return max(one, other, key=lambda literals: (min(map(len, literals)), -len(literals)))


def _spans_no_line(tree: Iterable[tuple[Any, Any]]) -> bool:
    return all(_step_stays(str(operation), argument) for operation, argument in tree)


def _step_stays(name: str, argument: Any) -> bool:
    """Say that a step neither takes nor sees a line's end, but as the end of the text."""
    if name == "LITERAL":
        return argument not in (10, 13)
    if name in ("ANY", "GROUPREF"):
        return True
    if name == "AT":
        return str(argument) in ("AT_BEGINNING", "AT_END", "AT_BOUNDARY", "AT_NON_BOUNDARY")
    if name == "IN":
        return all(_member_stays(str(kind), value) for kind, value in argument)
    if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
        return _spans_no_line(argument[2])
    if name == "SUBPATTERN":
        return not argument[1] & re.DOTALL and _spans_no_line(argument[3])
    if name == "ATOMIC_GROUP":
        return _spans_no_line(argument)
    if name == "BRANCH":
        return all(_spans_no_line(branch) for branch in argument[1])
    if name in ("ASSERT", "ASSERT_NOT"):
        return _spans_no_line(argument[1])
    return False


def _member_stays(kind: str, value: Any) -> bool:
    if kind == "LITERAL":
        return value not in (10, 13)
    if kind == "RANGE":
        return not any(value[0] <= end <= value[1] for end in (10, 13))
    return kind == "CATEGORY" and str(value) in (
        "CATEGORY_DIGIT",
        "CATEGORY_WORD",
        "CATEGORY_NOT_SPACE",
    )

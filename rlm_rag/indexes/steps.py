"""Which characters every match of a regular expression has one after the other.

Told as bytes, so that whole texts can be looked through for them before they are decoded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

# Not in ASCII, and the same as letters of it where capitals are ignored.
_SAME_AS_ASCII = "\u0130\u0131\u017f\u212a"
_MOST_RUNS = 12
_MOST_STEPS = 16
# Rarer than this, or a look at all bytes saves nothing.
_RARE_ENOUGH = 1 / 300
_SOME_STEPS = 4
_HARDLY_MORE = 1.01
MOST_TESTS = 16
# How often a byte is met in code and prose, of 1,000; 4 where it is not listed.
_OFTEN = {
    **dict.fromkeys(b" ", 180),
    **dict.fromkeys(b"e", 70),
    **dict.fromkeys(b"tarnsio", 45),
    **dict.fromkeys(b"lcdupm\n", 25),
    **dict.fromkeys(b"fghy_.", 15),
    **dict.fromkeys(b"bvw-,()=:/\"'", 10),
    **dict.fromkeys(b"kx01", 7),
}


@dataclass(frozen=True, slots=True)
class Step:
    """The ASCII bytes that a character of a match may be; and what beyond ASCII it may be.

    With `wide` that is anything, else one of `same`.
    """

    members: bytes
    wide: bool
    same: str = ""

    @property
    def often(self) -> float:
        """About which share of a text's bytes it fits."""
        return min(1.0, sum(_OFTEN.get(byte, 4) for byte in self.members) / 1000)


Run = tuple[Step, ...]
Compile = Callable[[Any], re.Pattern[str]]


def runs_of(tree: Iterable[tuple[Any, Any]], compile_step: Compile) -> tuple[Run, ...]:
    """Return runs of steps of which every match has one, all in a row; none where that is no help.

    `compile_step` compiles one step of the tree by itself.
    """
    best: tuple[Run, ...] = ()
    for runs in _candidates(tree, compile_step):
        if runs and len(runs) <= _MOST_RUNS and (not best or share(runs) < share(best)):
            best = runs
    if not best or share(best) >= _RARE_ENOUGH:
        return ()
    bare = tuple(map(_without_wide_ends, best))
    # By the rarest of its steps it is found as seldom, unless an end was among these.
    return bare if all(bare) and share(bare) <= _HARDLY_MORE * share(best) else best


def _without_wide_ends(run: Run) -> Run:
    """Leave out, at both ends, what anything beyond ASCII may be: there is much of it."""
    narrow = [at for at, step in enumerate(run) if not step.wide]
    return run[narrow[0] : narrow[-1] + 1] if narrow else ()


def share(runs: Sequence[Run]) -> float:
    """Return at about which share of a text's bytes one of the runs may begin."""
    return sum(_share_of(run) for run in runs)


def rarest(run: Run) -> list[int]:
    """Return the places of the steps of a run that the fewest bytes fit, the rarest first."""
    return sorted(range(len(run)), key=lambda at: run[at].often)[:MOST_TESTS]


def _share_of(run: Run) -> float:
    return prod(run[at].often for at in rarest(run)[:_SOME_STEPS])


def _candidates(
    tree: Iterable[tuple[Any, Any]], compile_step: Compile
) -> Iterator[tuple[Run, ...]]:
    """Yield sets of runs: of each set, every match has one."""
    run: list[Step] = []
    for step in _inlined(tree):
        operation, argument = step
        name = str(operation)
        if name == "BRANCH":
            if run:
                yield (tuple(run),)
            run = []
            yield _of_branches(argument[1], compile_step)
        elif name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            least, most, inner = argument
            repeated = _step(inner[0], compile_step) if len(inner) == 1 else None
            if repeated is None and least:
                yield from _candidates(inner, compile_step)
            run += [repeated] * min(least, _MOST_STEPS) if repeated else []
            if repeated is None or not least == most <= _MOST_STEPS:
                if run:
                    yield (tuple(run),)
                run = [repeated] if repeated and least else []
        elif name not in ("AT", "ASSERT", "ASSERT_NOT"):
            known = _step(step, compile_step)
            if known is not None:
                run.append(known)
                continue
            if run:
                yield (tuple(run),)
            run = []
    if run:
        yield (tuple(run),)


def _of_branches(branches: Sequence[Any], compile_step: Compile) -> tuple[Run, ...]:
    found: list[Run] = []
    for branch in branches:
        runs = min(_candidates(branch, compile_step), key=share, default=())
        if not runs:
            return ()
        found += runs
    return tuple(dict.fromkeys(found))


def _inlined(tree: Iterable[tuple[Any, Any]]) -> Iterator[tuple[Any, Any]]:
    """Yield the steps of a tree, those of its plain groups among them."""
    for operation, argument in tree:
        name = str(operation)
        if name == "SUBPATTERN" and not argument[1] and not argument[2]:
            yield from _inlined(argument[3])
        elif name == "ATOMIC_GROUP":
            yield from _inlined(argument)
        else:
            yield operation, argument


def _step(step: tuple[Any, Any], compile_step: Compile) -> Step | None:
    """Return what characters a step takes, None where it takes none, or more than one."""
    operation, argument = step
    name = str(operation)
    if name not in ("LITERAL", "IN"):
        return None
    if name == "LITERAL" and argument >= 0x80:
        return None
    pattern = compile_step(step)
    members = bytes(byte for byte in range(0x80) if pattern.fullmatch(chr(byte)))
    wide = name == "IN" and not all(_is_ascii(str(kind), value) for kind, value in argument)
    same = "" if wide else "".join(filter(pattern.fullmatch, _SAME_AS_ASCII))
    return Step(members, wide, same) if members else None


def _is_ascii(kind: str, value: Any) -> bool:
    return (kind == "LITERAL" and value < 0x80) or (kind == "RANGE" and value[1] < 0x80)

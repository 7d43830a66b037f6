"""Mangled and nested sources of every language, the same at every run."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

SEEDS = {
    path.stem: path.read_text("utf-8")
    for path in sorted(Path(__file__).with_name("seeds").glob("*.txt"))
}
_PIECES = (
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "<",
    ">",
    '"',
    "'",
    "`",
    '"""',
    "'''",
    "${",
    "#{",
    "$(",
    "/*",
    "*/",
    "//",
    "#",
    "<!--",
    "<<E\n",
    "=begin\n",
    "|",
    "->",
    "=>",
    "::",
    "begin ",
    "end ",
    "if x ",
    "do ",
    "then ",
    "class A ",
    "def f(",
    "fn x",
    "function ",
    "\\",
    "\n",
    "\t",
    "    ",
    "\0",
    "\r",
    "\ufeff",
    "é",
    "\u2028",
    "@",
    ";",
    ",",
    'R"x(',
    "<?php ",
    "%{",
    "~s(",
    "\\begin{a}",
    "<div>",
    "#if A\n",
)
_DEPTHS = (3, 33, 255, 1025)


def mangled(name: str, count: int) -> Iterator[bytes]:
    """Yield that many sources: cut, doubled, swapped, spliced and nested."""
    chance = random.Random(name)
    seed = SEEDS[name]
    for number in range(count):
        if number % 4 == 3:
            yield _nested(chance, seed).encode("utf-8", "surrogatepass")
            continue
        text = seed
        for _ in range(chance.randint(1, 8)):
            text = _changed(chance, text, name)
        yield text[:8000].encode("utf-8", "surrogatepass")


def _changed(chance: random.Random, text: str, name: str) -> str:
    start, end = sorted((chance.randrange(len(text) + 1), chance.randrange(len(text) + 1)))
    match chance.randrange(6):
        case 0:
            return text[:start] + text[end:] or "x"
        case 1:
            return text[:end] + text[start:]
        case 2:
            return text[:start] + chance.choice(_PIECES) + text[start:]
        case 3:
            return text[:start] + text[end:] + text[start:end]
        case 4:
            other = SEEDS[chance.choice([known for known in SEEDS if known != name])]
            cut = chance.randrange(len(other))
            return text[:start] + other[cut : cut + 60] + text[start:]
        case _:
            return text[:start] + "".join(chance.choices(_PIECES, k=6)) + text[end:] or "x"


def _nested(chance: random.Random, seed: str) -> str:
    """Nest a piece, a pair of pieces, or a stretch of the seed in itself."""
    depth = chance.choice(_DEPTHS)
    if chance.random() < 0.3:
        start = chance.randrange(len(seed))
        piece = seed[start : start + chance.randint(1, 12)]
        return (seed[:start] + piece * depth + seed[start:])[:60_000]
    opening, closing = chance.choice(_PIECES), chance.choice(_PIECES)
    return seed + opening * depth + "x" + closing * chance.choice((0, depth))

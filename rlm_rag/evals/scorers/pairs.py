"""F1 over pairs of users, the gold being all pairs of two sets: OOLONG-Pairs."""

from __future__ import annotations

import re
from collections.abc import Collection, Set
from math import comb

from rlm_rag.evals.base import Response, Sample, Score

Pair = tuple[int, int]

# Longer numbers are no ids, and int() is quadratic in their digits.
_PAIR = re.compile(r"\(\s*(\d{1,18})\s*,\s*(\d{1,18})\s*\)")
_NONE = re.compile(r"(?i)\bno (?:valid |such |matching )?pairs?\b|^\W*none\W*$")


def parse_pairs(text: str) -> set[Pair]:
    """Return the pairs `(a, b)` that a text lists: lower id first, each once, none of equals."""
    found = ((int(one), int(other)) for one, other in _PAIR.findall(text))
    return {(min(pair), max(pair)) for pair in found if pair[0] != pair[1]}


def pair_count(left: Set[int], right: Set[int]) -> int:
    """How many pairs {a, b} of different users there are with a in `left` and b in `right`.

    A pair of two users who are in both sets counts once.
    """
    both = len(left & right)
    return len(left) * len(right) - both - comb(both, 2)


def is_pair(pair: Pair, left: Collection[int], right: Collection[int]) -> bool:
    """Whether one of the two is in `left` and the other in `right`."""
    one, other = pair
    return (one in left and other in right) or (other in left and one in right)


def pair_f1(response: Response, sample: Sample) -> Score:
    """Score by F1; gold is `{"left": [ids], "right": [ids]}`, whose pairs are the right ones.

    So a gold of 19 million pairs (1M tokens) is two lists. Without a right pair, an answer that
    lists none has 1.0. `parse_ok` is false where no pair is listed and none is not said either.
    """
    left, right = frozenset(sample.gold["left"]), frozenset(sample.gold["right"])
    own, total = parse_pairs(response.text), pair_count(left, right)
    parse_ok = bool(own) or _NONE.search(response.text) is not None
    if not own:
        return Score(value=float(total == 0 and parse_ok), parsed=0, parse_ok=parse_ok)
    right_ones = sum(is_pair(pair, left, right) for pair in own)
    precision = right_ones / len(own)
    recall = right_ones / total if total else 0.0
    value = 2 * right_ones / (len(own) + total)
    detail = {"precision": precision, "recall": recall, "pairs": float(len(own))}
    return Score(value=value, parsed=len(own), detail=detail)

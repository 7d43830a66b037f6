"""InfiniteBench's rules for retrieval (src/compute_scores.py)."""

from __future__ import annotations

import re

from rlm_rag.evals.base import Response, Sample, Score

_NUMBER = re.compile("[0-9]+")
# What the program turns into blanks before it looks for the value among the words.
_BLANKS = str.maketrans(dict.fromkeys("\n:\"'.,?!{}", " "))


def first_number(text: str) -> str:
    """Return the first run of ASCII digits, as it is written; empty where there is none."""
    found = _NUMBER.search(text)
    return found[0] if found else ""


def number(response: Response, sample: Sample) -> Score:
    """1.0 if the first number of the answer is the gold text: passkey and number string."""
    found = first_number(response.text)
    return Score(value=float(found == sample.gold), parsed=found, parse_ok=bool(found))


def key_value(response: Response, sample: Sample) -> Score:
    """1.0 if the gold value is a word of the answer: key-value retrieval.

    Words are parted by white space and `:"'.,?!{}`; what is bracketed or in backticks is none.
    """
    words = response.text.translate(_BLANKS).split()
    hit = sample.gold in words
    return Score(value=float(hit), parsed=sample.gold if hit else None, parse_ok=bool(words))

"""OOLONG's rules, for its synthetic and its real part (src/eval/eval_helpers.py)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date

from rlm_rag.evals.base import Response, Sample, Score
from rlm_rag.evals.scorers.dates import parse_date

COMPARISONS = ("more common", "less common", "same frequency")
# Each step away from the right number costs a quarter of what was left.
_PER_STEP = 0.75
_SHORT_CHARS = 20
_BOXED_TEXT = re.compile(r"\\boxed\{\\text\{([^}]*)\}\}")
_BOXED = re.compile(r"\\boxed[\{]+([^}]*)[\}]+")
# What int() takes, as far as it is a count: int() of thousands of digits would raise.
_INTEGER = re.compile(r"\s*[+-]?\d(?:_?\d){0,17}\s*")

RealAnswer = int | str | list[str]


def number_score(difference: int) -> float:
    """0.75 to the power of the distance: 1.0 for the right number."""
    return float(_PER_STEP ** abs(difference))


def parse_synthetic(text: str) -> tuple[str, bool]:
    """Return what the rule takes for the answer, and whether it stood in a form asked for.

    It is what follows the last colon, without `*` and brackets; an answer of 20 characters or
    more is cut to the comparison that it holds. Without a colon: the text if it is short, else
    its last word, which is said not to be in the form.
    """
    if ":" not in text:
        words = text.split()
        return (text if len(text) < _SHORT_CHARS or not words else words[-1]), False
    candidate = text.split(":")[-1].strip()
    for mark in ("*", "[", "]"):
        candidate = candidate.replace(mark, "")
    if len(candidate) >= _SHORT_CHARS:
        candidate = next((one for one in COMPARISONS if one in candidate), candidate)
    return candidate, True


def synthetic(response: Response, sample: Sample) -> Score:
    """Score an answer of oolong-synth; gold is `{"answer", "type"}`.

    `type` is OOLONG's (`ANSWER_TYPE.NUMERIC`, `.DATE`, `.LABEL`, ...), a date's answer is
    `YYYY-MM-DD`. Equal texts have 1.0; one of the three comparisons has it if the gold holds
    it; numbers have 0.75^|difference|; dates have 1.0 when they are the same day, what is
    missing of one being taken from the day that the answer came.
    """
    candidate, parse_ok = parse_synthetic(response.text)
    gold, kind = str(sample.gold["answer"]), sample.gold["type"]
    is_date = kind == "ANSWER_TYPE.DATE"
    if candidate == gold and not is_date:
        return Score(value=1.0, parsed=candidate, parse_ok=parse_ok)
    if candidate in COMPARISONS:
        return Score(value=float(candidate in gold), parsed=candidate, parse_ok=parse_ok)
    if kind == "ANSWER_TYPE.NUMERIC":
        if _INTEGER.fullmatch(candidate) is None:
            return Score(value=0.0, parsed=candidate, parse_ok=False)
        value = number_score(int(gold) - int(candidate))
        return Score(value=value, parsed=int(candidate), parse_ok=parse_ok)
    if is_date:
        day = parse_date(candidate, response.day)
        if day is None:
            return Score(value=0.0, parsed=candidate, parse_ok=False)
        value = float(day == date.fromisoformat(gold))
        return Score(value=value, parsed=day.isoformat(), parse_ok=parse_ok)
    return Score(value=0.0, parsed=candidate, parse_ok=parse_ok)


def parse_real(text: str) -> RealAnswer:
    """Return a number, a list where there is a comma, or the text: oolong-real's answers."""
    if _INTEGER.fullmatch(text) is not None:
        return int(text)
    if "," in text:
        return [item.strip() for item in text.split(",") if item.strip()]
    return text


def real(response: Response, sample: Sample) -> Score:
    """Score an answer of oolong-real, which stands in `\\boxed{...}`; gold is a text.

    Numbers have 0.75^|difference|, texts equality whatever their case, lists the share of the
    gold's items that are given. An answer of another kind than the gold's has 0, and so have a
    number and a list outside of a box, which the rule reads as text.
    """
    found = _BOXED_TEXT.search(response.text) or _BOXED.search(response.text)
    own: RealAnswer = response.text if found is None else parse_real(found[1])
    return Score(
        value=_real_value(own, parse_real(sample.gold)), parsed=own, parse_ok=found is not None
    )


def _real_value(own: RealAnswer, gold: RealAnswer) -> float:
    if isinstance(gold, int) and isinstance(own, int):
        return number_score(gold - own)
    if isinstance(gold, str) and isinstance(own, str):
        return float(gold.strip().lower() == own.strip().lower())
    if isinstance(gold, list) and isinstance(own, list):
        return _overlap(own, gold)
    return 0.0


def _overlap(own: Sequence[str], gold: Sequence[str]) -> float:
    return len(set(gold) & set(own)) / len(gold) if gold else 0.0

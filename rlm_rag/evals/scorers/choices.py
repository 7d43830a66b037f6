"""Which of the choices an answer takes: LongBench v2, choices of one's own, true or false."""

from __future__ import annotations

import re

from rlm_rag.evals.base import Response, Sample, Score

_IN_PARENTHESES = re.compile(r"The correct answer is \(([A-D])\)")
_BARE = re.compile(r"The correct answer is ([A-D])")
_LETTER = re.compile(r"(?<![A-Za-z])([A-Z])(?![A-Za-z])")
_ANSWER_TAG = re.compile(r"(?is)<answer>(.*?)</answer>")
_TRUTH = re.compile(r"(?i)\b(true|false)\b")


def longbench_choice(text: str) -> str | None:
    """Return the letter that LongBench v2's two patterns find (pred.py): None where neither does.

    Asterisks are taken out first; case matters; the form in parentheses goes before the other,
    wherever they stand.
    """
    text = text.replace("*", "")
    found = _IN_PARENTHESES.search(text) or _BARE.search(text)
    return found[1] if found else None


def longbench(response: Response, sample: Sample) -> Score:
    """1.0 for the gold letter; an answer that is not in the form has 0 (not "compensated")."""
    letter = longbench_choice(response.text)
    value = float(letter == sample.gold)
    return Score(value=value, parsed=letter, parse_ok=letter is not None)


def chosen_letter(text: str) -> str | None:
    """Return the letter of an answer: after the last "answer is", else the one that stands alone.

    None where no capital letter stands alone, or several different ones do.
    """
    if found := longbench_choice(text):
        return found
    letters = set(_LETTER.findall(re.split(r"(?i)answer(?: is)?\s*:?", text)[-1]))
    return letters.pop() if len(letters) == 1 else None


def choice_accuracy(response: Response, sample: Sample) -> Score:
    """1.0 for the gold letter, as `chosen_letter` reads it."""
    letter = chosen_letter(response.text)
    value = float(letter == sample.gold)
    return Score(value=value, parsed=letter, parse_ok=letter is not None)


def verdict(text: str) -> bool | None:
    """Return what the last `<answer>` says, else the only one of true and false that is said."""
    tags = _ANSWER_TAG.findall(text)
    said = {word.lower() for word in _TRUTH.findall(tags[-1] if tags else text)}
    return said.pop() == "true" if len(said) == 1 else None


def claim(response: Response, sample: Sample) -> Score:
    """1.0 if the claim is judged as the gold, True or False: a claim of NoCha.

    NoCha counts pairs: both claims right, or nothing. They are samples of one `joint`.
    """
    said = verdict(response.text)
    return Score(value=float(said is sample.gold), parsed=said, parse_ok=said is not None)

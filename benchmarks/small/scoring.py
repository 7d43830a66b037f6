"""What an answer to one of these questions is worth: right or wrong, and in which way wrong."""

from __future__ import annotations

import re
from typing import Any

from rlm_rag.engine.answer import denies
from rlm_rag.evals.base import Response, Sample, Score
from rlm_rag.evals.record import Record

MOST_NUMBERS = 2
"""An answer that names more numbers than these, its last aside, has not chosen one."""

FAILURES = ("wrong", "format", "denied", "no answer", "timeout", "stopped", "error")
"""How an answer fails: another value; none in the form asked for; "not in the corpus"; nothing;
nothing right within the time; ended by another limit; no answer because something broke."""

_NONE_REACHED = "No answer was reached:"
_CITATION = re.compile(r"[\w./~#=-]*[\w~]:\d+(?:-\d+)?\b")
_QUOTE = re.compile(r'"[^"\n]{20,}"|“[^”\n]{20,}”')
# Paths and names of files, whose digits are no figures.
_NAMED = re.compile(r"[\w-]+(?:/[\w.-]+)+|\b[\w-]+\.[A-Za-z]\w{0,4}\b")
_NUMBER = re.compile(
    r"(?<![\w.])[-−]?(?:0x[0-9a-f]+|\d{1,3}(?:,\d{3})+|\d+)(?:\.0+)?(?![\w%]|\.\d)", re.IGNORECASE
)
_PATH = re.compile(r"[\w./-]*\w\.py\b")
_WORDS = "zero one two three four five six seven eight nine ten eleven twelve"


def score(response: Response, sample: Sample) -> Score:
    """Score an answer 1 or 0 by the kind of its gold.

    `number`: the last number that it says, or among at most two, those of the question, of
    citations and of quotations aside (which count where there is no other). `path`: the first
    path that it names is the right one, or its end. `name`: the first of `names` that it says,
    whole and without regard to case. `text`: it stands in the answer as a whole word.
    """
    text = response.text.strip()
    gold: dict[str, Any] = sample.gold
    if text.startswith(_NONE_REACHED):
        # What follows are passages for people to look at.
        return Score(value=0.0, parse_ok=False)
    if denies(text):
        return Score(value=0.0, parsed="not in the corpus")
    if "number" in gold:
        return _number(text, sample.question, gold["number"])
    if "path" in gold:
        return _path(text, gold["path"])
    if "name" in gold:
        return _name(text, gold["name"], gold.get("names", [gold["name"]]))
    return _name(text, gold["text"], [gold["text"]])


def _number(text: str, question: str, right: int) -> Score:
    known = set(_numbers(question)) - {right}
    plain = _CITATION.sub(" ", text)
    said = [number for number in _numbers(_QUOTE.sub(" ", plain)) if number not in known]
    said = said or [number for number in _numbers(plain) if number not in known]
    chosen = said[-1:] if len(set(said)) > MOST_NUMBERS else said
    return Score(
        value=float(right in chosen), parsed=said[-1] if said else None, parse_ok=bool(said)
    )


def _numbers(text: str) -> list[int]:
    """The numbers of a text in their order; those in words where there is no digit."""
    found = [_value(each[0]) for each in _NUMBER.finditer(_NAMED.sub(" ", text))]
    if found:
        return found
    known = _WORDS.split()
    return [known.index(w) for w in re.findall(r"[a-z]+", text.casefold()) if w in known]


def _value(text: str) -> int:
    digits = text.replace(",", "").replace("−", "-").partition(".")[0]
    return int(digits, 16) if "x" in digits.casefold() else int(digits)


def _path(text: str, right: str) -> Score:
    named = _PATH.search(text.replace("\\", "/"))
    if named is None:
        return Score(value=0.0, parse_ok=False)
    path = named[0].lstrip("./")
    same = f"/{right}".endswith(f"/{path}") or f"/{path}".endswith(f"/{right}")
    return Score(value=float(same), parsed=path)


def _name(text: str, right: str, names: list[str]) -> Score:
    found = []
    for name in names:
        place = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE)
        if place is not None:
            found.append((place.start(), name))
    if not found:
        return Score(value=0.0, parsed=None, parse_ok=len(names) == 1 and bool(text))
    first = min(found)[1]
    return Score(value=float(first == right), parsed=first)


def failure_of(record: Record) -> str | None:
    """Return which of `FAILURES` a record is; None where it is right."""
    if record.error is not None:
        return "error"
    if record.score == 1.0:
        return None
    if record.stop_reason == "timeout":
        return "timeout"
    if record.stop_reason == "errors" and not record.answer.strip():
        return "error"
    if record.stop_reason != "answered":
        return "stopped"
    if not record.answer.strip() or record.answer.startswith(_NONE_REACHED):
        return "no answer"
    if denies(record.answer):
        return "denied"
    return "wrong" if record.parse_ok else "format"

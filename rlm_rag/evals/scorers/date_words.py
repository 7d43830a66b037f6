"""The words of a date as dateutil's parser (2.9) tells them apart, and what each of them means."""

from __future__ import annotations

import re
from collections.abc import Sequence

PASSED = frozenset(
    (
        *(" ", ".", ",", ";", "-", "/", "'"),
        *("at", "on", "and", "ad", "m", "t", "of", "st", "nd", "rd", "th"),
    )
)
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def _numbered(names: Sequence[str], first: int) -> dict[str, int]:
    """Each name, whole and by its first three letters."""
    lowered = [name.lower() for name in names]
    return {form: number for number, name in enumerate(lowered, first) for form in (name, name[:3])}


MONTHS = _numbered(_MONTHS, 1) | {"sept": 9}
WEEKDAYS = _numbered(_WEEKDAYS, 0)
UNITS = {"h": 0, "hour": 0, "hours": 0, "m": 1, "minute": 1, "minutes": 1}
UNITS |= {"s": 2, "second": 2, "seconds": 2}
HALVES = {"am": 0, "a": 0, "pm": 12, "p": 12}

# Letters, digits, and what is joined to them by dots, or to two digits by a comma.
_JOINED = re.compile(r"[.,]")


def tokens_of(text: str) -> list[str]:
    """Return words, numbers and single marks, in their order; a space stands for any white space.

    What dots join is one token until it is seen whole: a number with one dot in it stays one.
    """
    text = text.replace("\0", "")
    tokens: list[str] = []
    at = 0
    while at < len(text):
        end = _end_of_run(text, at)
        run = " " if text[at].isspace() else text[at:end]
        tokens += _pieces(run, is_last=end == len(text))
        at = end
    return tokens


def _end_of_run(text: str, at: int) -> int:
    """Return where the token that begins at a place ends, before its parts are told apart."""
    letters, dotted = text[at].isalpha(), False
    if not letters and not text[at].isdigit():
        return at + 1
    end = at + 1
    while end < len(text):
        mark, after_dot = text[end], text[end - 1] == "."
        if mark == "." or (mark == "," and not letters and not dotted and end - at >= 2):
            dotted = True
        elif mark.isalpha() and (letters or after_dot):
            letters = True
        elif mark.isdigit() and (not letters or after_dot):
            letters = False
        else:
            break
        end += 1
    return end


def _pieces(run: str, *, is_last: bool) -> list[str]:
    if not (run[0].isalnum() and _JOINED.search(run)):
        return [run]
    # A letter that ends the text is not seen.
    has_letters = any(mark.isalpha() for mark in (run[:-1] if is_last else run))
    if has_letters or run.count(".") > 1 or run[-1] in ".,":
        return [piece for piece in re.split(r"([.,])", run) if piece]
    return [run if "." in run else run.replace(",", ".")]

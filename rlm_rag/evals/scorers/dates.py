"""Reads a date as people write it."""

from __future__ import annotations

import re
from datetime import date

_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_WORD = re.compile(r"[A-Za-z]+|\d+(?:st|nd|rd|th)?")
_ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th)")
_ISO = re.compile(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})")
_NUMBERS = re.compile(r"(\d{1,2})[-/.](\d{1,2})[-/.](\d{4}|\d{2})")
_TIME = re.compile(r"(?:[T ]+0{1,2}:0{2}(?::0{2})?)?")
_WEEKDAY = re.compile(
    r"(?i)^(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?[\s,.]+"
)
# Two digits: dateutil reads what is less than 50 years ahead as of this century.
_CENTURY = 2000


def parse_date(text: str) -> date | None:
    """Return the day that a text names, all of it: year, month and day; None if it does not.

    As dateutil's parser, which OOLONG uses, reads them: `2023-01-06`, `01/06/2023` (the month
    first, unless it cannot be one), `Jan 6, 2023`, `6th of January 2023`, with a weekday before.
    dateutil also takes what is missing from the day of the run; here that names no day, so that
    a score never depends on when it was computed.
    """
    text = _WEEKDAY.sub("", text.strip().rstrip("."))
    if found := _matched(_ISO, text):
        return _day(int(found[1]), int(found[2]), int(found[3]))
    if found := _matched(_NUMBERS, text):
        first, second, year = (int(part) for part in found.groups())
        year += _CENTURY if year < 100 else 0
        return _day(year, second, first) if first > 12 else _day(year, first, second)
    return _in_words(text)


def _matched(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    found = pattern.match(text)
    return found if found is not None and _TIME.fullmatch(text, found.end()) else None


def _in_words(text: str) -> date | None:
    month, numbers = 0, []
    for word in _WORD.findall(text):
        if word[0].isdigit():
            ordinal = _ORDINAL.fullmatch(word)
            numbers.append(int(ordinal[1] if ordinal else word))
        elif named := _month(word):
            if month:
                return None
            month = named
        elif word.lower() not in ("of", "the"):
            return None
    if not month or len(numbers) != 2:
        return None
    day, year = numbers if numbers[0] <= 31 else reversed(numbers)
    return _day(year + _CENTURY if year < 100 else year, month, day)


def _month(word: str) -> int:
    lowered = word.lower()
    for number, name in enumerate(_MONTHS, 1):
        if lowered == name or (len(lowered) in (3, 4) and name.startswith(lowered)):
            return number
    return 0


def _day(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None

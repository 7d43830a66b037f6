"""Reads a date as dateutil's parser (2.9) does: OOLONG's rule uses it, with all its quirks.

What a text does not say is taken from a day that is given, so that a score depends on what came
back and when, and not on when it is computed.
"""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import date, timedelta
from decimal import Decimal, InvalidOperation

from rlm_rag.evals.scorers.date_parts import DateParts
from rlm_rag.evals.scorers.date_words import HALVES, MONTHS, PASSED, UNITS, WEEKDAYS, tokens_of

# Two digits are a year of at most so many behind the present one, or less than so many ahead.
_NEAR_YEARS = 50
_YEAR = 2025
"""The present year where no day is given."""
_ZONE = re.compile(r"[A-Z]{1,5}|z")
_KNOWN_ZONES = ("UTC", "GMT", "Z", "z")


def parse_date(text: str, today: date | None) -> date | None:
    """Return the day that a text without a colon names, None where the rule reads none.

    Such as `2023-01-06`, `01/06/2023` (the month first, unless it cannot be one), `Jan 6, 2023`,
    `6th of January 2023`, `20230106`. What is missing of year, month and day is that of `today`,
    and a weekday without a day is the next one; with None a date in part names no day. A time
    other than midnight, or with a zone, is no day, whatever its date.
    """
    try:
        return _Reading(tokens_of(text), _YEAR if today is None else today.year).day(today)
    except (ValueError, IndexError, OverflowError, InvalidOperation):
        # Whatever keeps a text from being read, it names no day.
        return None


class _Reading:
    """What the tokens of a text say, `present` being the year.

    Raises:
        ValueError, IndexError, OverflowError, InvalidOperation: they are no date.
    """

    def __init__(self, tokens: list[str], present: int) -> None:
        self._tokens = tokens
        self._present = present
        self._at = 0
        self._parts = DateParts()
        self._weekday: int | None = None
        self._hour: int | None = None
        # Minutes, seconds and less, as far as they are said.
        self._less: dict[int, Decimal | int] = {}
        self._has_zone = False
        while self._at < len(tokens):
            self._take(tokens[self._at])
            self._at += 1

    def day(self, today: date | None) -> date | None:
        """Return the day; None where the text says none, or a time of it."""
        year, month, day = self._parts.named()
        if self._hour or any(self._less.values()) or self._is_empty():
            return None
        if year is not None and not self._parts.is_year_whole:
            year = _near(year, self._present)
        if today is None:
            if year is None or month is None or day is None:
                return None
            return date(year, month, day)
        year, month = today.year if year is None else year, today.month if month is None else month
        if day is not None:
            found = date(year, month, day)
        else:
            found = date(year, month, min(today.day, monthrange(year, month)[1]))
        if self._weekday is not None and not day:
            found += timedelta((self._weekday - found.weekday()) % 7)
        return found

    def _is_empty(self) -> bool:
        has_time = self._hour is not None or bool(self._less)
        return not self._parts.numbers and self._weekday is None and not has_time

    def _take(self, token: str) -> None:
        word = token.lower()
        if _is_number(token):
            self._number(token)
        elif word in WEEKDAYS:
            self._weekday = WEEKDAYS[word]
        elif word in MONTHS:
            self._month(MONTHS[word])
        elif word in HALVES:
            if self._hour is None or not 0 <= self._hour <= 12:
                raise ValueError("half of a day without its hour")
            self._hour = _of_half(self._hour, HALVES[word])
        elif self._hour is not None and not self._has_zone and _ZONE.fullmatch(token):
            # A zone of no known name counts as none.
            if token in _KNOWN_ZONES:
                raise ValueError("a time in a zone")
            self._has_zone = True
        elif self._hour is not None and token in ("+", "-"):
            raise ValueError("a time in a zone")
        elif word not in PASSED:
            raise ValueError("a word of no date")

    def _ahead(self, steps: int) -> str:
        """Return a token further on; empty behind the last."""
        at = self._at + steps
        return self._tokens[at] if at < len(self._tokens) else ""

    def _month(self, month: int) -> None:
        self._parts.add(month, "month")
        mark = self._ahead(1)
        if mark in ("-", "/") and mark:
            self._parts.add(self._tokens[self._at + 2])
            if self._ahead(3) == mark:
                self._parts.add(self._tokens[self._at + 4])
                self._at += 2
            self._at += 2
        elif mark == self._ahead(3) == " " and self._ahead(2).lower() == "of" and self._ahead(4):
            if self._ahead(4).isdigit():
                self._parts.add(str(_near(int(self._ahead(4)), self._present)), "year")
            self._at += 4

    def _number(self, token: str) -> None:
        value, size, after = Decimal(token), len(token), self._ahead(1)
        if not value.is_finite():
            raise ValueError("no number of a date")
        is_fourth = len(self._parts.numbers) == 3 and size in (2, 4) and self._hour is None
        if is_fourth and after.lower() not in UNITS:
            self._time(token[:2], token[2:])
        elif size == 6 or (size > 6 and token.find(".") == 6):
            self._six(token)
        elif size in (8, 12, 14):
            self._parts.add(token[:4], "year")
            self._parts.add(token[4:6])
            self._parts.add(token[6:8])
            if size > 8:
                self._time(token[8:10], token[10:12], token[12:])
        elif (unit := self._unit()) is not None:
            self._in_unit(value, unit)
        elif after in ("-", "/", ".") and after:
            self._joined(token, after)
        elif not after or after.lower() in PASSED:
            if self._ahead(2).lower() in HALVES:
                self._hour = _of_half(int(value), HALVES[self._ahead(2).lower()])
                self._at += 1
            else:
                self._parts.add(value)
            self._at += 1
        elif after.lower() in HALVES and 0 <= value < 24:
            self._hour = _of_half(int(value), HALVES[after.lower()])
            self._at += 1
        elif self._parts.could_be_day(value):
            self._parts.add(value)
        else:
            raise ValueError("a number that is no part of a date")

    def _six(self, token: str) -> None:
        """Two digits each of a date, or behind one of a time, which may have a fraction."""
        if self._parts.numbers or "." in token:
            second, _, less = token[4:].partition(".")
            self._time(token[:2], token[2:4], second, less)
            return
        for part in (token[:2], token[2:4], token[4:]):
            self._parts.add(part)

    def _time(self, hour: str, *less: str) -> None:
        self._hour = int(hour)
        self._less |= {unit: int(part) for unit, part in enumerate(less, 1) if part}

    def _joined(self, token: str, mark: str) -> None:
        """A number with a mark behind it, and up to two parts behind that: `6-Jan-2023`."""
        self._parts.add(token)
        second = self._ahead(2)
        if second and second.lower() not in PASSED:
            self._add_joined(second)
            if self._ahead(3) == mark:
                self._add_joined(self._tokens[self._at + 4])
                self._at += 2
            self._at += 1
        self._at += 1

    def _add_joined(self, token: str) -> None:
        month = MONTHS.get(token.lower())
        if month is None:
            self._parts.add(token)
        else:
            self._parts.add(month, "month")

    def _unit(self) -> int | None:
        """Return of which unit of time the number is: 0 hours to 2 seconds, 3 less; None: none.

        That of a word behind it, which is passed then, else one less than that before it.
        """
        before = [token.lower() for token in self._tokens[max(0, self._at - 2) : self._at]]
        is_last = self._at == len(self._tokens) - 1
        if self._ahead(1).lower() in UNITS:
            self._at += 1
        elif self._ahead(1) == " " and self._ahead(2).lower() in UNITS:
            self._at += 2
        elif before and before[-1] in UNITS:
            return UNITS[before[-1]] + 1
        elif is_last and len(before) == 2 and before[1] == " " and before[0] in UNITS:
            return UNITS[before[0]] + 1
        else:
            return None
        return UNITS[self._tokens[self._at].lower()]

    def _in_unit(self, value: Decimal, unit: int) -> None:
        whole, part = int(value), value % 1
        if unit == 0:
            self._hour = whole
        elif unit < 3:
            self._less[unit] = whole
        if part and unit < 3:
            self._less[unit + 1] = part


def _is_number(token: str) -> bool:
    try:
        float(token)
    except ValueError:
        return False
    return True


def _near(year: int, present: int) -> int:
    """Return a year with its century, where it has none."""
    if year >= 100:
        return year
    year += present // 100 * 100
    if year >= present + _NEAR_YEARS:
        return year - 100
    return year + 100 if year < present - _NEAR_YEARS else year


def _of_half(hour: int, half: int) -> int:
    """Return the hour of a day of 24 from that of one of its halves, which begins at `half`."""
    if half and hour < half:
        return hour + half
    return 0 if not half and hour == 12 else hour

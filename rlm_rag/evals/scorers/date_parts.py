"""Two or three numbers of a date, and which of them is the year, the month and the day."""

from __future__ import annotations

from calendar import monthrange
from decimal import Decimal
from typing import Literal

Kind = Literal["year", "month", "day"]
Named = tuple[int | None, int | None, int | None]
_KINDS: tuple[Kind, ...] = ("year", "month", "day")
_MAX_DAY, _MAX_MONTH = 31, 12
_LEAP_YEAR = 2000


class DateParts:
    """Takes numbers in their order, and names them as dateutil's parser does: the month first.

    `is_year_whole` says that one of them has its century.
    """

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.is_year_whole = False
        self._places: dict[Kind, int] = {}

    def add(self, number: str | Decimal | int, kind: Kind | None = None) -> None:
        """Take the next number; three digits, or more than 100, are a year.

        Raises:
            ValueError: it is none, or there is one of its kind already.
        """
        is_long = number.isdigit() and len(number) > 2 if isinstance(number, str) else number > 100
        if is_long:
            self.is_year_whole = True
            if kind not in (None, "year"):
                raise ValueError("a year where another part stands")
            kind = "year"
        self.numbers.append(int(number))
        if kind is not None:
            if kind in self._places:
                raise ValueError(f"a second {kind}")
            self._places[kind] = len(self.numbers) - 1

    def could_be_day(self, value: Decimal) -> bool:
        """Whether a number is a day of the month, as far as that is known."""
        if "month" not in self._places:
            return 1 <= value <= _MAX_DAY
        year = self._of("year") if "year" in self._places else _LEAP_YEAR
        return 1 <= value <= monthrange(year, self._of("month"))[1]

    def named(self) -> Named:
        """Return year, month and day; None for what is missing.

        Raises:
            ValueError: there are more than three numbers.
        """
        numbers, places = self.numbers, dict(self._places)
        if len(numbers) == 3 and len(places) == 2:
            (free,) = {0, 1, 2} - set(places.values())
            places[next(kind for kind in _KINDS if kind not in places)] = free
        if len(numbers) == len(places) > 0:
            year, month, day = (numbers[places[k]] if k in places else None for k in _KINDS)
            return year, month, day
        if len(numbers) > 3:
            raise ValueError("more than three numbers")
        if len(numbers) == 3:
            return self._of_three(*numbers)
        return self._of_two()

    def _of(self, kind: Kind) -> int:
        return self.numbers[self._places[kind]]

    def _of_two(self) -> Named:
        numbers, month_at = self.numbers, self._places.get("month")
        if len(numbers) == 2 and month_at is None:
            first, second = numbers
            if first > _MAX_DAY:
                return first, second, None
            return (second, first, None) if second > _MAX_DAY else (None, first, second)
        if not numbers:
            return None, None, None
        other = numbers[0 if month_at is None else 1 - month_at]
        month = None if month_at is None else numbers[month_at]
        return (other, month, None) if other > _MAX_DAY else (None, month, other)

    def _of_three(self, first: int, second: int, third: int) -> Named:
        month_at = self._places.get("month")
        if month_at == 0:
            return (second, first, third) if second > _MAX_DAY else (third, first, second)
        if month_at == 1:
            return (first, second, third) if first > _MAX_DAY else (third, second, first)
        if month_at == 2:
            return (second, third, first) if second > _MAX_DAY else (first, third, second)
        if first > _MAX_DAY or self._places.get("year") == 0:
            return first, second, third
        return (third, second, first) if first > _MAX_MONTH else (third, first, second)

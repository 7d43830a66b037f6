"""Dates are read as dateutil reads them."""

from __future__ import annotations

import warnings
from datetime import date, datetime, time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlm_rag.evals.scorers.dates import parse_date

TODAY = date(2026, 11, 30)
SIXTH = date(2023, 1, 6)


@pytest.mark.parametrize(
    ("text", "day"),
    [
        *((one, SIXTH) for one in ("2023-01-06", "01/06/2023", "Jan 6, 2023", "20230106")),
        *((one, SIXTH) for one in ("6th of January 2023", "Friday, January 6, 2023")),
        *((one, SIXTH) for one in ("06 Jan 2023", "2023/1/6", "1.6.23", "Jan 06 2023.")),
        *((one, SIXTH) for one in ("Jan 6th, 2023", "2023 January 6", "on Jan 6 2023", "6-Jan-23")),
        *((one, SIXTH) for one in ("2023 Jan 6 12 am", "20230106T0000")),
        ("13/02/2023", date(2023, 2, 13)),
        ("Sept 5, 2023", date(2023, 9, 5)),
        ("Jan 6, 75", date(2075, 1, 6)),
        ("Jan 6, 76", date(1976, 1, 6)),
        # A comma behind two digits is a decimal point.
        ("Jan 06,2023", date(2026, 1, 6)),
        ("January 2023", date(2023, 1, 30)),
        ("Feb of 23", date(2023, 2, 28)),
        ("5", date(2026, 11, 5)),
        ("Monday", TODAY),
        ("Tuesday", date(2026, 12, 1)),
        *((one, None) for one in ("the 6th of January 2023", "2023-13-01", "Jan 6 2023 10 am")),
        *((one, None) for one in ("today", "", "of", "nan", "2023-01-06 00 UTC", "1 2 3 4 5")),
    ],
)
def test_a_date_is_read_with_what_is_missing_from_today(text: str, day: date | None) -> None:
    assert parse_date(text, TODAY) == day


@pytest.mark.parametrize("text", ["January 2023", "5", "Monday", "Jan 06,2023"])
def test_without_a_today_a_date_in_part_is_none(text: str) -> None:
    assert parse_date(text, None) is None
    assert parse_date("Jan 6, 2023", None) == SIXTH


@given(st.dates(min_value=date(1990, 1, 1), max_value=date(2099, 12, 31)))
def test_every_day_is_read_back_in_every_form(day: date) -> None:
    for form in ("%Y-%m-%d", "%m/%d/%Y", "%b %d, %Y", "%d %B %Y", "%A, %B %d, %Y"):
        assert parse_date(day.strftime(form), TODAY) == day


WORDS = ["Jan", "september", "Sept", "Mon", "friday", "of", "the", "on", "st", "th", "T", "m"]
WORDS += ["am", "p", "h", "minutes", "s", "UTC", "EST", "ad", "inf", "x", "+", "(", "'"]
numbers = st.one_of(
    st.integers(0, 45).map(str),
    st.integers(0, 99).map("{:02}".format),
    st.integers(1900, 2100).map(str),
    st.integers(0, 10**6 - 1).map("{:06}".format),
    st.dates(date(1960, 1, 1), date(2080, 1, 1)).map("{:%Y%m%d}".format),
    st.integers(0, 99).flatmap(lambda one: st.integers(0, 99).map(lambda two: f"{one}.{two}")),
)
marks = st.sampled_from([" ", " ", "-", "/", ".", ",", ""])
texts = st.lists(st.one_of(numbers, marks, marks, st.sampled_from(WORDS)), max_size=9).map("".join)


@settings(max_examples=300)
@given(texts)
def test_whatever_dateutil_reads_is_read(text: str) -> None:
    parser = pytest.importorskip("dateutil.parser")
    # Its present is the clock's.
    today = date.today()
    try:
        with warnings.catch_warnings(action="ignore"):
            found = parser.parse(text, default=datetime.combine(today, time()))
    except (parser.ParserError, OverflowError, AttributeError, TypeError, AssertionError):
        found = None
    is_day = found is not None and found.tzinfo is None and found.time() == time()
    assert parse_date(text, today) == (found.date() if is_day else None)

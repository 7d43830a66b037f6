"""What a block leaves out of what its question names of records."""

from __future__ import annotations

import pytest

from rlm_rag.engine.left_out import left_out

NAMED = (("Calder",), ("LATE", "LOST"))


@pytest.mark.parametrize(
    ("code", "missing"),
    [
        ("n = len(records('a.csv'))", ("Calder",)),
        ("n = [r for r in records('a.csv') if r['depot'] == 'Calder']", ("LATE", "LOST")),
        ("rows = records('a.csv')\nFINAL(f'{len(rows)} of Calder are late')", ("Calder",)),
        ("rows = records('a.csv')\nFINAL('2 of Calder are late')", ("Calder",)),
        ("rows = records('a.csv')\nprint('Calder', 'LATE', len(rows))", ("Calder",)),
    ],
)
def test_a_value_that_nothing_is_held_against_is_left_out(
    code: str, missing: tuple[str, ...]
) -> None:
    assert left_out(code, NAMED) == missing


@pytest.mark.parametrize(
    "code",
    [
        "n = [r for r in records('a.csv') if r['depot'] == 'Calder' and r['s'] == 'LOST']",
        "n = [r for r in records('a.csv') if r['depot'] == 'Calder' and r['s'].lower() == 'late']",
        "rs = records('a')\nFINAL(f\"{sum(r['d'] == 'Calder' and r['s'] == 'LATE' for r in rs)}\")",
        "rs = records('a')\nFINAL(len([r for r in rs if (r['d'], r['s']) == ('Calder', 'LATE')]))",
        "FINAL(str(len(rows)))",
        "n = grep_context('^LATE')['total']",
        "rows = records('a.csv'",
        f"n = {'(' * 80}records{')' * 80}, 'Calder', 'late'",
    ],
)
def test_nothing_is_left_out_where_each_column_has_a_value_or_no_records_are_read(
    code: str,
) -> None:
    assert not left_out(code, NAMED)


def test_nothing_is_left_out_where_the_question_names_nothing() -> None:
    assert not left_out("n = len(records('a.csv'))", ())

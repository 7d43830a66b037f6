"""A cell says what became of every sample, and hides none."""

import pytest

from rlm_rag.evals.reports.cells import cells_of
from tests.evals.toys import record


def test_errors_parse_failures_and_limits_have_columns_of_their_own():
    from dataclasses import replace

    records = [
        record(0, 1.0, usd=0.5),
        replace(record(1, 0.0), parse_ok=False),
        replace(record(2, 0.5), stop_reason="iterations"),
        record(3, None, usd=0.25),
    ]
    (cell,) = cells_of(records)
    assert (cell.n, cell.scored, cell.errors, cell.unparsed, cell.stopped) == (4, 3, 1, 1, 1)
    assert cell.score == pytest.approx(0.5)
    assert cell.usd == 0.75
    assert cell.error_kinds == {"model_timeout": 1}


def test_an_unknown_price_makes_the_sum_unknown_and_all_errors_no_score():
    (cell,) = cells_of([record(0, None, usd=None), record(1, None)])
    assert (cell.usd, cell.usd_per_sample, cell.score, cell.low) == (None, None, None, None)
    assert (cell.n, cell.errors, cell.seconds_p50) == (2, 2, None)


def test_lengths_fall_into_buckets_and_a_last_cell_has_them_all():
    records = [record(n, 1.0, length=length) for n, length in enumerate((9000, 16384, 100))]
    cells = cells_of(records)
    assert [(cell.length, cell.n) for cell in cells] == [("128", 1), ("16k", 2), ("all", 3)]


def test_a_length_that_no_task_knows_is_that_of_what_was_loaded():
    records = [record(0, length=None, total_bytes=40_000), record(1, None, length=None)]
    assert {cell.length for cell in cells_of(records)} == {"16k", "?", "all"}


def test_a_length_that_was_asked_for_is_named_as_it_was():
    records = [record(0, length=10 << 20), record(1, length=9000)]
    cells = cells_of(records, lengths=[10 << 20])
    assert [cell.length for cell in cells] == ["16k", "10m", "all"]
    assert cells[1].length_tokens == 10 << 20


def test_strategies_are_apart_and_one_length_needs_no_sum():
    cells = cells_of([record(0, 1.0), record(0, 0.0, strategy="direct")])
    assert [(cell.strategy, cell.score) for cell in cells] == [("rlm", 1.0), ("direct", 0.0)]


def test_joint_samples_count_once_with_the_least_and_fail_together():
    records = [
        record(0, 1.0, joint="book"),
        record(1, 0.0, joint="book"),
        record(2, 1.0, joint="play"),
        record(3, 1.0, joint="play"),
        record(4, 1.0, joint="poem"),
        record(5, None, joint="poem"),
    ]
    (cell,) = cells_of(records)
    assert (cell.n, cell.scored, cell.errors, cell.score) == (3, 2, 1, 0.5)

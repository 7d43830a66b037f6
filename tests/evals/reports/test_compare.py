"""Samples are compared with themselves alone."""

import pytest

from rlm_rag.errors import UsageError
from rlm_rag.evals.config import RunConfig
from rlm_rag.evals.record import from_dict
from rlm_rag.evals.reports.compare import compare
from rlm_rag.evals.run_folder import RunFolder
from tests.evals.toys import record


@pytest.fixture
def run(tmp_path):
    def made(name, records, strategies):
        config = RunConfig(tasks=("toy",), strategies=strategies)
        folder = RunFolder.create(tmp_path / name, config)
        with folder.appending() as appender:
            for each in records:
                appender.append(from_dict(each.to_dict() | {"config": folder.digest}))
        return folder

    return made


def test_strategies_of_one_run_are_compared_with_the_first(run):
    first = [record(n, float(n < 8)) for n in range(10)]
    second = [record(n, float(n in (0, 9)), strategy="direct") for n in range(10)]
    (found,) = compare([run("x", first + second, ("rlm", "direct"))])
    assert (found.first, found.second, found.pairs, found.unpaired) == ("rlm", "direct", 10, 0)
    assert found.difference == pytest.approx(0.6)
    assert (found.only_first, found.only_second) == (7, 1)
    assert found.p == pytest.approx(2 * 9 / 256)
    assert found.low <= 0.6 <= found.high


def test_runs_are_paired_by_strategy_and_what_is_not_the_same_is_not_paired(run):
    one = run("one", [record(n, 1.0) for n in range(6)], ("rlm",))
    other = [record(n, 0.5) for n in range(4)] + [record(4, None)]
    changed = from_dict(record(0, 0.0).to_dict() | {"gold": "another"})
    two = run("two", [changed, *other[1:]], ("rlm",))
    (found,) = compare([one, two])
    assert (found.first, found.second) == ("one: rlm", "two: rlm")
    assert (found.pairs, found.unpaired) == (3, 3)
    assert found.difference == 0.5
    # Half right is not right: of three pairs only the first run had each fully.
    assert (found.only_first, found.only_second) == (3, 0)


def test_runs_of_one_strategy_each_are_compared_whatever_it_is(run):
    one = run("one", [record(0, 1.0)], ("rlm",))
    two = run("two", [record(0, 0.0, strategy="direct")], ("direct",))
    (found,) = compare([one, two])
    assert (found.difference, found.low, found.high) == (1.0, None, None)


def test_what_cannot_be_compared_is_refused(run):
    one = run("one", [record(0)], ("rlm",))
    with pytest.raises(UsageError, match="one strategy"):
        compare([one])
    with pytest.raises(UsageError, match="both sides"):
        compare([one, run("two", [record(1)], ("rlm",))])

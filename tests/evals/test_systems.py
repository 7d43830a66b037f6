"""Other people's systems are asked beside the strategies, and fail alone."""

from __future__ import annotations

import pytest

from benchmarks.entry_points import registered
from rlm_rag.errors import UsageError
from rlm_rag.evals.config import SYSTEMS, RunConfig
from rlm_rag.evals.costs import cost_of
from rlm_rag.evals.record import Spent
from rlm_rag.evals.run_folder import RunFolder
from rlm_rag.evals.runner import resume, start
from rlm_rag.evals.systems import SystemAnswer, find_system
from tests.evals.toys import Toy, install


class Echo:
    """Knows the number of a question by its words, and breaks at 2."""

    async def answer(self, corpus, question, *, models, limits):
        number = question.split()[4]
        if number == "2":
            raise RuntimeError("it broke")
        assert f"{number}.txt" in corpus.paths()
        return SystemAnswer(text=number, spent=Spent(1, 100, 3))


class NoSystem:
    pass


@pytest.fixture
def config(monkeypatch):
    install(monkeypatch, Toy())
    rows = {"echo": f"{__name__}:Echo", "none": f"{__name__}:NoSystem", "gone": "nowhere:None"}
    with registered({SYSTEMS: rows}):
        yield RunConfig(tasks=("toy",), strategies=("echo", "search"), parallel=1)


def test_a_system_is_scored_like_a_strategy_and_what_it_breaks_at_is_an_error(config, tmp_path):
    ended = start(config, tmp_path / "run")
    assert (ended.total, ended.done, ended.errors) == (8, 7, 1)
    records = RunFolder.open(tmp_path / "run").records().values()
    echo = [each for each in records if each.strategy == "echo"]
    assert [each.score for each in echo] == [1.0, 1.0, None, 1.0]
    assert (echo[0].root, echo[0].calls, echo[0].stop_reason) == (Spent(1, 100, 3), 1, "answered")
    assert (echo[2].error.kind, echo[2].error.message) == ("system", "RuntimeError: it broke")


def test_a_run_goes_so_many_samples_far_at_a_time(config, tmp_path):
    assert start(config, tmp_path / "run", most=3).done == 3
    assert resume(tmp_path / "run", most=2).done == 4
    assert resume(tmp_path / "run").done == 7


def test_what_a_system_may_cost_is_not_known(config):
    assert cost_of(config).by_strategy == ()


@pytest.mark.parametrize(
    ("name", "said"),
    [("nobody", "no system is installed"), ("none", "is a NoSystem"), ("gone", "cannot be loaded")],
)
def test_what_is_no_system_is_told(name, said, config):
    with pytest.raises(UsageError, match=said):
        find_system(name)


def test_a_strategy_that_is_neither_ours_nor_installed_is_refused():
    with pytest.raises(UsageError, match="there is no strategy 'echo'"):
        RunConfig(tasks=("toy",), strategies=("echo",))

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rlm_rag.errors import UsageError
from rlm_rag.evals.base import TaskOptions
from rlm_rag.evals.tasks import TASKS, find_task, task_entries

MODULE = """
from rlm_rag.evals.base import Haystack, Sample, Score

class Colours:
    name = "colours"
    ranking = None

    def scorer(self, response, sample):
        return Score(value=float(response.text == sample.gold))

    def samples(self, options):
        haystack = Haystack("sky", lambda: [("sky.txt", "The sky is blue.")])
        yield Sample(id="1", question="Which colour?", haystack=haystack, gold="blue")

ready = Colours()
broken = 3

def failing():
    raise OSError("no disk")
"""

Install = Callable[[str], None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    def put(points: str) -> None:
        info = tmp_path / "colours_bench-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: colours-bench\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[rlm_rag.tasks]\n{points}\n")
        (tmp_path / "colours_bench.py").write_text(MODULE)
        monkeypatch.syspath_prepend(str(tmp_path))

    yield put  # type: ignore[misc]
    sys.modules.pop("colours_bench", None)


@pytest.mark.parametrize("attribute", ["Colours", "ready"])
def test_a_task_of_another_distribution_is_found_by_its_name(
    attribute: str, install: Install
) -> None:
    install(f"colours = colours_bench:{attribute}")
    (entry,) = [entry for entry in task_entries() if entry.name == "colours"]
    assert entry.summary == "of colours-bench"
    (sample,) = find_task("colours").samples(TaskOptions())
    assert sample.gold == "blue"


def test_listing_does_not_import_what_others_installed(install: Install) -> None:
    install("colours = colours_bench:Colours")
    task_entries()
    assert "colours_bench" not in sys.modules


def test_no_distribution_takes_the_name_of_a_task_of_the_table(install: Install) -> None:
    install("beir = colours_bench:Colours")
    assert type(find_task("beir")).__module__ == "rlm_rag.evals.beir"
    assert len([entry for entry in task_entries() if entry.name == "beir"]) == 1


@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        ("broken", "is a int"),
        ("failing", "no disk"),
        ("absent", "absent"),
    ],
)
def test_what_is_no_task_is_a_usage_error(attribute: str, message: str, install: Install) -> None:
    install(f"colours = colours_bench:{attribute}")
    with pytest.raises(UsageError, match=message):
        find_task("colours")


def test_the_table_says_what_each_task_needs() -> None:
    assert {entry.needs for entry in TASKS.values()} == {"nothing", "data", "corpus"}
    assert all(entry.summary for entry in task_entries())

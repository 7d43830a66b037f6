"""A real model of 1.5 billion parameters drives the REPL: four kinds of question."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rlm_rag
from benchmarks.small import records
from benchmarks.small.scoring import score
from benchmarks.small.sources import repository
from rlm_rag import Limits
from rlm_rag.evals.base import Haystack, Response, Sample

SIZE, SEED = "20kb", 11
"""Deliveries that no benchmark asks about."""
# Of two cores that others use too.
LIMITS = Limits(seconds=600)

DELIVERIES = records.deliveries(SEED, SIZE)
REFUSED = sum(each.status == "refused" for each in DELIVERIES)


@pytest.fixture
def folder(depots, tmp_path: Path) -> Iterator[rlm_rag.SearchableCorpus]:
    """Notes of depots, their deliveries, and some code: too much to be read at once."""
    (tmp_path / "deliveries.csv").write_text(records.files(SEED, SIZE)[0][1])
    for path, text in repository("json"):
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    with rlm_rag.load(tmp_path) as corpus:
        yield corpus


@pytest.mark.parametrize(
    ("question", "gold"),
    [
        pytest.param(
            "How many deliveries in deliveries.csv have the status refused?",
            {"number": REFUSED},
            id="counting",
        ),
        pytest.param(
            "What is the access code of the store room in Calder?", {"number": 48213}, id="needle"
        ),
        pytest.param(
            "On which port does the server listen that the scales of the depot Eskham report to?",
            {"number": 9120},
            id="lookup",
        ),
        pytest.param(
            "In which file is the function py_scanstring defined?",
            {"path": "json/decoder.py"},
            id="where is",
        ),
    ],
)
def test_it_answers(question: str, gold: dict[str, Any], root_model: str, folder) -> None:
    answer = rlm_rag.ask(
        folder, question, model=root_model, strategy="rlm", temperature=0.0, limits=LIMITS
    )
    sample = Sample(id="1", question=question, haystack=Haystack("1", list), gold=gold)
    found = score(Response(text=answer.text), sample)
    assert found.value == 1.0, f"it said {answer.text!r}; rlm-rag trace show {answer.trace}"
    assert answer.iterations > 1

"""A real model of 1.5 billion parameters drives the REPL: four kinds of question."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rlm_rag
from benchmarks.small.scoring import score
from benchmarks.small.sources import repository
from rlm_rag import Limits
from rlm_rag.evals.base import Haystack, Response, Sample

# Of two cores that others use too.
LIMITS = Limits(seconds=600)
STATUSES = ("delivered", "refused", "late")


@pytest.fixture
def folder(depots, tmp_path: Path) -> Iterator[rlm_rag.SearchableCorpus]:
    """Notes of three depots, and some code: too much to be read at once."""
    for path, text in repository("json"):
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    with rlm_rag.load(tmp_path) as corpus:
        yield corpus


@pytest.fixture
def records(tmp_path: Path) -> Iterator[rlm_rag.SearchableCorpus]:
    """Five hundred deliveries, every seventh of them refused."""
    rows = (f"D{n:04},{STATUSES[1] if n % 7 == 0 else STATUSES[n % 2 * 2]},{n}" for n in range(500))
    file = tmp_path / "deliveries.csv"
    file.write_text("\n".join(["id,status,amount", *rows]) + "\n")
    with rlm_rag.load(file) as corpus:
        yield corpus


def check(
    corpus: rlm_rag.SearchableCorpus, question: str, gold: dict[str, Any], model: str
) -> None:
    answer = rlm_rag.ask(
        corpus, question, model=model, strategy="rlm", temperature=0.0, limits=LIMITS
    )
    sample = Sample(id="1", question=question, haystack=Haystack("1", list), gold=gold)
    found = score(Response(text=answer.text), sample)
    assert found.value == 1.0, f"it said {answer.text!r}; rlm-rag trace show {answer.trace}"


def test_it_counts(records, root_model: str) -> None:
    check(records, "How many deliveries have the status refused?", {"number": 72}, root_model)


def test_it_finds_a_needle(folder, root_model: str) -> None:
    question = "What is the access code of the store room in Calder?"
    check(folder, question, {"number": 48213}, root_model)


def test_it_looks_a_fact_up(folder, root_model: str) -> None:
    question = "On which port does the server listen that the scales of the depot Eskham report to?"
    check(folder, question, {"number": 9120}, root_model)


def test_it_says_where_something_is(folder, root_model: str) -> None:
    question = "In which file is the function py_scanstring defined?"
    check(folder, question, {"path": "json/decoder.py"}, root_model)

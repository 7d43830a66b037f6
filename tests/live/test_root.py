"""A real model of 1.5 billion parameters answers four kinds of question as the root."""

from __future__ import annotations

import pytest

import rlm_rag
from benchmarks.small import documents, records
from benchmarks.small.scoring import score
from benchmarks.small.sources import repository
from rlm_rag import Limits
from rlm_rag.evals.base import Haystack, Response, Sample

SEED = 11
"""None of the benchmark's own."""
LIMITS = Limits(seconds=300)


def drawn(questions, kind):
    """The first question of a kind that is asked of more than the model could read at once."""
    return next(q for q in questions if q.kind == kind and q.corpus == "200kb")


def needle():
    question = drawn(documents.document_questions(SEED, 20), "needle")
    return documents.heap(SEED, "200kb").files(), question.text, question.gold


def lookup():
    question = drawn(documents.document_questions(SEED, 20), "fact")
    return documents.heap(SEED, "200kb").files(), question.text, question.gold


def counting():
    question = drawn(records.record_questions(SEED, 20), "count")
    return records.files(SEED, "200kb"), question.text, question.gold


def where_is():
    question = "In which file is the function py_scanstring defined? Give the path of the file."
    return repository("json"), question, {"path": "json/decoder.py"}


@pytest.fixture
def small_sizes(monkeypatch: pytest.MonkeyPatch):
    """Sizes that are not asked about are not worth writing."""
    for size in documents.SIZES:
        monkeypatch.setitem(documents.SIZES, size, 200 << 10)
    yield
    documents.heap.cache_clear()
    records.deliveries.cache_clear()


@pytest.mark.parametrize("kind", [counting, needle, lookup, where_is])
def test_it_answers(kind, root_model, small_sizes) -> None:
    files, question, gold = kind()
    with rlm_rag.load(list(files)) as corpus:
        answer = rlm_rag.ask(corpus, question, model=root_model, temperature=0.0, limits=LIMITS)
    sample = Sample(id="1", question=question, haystack=Haystack("1", list), gold=gold)
    assert score(Response(text=answer.text), sample).value == 1.0, (answer.text, answer.trace)

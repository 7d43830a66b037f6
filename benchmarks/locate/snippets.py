"""Does the first hit's snippet show the line that answers, beside the window's beginning?"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.locate.questions import Question, QuestionSet
from benchmarks.locate.rankers import Place
from benchmarks.locate.scores import holds
from rlm_rag.indexes.requests import MAX_SNIPPET_CHARS
from rlm_rag.lines import split_lines

_KEYS = (
    "access code",
    "launch date",
    "warehouse limit",
    "emergency contact",
    "gate number",
    "calibration constant",
    "backup interval",
    "discount threshold",
    "seating capacity",
    "shipping depot",
)
_CITIES = (
    "Lisbon", "Oslo", "Quito", "Nairobi", "Hanoi", "Turin", "Perth", "Gdansk", "Cusco", "Bergen",
    "Kyoto", "Tampere", "Leeds", "Malmo", "Porto", "Graz", "Lyon", "Ghent", "Bilbao", "Riga",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Shown:
    """Of the questions whose first hit held the gold line, how many showed it, and how."""

    asked: int
    first_hits: int
    by_snippet: int
    by_beginning: int


def needle_set(base: QuestionSet, *, count: int, seed: int = 0) -> QuestionSet:
    """Hide `count` sentences in the documents of a set, each asked for by its subject."""
    chosen = random.Random(seed)
    documents = dict(base.documents)
    long_enough = sorted(path for path, text in documents.items() if text.count("\n") > 60)
    paths = chosen.sample(long_enough, min(count, len(long_enough)))
    pairs = chosen.sample([(key, city) for key in _KEYS for city in _CITIES], len(paths))
    questions = []
    for path, (key, city) in zip(paths, pairs, strict=True):
        lines = documents[path].split("\n")
        at = chosen.randrange(len(lines))
        lines.insert(at, f"# The {key} for {city} is {chosen.randrange(10_000, 99_999)}.")
        documents[path] = "\n".join(lines)
        # `split` and the corpus count alike here: at least one LF is in each document.
        questions.append(
            Question(
                f"{key} {city}",
                f"What is the {key} for {city}?",
                frozenset((path,)),
                line=at + 1,
                gold_line=at + 1,
            )
        )
    return QuestionSet("needles", base.group, list(documents.items()), questions)


def shown(asked: QuestionSet, ranked: Sequence[Sequence[Place]]) -> Shown:
    """Count, over the own search's places for each question of a set."""
    lines_of = {path: split_lines(text) for path, text in asked.documents}
    first_hits = by_snippet = by_beginning = 0
    for question, places in zip(asked.questions, ranked, strict=True):
        if not places or not holds(question, places[0]):
            continue
        place, line = places[0], question.gold_line or 0
        first_hits += 1
        numbers = {shown.partition(":")[0] for shown in place.snippet.split("\n")}
        by_snippet += str(line) in numbers
        before = lines_of[place.path][place.first - 1 : line]
        by_beginning += len("\n".join(before)) <= MAX_SNIPPET_CHARS
    return Shown(len(asked.questions), first_hits, by_snippet, by_beginning)

from __future__ import annotations

import re
from collections import Counter, defaultdict
from datetime import date, datetime
from itertools import combinations

import pytest

from rlm_rag.evals.aggregation import AggregationTask
from rlm_rag.evals.base import Response, Sample, TaskOptions
from rlm_rag.evals.pairs import CONDITIONS, PairsTask, right_pairs, said
from rlm_rag.evals.records import LABELS, Record, records
from rlm_rag.evals.scorers.pairs import is_pair, pair_count

OPTIONS = TaskOptions(lengths=(4096,), count=20)


def record_of(user: int, label: str, day: str = "2023-03-01") -> Record:
    return Record(date.fromisoformat(day), user, label, "?")


def read_back(sample: Sample) -> list[tuple[date, int]]:
    ((_, text),) = sample.haystack.source()  # type: ignore[misc, union-attr]
    found = re.findall(r"^Date: (.+?) \|\| User: (\d+) \|\| Instance: (.+)$", text, re.MULTILINE)
    assert len(found) == text.count("\n") + 1
    return [(datetime.strptime(day, "%b %d, %Y").date(), int(user)) for day, user, _ in found]


def test_records_have_every_label_and_users_who_come_back() -> None:
    found = records("a key", 16384)
    assert {record.label for record in found} == set(LABELS)
    users = Counter(record.user for record in found)
    assert 2 < len(found) / len(users) < 10
    assert records("a key", 16384) == found
    assert records("another key", 16384) != found


def test_no_text_has_two_labels() -> None:
    labels = defaultdict(set)
    for record in records("a key", 65536):
        labels[record.text].add(record.label)
    assert all(len(own) == 1 for own in labels.values())


def test_haystacks_hold_the_records_without_their_labels() -> None:
    sample = next(AggregationTask().samples(OPTIONS))
    found = records(sample.haystack.key, 4096)
    assert read_back(sample) == [(record.day, record.user) for record in found]


@pytest.mark.parametrize("seed", [0, 1])
def test_every_answer_is_that_of_another_count(seed: int) -> None:
    asked = list(AggregationTask().samples(TaskOptions(lengths=(4096,), count=30, seed=seed)))
    assert len(asked) == 30
    for sample in asked:
        found = records(sample.haystack.key, 4096)
        assert str(sample.gold["answer"]) in recount(sample.question, found), sample.question


def recount(question: str, found: list[Record]) -> list[str]:
    """Answer a question from its words, in another way than the task does."""
    asked = question.split(f"{LABELS[-1]}. ")[1]
    label, user = re.search(r"label '([^']+)'", asked), re.search(r"user (\d+)", asked)
    before = re.search(r"before (\w+ \d+, \d+)", asked)
    kept = found
    if user:
        kept = [record for record in kept if record.user == int(user[1])]
    day = datetime.strptime(before[1], "%B %d, %Y").date() if before else None
    if asked.startswith("How many"):
        kept = [record for record in kept if label and record.label == label[1]]
        return [str(len([record for record in kept if day is None or record.day < day]))]
    if asked.startswith("Is the label"):
        one, other = re.findall(r"label '([^']+)'", asked)
        counts = Counter(record.label for record in kept)
        return [order(counts[one], counts[other])]
    if asked.startswith("Compare"):
        assert day is not None
        assert label is not None
        early = [record.label for record in kept if record.day < day]
        late = [record.label for record in kept if record.day >= day]
        share = [part.count(label[1]) / max(1, len(part)) for part in (early, late)]
        return [order(*share)]
    if "Which label" in asked:
        counts = Counter(record.label for record in kept)
        pick = min if "fewest" in asked else max
        best = pick(counts.get(name, 0) for name in LABELS)
        return [name for name in LABELS if counts.get(name, 0) == best]
    kept = [record for record in kept if label and record.label == label[1]]
    what = {"Which user": "{0.user}", "On which day": "{0.day}", "In which month": "{0.day:%B %Y}"}
    form = next(form for start, form in what.items() if asked.startswith(start))
    values = Counter(form.format(record) for record in kept)
    return [value for value, count in values.items() if count == max(values.values())]


def order(one: float, other: float) -> str:
    if one == other:
        return "same frequency"
    return "more common" if one > other else "less common"


def test_right_answers_score_one_in_the_form_that_is_asked_for() -> None:
    for sample in AggregationTask().samples(OPTIONS):
        form = re.search(r"in the form `(\w+): <", sample.question)
        assert form is not None
        response = Response(text=f"I counted.\n{form[1]}: {sample.gold['answer']}")
        score = AggregationTask().scorer(response, sample)
        assert (score.value, score.parse_ok) == (1.0, True)


def test_the_twenty_conditions_pick_the_pairs_that_they_say() -> None:
    entity, human, abbreviation = LABELS[2], LABELS[3], LABELS[0]
    found = [
        *(record_of(1, entity), record_of(1, abbreviation)),
        *(record_of(2, entity), record_of(2, entity)),
        *(record_of(3, entity, "2023-04-01"), record_of(3, human)),
    ]
    # 2: an entity or a human being, both.
    assert right_pairs(CONDITIONS[1], found) == ([1, 2, 3], [1, 2, 3])
    # 5: an entity or a number, all entities before March 15.
    assert right_pairs(CONDITIONS[4], found) == ([1, 2], [1, 2])
    # 11: an entity and an abbreviation; exactly one entity.
    left, right = right_pairs(CONDITIONS[10], found)
    assert (left, right) == ([1], [1, 3])
    assert pair_count(frozenset(left), frozenset(right)) == 1
    assert is_pair((1, 3), left, right)


def test_the_pairs_of_a_haystack_are_those_of_a_brute_force() -> None:
    samples = list(PairsTask().samples(OPTIONS))
    assert len(samples) == 20
    found = records(samples[0].haystack.key, 4096)
    counts: dict[int, Counter[str]] = defaultdict(Counter)
    for record in found:
        counts[record.user][record.label] += 1
    # Question 12 by its words, question 1 by its words.
    twelfth, first = samples[11].gold, samples[0].gold
    for a, b in combinations(sorted(counts), 2):
        wanted = any(
            counts[x]["numeric value"] >= 2
            and counts[y]["location"] >= 1
            and counts[y]["human being"] >= 1
            for x, y in ((a, b), (b, a))
        )
        assert is_pair((a, b), twelfth["left"], twelfth["right"]) == wanted
        both = all(counts[x]["numeric value"] + counts[x]["location"] >= 1 for x in (a, b))
        assert is_pair((a, b), first["left"], first["right"]) == both


def test_the_questions_are_different_and_name_every_label() -> None:
    texts = [said(condition) for condition in CONDITIONS]
    assert len(set(texts)) == 20
    assert all(label in text for text in texts for label in LABELS)
    assert "were asked after January 6, 2023" in texts[3]


def test_pairs_and_counts_are_asked_of_the_same_records() -> None:
    counted = next(AggregationTask().samples(OPTIONS))
    paired = next(PairsTask().samples(OPTIONS))
    assert counted.haystack == paired.haystack

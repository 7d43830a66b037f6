"""The questions for small models: equal for equal seeds, and right by another way of looking."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from itertools import groupby

import pytest

from benchmarks.small import documents, records, tasks
from benchmarks.small.questions import places
from benchmarks.small.repositories import repository_questions
from benchmarks.small.sources import repository
from rlm_rag.evals.base import TaskOptions

TESTS = "".join(f"def test_{name}():\n    assert True\n\n\n" for name in "abcd")


def library(name):
    """Packages of the standard library stand for the distributions, which have to be fetched."""
    files = repository("json" if name == "json" else "asyncio")
    return (*files, *((f"tests/test_{n}.py", TESTS * (n + 1)) for n in range(40)))


@pytest.fixture(scope="module")
def drawn():
    return list(repository_questions(0, 12, library))


def test_a_question_of_a_repository_is_drawn_alike_from_a_seed(drawn):
    assert list(repository_questions(0, 12, library)) == drawn
    assert [question.kind for question in drawn[:4]] == ["defined", "purpose", "constant", "tests"]
    assert len({question.text for question in drawn}) == 12


def test_questions_that_are_held_out_have_no_name_in_common_with_the_others(drawn):
    held = {question.text for question in repository_questions(1, 12, library)}
    assert held.isdisjoint(question.text for question in drawn)


def test_what_is_right_of_a_repository_stands_in_its_text(drawn):
    for question in drawn:
        files = dict(library(question.corpus))
        if question.kind == "defined":
            name = re.search(r"(?:function|class) (\w+) defined", question.text)[1]
            places = [
                p for p, t in files.items() if re.search(rf"(?m)^(def|class|async def) {name}\b", t)
            ]
            assert places == [question.gold["path"]]
        elif question.kind == "purpose":
            sentence = question.text.partition(": ")[2].removesuffix(" Give the path of the file.")
            assert [p for p, t in files.items() if sentence in t] == [question.gold["path"]]
        elif question.kind == "constant":
            name = question.text.split()[-1].rstrip("?")
            (value,) = [
                m[1] for t in files.values() for m in re.finditer(rf"(?m)^{name} = (\S+)", t)
            ]
            gold = question.gold
            assert int(value, 0) == gold["number"] if "number" in gold else gold["text"] in value
        else:
            path = question.text.partition("begin with test, does ")[2].split()[0]
            assert files[path].count("def test") == question.gold["number"]


def test_a_corpus_in_which_nothing_is_left_is_no_question():
    with pytest.raises(RuntimeError, match="that was not asked yet"):
        list(repository_questions(0, 1, lambda name: (("empty.py", ""),)))


def test_the_first_questions_have_every_kind_and_all_of_them_every_pair():
    made = list(places("abcd", "01234", 20))
    assert {place.kind for place in made[:4]} == set("abcd")
    assert len({(place.kind, place.corpus) for place in made}) == 20
    assert [place.number for place in made] == list(range(20))


@pytest.mark.parametrize("size", ["20kb", "200kb"])
def test_pages_have_their_size_and_hold_every_fact_once(size):
    files = documents.heap(0, size).files()
    text = "\n".join(content for _, content in files)
    assert files == documents.heap(0, size).files()
    assert 1 <= len(text) / documents.SIZES[size] <= 1.25
    lines = text.splitlines()
    for light in documents.heap(0, size).lights:
        (told,) = [
            line
            for line in lines
            if "metres high" in line or "rises to" in line
            if light.name in line
        ]
        assert {str(light.year), str(light.height)} <= set(re.findall(r"\d+", told))
    for name, code in documents.heap(0, size).codes.items():
        assert text.count(f"store room in {name} is {code}.") == 1


def test_what_is_right_of_documents_stands_in_the_pages(small_sizes):
    for question in documents.document_questions(3, 20):
        text = "\n".join(content for _, content in documents.heap(3, question.corpus).files())
        names = re.findall(r"\bof ([A-Z]\w+)|room in ([A-Z]\w+)", question.text)
        sentences = {
            name: [s for s in re.split(r"(?<=\.)\s|\n", text) if re.search(rf"\b{name}\b", s)]
            for name in (a or b for a, b in names)
        }
        if question.kind == "total":
            (name,) = sentences
            rows = text.partition(f"Visitors of the lighthouse of {name}:\n\n")[2].partition(
                "\n\n"
            )[0]
            total = sum(int(row.split("|")[2]) for row in rows.splitlines()[2:])
            assert question.gold == {"number": total}
            continue
        figures = {
            name: [int(n) for s in told for n in re.findall(r"\d+", s)]
            for name, told in sentences.items()
        }
        if question.kind != "comparison":
            assert question.gold["number"] in next(iter(figures.values()))
            continue
        by = min if "first" in question.text else max
        # Years are above every height.
        value = max if "first" in question.text else min
        assert question.gold["name"] == by(figures, key=lambda name: value(figures[name]))


def parsed(path, text):
    if path.endswith(".csv"):
        yield from csv.DictReader(io.StringIO(text))
    elif path.endswith(".jsonl"):
        yield from map(json.loads, text.splitlines())
    else:
        form = r"(\S+) (\w+) depot=(\w+) id=(\w+) amount=(\d+) note=(.*)"
        names = ("day", "status", "depot", "id", "amount", "note")
        for line in text.splitlines():
            yield dict(zip(names, re.fullmatch(form, line).groups(), strict=True))


def test_what_is_right_of_records_is_what_their_files_say(small_sizes):
    asked = Counter()
    for question in records.record_questions(5, 20):
        asked[question.kind] += 1
        files = records.files(5, question.corpus)
        assert 0.9 <= sum(len(t) for _, t in files) / (20 << 10) <= 1.1
        rows = [row for path, text in files for row in parsed(path, text)]
        status = re.search(r"status (\w+)", question.text)
        depot = re.search(r"the depot (\w+)", question.text)
        mine = [
            row
            for row in rows
            if (status is None or row["status"].lower() == status[1])
            and (depot is None or row["depot"] == depot[1])
        ]
        if question.kind.startswith("count"):
            assert question.gold == {"number": len(mine)}
        elif question.kind == "most":
            assert question.gold["name"] == Counter(r["depot"] for r in mine).most_common(1)[0][0]
        else:
            best = max(mine, key=lambda row: int(row["amount"]))
            assert question.gold in ({"name": best["id"]}, {"number": int(best["amount"])})
    assert set(asked) == set(records.KINDS)


def test_a_task_gives_the_samples_of_one_corpus_after_one_another(small_sizes):
    task = tasks.records_task()
    samples = list(task.samples(TaskOptions(count=8, seed=2)))
    corpora = [sample.meta["corpus"] for sample in samples]
    assert len(set(corpora)) == len(list(groupby(corpora)))
    assert len({sample.id for sample in samples}) == 8
    first = samples[0]
    assert first.haystack.source() == list(records.files(2, first.meta["corpus"]))

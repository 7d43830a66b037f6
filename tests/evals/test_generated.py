from __future__ import annotations

import json
import re
from collections import Counter

import pytest

from rlm_rag.errors import UsageError
from rlm_rag.evals.base import Response, Sample, Task, TaskOptions
from rlm_rag.evals.tasks import TASKS, find_task
from rlm_rag.models.tokens import count_tokens

GENERATED = [name for name, entry in TASKS.items() if entry.needs == "nothing"]
LEAST_FILLED = 0.95


def samples(name: str, **options: object) -> list[Sample]:
    return list(find_task(name).samples(TaskOptions(**options)))  # type: ignore[arg-type]


def documents(sample: Sample) -> list[tuple[str, str]]:
    return list(sample.haystack.source())  # type: ignore[arg-type]


def text_of(sample: Sample) -> str:
    return "\n".join(text for _, text in documents(sample))


def one(name: str, tokens: int = 8192, **options: object) -> Sample:
    return samples(name, lengths=(tokens,), count=1, **options)[0]


@pytest.mark.parametrize("name", GENERATED)
def test_a_seed_gives_the_same_samples_and_another_seed_others(name: str) -> None:
    asked = {"lengths": (1024, 2048), "count": 3}
    first, again, other = samples(name, **asked), samples(name, **asked), samples(name, seed=1)
    assert first == again
    assert [documents(sample) for sample in first] == [documents(sample) for sample in again]
    assert len({sample.id for sample in first}) == 6
    assert not {sample.haystack.key for sample in first} & {s.haystack.key for s in other}
    assert text_of(first[0]) != text_of(other[0])


@pytest.mark.parametrize("name", GENERATED)
@pytest.mark.parametrize("tokens", [4096, 65536])
def test_a_haystack_is_as_long_as_it_was_asked_for(name: str, tokens: int) -> None:
    sample = one(name, tokens)
    assert sample.length_tokens == tokens
    length = count_tokens("".join(text for _, text in documents(sample)))
    assert LEAST_FILLED * tokens <= length <= tokens


@pytest.mark.parametrize("name", GENERATED)
def test_golds_questions_and_ids_are_values_of_json(name: str) -> None:
    for sample in samples(name, lengths=(1024,), count=2):
        gold = [sample.gold, sample.id, sample.question, dict(sample.meta)]
        assert json.loads(json.dumps(gold)) == gold


@pytest.mark.parametrize("tokens", [0, 1023, (10 << 20) + 1])
def test_a_length_that_cannot_be_generated_is_refused(tokens: int) -> None:
    with pytest.raises(UsageError, match="cannot be generated"):
        samples("ruler:vt", lengths=(tokens,))


@pytest.mark.parametrize("name", [name for name in GENERATED if name.startswith("ruler:niah")])
def test_needles_lie_in_the_hay_and_have_no_second_value(name: str) -> None:
    task = find_task(name)
    for sample in samples(name, lengths=(4096,), count=3):
        text = text_of(sample)
        asked = re.search(r"secret \w+ of (.+) that the text mentions", sample.question)
        assert asked is not None
        keys = re.split(r", | and ", asked[1])
        found = re.findall(r"The secret \w+ of (\S+) is: (\S+)\.", text)
        assert sorted(value for key, value in found if key in keys) == sorted(sample.gold)
        assert task.scorer(Response(text=" ".join(sample.gold)), sample).value == 1.0
        assert task.scorer(Response(text="no idea"), sample).value == 0.0


def test_needles_lie_at_every_depth() -> None:
    depths = []
    for sample in samples("ruler:niah", lengths=(1024,), count=40):
        text = text_of(sample)
        depths.append(text.index(sample.gold[0]) / len(text))
    assert min(depths) < 0.15
    assert max(depths) > 0.85


def test_a_chain_of_variables_can_be_followed_to_the_value() -> None:
    sample = one("ruler:vt")
    value = re.search(r"value (\d{5})", sample.question)
    assert value is not None
    holders = {value[1]}
    for name, source in re.findall(r"VAR (\w+) = (?:VAR )?(\w+)", text_of(sample)):
        if source in holders:
            holders.add(name)
    assert holders - {value[1]} == set(sample.gold)
    assert len(sample.gold) == 5


@pytest.mark.parametrize("tokens", [1024, 8192])
def test_the_common_words_are_the_ten_most_common(tokens: int) -> None:
    sample = one("ruler:cwe", tokens)
    counts = Counter(line.split(". ")[1] for line in text_of(sample).splitlines())
    first = counts.most_common(11)
    assert {word for word, _ in first[:10]} == set(sample.gold)
    assert first[9][1] > first[10][1]
    assert set(counts.values()) == ({30, 3} if tokens >= 4096 else {6, 1})


@pytest.mark.parametrize("tokens", [1024, 8192])
def test_the_frequent_words_lead_the_others_and_follow_the_dots(tokens: int) -> None:
    sample = one("ruler:fwe", tokens)
    counts = Counter(text_of(sample).split())
    assert [word for word, _ in counts.most_common(4)] == ["...", *sample.gold]
    assert len({counts[word] for word in sample.gold}) == 3


def test_the_pass_key_is_the_only_number_of_its_haystack() -> None:
    sample = one("infinitebench:passkey")
    assert set(re.findall(r"\d+", text_of(sample))) == {sample.gold}
    assert re.fullmatch(r"\d{5}", sample.gold)
    digits = one("infinitebench:number_string")
    assert re.fullmatch(r"\d{10}", digits.gold)
    assert set(re.findall(r"\d+", text_of(digits))) == {digits.gold}


def test_the_value_is_that_of_the_key_in_an_object_of_json() -> None:
    sample = one("infinitebench:kv_retrieval")
    values = json.loads(text_of(sample))
    asked = re.search(r'key "([^"]+)"', sample.question)
    assert asked is not None
    assert values[asked[1]] == sample.gold
    assert len(values) > 50


def test_a_conversation_holds_the_answer_at_the_turn_that_is_asked_for() -> None:
    ordinals = ("first", "second", "third", "fourth")
    for sample in samples("mrcr", lengths=(4096,), count=4):
        asked = re.search(r"Repeat the (\w+) (.+) that the assistant wrote", sample.question)
        assert asked is not None
        turns = documents(sample)
        assert [path for path, _ in turns] == sorted(path for path, _ in turns)
        answers = [
            turns[at + 1][1] for at, (_, text) in enumerate(turns) if text == f"Write a {asked[2]}."
        ]
        assert len(answers) == 4
        wanted = sample.gold["prefix"] + answers[ordinals.index(asked[1])]
        assert sample.gold["answer"] == wanted
        scorer = find_task("mrcr").scorer
        assert scorer(Response(text=wanted), sample).value == 1.0
        assert scorer(Response(text=sample.gold["prefix"] + answers[0][:20]), sample).value < 1.0


@pytest.mark.deep
@pytest.mark.parametrize("name", GENERATED)
def test_ten_million_tokens_are_generated(name: str) -> None:
    sample = one(name, 10 << 20)
    length = count_tokens("".join(text for _, text in documents(sample)))
    assert LEAST_FILLED * (10 << 20) <= length <= 10 << 20


def test_every_task_of_the_table_is_one() -> None:
    for name in TASKS:
        task = find_task(name)
        assert isinstance(task, Task)
        assert task.name == name

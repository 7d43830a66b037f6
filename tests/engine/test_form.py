"""Answers that must be JSON of a schema: checked, given back for mending, marked."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rlm_rag
from rlm_rag import Limits, SearchableCorpus
from rlm_rag.engine.form import Form, Unfit, bare, form_of
from rlm_rag.errors import UsageError
from tests.engine.play import QUESTION, block, play, told_root
from tests.servers.loopback import reply
from tests.servers.openai_chat import OpenAiChatServer

SCHEMA = {
    "type": "object",
    "properties": {"port": {"type": "integer", "minimum": 1}, "source": {"type": "string"}},
    "required": ["port", "source"],
    "additionalProperties": False,
}
GOOD = {"port": 80, "source": 'In a.md:3: "The port of it is 80 today."'}


def read(form: Form, text: str) -> Any:
    return asyncio.run(form.read(text))


def fault(form: Form, text: str) -> str | None:
    return asyncio.run(form.fault(text))


@pytest.fixture(scope="module")
def corpus() -> Iterator[SearchableCorpus]:
    text = "# A\n\nThe port of it is 80 today.\n"
    with rlm_rag.load([{"path": "a.md", "content": text}]) as loaded:
        yield loaded


@pytest.mark.parametrize("strategy", ["direct", "retrieve", "map-reduce", "rlm"])
def test_every_strategy_has_what_does_not_fit_mended(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, strategy: str
) -> None:
    def answer(value: Any) -> Any:
        text = f"```json\n{json.dumps(value)}\n```"
        return block(f"FINAL({text!r})") if strategy == "rlm" else reply(text)

    wrong = [answer({"port": 0}), answer({"port": "80", "source": "x"})]
    turns = [*wrong, answer(GOOD)]

    def script(request: Any) -> Any:
        if "JSON schema" not in json.dumps(request.messages):
            return reply("The port of it is 80 today. a.md:3")
        return turns[request.turn]

    openai_server.script = script
    found = rlm_rag.ask(
        corpus,
        QUESTION,
        model="test",
        api_base=openai_server.api_base,
        strategy=strategy,
        trace=False,
        schema=SCHEMA,
    )
    assert (found.data, found.fits, found.stop_reason) == (GOOD, True, "answered")
    assert json.loads(found.text) == GOOD
    assert [(c.path, c.line, c.status) for c in found.citations] == [("a.md", 3, "verified")]
    told = openai_server.prompts
    assert "'source' is a required property" in told[-2]
    assert "port: 0 is less than the minimum of 1" in told[-2]
    assert "port: '80' is not of type 'integer'" in told[-1]


def test_what_does_not_fit_after_two_mendings_is_marked(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    found = play(
        openai_server, corpus, root=lambda _, turn: block(f"FINAL('no {turn}')"), schema=SCHEMA
    )
    assert (found.text, found.stop_reason) == ("no 2", "answered")
    assert (found.data, found.fits) == (None, False)
    assert "the answer does not fit the schema" in found.warnings
    assert found.to_dict()["fits"] is False
    assert len(told_root(openai_server)) == 3


def test_a_dict_that_code_makes_is_the_answer_and_the_last_request_names_the_schema(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    found = play(openai_server, corpus, root=[block(f"FINAL({GOOD!r})")], schema=SCHEMA)
    assert found.data == GOOD
    found = play(
        openai_server,
        corpus,
        root=[block("x = 1"), reply(json.dumps(GOOD))],
        schema=SCHEMA,
        limits=Limits(iterations=1),
    )
    assert (found.stop_reason, found.data) == ("iterations", GOOD)
    assert "JSON schema" in told_root(openai_server)[-1]


def test_a_child_answers_in_words(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    firsts: list[str] = []

    def child(first: str, turn: int) -> Any:
        firsts.append(first)
        return block("FINAL('eighty')")

    root = [block("r = rlm_query('Which port?')"), block(f"FINAL({GOOD!r})")]
    assert play(openai_server, corpus, root=root, child=child, schema=SCHEMA).fits
    assert "JSON schema" not in firsts[0]


def test_a_pydantic_model_gives_models_and_its_run_can_be_replayed(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, tmp_path: Path
) -> None:
    class Port(pydantic.BaseModel):
        port: int
        source: str

        @pydantic.field_validator("port")
        @classmethod
        def even(cls, value: int) -> int:
            if value % 2:
                raise ValueError("ports are even here")
            return value

    found = play(
        openai_server,
        corpus,
        root=[block("FINAL({'port': 81, 'source': 's'})"), block(f"FINAL({GOOD!r})")],
        schema=Port,
        trace=tmp_path,
    )
    assert found.data == Port(**GOOD)
    assert found.to_dict()["data"] == GOOD
    assert "ports are even here" in told_root(openai_server)[1]
    assert found.trace is not None


def test_a_run_with_a_schema_replays_to_the_same_data(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, tmp_path: Path
) -> None:
    root = [block("FINAL({'port': 'x'})"), block(f"FINAL({GOOD!r})")]
    found = play(openai_server, corpus, root=root, schema=SCHEMA, trace=tmp_path)
    assert found.trace is not None
    assert rlm_rag.replay(Path(found.trace), corpus).data == GOOD


def test_what_is_no_schema_is_refused() -> None:
    for wrong, said in (
        ({"type": "nonsense"}, "no JSON schema"),
        ({"x": {1, 2}}, "no JSON"),
        ("a str", "not str"),
        (int, "no pydantic model"),
    ):
        with pytest.raises(UsageError, match=said):
            form_of(wrong)  # type: ignore[arg-type]
    assert form_of(None) is None


def test_an_answer_beyond_all_measure_is_not_checked() -> None:
    form = form_of({"uniqueItems": True})
    assert form is not None
    assert "of at most 200,000" in (fault(form, json.dumps([[n] for n in range(99_999)])) or "")


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999", "-1e400"])
def test_a_number_that_json_cannot_hold_does_not_fit(number: str) -> None:
    form = form_of({"items": {"type": "number"}})
    assert form is not None
    assert number in (fault(form, f"[{number}]") or "")


def test_nothing_is_fetched_for_a_reference() -> None:
    elsewhere = {"$ref": "http://127.0.0.1:9/schema.json"}
    for schema in (elsewhere, {"items": elsewhere}):
        with pytest.raises(UsageError, match="refers to what it does not hold"):
            form_of(schema)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=9))
def test_json_is_read_out_of_any_fence_and_else_as_it_stands(value: Any) -> None:
    form = form_of({})
    assert form is not None
    text = json.dumps(value)
    for written in (text, f"\n{text}\n", f"```json\n{text}\n```", f"~~~~\n{text}\n~~~~\n"):
        assert read(form, written) == value
        assert json.loads(bare(written)) == value
    with pytest.raises(Unfit):
        read(form, f"Here: {text}")


def test_a_schema_that_refers_to_itself_without_end_is_refused() -> None:
    with pytest.raises(UsageError, match="refers to itself without end"):
        form_of({"$ref": "#"})


def test_an_answer_nested_too_deeply_to_be_checked_does_not_fit() -> None:
    node = {"type": "object", "properties": {"kids": {"items": {"$ref": "#"}}}}
    form = form_of(node)
    assert form is not None
    assert fault(form, '{"kids": [{"kids": []}]}') is None
    deep = '{"kids":[' * 300 + "]}" * 300
    assert "nested too deeply" in str(fault(form, deep))


CATASTROPHE = {"type": "string", "pattern": "^(a+)+$"}
ENDLESS = json.dumps("a" * 40 + "!")


def test_a_check_that_never_ends_is_given_up_in_time_and_holds_up_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rlm_rag.engine.form.LEAST_CHECK_SECONDS", 0.5)
    form = form_of(CATASTROPHE)
    assert form is not None

    async def watched() -> tuple[str | None, float]:
        late, last = 0.0, time.monotonic()
        check = asyncio.ensure_future(form.fault(ENDLESS, seconds_left=0.1))
        while not check.done():
            await asyncio.sleep(0.01)
            late, last = max(late, time.monotonic() - last), time.monotonic()
        return check.result(), late

    began = time.monotonic()
    told, late = asyncio.run(watched())
    assert "took too long to check" in (told or "")
    assert late < 0.4
    # What was found is known: a second look takes no time.
    checked = time.monotonic()
    assert checked - began < 5
    assert fault(form, ENDLESS) == told
    assert time.monotonic() - checked < 0.4


def test_patterns_are_checked() -> None:
    form = form_of(CATASTROPHE)
    assert form is not None
    assert fault(form, json.dumps("aaa")) is None
    assert "does not match" in (fault(form, json.dumps("b")) or "")


def test_a_run_with_a_check_that_never_ends_keeps_its_time(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlm_rag.engine.form.LEAST_CHECK_SECONDS", 0.5)
    began = time.monotonic()
    found = play(
        openai_server,
        corpus,
        root=lambda _, turn: reply(ENDLESS),
        schema=CATASTROPHE,
        strategy="direct",
        limits=Limits(seconds=1),
    )
    assert time.monotonic() - began < 6
    assert (found.text, found.fits) == (ENDLESS, False)


@pytest.mark.parametrize("reference", ["https://x.invalid/s.json", "#/$defs/none"])
def test_a_reference_that_leads_nowhere_is_refused_before_anything_is_paid(reference: str) -> None:
    with pytest.raises(UsageError, match="refers to what it does not hold"):
        form_of({"type": "object", "properties": {"days": {"$ref": reference}}})

"""A run whose prompts outgrow the root model's window goes on, and can be repeated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import rlm_rag
from rlm_rag import Answer, Limits, SearchableCorpus
from rlm_rag.engine import compaction
from rlm_rag.engine.compaction import ASK
from rlm_rag.models.base import Message
from rlm_rag.models.prices import FREE, ModelFacts
from rlm_rag.models.tokens import count_message_tokens
from rlm_rag.trace.events import CallSent, Compacted
from rlm_rag.trace.reader import read_trace
from rlm_rag.trace.show import render
from tests.engine.play import QUESTION, block
from tests.servers.loopback import Received, Step, failed, reply
from tests.servers.openai_chat import OpenAiChatServer

WORDS = "word " * 700
TURNS = [f"fact_{n} = 'found {n}'\nprint('OUTPUT {n}', {WORDS!r})" for n in range(1, 7)]
LAST = (
    "rows = [h for h in history if 'OUTPUT 1' in h['content'] and h['role'] == 'user']\n"
    "FINAL(f\"{fact_1} {rows[0]['turn']} {len(rows[0]['content']) > 3000} {history_0 == history}\")"
)


@pytest.fixture(scope="module")
def corpus() -> Iterator[SearchableCorpus]:
    with rlm_rag.load({"a.md": "nothing\n"}) as loaded:
        yield loaded


def is_summary(request: Received) -> bool:
    return bool(request.messages[0]["content"] == ASK)


def script(refuse_chars: int | None = None) -> Callable[[Received], Step | str]:
    """Plays the turns by what was told last; refuses prompts that are too long."""

    def answer(request: Received) -> Step | str:
        if is_summary(request):
            return reply(f"SUMMARY of {len(request.prompt)} characters")
        size = sum(len(message["content"]) for message in request.messages)
        if refuse_chars is not None and size > refuse_chars:
            return failed(400, "maximum context length exceeded", code="context_length_exceeded")
        told = request.messages[-1]["content"]
        done = next((n for n in range(6, 0, -1) if f"OUTPUT {n} " in told), 0)
        return block(TURNS[done] if done < len(TURNS) else LAST)

    return answer


def ask(server: OpenAiChatServer, corpus: SearchableCorpus, **options: object) -> Answer:
    options = {"strategy": "rlm", "trace": False} | options
    return rlm_rag.ask(corpus, QUESTION, model="test", api_base=server.api_base, **options)


def roles_alternate(request: Received) -> bool:
    roles = [message["role"] for message in request.messages[1:]]
    return roles == ["user", "assistant"] * (len(roles) // 2) + ["user"]


def test_a_prompt_that_the_provider_refuses_is_compacted_and_the_run_goes_on_and_replays(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, tmp_path: Path
) -> None:
    openai_server.script = script(refuse_chars=14_000)
    answer = ask(openai_server, corpus, trace=tmp_path)
    assert (answer.text, answer.stop_reason) == ("found 1 2 True True", "answered")
    assert all(map(roles_alternate, openai_server.received))
    summaries = [each for each in openai_server.received if is_summary(each)]
    assert summaries
    assert "OUTPUT 1" in summaries[0].prompt
    last = openai_server.received[-1].messages
    assert "SUMMARY of" in last[1]["content"]
    assert QUESTION in last[1]["content"]
    trace = read_trace(Path(str(answer.trace)))
    assert [event.asked for event in trace.of_type(Compacted)] == [True] * len(summaries)
    assert sum(call.summary for call in trace.of_type(CallSent)) == len(summaries)
    sent = len(openai_server.received)
    assert rlm_rag.replay(trace.path, corpus).text == answer.text
    assert len(openai_server.received) == sent


def test_a_run_killed_around_a_summary_goes_on_to_the_same_answer_and_pays_nothing_twice(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, tmp_path: Path
) -> None:
    openai_server.script = script(refuse_chars=14_000)
    whole = ask(openai_server, corpus, trace=tmp_path)
    lines = Path(str(whole.trace)).read_bytes().splitlines(keepends=True)
    records = read_trace(Path(str(whole.trace))).records
    folded = next(r.line for r in records if isinstance(r.event, Compacted))
    for cut in (folded - 2, folded - 1, folded):
        path = tmp_path / f"cut-{cut}.jsonl"
        path.write_bytes(b"".join(lines[:cut]))
        openai_server.received.clear()
        assert rlm_rag.resume(path, corpus).text == whole.text
        again = sum(map(is_summary, openai_server.received))
        every = sum(isinstance(r.event, Compacted) for r in records)
        assert again == every - (cut >= folded - 1), cut


def test_a_run_within_its_window_is_never_compacted(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    openai_server.script = script()
    # The last block needs a `history`, which only a conversation or a compaction makes.
    answer = ask(openai_server, corpus, limits=Limits(iterations=7, errors=1))
    assert not any(map(is_summary, openai_server.received))
    assert len(openai_server.received[6].messages) == 14
    assert answer.stop_reason != "answered"


def test_a_window_that_is_known_is_kept_to_and_the_summary_is_shown_in_the_trace(
    openai_server: OpenAiChatServer,
    corpus: SearchableCorpus,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    facts = ModelFacts(price=FREE, context_window=5_000)
    monkeypatch.setattr("rlm_rag.engine.lineup.facts_of", lambda *_args, **_options: facts)
    openai_server.script = script()
    answer = ask(openai_server, corpus, trace=tmp_path)
    assert (answer.text, answer.stop_reason) == ("found 1 2 True True", "answered")
    sizes = [
        count_message_tokens([Message(m["role"], m["content"]) for m in request.messages])
        for request in openai_server.received
    ]
    assert max(sizes) <= 5_000
    assert "characters left out" in openai_server.received[1].prompt
    shown = "\n".join(render(read_trace(Path(str(answer.trace)))))
    assert "older messages are summed up, by the root model" in shown


def test_turns_are_listed_where_the_limits_leave_no_call_for_a_summary(
    openai_server: OpenAiChatServer,
    corpus: SearchableCorpus,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compaction, "PATIENT_TOKENS", 6_000)
    openai_server.script = script()
    limits = Limits(calls=8)
    answer = ask(openai_server, corpus, trace=tmp_path, limits=limits)
    compacted = read_trace(Path(str(answer.trace))).of_type(Compacted)
    assert {event.asked for event in compacted} == {True, False}
    listed = next(event for event in compacted if not event.asked)
    assert "fact_" in listed.summary
    assert answer.usage.calls <= 8


def test_a_last_call_that_what_is_left_is_too_little_for_is_made_with_fewer_turns(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, tmp_path: Path
) -> None:
    played = script()

    def answer(request: Received) -> Step | str:
        if "No more code will run" in request.messages[-1]["content"]:
            return "found what there was"
        step = played(request)
        assert isinstance(step, Step)
        return step

    openai_server.script = answer
    found = ask(openai_server, corpus, limits=Limits(tokens=5_200), trace=tmp_path)
    assert (found.text, found.stop_reason) == ("found what there was", "budget_tokens")
    assert "Turn 1, you: " in openai_server.received[-1].messages[1]["content"]
    assert "OUTPUT 2" in openai_server.received[-1].prompt
    assert rlm_rag.replay(Path(str(found.trace)), corpus).text == found.text

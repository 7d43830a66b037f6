"""A map whose documents nodes read: every answer once, within the limits, whatever dies."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from rlm_rag import RLM, Limits
from rlm_rag.distributed import spreading
from rlm_rag.engine.pool import Pool
from rlm_rag.errors import ModelError, UsageError
from tests.servers.loopback import Received, failed, reply
from tests.servers.openai_chat import OpenAiChatServer

from .near import NearFanOut

DOCUMENTS = [{"path": f"{n}.md", "content": f"# {n}\n\nNumber {n}.\n"} for n in range(20)]


def by_path(request: Received) -> Any:
    return reply(f"read {request.prompt.split()[2].rstrip(',')}")


def mapped(
    server: OpenAiChatServer, fan: NearFanOut, monkeypatch: pytest.MonkeyPatch, **options: Any
) -> tuple[list[Any], Any]:
    monkeypatch.setattr(spreading, "_joined", ("local", fan))
    rlm = RLM("test", api_base=server.api_base, ray="local", **options)
    with rlm.map(DOCUMENTS, "Sum up.") as answers:
        return list(answers), answers.summary


def test_every_document_is_answered_once_though_nodes_die(
    openai_server: OpenAiChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    openai_server.script = by_path
    events: list[Any] = []
    fan = NearFanOut(7, 3, None, 1)
    answers, summary = mapped(openai_server, fan, monkeypatch, on_event=events.append)
    assert Counter(each.path for each in answers) == Counter(each["path"] for each in DOCUMENTS)
    assert all(each.ok and each.text == f"read {each.path}" for each in answers)
    assert (summary.stop_reason, summary.answered, fan.done) == ("answered", 20, 3)
    # What the dead had sent is counted too, and every call has its reply in the events.
    assert summary.usage.calls >= 20
    told = Counter(type(each).__name__ for each in events)
    assert told["CallSent"] == told["ReplyReceived"] == summary.usage.calls


def test_nodes_that_die_each_time_are_named_for_each_document(
    openai_server: OpenAiChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    openai_server.script = by_path
    fan = NearFanOut(*(1 for _ in range(9)))
    answers, summary = mapped(openai_server, fan, monkeypatch)
    assert len(answers) == 20
    assert {each.error for each in answers} == {"the nodes died each time that this was tried"}
    assert (summary.stop_reason, summary.failed, summary.unsent) == ("errors", 20, 0)


@pytest.mark.parametrize("name", ["calls", "tokens", "usd"])
def test_a_limit_holds_for_all_nodes_together(
    name: str, openai_server: OpenAiChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    openai_server.script = by_path
    limits: Any = {"calls": 7, "tokens": 400, "usd": 0.3}
    options = {"limits": Limits(**{name: limits[name]}), "price": "0/1000"}
    answers, summary = mapped(openai_server, NearFanOut(), monkeypatch, **options)
    assert summary.stop_reason == f"budget_{name}"
    assert 0 < len(answers) == summary.answered < 20
    assert len(answers) + summary.unsent == 20
    spent = {
        "calls": summary.usage.calls,
        "tokens": summary.usage.input_tokens + summary.usage.output_tokens,
        "usd": summary.usage.usd,
    }
    assert spent[name] <= limits[name]


def test_so_many_requests_are_in_flight_as_one_process_would_have(
    openai_server: OpenAiChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    openai_server.script = lambda request: reply("read", delay_seconds=0.02)
    mapped(openai_server, NearFanOut(), monkeypatch, limits=Limits(concurrency=3, calls=None))
    assert openai_server.most_in_flight == 3


def test_a_key_that_is_refused_ends_the_map(
    openai_server: OpenAiChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    openai_server.script = lambda request: failed(401, "wrong key")
    with pytest.raises(ModelError):
        mapped(openai_server, NearFanOut(), monkeypatch)


def test_a_share_and_a_cluster_do_not_go_together() -> None:
    with pytest.raises(UsageError, match="share of a pool"):
        RLM("offline", ray="local", share=Pool().share())
    with pytest.raises(UsageError, match="names no cluster"):
        RLM("offline", ray="ray://head:1")


def test_parts_of_a_document_that_were_replied_to_are_not_sent_again(
    openai_server: OpenAiChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    openai_server.script = lambda request: reply(f"part {len(openai_server.received)}")
    monkeypatch.setattr(spreading, "_joined", ("local", NearFanOut(19, 7)))
    text = "\n\n".join(f"Paragraph {n} is about number {n}." for n in range(2000))
    events: list[Any] = []
    rlm = RLM(
        "test",
        api_base=openai_server.api_base,
        ray="local",
        context_window=4096,
        limits=Limits(concurrency=1, calls=None),
        on_event=events.append,
    )
    with rlm.map({"a.md": text}, "Sum up.") as answers:
        (answer,), summary = list(answers), answers.summary
    assert answer.ok
    prompts = Counter(openai_server.prompts)
    assert len(prompts) > 8
    # Of each node that died one call was under way, which may have reached the provider.
    assert len(openai_server.received) <= len(prompts) + 2
    told = Counter(type(each).__name__ for each in events)
    assert told["CallSent"] == told["ReplyReceived"] == summary.usage.calls
    assert told["Delegated"] == len({(e.first, e.last) for e in events if e.type == "delegated"})
    assert [f"part {n}" in answer.text for n in (1, len(prompts))] == [True, True]

"""Functions of the caller that blocks call: on the host, with JSON, in children too."""

from __future__ import annotations

import asyncio
import json
import math
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rlm_rag
from rlm_rag import Limits, SearchableCorpus, Tool
from rlm_rag.engine.offers import RESERVED, tool_of
from rlm_rag.errors import UsageError
from tests.engine.play import block, play, told_root
from tests.servers.openai_chat import OpenAiChatServer


@pytest.fixture(scope="module")
def corpus() -> Iterator[SearchableCorpus]:
    with rlm_rag.load([{"path": "a.md", "content": "# A\n\nThe port is 80.\n"}]) as loaded:
        yield loaded


def price_of(article: str, *, pieces: int = 1) -> dict[str, Any]:
    """Look up a price in the shop.

    Not shown.
    """
    return {"article": article, "total": (pieces * 3, "EUR"), 1: threading.current_thread().name}


async def stock_of(article: str) -> int:
    """How many there are."""
    await asyncio.sleep(0)
    return len(article)


def fails(reason: str) -> None:
    raise KeyError(reason)


def test_tools_take_and_give_json_and_are_told_to_the_model(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    found = play(
        openai_server,
        corpus,
        root=[
            block("import json\nprint(json.dumps([price_of('nail', pieces=2), stock_of('nail')]))"),
            block("print(capabilities())\nFINAL('done')"),
        ],
        tools=[price_of, stock_of],
    )
    assert found.text == "done"
    first, then = told_root(openai_server)
    assert (
        "- price_of(article: 'str', *, pieces: 'int' = 1) -> 'dict[str, Any]': Look up a" in first
    )
    assert "- stock_of(article: 'str') -> 'int': How many there are." in first
    assert "Not shown" not in first
    shown = json.loads(then.splitlines()[1])
    assert shown == [{"article": "nail", "total": [6, "EUR"], "1": "rlm-rag-caller"}, 4]


def test_what_goes_wrong_in_a_tool_is_an_error_reply_and_nothing_ends(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_API_KEY", "very-secret-value")

    def leaks() -> None:
        raise RuntimeError("refused for very-secret-value")

    def leaves() -> None:
        raise SystemExit(3)

    def no_json() -> object:
        return object()

    def not_a_number() -> float:
        return math.nan

    def large() -> str:
        return "x" * (9 << 20)

    def deep() -> Any:
        value: Any = 0
        for _ in range(50):
            value = [value]
        return value

    code = (
        "rs = [fails('gone'), leaks(), leaves(), no_json(), not_a_number(), large(), deep(), "
        "price_of(), price_of('a', 1, 2)]\n"
        "print([r.ok for r in rs])\nprint('\\n'.join(r.error for r in rs))"
    )
    play(
        openai_server,
        corpus,
        root=[block(code), block("FINAL('on')")],
        tools=[fails, leaks, leaves, no_json, not_a_number, large, deep, price_of],
    )
    told = told_root(openai_server)[1]
    assert str([False] * 9) in told
    for said in (
        "fails: KeyError: 'gone'",
        "leaks: RuntimeError: refused for [redacted]",
        "leaves: RuntimeError: SystemExit: 3",
        "no_json: its result is a object that is not JSON",
        "not_a_number: its result is a float that is not JSON",
        "large: its result has 9,437,186 characters",
        "nested deeper than 32",
        "missing a required argument: 'article'; it is called as price_of(article",
        "too many positional arguments; it is called as price_of(article",
    ):
        assert said in told, said
    assert "very-secret-value" not in told


def test_the_wait_for_a_tool_is_no_time_of_the_block_and_is_bounded(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    def slow(seconds: float) -> str:
        time.sleep(seconds)
        return "woke"

    play(
        openai_server,
        corpus,
        root=[block("print(slow(0.8))\nprint(slow(30).error)"), block("FINAL('x')")],
        tools=[slow],
        limits=Limits(cell_seconds=0.7, await_seconds=2.4),
    )
    told = told_root(openai_server)[1]
    assert "woke" in told
    assert "slow: it did not end within 1.2 s" in told
    assert "Timeout" not in told


def test_children_inherit_the_tools_or_those_that_are_allowed_them(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    child = [block("print(stock_of('ab'))\nFINAL([stock_of('ab'), 'price_of' in globals()])")]
    for allowed, expected in ((None, "true"), (["stock_of"], "false")):
        found = play(
            openai_server,
            corpus,
            root=[block("FINAL(rlm_query('How many?'))")],
            child=child,
            tools=[price_of, stock_of],
            child_tools=allowed,
        )
        assert json.loads(found.text) == [2, json.loads(expected)]


def test_names_that_mean_something_else_are_refused() -> None:
    for name in ("search", "print", "answer", "context_1", "_x", "class", "a b"):
        with pytest.raises(UsageError, match="tool"):
            Tool(name, price_of)
    with pytest.raises(UsageError, match="two tools"):
        rlm_rag.RLM(tools=[price_of, price_of])
    with pytest.raises(UsageError, match="no tool"):
        rlm_rag.RLM(tools=[price_of], child_tools=["stock_of"])
    with pytest.raises(UsageError, match="not int"):
        rlm_rag.RLM(tools=[3])  # type: ignore[list-item]
    with pytest.raises(UsageError, match="cannot be a tool"):
        tool_of(lambda: 1)


def test_every_name_of_the_repl_is_reserved(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    found = play(
        openai_server,
        corpus,
        root=[block("FINAL([n for n in globals() if not n.startswith('__')])")],
    )
    assert set(json.loads(found.text)) - {"sys"} <= RESERVED


def test_a_replay_needs_no_tool_and_a_resumed_run_does(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, tmp_path: Path
) -> None:
    asked: list[str] = []

    def count(what: str) -> int:
        """Counts."""
        asked.append(what)
        return len(asked)

    found = play(
        openai_server,
        corpus,
        root=[block("n = count('a')\nprint(n, fails('b'))"), block("FINAL([n, count('c')])")],
        tools=[count, fails],
        trace=tmp_path,
    )
    assert json.loads(found.text) == [1, 2]
    assert found.trace is not None
    again = rlm_rag.replay(Path(found.trace), corpus)
    assert (again.text, asked) == (found.text, ["a", "c"])
    with pytest.raises(UsageError, match=r"not given now: count, fails"):
        rlm_rag.resume(Path(found.trace), corpus, api_base=openai_server.api_base)


def test_a_run_that_is_taken_up_calls_its_tools_from_where_it_ended(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, tmp_path: Path
) -> None:
    asked: list[str] = []

    def count(what: str) -> int:
        asked.append(what)
        return len(asked)

    turns = [block("n = count('a')"), block("m = count('b')"), block("FINAL([n, m, count('c')])")]
    found = play(
        openai_server,
        corpus,
        root=[*turns[:2], block("FINAL('partial')")],
        tools=[count],
        trace=tmp_path,
        limits=Limits(iterations=2),
    )
    assert (found.stop_reason, asked) == ("iterations", ["a", "b"])
    assert found.trace is not None
    openai_server.script = turns[2:]
    again = rlm_rag.resume(
        Path(found.trace),
        corpus,
        raised={"iterations": 5},
        api_base=openai_server.api_base,
        tools=[count],
    )
    assert (json.loads(again.text), asked) == ([1, 2, 3], ["a", "b", "c"])

"""The window that texts are cut for: told, known, asked of the server, or guessed and said."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rlm_rag
from rlm_rag import RLM, Limits, SearchableCorpus
from rlm_rag.engine.lineup import ModelNames, ModelSettings, open_lineup
from rlm_rag.engine.pool import Pool
from rlm_rag.errors import UsageError
from rlm_rag.models.prices import UNKNOWN_WINDOW_TOKENS
from rlm_rag.models.tokens import count_tokens
from rlm_rag.trace.reader import read_trace
from tests.engine.play import block, leaves, play, told_root
from tests.servers.loopback import reply
from tests.servers.openai_chat import OpenAiChatServer

LONG = "".join(f"def function_{n}(value):\n    return value + {n}\n\n\n" for n in range(900))
READS = [block("r = map_files('long.py', 'Sum up.')\nprint(len(r))"), block("FINAL('done')")]
GUESS = f"is not known, and taken as {UNKNOWN_WINDOW_TOKENS:,} tokens"


@pytest.fixture(scope="module")
def corpus() -> Iterator[SearchableCorpus]:
    with rlm_rag.load([{"path": "long.py", "content": LONG}]) as loaded:
        yield loaded


def serves(server: OpenAiChatServer, **tokens: int) -> None:
    """Have the server say how long a context it gives each model."""
    entries = [{"id": name, "max_model_len": length} for name, length in tokens.items()]
    server.own = {"/v1/models": {"object": "list", "data": entries}}


def lookups(server: OpenAiChatServer) -> list[str]:
    return [request.path.partition("?")[0] for request in server.looked_up]


def test_texts_are_cut_to_the_window_that_the_server_says_which_is_asked_once_a_run(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    serves(openai_server, test=100_000, small=3_000)
    found = play(openai_server, corpus, root=READS, sub_model="small")
    small = leaves(openai_server)
    assert len(small) > 4
    assert max(map(count_tokens, small)) < 3_000
    assert "window 3,000 tokens" in told_root(openai_server)[0]
    assert lookups(openai_server) == ["/v1/models"]
    assert not any("window" in warning for warning in found.warnings)
    openai_server.received.clear()
    serves(openai_server, test=100_000, small=30_000)
    play(openai_server, corpus, root=READS, sub_model="small")
    assert len(leaves(openai_server)) == 1
    assert lookups(openai_server) == ["/v1/models"] * 2


def test_runs_that_share_a_pool_ask_a_server_once(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    serves(openai_server, test=3_000)
    pool = Pool()
    for _ in range(2):
        openai_server.received.clear()
        play(openai_server, corpus, root=READS, share=pool.share())
        assert len(leaves(openai_server)) > 4
    assert lookups(openai_server) == ["/v1/models"]


def test_a_window_that_is_told_wins_and_nobody_is_asked(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    serves(openai_server, test=100_000)
    play(openai_server, corpus, root=READS, context_window=3_000)
    assert max(map(count_tokens, leaves(openai_server))) < 3_000
    assert "window 3,000 tokens" in told_root(openai_server)[0]
    assert lookups(openai_server) == []
    openai_server.received.clear()
    play(
        openai_server,
        corpus,
        root=READS,
        sub_model="small",
        context_window=50_000,
        sub_context_window=3_000,
    )
    assert max(map(count_tokens, leaves(openai_server))) < 3_000
    assert lookups(openai_server) == []


def test_a_told_window_wins_over_the_table_of_known_models() -> None:
    def window(**told: Any) -> int | None:
        return ModelSettings(**told).facts("openai/gpt-4o-mini").context_window

    assert window() == 128_000
    assert window(context_window=4096) == 4096
    assert window(context_window=4096, windows={"openai/gpt-4o-mini": 9}) == 9


def test_a_window_that_nobody_says_is_guessed_and_said(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    found = play(openai_server, corpus, root=READS)
    assert f"window not known, taken as {UNKNOWN_WINDOW_TOKENS:,}" in told_root(openai_server)[0]
    (warning,) = [text for text in found.warnings if "window" in text]
    assert warning.startswith(f"the context window of test {GUESS}")
    assert "--context-window" in warning
    told = play(openai_server, corpus, root=READS, context_window=UNKNOWN_WINDOW_TOKENS)
    assert not any("window" in text for text in told.warnings)
    assert not any("window" in text for text in rlm_rag.ask(corpus, "x?", trace=False).warnings)


def test_a_map_is_cut_to_the_served_window_too(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    serves(openai_server, test=3_000)
    openai_server.script = lambda request: "yes"
    with RLM("test", api_base=openai_server.api_base).map(corpus, "Sum up.") as answers:
        assert [answer.ok for answer in answers] == [True]
    assert answers.summary.warnings == ()
    assert len(openai_server.received) > 4
    assert max(map(count_tokens, openai_server.prompts)) < 3_000
    openai_server.own = {}
    for documents, guesses in ({"a.md": "Short.\n"}, 0), ({"a.py": LONG}, 1):
        with RLM("test", api_base=openai_server.api_base).map(documents, "Sum up.") as answers:
            list(answers)
        assert sum(GUESS in text for text in answers.summary.warnings) == guesses


def test_a_run_that_is_taken_up_again_keeps_the_windows_that_it_had(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, tmp_path: Path
) -> None:
    serves(openai_server, test=5_000)
    ended = play(
        openai_server,
        corpus,
        root=lambda first, turn: READS[turn] if turn < 1 else reply("half"),
        trace=tmp_path,
        limits=Limits(iterations=1),
    )
    assert ended.stop_reason == "iterations"
    trace = Path(str(ended.trace))
    assert read_trace(trace).root.options["windows"] == {"test": 5_000}  # type: ignore[union-attr]
    serves(openai_server, test=50_000)
    asked = len(openai_server.looked_up)
    sent = len(leaves(openai_server))
    openai_server.script = lambda request: block("FINAL('whole')")
    again = rlm_rag.resume(trace, corpus, raised={"iterations": 9})
    assert (again.text, again.stop_reason) == ("whole", "answered")
    assert (len(openai_server.looked_up), len(leaves(openai_server))) == (asked, sent)
    assert rlm_rag.replay(trace, corpus).text == "whole"


@pytest.mark.parametrize("wrong", [0, -1, True, 2.5, "8k"])
def test_a_window_that_is_no_number_of_tokens_is_refused(wrong: Any) -> None:
    for told in ({"context_window": wrong}, {"sub_context_window": wrong}):
        with pytest.raises(UsageError, match="context window"):
            RLM("test", **told)


def opened(server: OpenAiChatServer, **settings: Any) -> tuple[int | None, dict[str, Any]]:
    """The window and the parameters of a model of Ollama's."""

    async def look() -> tuple[int | None, dict[str, Any]]:
        asking = ModelSettings(api_base=server.url, **settings)
        async with open_lineup(ModelNames(model="ollama/m"), asking, limits=Limits()) as lineup:
            assert lineup.guesses == ()
            return lineup.root.facts.context_window, dict(lineup.root.extra)

    return asyncio.run(look())


def test_ollama_is_asked_for_the_window_that_is_told_and_gives_no_more_than_was_trained(
    openai_server: OpenAiChatServer,
) -> None:
    openai_server.own = {"/api/show": {"model_info": {"llama.context_length": 8192}}}
    assert opened(openai_server) == (8192, {})
    assert opened(openai_server, extra={"num_ctx": 2048}) == (2048, {"num_ctx": 2048})
    openai_server.own = {"/api/show": {"model_info": {"llama.context_length": 131_072}}}
    assert opened(openai_server) == (16_384, {})
    looked_up = len(openai_server.looked_up)
    assert opened(openai_server, context_window=32_768) == (32_768, {"num_ctx": 32_768})
    assert len(openai_server.looked_up) == looked_up


def test_what_stands_in_for_a_model_has_its_own_served_window(
    openai_server: OpenAiChatServer,
) -> None:
    serves(openai_server, main=1_000, other=2_000)

    async def windows() -> list[int | None]:
        names = ModelNames(model="main", fallbacks=("other",), allowed=("third",))
        settings = ModelSettings(api_base=openai_server.api_base)
        async with open_lineup(names, settings, limits=Limits()) as lineup:
            (guess,) = lineup.guesses
            assert re.search(rf"third {re.escape(GUESS)}", guess)
            assert lineup.windows == {"main": 1_000, "other": 2_000, "third": None}
            chain = list(lineup.root.fallbacks.for_call(lineup.root))
            return [model.facts.context_window for model in chain]

    assert asyncio.run(windows()) == [1_000, 2_000]

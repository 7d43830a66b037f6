"""What a run sends goes together, within one width, and is counted for who sent it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import rlm_rag
from rlm_rag import Limits, SearchableCorpus
from rlm_rag.trace.events import Answered, RunStarted
from rlm_rag.trace.reader import read_trace
from tests.engine.play import block, leaves, play, told_root
from tests.engine.test_delegation import range_of
from tests.servers.loopback import Step, reply
from tests.servers.openai_chat import OpenAiChatServer

SECTION = "\n" + "Word after word stands here, one more line of it. \n" * 30
BOOK = "".join(f"## Chapter {n}\n{SECTION}" for n in range(60))


@pytest.fixture(scope="module")
def corpus() -> Iterator[SearchableCorpus]:
    documents = {"book.md": BOOK, **{f"notes/{n}.md": f"# Note {n}\n" for n in range(5)}}
    entries = [{"path": path, "content": text} for path, text in documents.items()]
    with rlm_rag.load(entries) as loaded:
        yield loaded


BATCHES = {
    "llm_query_batched": ("llm_query_batched([str(n) for n in range(5)])", 5),
    "llm_query_chunked": ("llm_query_chunked('book.md', 'Sum up.')", 5),
    "map_files": ("map_files(['notes/'], 'Sum up.')", 5),
    "llm_map_reduce": ("llm_map_reduce([f'notes/{n}.md' for n in range(5)], 'Sum up.', 'All.')", 5),
    "rlm_query_batched": ("rlm_query_batched([str(n) for n in range(5)])", 5),
    "spawn": ("rlm_await_all([spawn(llm_query, str(n)) for n in range(5)])", 5),
}


@pytest.mark.parametrize("name", BATCHES)
def test_all_calls_of_a_batch_go_out_together(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, name: str
) -> None:
    code, wide = BATCHES[name]
    play(
        openai_server,
        corpus,
        root=[block(f"{code}\nFINAL('done')")],
        child=lambda first, turn: reply("```repl\nFINAL('x')\n```", beside=wide),
        leaf=lambda prompt: reply("read", beside=wide),
    )
    assert openai_server.most_in_flight == wide


def test_one_width_holds_for_the_root_its_children_and_all_their_calls(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    read = "llm_query_batched([f'{task} {n}' for n in range(6)])"
    found = play(
        openai_server,
        corpus,
        root=[
            block(
                f"task = 'root'\nt = spawn({read.replace('(', ', ', 1)}\n"
                f"rs = rlm_query_batched(['a', 'b', 'c'])\nFINAL(len(rlm_await(t)))"
            )
        ],
        child=[block(f"FINAL(len({read}))")],
        leaf=lambda prompt: reply("leaf", delay_seconds=0.05),
        limits=Limits(concurrency=3),
    )
    assert found.text == "6"
    assert len(leaves(openai_server)) == 24
    assert openai_server.most_in_flight == 3


def test_a_childs_usage_is_what_the_provider_said_of_its_own_calls(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus, tmp_path: Path
) -> None:
    def billed(text: str, factor: int) -> Step:
        return reply(
            text,
            usage={
                "prompt_tokens": 100 * factor,
                "completion_tokens": 10 * factor,
                "prompt_tokens_details": {"cached_tokens": 40 * factor},
                "completion_tokens_details": {"reasoning_tokens": 3 * factor},
            },
        )

    found = play(
        openai_server,
        corpus,
        root=[
            billed("```repl\nr = rlm_query('Look.')\nprint(dict(r.usage))\n```", 1),
            billed("```repl\nFINAL('done')\n```", 1),
        ],
        child=[billed("```repl\nllm_query_batched(['p', 'q'])\nFINAL('seen')\n```", 4)],
        leaf=lambda prompt: billed("leaf", 7),
        trace=tmp_path,
        price="1/10",
    )
    # The root's two calls, the child's one and its two leaves.
    of_child = {"calls": 3, "input": 1_800, "cached": 720, "output": 180, "reasoning": 54}
    usage = found.usage
    assert usage.calls == 5
    assert (usage.input_tokens, usage.cached_tokens) == (2_000, 800)
    assert (usage.output_tokens, usage.reasoning_tokens) == (200, 60)
    trace = read_trace(Path(str(found.trace)))
    _, child = trace.of_type(RunStarted)
    (told,) = [event.usage for event in trace.of_type(Answered) if event.run == child.run]
    assert told["calls"] == of_child["calls"]
    for name in ("input", "cached", "output", "reasoning"):
        assert told[f"{name}_tokens"] == of_child[name]
        assert f"'{name}_tokens': {of_child[name]}" in told_root(openai_server)[1]
    assert usage.usd is not None and told["usd"] is not None
    assert told["usd"] == pytest.approx(0.9 * usage.usd)


def test_a_task_that_runs_tells_its_messages_and_takes_another_name(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    def child(first: str, turn: int) -> Step:
        if "come home" in openai_server.received[-1].prompt:
            return block("FINAL('home')")
        return reply("```repl\nprint('on my way')\n```", delay_seconds=0.05)

    found = play(
        openai_server,
        corpus,
        root=[
            block("t = spawn(rlm_query, 'Walk.', name='first')"),
            block(
                "import time\n"
                "while not t.messages: time.sleep(0.02)\n"
                "t.name = 'second'\n"
                "print(t.status, t.name, t.messages[0], [x.name for x in tasks()])\n"
                "t.tell('come home')"
            ),
            block("FINAL(t.result())"),
        ],
        child=child,
        limits=Limits(iterations=200),
    )
    assert found.text == "home"
    told = told_root(openai_server)[2]
    assert "running second {'role': 'assistant', 'content': " in told
    assert "on my way" in told and "['second']" in told


def test_a_long_text_is_split_at_its_headings(
    openai_server: OpenAiChatServer, corpus: SearchableCorpus
) -> None:
    play(openai_server, corpus, root=[block("FINAL(str(map_files('book.md', 'Sum up.')))")])
    ranges = sorted(map(range_of, leaves(openai_server)))
    assert len(ranges) > 4
    lines = BOOK.split("\n")
    assert all(lines[first - 1].startswith("## Chapter ") for first, _, _ in ranges)

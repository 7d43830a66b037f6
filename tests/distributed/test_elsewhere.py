"""A corpus whose texts lie in shards: nothing above it notices, until a shard is lost."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import rlm_rag
from rlm_rag import Answer, SearchableCorpus
from rlm_rag.distributed import spreading
from rlm_rag.distributed.gathering import GatheringAnswerer
from rlm_rag.distributed.placement import owner_of
from rlm_rag.engine.limits import Limits
from rlm_rag.errors import NotHeldError
from rlm_rag.indexes.parsers import Parsers
from rlm_rag.indexes.requests import AnyRequest, HoldRequest, HoldResult, Result
from rlm_rag.indexes.retriever import ProcessRetriever
from rlm_rag.indexes.wire import (
    decode_request,
    decode_result,
    encode_request,
    encode_result,
)
from rlm_rag.trace.events import BlockOutput
from rlm_rag.trace.reader import read_trace
from tests.engine.play import block, play
from tests.servers.openai_chat import OpenAiChatServer

from .near import NearFanOut, by_run
from .test_gathering import LocalShards, in_shards, parsers

__all__ = ["parsers"]

DOCUMENTS = {
    "docs/guide.md": "# Guide\n\nThe backoff doubles with each attempt.\n",
    "docs/notes.txt": "first paragraph\n\nsecond one\n",
    "src/cache.py": "def lookup(key):\n    return key\n",
    "src/retry.py": "def backoff(attempt):\n    return 2 ** attempt\n",
    "table.csv": "name,size\na,1\nb,2\n",
}


class NearRetriever(ProcessRetriever):
    """Answers in this process, as the index process does: one after the other, over the wire."""

    def __init__(self, answerer: GatheringAnswerer) -> None:
        self._answerer = answerer
        self._one = threading.Lock()
        self.held: list[int] = []
        self.requests = 0

    async def retrieve(self, request: AnyRequest) -> Result:
        return await asyncio.to_thread(self._answered, encode_request(1, request))

    def _answered(self, line: bytes) -> Result:
        _, request = decode_request(line)
        if isinstance(request, HoldRequest):
            self.held += request.numbers
            self.requests += 1
        with self._one:
            _, result = decode_result(encode_result(1, self._answerer.answer(request)))
        assert not isinstance(result, Exception)
        return result

    async def aclose(self) -> None:
        """The shards are not its own."""


class NearCorpus(SearchableCorpus):
    """A corpus that shards in this process answer for."""

    __slots__ = ("near",)

    @classmethod
    def over(cls, path: Path, answerer: GatheringAnswerer) -> NearCorpus:
        corpus = cls(path)
        corpus.near = NearRetriever(answerer)
        corpus._begin(corpus.near)
        return corpus


@contextmanager
def spread(
    folder: Path, parsers: Parsers, documents: Mapping[str, str] = DOCUMENTS
) -> Iterator[tuple[NearCorpus, LocalShards]]:
    with (
        in_shards(folder, parsers, documents, 3, has_holes=True) as (gathering, shards),
        NearCorpus.over(folder / "holes", gathering) as corpus,
    ):
        yield corpus, shards


def whole(folder: Path) -> SearchableCorpus:
    return SearchableCorpus(folder / "whole")


READING = """
sizes = {one["path"]: len(one["content"]) for one in context}
rows = records("table.csv")
print(sizes, rows, [entry["content"] for entry in context[2:4]])
print(search("backoff")[0]["path"], grep_context("return")["total"], outline("docs/notes.txt"))
print(read("src/cache.py"), repo_map(), symbols("lookup"))
mapped = map_files(["src/", "docs/guide.md"], "What is it?")
parts = llm_query_chunked("src/retry.py", "What does it do?")
reduced = llm_map_reduce(["docs/notes.txt", context[0]], "Say.", "Sum up.")
child = rlm_query("Look into it.", paths=["src/"])
print(mapped, parts, reduced, child, context == context.copy())
"""
CITING = (
    "FINAL('It doubles: \"The backoff doubles with each attempt.\" (`docs/guide.md:3`), '"
    "'and `src/retry.py:2`, not `src/cache.py:99`, \"never written anywhere\" (`table.csv:1`).')"
)
CHILD = "FINAL(f'{[len(d[\"content\"]) for d in context]} (`src/cache.py:1`)')"


def asked(server: OpenAiChatServer, corpus: SearchableCorpus, folder: Path, **how: Any) -> Answer:
    how.setdefault("root", [block(READING), block(CITING), block(CITING)])
    return play(server, corpus, child=[block(CHILD)], trace=folder, **how)


def test_a_run_is_the_same_as_over_a_corpus_that_is_held_whole(
    openai_server: OpenAiChatServer, tmp_path: Path, parsers: Parsers
) -> None:
    with spread(tmp_path, parsers) as (corpus, _), whole(tmp_path) as held:
        assert not any(corpus._packed.holds(number) for number in range(len(corpus)))
        here = asked(openai_server, held, tmp_path)
        elsewhere = asked(openai_server, corpus, tmp_path)
        # Each of them came once, whoever read it: blocks, sub-models, the child, the check.
        assert sorted(corpus.near.held) == list(range(len(DOCUMENTS)))
    for name in ("text", "stop_reason", "citations", "usage", "by_role", "coverage", "found"):
        assert getattr(elsewhere, name) == getattr(here, name), name
    assert [each.status for each in here.citations] == ["verified", "located", "false", "false"]
    traces = [read_trace(Path(str(each.trace))) for each in (here, elsewhere)]
    assert by_run(traces[1]) == by_run(traces[0])


@pytest.mark.parametrize("strategy", ["direct", "retrieve", "map-reduce"])
def test_the_other_strategies_are_the_same_too(
    openai_server: OpenAiChatServer, tmp_path: Path, parsers: Parsers, strategy: str
) -> None:
    with spread(tmp_path, parsers) as (corpus, _), whole(tmp_path) as held:
        answers = [
            asked(openai_server, each, tmp_path, strategy=strategy, root=["It is so."] * 9)
            for each in (held, corpus)
        ]
        assert corpus.near.held
    for name in ("text", "stop_reason", "citations", "usage", "coverage"):
        assert getattr(answers[1], name) == getattr(answers[0], name), name


def test_children_on_nodes_read_what_lies_in_shards(
    openai_server: OpenAiChatServer,
    tmp_path: Path,
    parsers: Parsers,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    batch = (
        "replies = rlm_query_batched(['Look one.', 'Look two.'], paths=[['src/'], ['docs/']])\n"
        "FINAL('|'.join(replies))"
    )
    fan = NearFanOut()
    answers = []
    with spread(tmp_path, parsers) as (corpus, _), whole(tmp_path) as held:
        for each, on in ((held, None), (corpus, fan)):
            monkeypatch.setattr(spreading, "_joined", ("local", on))
            ray = None if on is None else "local"
            answers.append(asked(openai_server, each, tmp_path, root=[block(batch)], ray=ray))
        assert sorted(corpus.near.held) == [0, 1, 2, 3]
    assert fan.done == 2
    assert answers[1].text == answers[0].text
    sizes = [len(text) for path, text in DOCUMENTS.items() if path.startswith("src/")]
    assert answers[0].text.startswith(f"{sizes} ")
    assert answers[1].citations == answers[0].citations


def test_children_on_a_node_that_read_on_in_order_have_texts_come_together_and_once(
    openai_server: OpenAiChatServer,
    tmp_path: Path,
    parsers: Parsers,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    documents = {f"{number:03}.txt": f"text {number}\n" for number in range(600)}
    batch = "FINAL('|'.join(rlm_query_batched(['Count.', 'Count again.'])))"
    child = [block("FINAL(str(sum(len(one['content']) for one in context)))")]
    monkeypatch.setattr(spreading, "_joined", ("local", NearFanOut()))
    with spread(tmp_path, parsers, documents) as (corpus, _):
        found = play(openai_server, corpus, root=[block(batch)], child=child, ray="local")
        assert sorted(corpus.near.held) == list(range(600))
        assert corpus.near.requests < 40
    size = sum(map(len, documents.values()))
    assert found.text == f"{size}|{size}"


def test_a_worker_whose_file_is_another_gets_the_text_itself(
    tmp_path: Path, parsers: Parsers
) -> None:
    with spread(tmp_path, parsers) as (corpus, _), rlm_rag.Repl(corpus) as repl:
        fetch = "context.packed._packed.source"
        assert repl.run(f"print({fetch}(4, True))").stdout == f"{DOCUMENTS['table.csv'].encode()}\n"
        assert repl.run(f"print({fetch}(4, False))").stdout == "None\n"
        asked = repl.run(f"{fetch}(4, 'yes')")
        assert asked.error is not None
        assert "fetch: itself must be bool, not str" in asked.error.traceback


def test_the_caller_reads_documents_as_of_any_corpus(tmp_path: Path, parsers: Parsers) -> None:
    with spread(tmp_path, parsers) as (corpus, _), whole(tmp_path) as held:
        assert corpus["src/cache.py"] == held["src/cache.py"]
        assert list(corpus) == list(held)
        assert list(corpus.byte_counts()) == list(held.byte_counts())
        assert asyncio.run(_read_in_a_loop(corpus)) == DOCUMENTS["table.csv"]
        conversation = rlm_rag.RLM(model="offline").conversation(corpus)
        conversation.add({"more.txt": "and more\n"})
        assert {each.path: each.content for each in conversation.corpus} == {
            **DOCUMENTS,
            "context_1/more.txt": "and more\n",
        }
        conversation.close()


async def _read_in_a_loop(corpus: SearchableCorpus) -> str:
    return corpus["table.csv"].content


def test_a_text_of_a_lost_shard_is_an_error_where_it_is_read_and_the_run_goes_on(
    openai_server: OpenAiChatServer, tmp_path: Path, parsers: Parsers
) -> None:
    lost = owner_of("docs/guide.md", 3)
    code = (
        "try:\n    next(one for one in context if one['path'] == 'docs/guide.md')['content']\n"
        "except Exception as error:\n    print(f'{type(error).__name__}: {error}')\n"
        "print(map_files(['docs/guide.md'], 'What?'), llm_query_chunked('docs/guide.md', 'What?'))"
    )
    with spread(tmp_path, parsers) as (corpus, shards):
        shards.dying.add(lost)
        found = asked(openai_server, corpus, tmp_path, root=[block(code), *[block(CITING)] * 2])
        result = corpus.retrieve(HoldRequest((0,)))
        assert isinstance(result, HoldResult)
        assert result.lacking == (0,)
        assert (result.note or "").startswith(f"partial: without shard {lost} (its node died)")
        with pytest.raises(NotHeldError, match=r"docs/guide\.md cannot be read"):
            corpus["docs/guide.md"]
    assert found.stop_reason == "answered"
    # Its lines are known, its text is not.
    assert (found.citations[0].status, found.citations[0].verified) == ("located", False)
    outputs = read_trace(Path(str(found.trace))).of_type(BlockOutput)
    (shown,) = [each.stdout for each in outputs if each.block == 1]
    assert "NotHeldError: The text of docs/guide.md cannot be read" in shown
    assert shown.count(f"docs/guide.md lies in shard {lost}, which is lost") == 3


@pytest.mark.parametrize("is_lost", [False, True])
def test_a_child_that_is_one_call_has_its_documents_fetched_at_once(
    openai_server: OpenAiChatServer, tmp_path: Path, parsers: Parsers, is_lost: bool
) -> None:
    code = "reply = rlm_query('Look.', paths=['docs/'])\nFINAL(str(reply.error))"
    lost = owner_of("docs/guide.md", 3)
    with spread(tmp_path, parsers) as (corpus, shards):
        shards.dying |= {lost} if is_lost else set()
        found = play(
            openai_server, corpus, root=[block(code)] * 2, trace=False, limits=Limits(depth=0)
        )
        assert (sorted(corpus.near.held), corpus.near.requests) == ([0, 1], 1)
    assert (f"lies in shard {lost}, which is lost" in found.text) == is_lost
    prompts = "".join(str(request.messages) for request in openai_server.received)
    assert all((f"Document {path}:" in prompts) != is_lost for path in sorted(DOCUMENTS)[:2])


def test_a_map_reads_what_lies_in_shards_and_says_what_is_lost(
    openai_server: OpenAiChatServer, tmp_path: Path, parsers: Parsers
) -> None:
    openai_server.script = lambda request: "It is read."
    asking = rlm_rag.RLM(model="test", api_base=openai_server.api_base, trace=False)
    with spread(tmp_path, parsers) as (corpus, shards):
        answers = list(asking.map(corpus, "What is it?"))
        assert sorted(each.path for each in answers) == sorted(DOCUMENTS)
        assert all(each.ok for each in answers)
        # What has come is here, whatever becomes of its shard.
        shards.dying |= {0, 1, 2}
        assert len(list(asking.map(corpus, "What is it?"))) == len(DOCUMENTS)
    with spread(tmp_path, parsers) as (corpus, shards):
        shards.dying.add(owner_of("table.csv", 3))
        with pytest.raises(NotHeldError, match="partial: without shard"):
            asking.map(corpus, "What is it?")


def test_a_block_that_reads_on_in_order_gets_texts_ahead_and_one_that_does_not_gets_its_own(
    tmp_path: Path, parsers: Parsers
) -> None:
    documents = {f"{number:03}.txt": f"text {number}\n" for number in range(600)}
    with spread(tmp_path, parsers, documents) as (corpus, _), rlm_rag.Repl(corpus) as repl:
        code = "print([context[at]['content'] for at in (500, 200, 100, 400)])"
        assert repl.run(code).stdout.count("text") == 4
        assert corpus.near.held == [500, 200, 100, 400]
        code = "print(sum(len(one['content']) for one in context))"
        assert repl.run(code).stdout == f"{sum(map(len, documents.values()))}\n"
        assert len(corpus.near.held) == 600
        assert corpus.near.requests < 25
    with spread(tmp_path, parsers, documents) as (corpus, _):
        assert {each.path: each.content for each in corpus} == documents
        assert len(corpus.near.held) == 600
        assert corpus.near.requests < 25

"""What lies in shards stays so, wherever a corpus goes; nothing here needs a cluster to run."""

from __future__ import annotations

import asyncio

import pytest

from rlm_rag import RLM, load
from rlm_rag.distributed.cluster import Cluster
from rlm_rag.distributed.retriever import ShardsRetriever
from rlm_rag.errors import MissingExtraError
from rlm_rag.mcp.readers import Readers


def test_what_a_conversation_adds_lies_in_shards_too() -> None:
    with load({"a.txt": "one\n"}, shards="ray:local", shard_count=2) as corpus:
        assert isinstance(corpus.retriever, ShardsRetriever)
        conversation = RLM(model="offline").conversation(corpus)
        conversation.add({"b.txt": "two\n"})
        assert conversation.corpus.cluster == Cluster("local", 2)
        assert len(conversation.corpus) == 2
        conversation.close()


def test_one_process_has_all_the_shards_however_much_is_asked_at_once() -> None:
    async def processes(shards: str | None) -> int:
        with load({"a.txt": "one\n"}, shards=shards) as corpus:
            readers = Readers(corpus)
            for _ in range(3):
                readers._asked[readers._idle()] += 1
            return len(readers._asked)

    assert asyncio.run(processes("ray")) == 1
    assert asyncio.run(processes(None)) == 3


def test_a_question_about_shards_says_first_that_ray_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rlm_rag.distributed.retriever.find_spec", lambda name: None)
    with (
        load({"a.txt": "one\n"}, shards="ray:127.0.0.1:1") as corpus,
        pytest.raises(MissingExtraError, match="needs the extra `ray`"),
    ):
        RLM(model="offline", trace=False).ask(corpus, "Where is one?")

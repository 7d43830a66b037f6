"""How shards on a cluster are asked, made again and lost; the actors are in this process."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rlm_rag.distributed.ray_node import Assignment, ShardHost
from rlm_rag.distributed.shard import Shard, ShardsLost
from rlm_rag.packed import PackedCorpus
from rlm_rag.packing import pack

from .listening import ray_tests

TEXTS = {f"{letter}.py": f"def {letter}(): pass\n" for letter in "abcdef"}
ALL = dict.fromkeys(range(3), partial(Shard.described, verify=False))


class NearActor:
    """Does at once what it is asked, and dies with some of the answers."""

    def __init__(self, assignment: Assignment, dies: Callable[[], bool]) -> None:
        self._host = ShardHost(assignment)
        self._dies = dies

    def __getattr__(self, name: str) -> Any:
        return SimpleNamespace(remote=partial(self._done, name))

    def _done(self, name: str, *arguments: Any) -> Callable[[], Any]:
        found = getattr(self._host, name)(*arguments)
        return gone if name == "answer" and self._dies() else lambda: found


def gone() -> None:
    """Fetch an answer that lay on a node which has died since."""
    from ray.exceptions import ObjectLostError

    raise ObjectLostError("1234", b"", "")


class Near:
    """Actors in this process, of which the next `deaths` answers are lost."""

    def __init__(self) -> None:
        self.deaths = 0
        self.now = 0.0
        self.started = 0

    def start(self, assignment: Assignment, _node: str) -> NearActor:
        self.started += 1
        return NearActor(assignment, self._dies)

    def _dies(self) -> bool:
        self.deaths -= 1
        return self.deaths >= 0


@pytest.fixture
def near(monkeypatch: pytest.MonkeyPatch) -> Near:
    from rlm_rag.distributed import ray_shards

    near = Near()
    fetched = SimpleNamespace(get=lambda asked, timeout: asked(), kill=lambda actor: None)
    monkeypatch.setattr(ray_shards, "ray", fetched)
    monkeypatch.setattr(ray_shards, "start_host", near.start)
    monkeypatch.setattr(ray_shards, "nodes_up", lambda: ["one", "two"])
    monkeypatch.setattr(
        ray_shards, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + near.now)
    )
    return near


@pytest.fixture
def shards(near: Near, tmp_path: Path) -> Iterator[Any]:
    from rlm_rag.distributed.ray_shards import RayShards

    pack(TEXTS.items(), tmp_path / "packed")
    with PackedCorpus.open(tmp_path / "packed") as corpus:
        shards = RayShards(corpus, 3)
        yield shards
        shards.close()


def documents(found: Mapping[int, Any]) -> int:
    return sum(part.documents for part in found.values())


@ray_tests
def test_a_shard_whose_answer_is_gone_with_its_node_is_made_again_and_asked_again(
    near: Near, shards: Any
) -> None:
    near.deaths = 2
    assert documents(shards.ask(ALL)) == len(TEXTS)
    assert (near.started, shards.lost()) == (5, {})


@ray_tests
def test_a_lost_shard_is_tried_again_between_requests_after_longer_each_time(
    near: Near, shards: Any
) -> None:
    for seconds in (60.0, 120.0, 240.0):
        near.deaths = 9
        with pytest.raises(ShardsLost):
            shards.ask(ALL)
        assert shards.lost() == dict.fromkeys(range(3), "it died each time that it was asked")
        near.now += seconds - 5.0
        shards.renew()
        assert len(shards.lost()) == 3
        near.now += 10.0
        # Its time has come, but what is being answered began without it.
        assert shards.ask(ALL) == {}
        shards.renew()
        assert shards.lost() == {}
    near.deaths = 0
    assert documents(shards.ask(ALL)) == len(TEXTS)

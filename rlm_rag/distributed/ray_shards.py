"""Shards in actors of a Ray cluster, made again when one dies."""

from __future__ import annotations

import socket
import time
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar, cast

import ray
from ray.exceptions import (
    GetTimeoutError,
    NodeDiedError,
    ObjectLostError,
    RayActorError,
    RayError,
    RayTaskError,
)
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from rlm_rag.distributed.part_loading import PlaceSource, part_name
from rlm_rag.distributed.placement import numbers_by_shard
from rlm_rag.distributed.ray_node import Assignment, Failed, ShardHost, digest_of
from rlm_rag.distributed.shard import Shard, ShardsLost
from rlm_rag.errors import RetrievalError
from rlm_rag.indexes.ranking import Weights
from rlm_rag.indexes.stamp import stamp_of
from rlm_rag.packed import PackedCorpus

R = TypeVar("R")

DIED = (RayActorError, NodeDiedError, ObjectLostError)
"""What is raised where a process or node died, also with an answer that it still held."""

# Sent at once: two of them wait for each shard at most.
_BATCH_BYTES = 8 << 20
_CONNECT_SECONDS = 1.0
# A node may be gone before Ray sees it, which takes 20 s; then a process starts elsewhere.
_START_SECONDS = 90.0
# The first search builds the index of the shard; later ones take milliseconds.
_ANSWER_SECONDS = 3600.0
_TRIES = 3
# A shard that was lost may find room again: it is tried anew after a minute, then after twice
# as long each time, to an hour.
_LOST_SECONDS = 60.0
_MOST_LOST_SECONDS = 3600.0


class RayShards:
    """The shards of a packed corpus as actors, which end with this process.

    An actor that dies is started again, on a node that is left, with its documents loaded from
    the `source`, or else sent from the packed corpus, once more; a shard is lost where that fails
    three times.
    """

    def __init__(
        self,
        corpus: PackedCorpus,
        count: int,
        *,
        origin: str = "",
        kept_root: str = "",
        source: PlaceSource | None = None,
    ) -> None:
        self._corpus = corpus
        self._numbers = numbers_by_shard(corpus, count)
        self._assignments = [
            replace(unknown, numbers=numbers, digest=digest_of(corpus, numbers))
            for unknown, numbers in zip(
                assignments(count, origin=origin, kept_root=kept_root, source=source),
                self._numbers,
                strict=True,
            )
        ]
        self._actors: dict[int, Any] = {}
        self._nodes: dict[int, str] = {}
        self._lost: dict[int, tuple[str, float]] = {}
        self._lost_seconds: dict[int, float] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    def lost(self) -> Mapping[int, str]:
        """Return the shards that are lost, each with the reason; until `renew` none comes back."""
        return {at: why for at, (why, _) in self._lost.items()}

    def renew(self) -> None:
        """Have lost shards tried again whose time has come."""
        now = time.monotonic()
        self._lost = {at: one for at, one in self._lost.items() if now < one[1]}

    def adopt(self, actors: Mapping[int, tuple[Any, str]]) -> None:
        """Take over actors that have loaded their documents, and the nodes that they are on.

        Raises:
            RetrievalError: one cannot open what it has loaded.
        """
        for at, (actor, node) in actors.items():
            self._actors[at], self._nodes[at] = actor, node
        assigned = [actor.assign.remote(self._assignments[at]) for at, (actor, _) in actors.items()]
        for reference in assigned:
            got(reference)

    def ask(self, requests: Mapping[int, Callable[[Shard], R]]) -> Mapping[int, R]:
        """Return what each request gives, all asked at once.

        Raises:
            ShardsLost: shards were lost meanwhile.
            RetrievalError: a request cannot be answered, or takes too long.
        """
        left = {at: request for at, request in requests.items() if at not in self._lost}
        found: dict[int, R] = {}
        for attempt in range(1, _TRIES + 1):
            self._start([at for at in left if at not in self._actors], attempt)
            asked = {at: self._actors[at].answer.remote(one) for at, one in left.items()}
            for at, reference in asked.items():
                try:
                    found[at] = cast(R, got(reference))
                except DIED:
                    self._end(at)
                except GetTimeoutError as error:
                    self._end(at)
                    raise RetrievalError(f"shard {at} took longer than an hour") from error
                else:
                    del left[at]
                    self._lost_seconds.pop(at, None)
            if not left:
                return found
        self._lose(left, "it died each time that it was asked")
        raise ShardsLost

    def close(self) -> None:
        """End the actors; idempotent."""
        for at in tuple(self._actors):
            self._end(at)

    def _start(self, numbers: Sequence[int], attempt: int) -> None:
        """Start actors, all at once, and give each its documents.

        Raises:
            ShardsLost: one cannot be started.
            RetrievalError: none can, here or in this version.
        """
        for at, node in self._placed(numbers):
            self._nodes[at] = node
            self._actors[at] = start_host(self._assignments[at], node)
        failed: dict[int, str] = {}
        for at in self._beginning(numbers, failed):
            try:
                self._send(at)
            except (RayError, RetrievalError) as error:
                failed[at] = _said(error)
        for at in failed:
            self._end(at)
        if failed and attempt == _TRIES:
            for at, why in failed.items():
                self._lose([at], f"it cannot be started: {why}")
            raise ShardsLost
        if failed:
            self._start(list(failed), attempt + 1)

    def _placed(self, numbers: Sequence[int]) -> Iterator[tuple[int, str]]:
        """Yield a node for each of the shards, where there are fewest, and the same as before."""
        up = nodes_up() if numbers else []
        counts = Counter(self._nodes[at] for at in self._actors)
        for at in numbers:
            last = self._nodes.get(at)
            node = min(up, key=lambda one: (counts[one], one != last, one))
            counts[node] += 1
            yield at, node

    def _beginning(self, numbers: Sequence[int], failed: dict[int, str]) -> Iterator[int]:
        """Yield the shards whose documents must be sent; note what failed."""
        versions = {at: self._actors[at].version.remote() for at in numbers}
        begun = {at: self._actors[at].begin.remote() for at in numbers}
        until = time.monotonic() + _START_SECONDS
        for at in numbers:
            try:
                seconds = max(until - time.monotonic(), 1.0)
                version = ray.get(versions[at], timeout=seconds)
                has_all = ray.get(begun[at], timeout=_ANSWER_SECONDS)
            except RayError as error:
                failed[at] = _said(error)
                continue
            if version != stamp_of(Weights()):
                self.close()
                raise other_version()
            if isinstance(has_all, Failed):
                failed[at] = _said(has_all.message)
            elif not has_all:
                yield at

    def _send(self, at: int) -> None:
        actor = self._actors[at]
        waiting: list[Any] = []
        for batch in self._batches(at):
            waiting.append(actor.add.remote(batch))
            if len(waiting) > 1:
                got(waiting.pop(0))
        got(actor.finish.remote())

    def _batches(self, at: int) -> Iterator[list[tuple[str, bytes, str | None]]]:
        corpus = self._corpus
        batch: list[tuple[str, bytes, str | None]] = []
        size = 0
        for number in self._numbers[at]:
            data = bytes(corpus.content_bytes(number))
            batch.append((corpus.path(number), data, corpus.encoding(number)))
            size += len(data)
            if size >= _BATCH_BYTES:
                yield batch
                batch, size = [], 0
        yield batch

    def _end(self, at: int) -> None:
        actor = self._actors.pop(at, None)
        if actor is not None:
            ray.kill(actor)

    def _lose(self, numbers: Iterable[int], why: str) -> None:
        for at in numbers:
            seconds = min(2 * self._lost_seconds.get(at, _LOST_SECONDS / 2), _MOST_LOST_SECONDS)
            self._lost_seconds[at] = seconds
            self._lost[at] = why, time.monotonic() + seconds


def assignments(
    count: int, *, origin: str, kept_root: str, source: PlaceSource | None
) -> list[Assignment]:
    """Return what shards are to hold, before it is known which documents those are."""
    return [
        Assignment(
            origin + part_name(at, count) if origin else "",
            kept_root,
            array("Q"),
            b"",
            at,
            count,
            source,
        )
        for at in range(count)
    ]


def start_host(assignment: Assignment, node: str) -> Any:
    """Start the actor of a shard on a node."""
    # Not detached: whatever becomes of this process, Ray ends the actor with it. It takes no
    # share of a processor that Ray counts, for it waits most of the time.
    return (
        ray.remote(ShardHost)
        .options(
            num_cpus=0,
            max_restarts=0,
            max_task_retries=0,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=True),
        )
        .remote(assignment)
    )


def nodes_up() -> list[str]:
    """Return the nodes that can be reached; Ray itself takes 20 s to see that one cannot.

    Raises:
        RetrievalError: there is none.
    """
    up = []
    for node in ray.nodes():
        place = (node["NodeManagerAddress"], node["NodeManagerPort"])
        with suppress(OSError):
            if node["Alive"]:
                socket.create_connection(place, _CONNECT_SECONDS).close()
                up.append(node["NodeID"])
    if not up:
        raise RetrievalError("no node of the Ray cluster can be reached")
    return up


def other_version() -> RetrievalError:
    """Return what is wrong with a node whose stamp is not that of this process."""
    return RetrievalError(
        "a node of the cluster has another version of rlm-rag",
        hint="install the same version on every node",
    )


def got(reference: Any) -> Any:
    """Wait for what an actor gives.

    Raises:
        RetrievalError: it failed.
        RayError: it died, or takes too long.
    """
    try:
        value = ray.get(reference, timeout=_ANSWER_SECONDS)
    except RayTaskError as error:
        raise RetrievalError(f"a shard failed: {_said(error.cause)}") from error
    if isinstance(value, Failed):
        raise RetrievalError(value.message, hint=value.hint)
    return value


def _said(error: Exception | str) -> str:
    first = (str(error).strip() or type(error).__name__).splitlines()[0]
    return first[:200]

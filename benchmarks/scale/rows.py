"""One way to hold a corpus, measured: its build, its queries, and what its processes hold."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.memory import descendants, memory_of
from rlm_rag.indexes.requests import (
    GrepRequest,
    IndexRequest,
    IndexResult,
    PathsRequest,
    SearchRequest,
    SearchResult,
)
from rlm_rag.indexes.retriever import ProcessRetriever

HEADER = (
    "| way | join, s | build, s | processor, s | p50, ms | grep, ms "
    "| MB | asks | a shard | load |\n"
    "|---|---|---|---|---|---|---|---|---|---|"
)
_LITERAL = "ThreadPoolExecutor"
_ROUNDS = 5
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Row:
    """What one way took; seconds by the clock but for `processor`, memory in bytes.

    `processor` is that of all processes up to the end of the build. `memory` is what they hold
    after the queries, `asks` the one that is asked, and `largest` one shard. `hits` stands for
    what was found, `load` is the machine's at the end.
    """

    join: float
    build: float
    processor: float
    query: float
    grep: float
    memory: int
    asks: int
    largest: int
    hits: str
    load: float

    def shown(self, name: str) -> str:
        """Return it as a row below `HEADER`."""
        return (
            f"| {name} | {self.join:.1f} | {self.build:.1f} | {self.processor:.1f} "
            f"| {1e3 * self.query:.1f} | {1e3 * self.grep:.0f} | {self.memory / 1e6:,.0f} "
            f"| {self.asks / 1e6:,.0f} | {self.largest / 1e6:,.0f} | {self.load:.1f} |"
        )


def row_of(
    name: str, folder: Path, made: Callable[[], ProcessRetriever], queries: Sequence[str]
) -> Row:
    """Return the row of that name which the folder has, or measure it, and leave it there."""
    kept = folder / f"{name}.json"
    if kept.exists():
        return Row(**json.loads(kept.read_text("utf-8")))
    row = asyncio.run(_measured(made(), queries))
    kept.write_text(json.dumps(asdict(row)), "utf-8")
    return row


async def _measured(retriever: ProcessRetriever, queries: Sequence[str]) -> Row:
    """Start, build, ask, and end."""
    try:
        started = time.perf_counter()
        await retriever.retrieve(PathsRequest(("nothing.txt",)))
        joined = time.perf_counter()
        built = await retriever.retrieve(IndexRequest())
        assert isinstance(built, IndexResult)
        build = time.perf_counter() - joined
        processor = _processor_seconds(_processes(retriever))
        query, hits = await _asked(retriever, queries)
        asked = time.perf_counter()
        await retriever.retrieve(GrepRequest(_LITERAL))
        grep = time.perf_counter() - asked
        processes = _processes(retriever)
        each = [memory_of([pid]).proportional for pid in processes if _is_shard(pid)]
        return Row(
            join=joined - started,
            build=build,
            processor=processor,
            query=query,
            grep=grep,
            memory=memory_of(processes).proportional,
            asks=memory_of([_pid(retriever)]).proportional,
            largest=max(each, default=0),
            hits=hits,
            load=os.getloadavg()[0],
        )
    finally:
        await retriever.aclose()


async def _asked(retriever: ProcessRetriever, queries: Sequence[str]) -> tuple[float, str]:
    """Return the median of searches, in seconds, and the digest of what they found at last.

    What a search has no time to parse it finds by scanning, and says so: later rounds do not.
    """
    times: list[float] = []
    hits: dict[str, SearchResult] = {}
    for number in range(_ROUNDS * len(queries)):
        asked = time.perf_counter()
        query = queries[number % len(queries)]
        found = await retriever.retrieve(SearchRequest(query))
        # The first round meets terms that were not met before.
        if number >= len(queries):
            times.append(time.perf_counter() - asked)
        assert isinstance(found, SearchResult)
        hits[query] = found
    return statistics.median(times), hashlib.sha256(repr(hits).encode()).hexdigest()


def _pid(retriever: ProcessRetriever) -> int:
    assert retriever.pid is not None
    return retriever.pid


def _processes(retriever: ProcessRetriever) -> set[int]:
    pid = _pid(retriever)
    return {pid, *descendants(pid)}


def _is_shard(pid: int) -> bool:
    return b"ShardHost" in Path(f"/proc/{pid}/cmdline").read_bytes()


def _processor_seconds(pids: set[int]) -> float:
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        # Its own, and that of its children that have ended.
        ticks += sum(map(int, fields[11:15]))
    return ticks / _TICKS

"""`python -m benchmarks.scale`: build, queries and memory, whole and in shards, side by side.

    python -m benchmarks.scale --plain --files 1000000 --gb 5

With `--plain` as many small files on one machine, loaded and indexed by the command, which is
killed on the way and run again.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.memory import descendants, memory_of
from benchmarks.scale.plain import measure
from benchmarks.scale.texts import documents
from rlm_rag.distributed.cluster import LOCAL, Cluster
from rlm_rag.distributed.retriever import ShardsRetriever
from rlm_rag.indexes.requests import (
    GrepRequest,
    IndexRequest,
    IndexResult,
    PathsRequest,
    SearchRequest,
    SearchResult,
)
from rlm_rag.indexes.retriever import ProcessRetriever
from rlm_rag.packing import pack

QUERIES = (
    "where is retry backoff computed",
    "parse_header",
    "how does asyncio cancel a task",
    "json decoder error position",
    "argparse add_argument default",
    "send_error headers",
    "unicode normalize",
    "rotate log files",
    "weak references and the garbage collector",
    "import",
)
_ROUNDS = 5
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Row:
    """What one way took; seconds by the clock but for `processor`, memory in bytes.

    `processor` is that of all processes up to the end of the build, `memory` what they hold
    after the queries, and `largest` what one shard does.
    """

    join: float
    build: float
    processor: float
    query: float
    grep: float
    memory: int
    largest: int
    hits: tuple[SearchResult, ...]


async def measured(retriever: ProcessRetriever) -> Row:
    """Start, build, ask, and end."""
    try:
        started = time.perf_counter()
        await retriever.retrieve(PathsRequest(("nothing.txt",)))
        joined = time.perf_counter()
        built = await retriever.retrieve(IndexRequest())
        assert isinstance(built, IndexResult)
        build = time.perf_counter() - joined
        assert retriever.pid is not None
        processor = _processor_seconds({retriever.pid, *descendants(retriever.pid)})
        times: list[float] = []
        hits: list[SearchResult] = []
        for number in range(_ROUNDS * len(QUERIES)):
            asked = time.perf_counter()
            found = await retriever.retrieve(SearchRequest(QUERIES[number % len(QUERIES)]))
            # The first round meets terms that were not met before.
            if number >= len(QUERIES):
                times.append(time.perf_counter() - asked)
            assert isinstance(found, SearchResult)
            hits.append(found)
        asked = time.perf_counter()
        await retriever.retrieve(GrepRequest("ThreadPoolExecutor"))
        grep = time.perf_counter() - asked
        processes = {retriever.pid, *descendants(retriever.pid)}
        each = [memory_of([pid]).proportional for pid in processes if _is_shard(pid)]
        return Row(
            joined - started,
            build,
            processor,
            statistics.median(times),
            grep,
            memory_of(processes).proportional,
            max(each, default=0),
            tuple(hits),
        )
    finally:
        await retriever.aclose()


def _is_shard(pid: int) -> bool:
    return b"ShardHost" in Path(f"/proc/{pid}/cmdline").read_bytes()


def _processor_seconds(pids: set[int]) -> float:
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        # Its own, and that of its children that have ended.
        ticks += sum(map(int, fields[11:15]))
    return ticks / _TICKS


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--shards", default="1,2,4", help="numbers of shards, or nothing")
    parser.add_argument("--plain", action="store_true", help="small files, without shards")
    parser.add_argument("--files", type=int, default=1_000_000, help="how many, with --plain")
    parser.add_argument("--gb", type=float, default=5.0, help="of how many GB, with --plain")
    parser.add_argument("--keep", type=Path, help="the folder that --plain works in, and leaves")
    options = parser.parse_args(arguments)
    if options.plain:
        total_bytes = int(options.gb * 1e9)
        measure(files=options.files, total_bytes=total_bytes, queries=QUERIES, keep=options.keep)
        return
    counts = [int(count) for count in options.shards.split(",") if count]
    with tempfile.TemporaryDirectory() as folder:
        packed = Path(folder) / "corpus.packed"
        pack(documents(options.megabytes * 1_000_000), packed)
        ways: dict[str, ProcessRetriever] = {"whole": ProcessRetriever(packed)}
        for count in counts:
            name = f"{count} shard{'s' if count > 1 else ''}"
            ways[name] = ShardsRetriever(packed, Cluster(LOCAL, count))
        print(f"{packed.stat().st_size / 1e6:,.0f} MB; load {os.getloadavg()[0]:.1f}")
        print("| way | join, s | build, s | processor, s | p50, ms | grep, ms | MB | a shard |")
        print("|---|---|---|---|---|---|---|---|")
        expected: tuple[SearchResult, ...] | None = None
        for name, retriever in ways.items():
            row = asyncio.run(measured(retriever))
            expected = expected or row.hits
            if row.hits != expected:
                raise SystemExit(f"{name}: other hits than whole")
            print(
                f"| {name} | {row.join:.1f} | {row.build:.1f} | {row.processor:.1f} "
                f"| {1e3 * row.query:.1f} | {1e3 * row.grep:.0f} | {row.memory / 1e6:,.0f} "
                f"| {row.largest / 1e6:,.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()

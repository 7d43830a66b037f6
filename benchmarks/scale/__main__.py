"""`python -m benchmarks.scale`: build, queries and memory, whole and in shards, side by side.

    python -m benchmarks.scale --megabytes 1000 --shards 1,2,4 --keep FOLDER
    python -m benchmarks.scale --plain --files 1000000 --gb 5

With `--plain` as many small files on one machine, loaded and indexed by the command, which is
killed on the way and run again.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from benchmarks.scale.plain import ask_again, measure, working_folder
from benchmarks.scale.rows import HEADER, row_of
from benchmarks.scale.texts import documents
from rlm_rag.distributed.cluster import LOCAL, Cluster
from rlm_rag.distributed.retriever import ShardsRetriever
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


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--shards", default="1,2,4", help="numbers of shards, or nothing")
    parser.add_argument("--plain", action="store_true", help="small files, without shards")
    parser.add_argument("--files", type=int, default=1_000_000, help="how many, with --plain")
    parser.add_argument("--gb", type=float, default=5.0, help="of how many GB, with --plain")
    parser.add_argument(
        "--keep",
        type=Path,
        help="the folder to work in and leave: a corpus and rows that are there are not made again",
    )
    parser.add_argument(
        "--ask", action="store_true", help="with --plain: only ask, of what --keep has"
    )
    options = parser.parse_args(arguments)
    if options.plain and options.ask:
        ask_again(options.keep, QUERIES)
    elif options.plain:
        total_bytes = int(options.gb * 1e9)
        measure(files=options.files, total_bytes=total_bytes, queries=QUERIES, keep=options.keep)
    else:
        counts = [int(count) for count in options.shards.split(",") if count]
        with working_folder(options.keep) as folder:
            _compare(folder, options.megabytes * 1_000_000, counts)


def _compare(folder: Path, total_bytes: int, counts: Sequence[int]) -> None:
    """Print a row for one index, and for each number of shards."""
    packed = folder / "corpus.packed"
    if not packed.exists():
        # Whatever ends this leaves none that is cut off.
        begun = folder / "corpus.begun"
        pack(documents(total_bytes), begun)
        begun.replace(packed)
    ways: dict[str, Callable[[], ProcessRetriever]] = {"whole": partial(ProcessRetriever, packed)}
    for count in counts:
        name = f"{count} shard{'s' if count > 1 else ''}"
        ways[name] = partial(ShardsRetriever, packed, Cluster(LOCAL, count))
    print(f"{packed.stat().st_size / 1e6:,.0f} MB; load {os.getloadavg()[0]:.1f}")
    print(HEADER, flush=True)
    expected: str | None = None
    for name, made in ways.items():
        row = row_of(name, folder, made, QUERIES)
        expected = expected or row.hits
        if row.hits != expected:
            raise SystemExit(f"{name}: other hits than whole")
        print(row.shown(name), flush=True)


if __name__ == "__main__":
    main()

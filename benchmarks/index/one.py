"""Measures one engine in a process of its own, and prints what it measured as JSON."""

from __future__ import annotations

import json
import os
import resource
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.index.engines import ENGINES


def main(name: str, packed: str, changed: str, plan: str) -> None:
    """Build from `packed`, ask the plan's queries, go to `changed`; the plan is JSON."""
    queries, numbers = json.loads(plan)
    try:
        engine = ENGINES[name]()
        before = _peak_bytes()
        cpu, wall = _timed(lambda: engine.build(Path(packed)))
    except ImportError as error:
        print(json.dumps({"missing": str(error)}))
        return
    peak = _peak_bytes() - before
    engine.search(queries[0])
    asked = sorted(_timed(lambda query=query: engine.search(query))[0] for query in queries)
    update = _timed(lambda: engine.update(Path(changed), numbers))[0]
    again = _timed(lambda: engine.update(Path(changed), numbers))[0] if name == "rlm-rag" else None
    measured = {
        "build_cpu_s": cpu,
        "build_wall_s": wall,
        "peak_mb": peak / 1e6,
        "query_p50_ms": statistics.median(asked) * 1000,
        "query_p95_ms": asked[int(len(asked) * 0.95)] * 1000,
        "update_ms": update * 1000,
        "open_ms": None if again is None else again * 1000,
    }
    print(json.dumps(measured))


def _timed(action: Callable[[], object]) -> tuple[float, float]:
    cpu, wall = _cpu_seconds(), time.perf_counter()
    action()
    return _cpu_seconds() - cpu, time.perf_counter() - wall


def _cpu_seconds() -> float:
    of_children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + of_children.ru_utime + of_children.ru_stime


def _peak_bytes() -> int:
    """Return the most that this process held, and the largest of its children, on each core more.

    Pages of the mapped corpus, and of shared libraries, count in each.
    """
    # What getrusage says of a process begins with what its parent held when it was started.
    status = Path("/proc/self/status").read_text("ascii")
    own = int(status.partition("VmHWM:")[2].split()[0])
    child = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return (own + ((os.cpu_count() or 1) - 1) * child) * 1024


if __name__ == "__main__":
    main(*sys.argv[1:])

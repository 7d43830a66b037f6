"""Very many small files on one machine: loaded, indexed, killed on the way, and asked."""

from __future__ import annotations

import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import rlm_rag
from benchmarks.memory import Memory, descendants, memory_of
from benchmarks.scale.small_files import make_tree
from rlm_rag.kept import SEGMENT_SUFFIX

_INTERVAL_SECONDS = 1.0
_KILLED_AT_SEGMENTS = 5
_ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Run:
    """What a command took; memory in bytes, of all its processes, when they had most."""

    seconds: float
    processor: float
    peak: Memory


def measure(*, files: int, total_bytes: int, queries: Sequence[str], keep: Path | None) -> None:
    """Print a row for each step; the tree and what is kept of it lie in `keep`, or go at the end.

    With `keep` a tree that is there is taken as it is.
    """
    with working_folder(keep) as folder:
        tree, cache = folder / "tree", folder / "cache"
        if not tree.exists():
            make_tree(tree, files=files, total_bytes=total_bytes)
        shutil.rmtree(cache, ignore_errors=True)
        os.environ["XDG_CACHE_HOME"] = str(cache)
        print("| step | s | processor, s | peak RSS, GB | of it private, GB | segments |")
        print("|---|---|---|---|---|---|", flush=True)
        command = [sys.executable, "-m", "rlm_rag", "index", str(tree)]
        _row(
            f"load and index, killed at {_KILLED_AT_SEGMENTS} segments",
            _run(command, lambda: len(_segments(cache)) >= _KILLED_AT_SEGMENTS),
            cache,
        )
        before = _segments(cache)
        _row("the same again", _run(command), cache)
        held = len(before & _segments(cache))
        _row("and again", _run(command), cache)
        print(f"{held} of {len(before)} segments were gone on with; load {os.getloadavg()[0]:.1f}")
        _ask(tree, queries)


def ask_again(keep: Path, queries: Sequence[str]) -> None:
    """Ask once more, in a process that has met no term, what `measure` has left in `keep`."""
    os.environ["XDG_CACHE_HOME"] = str(keep / "cache")
    _ask(keep / "tree", queries)


@contextmanager
def working_folder(keep: Path | None) -> Iterator[Path]:
    """A folder to work in: `keep`, or one that goes at the end."""
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        yield keep
        return
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def _segments(cache: Path) -> set[str]:
    return {path.name for path in cache.rglob(f"*{SEGMENT_SUFFIX}")}


def _row(step: str, run: Run, cache: Path) -> None:
    print(
        f"| {step} | {run.seconds:.0f} | {run.processor:.0f} | {run.peak.resident / 1e9:.1f} "
        f"| {run.peak.private / 1e9:.1f} | {len(_segments(cache))} |",
        flush=True,
    )


def _run(command: Sequence[str], is_over: Callable[[], bool] = lambda: False) -> Run:
    """Run a command to its end, or kill it as soon as `is_over`."""
    before, started = os.times(), time.perf_counter()
    peak, killed = Memory(0, 0, 0), False
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)
    while process.poll() is None:
        now = memory_of({process.pid, *descendants(process.pid)})
        peak = max(peak, now, key=lambda memory: memory.resident)
        if is_over():
            process.send_signal(signal.SIGKILL)
            killed = True
            break
        time.sleep(_INTERVAL_SECONDS)
    if process.wait() and not killed:
        raise SystemExit(f"exit status {process.returncode}: {' '.join(command)}")
    after = os.times()
    processor = (
        after.children_user + after.children_system - before.children_user - before.children_system
    )
    return Run(time.perf_counter() - started, processor, peak)


def _ask(tree: Path, queries: Sequence[str]) -> None:
    with rlm_rag.load(str(tree)) as corpus:
        started = time.perf_counter()
        assert corpus.search(queries[0])
        opened = time.perf_counter() - started
        rounds = [[_seconds(corpus, query) for query in queries] for _ in range(_ROUNDS)]
        peak = memory_of({os.getpid(), *descendants(os.getpid())})
    again = [seconds for one in rounds[1:] for seconds in one]
    print(
        f"first search {opened:.1f} s; p50 of terms met for the first time "
        f"{1e3 * statistics.median(rounds[0]):.1f} ms, met before "
        f"{1e3 * statistics.median(again):.1f} ms; RSS {peak.resident / 1e9:.1f} GB, of it private "
        f"{peak.private / 1e9:.1f} GB"
    )


def _seconds(corpus: rlm_rag.SearchableCorpus, query: str) -> float:
    started = time.perf_counter()
    corpus.search(query)
    return time.perf_counter() - started

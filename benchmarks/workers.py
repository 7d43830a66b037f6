"""The sandbox: how long a worker takes to start and a block to go out and back, at any corpus."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AsyncExitStack
from functools import partial

from benchmarks.corpora import Packed, packed_corpora
from benchmarks.figures import Figure, Section, interleaved
from benchmarks.memory import AVAILABLE, descendants, memory_of
from benchmarks.plan import GB, Plan, size_name
from rlm_rag.sandbox.blocks import BlockResult, ServiceCall, ServiceReply
from rlm_rag.sandbox.cloud.remote import Cloud
from rlm_rag.sandbox.confine.view import Layer, interpreter
from rlm_rag.sandbox.layers import choose_layer, verdicts
from rlm_rag.sandbox.session import Session, WorkerSetup

_BARE = "bare interpreter (start to end)"
# How many blocks of one worker follow each other before the next worker's turn.
_BURST = 20
# About the shortest time in which a model replies: processors have begun to sleep by then.
_PAUSE_SECONDS = 0.005
# Touches the corpus, so that one that is not there, or is read whole, would show.
_TURN = "n = len(context)"
_READ_ALL = "sum(len(entry['content']) for entry in context)"


def measure(plan: Plan) -> tuple[Section, ...]:
    """Measure every layer that works here, over one corpus of each size."""
    layers, notes = _layers()
    with packed_corpora(plan.corpus_bytes) as corpora:
        sections = [
            _packing(corpora),
            Section("Worker start, first block included", _starts(plan, layers, corpora), notes),
            Section(
                "Turn overhead: a block out and back", asyncio.run(_turns(plan, layers, corpora))
            ),
        ]
        if AVAILABLE:
            largest = corpora[max(corpora)]
            sections.append(asyncio.run(_second_worker(layers[0], largest)))
    return tuple(sections)


def _layers() -> tuple[list[Layer], tuple[str, ...]]:
    """Return the layers that work on this machine, strongest first, and why others do not."""
    working = [name for name, why in verdicts().items() if not why]
    found = [choose_layer(name) for name in (*working, "none")]
    notes = [f"Not measured: {name}: {why}." for name, why in verdicts().items() if why]
    return [layer for layer in found if not isinstance(layer, Cloud)], tuple(notes)


def _packing(corpora: Mapping[int, Packed]) -> Section:
    size = max(corpora)
    megabytes = size / 1e6
    value = megabytes / corpora[size].seconds
    figure = Figure(name=f"write {size_name(size)}, text made", unit="MB/s", values=(value,))
    return Section("Packed corpus", (figure,))


def _starts(plan: Plan, layers: list[Layer], corpora: Mapping[int, Packed]) -> tuple[Figure, ...]:
    ends = sorted({min(corpora), max(corpora)})
    actions: dict[str, Callable[[], float]] = {_BARE: _bare_milliseconds}
    targets: dict[str, float] = {}
    for layer in layers:
        for size in ends:
            name = f"{layer.name}, {size_name(size)}"
            targets[name] = 60.0
            actions[name] = partial(_start_milliseconds, layer, corpora[size])
    child = f"{layers[0].name}, {size_name(max(corpora))}, a child's beside its parent's"
    targets[child] = 100.0
    actions[child] = partial(_child_milliseconds, layers[0], corpora[max(corpora)])
    return tuple(
        Figure(
            name=name,
            unit="ms",
            values=tuple(values),
            base=None if name == _BARE else _BARE,
            at_most=targets.get(name),
        )
        for name, values in interleaved(plan.starts, actions).items()
    )


async def _turns(
    plan: Plan, layers: list[Layer], corpora: Mapping[int, Packed]
) -> tuple[Figure, ...]:
    """Time blocks of every worker by turns, then those of one with pauses between them."""
    async with AsyncExitStack() as stack:
        timed = {
            (layer.name, size): _TimedSession(
                await stack.enter_async_context(_session(layer, corpora[size]))
            )
            for layer in layers
            for size in corpora
        }
        for _ in range(max(1, plan.turns // _BURST)):
            for session in timed.values():
                await session.turns(min(plan.turns, _BURST))
        figures = tuple(_turn_figures(timed, min(corpora)))
        paused = timed[layers[0].name, max(corpora)]
        paused.milliseconds.clear()
        for _ in range(max(1, plan.turns // 4)):
            await asyncio.sleep(_PAUSE_SECONDS)
            await paused.turns(1)
        last = Figure(
            name=f"{layers[0].name}, {size_name(max(corpora))}, after a pause of 5 ms",
            unit="ms",
            values=tuple(paused.milliseconds),
            base=f"{layers[0].name}, {size_name(min(corpora))}",
        )
        return (*figures, last)


class _TimedSession:
    """A session and how long each of its blocks took, the first one apart."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._block = 0
        self.milliseconds: list[float] = []

    async def turns(self, count: int) -> None:
        for _ in range(count):
            self._block += 1
            started = time.perf_counter()
            await _run(self._session, _TURN, self._block)
            if self._block > 1:
                self.milliseconds.append((time.perf_counter() - started) * 1000)


def _turn_figures(
    timed: Mapping[tuple[str, int], _TimedSession], smallest: int
) -> Iterator[Figure]:
    for (layer, size), session in timed.items():
        yield Figure(
            name=f"{layer}, {size_name(size)}",
            unit="ms",
            values=tuple(session.milliseconds),
            base=None if size == smallest else f"{layer}, {size_name(smallest)}",
            at_most=0.3,
        )


async def _second_worker(layer: Layer, packed: Packed) -> Section:
    """Measure what a second worker adds, after both have read the whole corpus."""
    host = os.getpid()
    async with _session(layer, packed) as first:
        await _run(first, _READ_ALL, 1)
        earlier = descendants(host)
        async with _session(layer, packed) as second:
            started = time.perf_counter()
            await _run(second, _READ_ALL, 1)
            seconds = time.perf_counter() - started
            memory = memory_of(descendants(host) - earlier)
    megabyte = 1e6
    size = packed.corpus.total_bytes
    return Section(
        f"A second worker over {size_name(size)}, read through ({layer.name}, launcher included)",
        (
            Figure(name="private memory", unit="MB", values=(memory.private / megabyte,)),
            Figure(name="proportional (Pss)", unit="MB", values=(memory.proportional / megabyte,)),
            Figure(name="resident (Rss)", unit="MB", values=(memory.resident / megabyte,)),
            Figure(
                name="reading every document in Python",
                unit="s a GB",
                values=(seconds * GB / size,),
            ),
        ),
    )


def _session(layer: Layer, packed: Packed) -> Session:
    return Session(
        layer=layer,
        packed_path=packed.corpus.packed_path,
        serve=_refuse,
        setup=WorkerSetup(shape=packed.corpus.shape),
    )


async def _refuse(call: ServiceCall) -> ServiceReply:
    raise RuntimeError(f"no block of a benchmark calls {call.name}")


def _start_milliseconds(layer: Layer, packed: Packed) -> float:
    return asyncio.run(_started(layer, packed))


def _child_milliseconds(layer: Layer, packed: Packed) -> float:
    async def start() -> float:
        async with _session(layer, packed) as parent:
            await _run(parent, _TURN, 1)
            return await _started(layer, packed)

    return asyncio.run(start())


async def _started(layer: Layer, packed: Packed) -> float:
    started = time.perf_counter()
    async with _session(layer, packed) as session:
        await _run(session, _TURN, 1)
        return (time.perf_counter() - started) * 1000


async def _run(session: Session, code: str, block: int) -> BlockResult:
    result = await session.run(code, block=block, timeout_seconds=120, output_chars=1000)
    if result.error is not None:
        raise RuntimeError(result.error.traceback or result.error.message)
    return result


def _bare_milliseconds() -> float:
    started = time.perf_counter()
    subprocess.run([interpreter(), "-I", "-S", "-c", "pass"], check=True)
    return (time.perf_counter() - started) * 1000

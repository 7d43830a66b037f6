"""Measures sub-calls: `python -m benchmarks.subcalls`, from the repository."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks.environment import compiled, machine
from benchmarks.figures import Figure, Report, Section, interleaved
from benchmarks.leaf_calls import LITELLM_MODEL, dummy_key
from benchmarks.model_server import serving
from benchmarks.slow_model import registered
from benchmarks.subcalls import killed, limited_model
from benchmarks.subcalls.batches import ANSWER, CHILDREN, LEAVES, WIDTH, Batch, highest_memory
from benchmarks.subcalls.peers import installed, peer

DELAY_SECONDS = 0.05
# The provider of the storm takes so many requests a second, and each takes so long.
STORM_WINDOW, STORM_DELAY_SECONDS = 100, 0.02
_IDEAL = "the model's time alone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How many calls, children and rounds."""

    calls: int = 200
    quick_calls: int = 1000
    children: tuple[int, ...] = (16, 64)
    large: tuple[int, ...] = (1000, 10_000)
    storm_calls: int = 400
    rounds: int = 3
    litellm: bool = True


QUICK = Sizes(
    calls=100,
    quick_calls=200,
    children=(4,),
    large=(100, 1000),
    storm_calls=150,
    rounds=1,
    litellm=False,
)


def main(arguments: Sequence[str] | None = None, *, sizes: Sizes | None = None) -> int:
    """Measure, print the report on stdout, and return the exit code."""
    options = _parser().parse_args(arguments)
    chosen = sizes or (QUICK if options.quick else Sizes())
    report = measure(chosen, options.peers)
    print(json.dumps(report.to_dict(), indent=2) if options.json else report.to_markdown())
    return 0


def measure(sizes: Sizes, python: Path | None) -> Report:
    """Measure every section; `python` is an interpreter with peers, None to leave them out."""
    limited = f"{limited_model.__name__}:{limited_model.open_limited.__name__}"
    described = machine()
    with compiled(), registered({limited_model.PREFIX: limited}):
        sections = (
            beside_others(sizes, python, sizes.calls, DELAY_SECONDS, with_litellm=sizes.litellm),
            beside_others(sizes, python, sizes.quick_calls, 0.0),
            children(sizes, python),
            large_batches(sizes),
            storm(sizes),
            killed.measure(sizes.calls),
        )
    return Report(described, sections)


def beside_others(
    sizes: Sizes, python: Path | None, count: int, delay: float, *, with_litellm: bool = False
) -> Section:
    """Time one batch over HTTP, and ours in process too."""
    peers = installed(python) if python else ()
    with ExitStack() as stack:
        base = stack.enter_context(serving("openai", delay))
        block = LEAVES.format(count=count)
        over_http = stack.enter_context(Batch(block, "leaf", api_base=base))
        in_process = stack.enter_context(Batch(block, f"slow:{delay}"))
        actions: dict[str, Callable[[], float]] = {
            "rlm-rag, in process": in_process.seconds,
            "rlm-rag, HTTP": over_http.seconds,
        }
        if with_litellm:
            stack.enter_context(dummy_key())
            address = stack.enter_context(serving("anthropic", delay))
            batch = stack.enter_context(Batch(block, LITELLM_MODEL, api_base=address))
            actions["rlm-rag, HTTP by litellm"] = batch.seconds
        for name in peers:
            assert python is not None
            other = stack.enter_context(peer(name, python, count=count, sub_base=base))
            actions[f"{name}, HTTP"] = other.seconds
        taken = interleaved(sizes.rounds, actions)
    ideal = math.ceil(count / WIDTH) * delay
    figures = [Figure(name=_IDEAL, unit="s", values=(ideal,))] if ideal else []
    base_name = "rlm-rag, HTTP"
    figures += [
        Figure(
            name=name,
            unit="s",
            values=tuple(values),
            base=_IDEAL if ideal else None if name == base_name else base_name,
        )
        for name, values in taken.items()
    ]
    note = (
        f"{WIDTH} wide (dspy: 8, its own); each tool's block, as its root model would write it."
        if peers
        else "No peers: name an interpreter that has them with --peers."
    )
    return Section(f"{count:,} leaf calls of {delay * 1000:g} ms", tuple(figures), (note,))


def children(sizes: Sizes, python: Path | None) -> Section:
    """Time children that answer in their first turn, ours each with a worker of its own."""
    with_rlms = python is not None and "rlms" in installed(python)
    with ExitStack() as stack:
        base = stack.enter_context(serving("openai", 0, ANSWER))
        actions: dict[str, Callable[[], float]] = {}
        for count in sizes.children:
            batch = Batch(CHILDREN.format(count=count), "child", api_base=base, of_children=True)
            actions[f"{count} children"] = stack.enter_context(batch).seconds
            if python is not None and with_rlms:
                other = peer("rlms", python, count=count, sub_base=base, of_children=True)
                actions[f"{count} children, rlms"] = stack.enter_context(other).seconds
        taken = interleaved(sizes.rounds, actions)
    figures = tuple(
        Figure(
            name=name,
            unit="s",
            values=tuple(values),
            base=name.removesuffix(", rlms") if name.endswith(", rlms") else None,
            at_most=1.0 if name == "16 children" else None,
        )
        for name, values in taken.items()
    )
    return Section("children of no latency", figures)


def large_batches(sizes: Sizes) -> Section:
    """Time large batches, and what the host holds of the memory while they run."""
    seconds, grown = [], []
    for count in sizes.large:
        with Batch(LEAVES.format(count=count), "slow:0") as batch:
            with highest_memory() as seen:
                seconds.append((count, batch.seconds()))
            grown.append((count, (seen[1] - seen[0]) / 1e6))
    figures = [
        Figure(name=f"{count:,} prompts, a call", unit="ms", values=(taken / count * 1000,))
        for count, taken in seconds
    ]
    figures += [
        Figure(name=f"{count:,} prompts, memory added", unit="MB", values=(size,))
        for count, size in grown
    ]
    return Section("large batches of no latency", tuple(figures))


def storm(sizes: Sizes) -> Section:
    """Time a batch at a provider that refuses what passes its rate."""
    model = f"{limited_model.PREFIX}:{STORM_WINDOW}:{STORM_DELAY_SECONDS}"
    windows, rest = divmod(sizes.storm_calls - 1, STORM_WINDOW)
    ideal = windows * limited_model.WINDOW_SECONDS
    ideal += math.ceil((rest + 1) / WIDTH) * STORM_DELAY_SECONDS
    taken, refused = [], []
    for _ in range(sizes.rounds):
        limited_model.LimitedModel.refused = 0
        with Batch(LEAVES.format(count=sizes.storm_calls), model) as batch:
            taken.append(batch.seconds())
        refused.append(float(limited_model.LimitedModel.refused))
    name = "as fast as the rate allows"
    return Section(
        f"{sizes.storm_calls} leaf calls at a provider that takes {STORM_WINDOW} a second",
        (
            Figure(name=name, unit="s", values=(ideal,)),
            Figure(name="rlm-rag", unit="s", values=tuple(taken), base=name, at_most=1.3 * ideal),
            Figure(name="requests refused", unit="", values=tuple(refused)),
        ),
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.subcalls", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few calls, one round")
    parser.add_argument("--json", action="store_true", help="print JSON instead of Markdown")
    parser.add_argument(
        "--peers", type=Path, metavar="PYTHON", help="an interpreter with rlms and dspy installed"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())

"""Measures what rlm-rag itself costs: `python -m benchmarks.overhead`, from the repository."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from benchmarks import cold_start, leaf_calls, retrieval, runs, workers
from benchmarks.environment import compiled, machine
from benchmarks.figures import Report, Section
from benchmarks.plan import FULL, QUICK, Plan
from rlm_rag.errors import RlmRagError

SECTIONS: Mapping[str, Callable[[Plan], tuple[Section, ...]]] = {
    "cold-start": cold_start.measure,
    "sandbox": workers.measure,
    "run": runs.measure,
    "leaf-calls": leaf_calls.measure,
    "retrieval": retrieval.measure,
}


def main(arguments: Sequence[str] | None = None, *, plan: Plan | None = None) -> int:
    """Measure, print the report on stdout, and return the exit code; `plan` overrides options."""
    options = _parser().parse_args(arguments)
    chosen = plan or (QUICK if options.quick else FULL)
    try:
        report = measure(chosen, options.only or tuple(SECTIONS))
    except RlmRagError as error:
        print(f"error: {error.message}", file=sys.stderr)
        if error.hint:
            print(f"hint: {error.hint}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    print(json.dumps(report.to_dict(), indent=2) if options.json else report.to_markdown())
    return 0


def measure(plan: Plan, names: Sequence[str]) -> Report:
    """Measure the sections of these names, one after the other.

    Raises:
        RlmRagError: the temporary folder is full, or something measured failed.
    """
    described = machine()
    sections: list[Section] = []
    with compiled():
        for name in names:
            print(f"measuring: {name}", file=sys.stderr)
            sections += (_with_load(section) for section in SECTIONS[name](plan))
    return Report(described, tuple(sections))


def _with_load(section: Section) -> Section:
    """Add the load average, without which no figure of a shared machine can be judged."""
    load = machine().get("load")
    if load is None:
        return section
    return replace(section, notes=(*section.notes, f"Load average afterwards: {load}."))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.overhead", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rounds, no 1 GB, no litellm")
    parser.add_argument("--json", action="store_true", help="print JSON instead of Markdown")
    parser.add_argument(
        "--only", action="append", choices=tuple(SECTIONS), help="this section; may be repeated"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())

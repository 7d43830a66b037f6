"""The names of runs, which nest: a child of `run` is `run.N`."""

from __future__ import annotations

from dataclasses import replace

from rlm_rag.trace.events import Event, RunStarted


def is_within(run: str, other: str) -> bool:
    """Whether a run is another one, or below it."""
    return run == other or run.startswith(f"{other}.")


def moved(event: Event, run: str, to: str) -> Event:
    """Return what a run, or one below it, told, as if the run were called `to`."""
    if not is_within(event.run, run):
        return event
    if isinstance(event, RunStarted) and event.parent is not None and is_within(event.parent, run):
        event = replace(event, parent=to + event.parent.removeprefix(run))
    return replace(event, run=to + event.run.removeprefix(run))

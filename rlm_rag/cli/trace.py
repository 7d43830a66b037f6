"""`rlm-rag trace`: the records of past runs."""

from __future__ import annotations

import sys
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import click

from rlm_rag.cli import streams
from rlm_rag.cli.exits import DONE
from rlm_rag.cli.options import json_option
from rlm_rag.errors import TraceError, UsageError
from rlm_rag.trace.store import RunFile, TraceStore

if TYPE_CHECKING:
    from rlm_rag.trace.reader import Record, RunSummary

QUESTION_CHARS = 60


@click.group()
def trace() -> None:
    """List, show and clear the records of past runs."""


@trace.command("list")
@json_option
def list_(as_json: bool) -> int:
    """List the runs that are on record, oldest first."""
    store = TraceStore()
    runs = [(run, _summary(run)) for run in store.list_runs()]
    if as_json:
        streams.result_json({"runs": [_listed(run, summary) for run, summary in runs]})
        return DONE
    for run, summary in runs:
        question = " ".join(summary.question.split()) if summary else "(cannot be read)"
        if len(question) > QUESTION_CHARS:
            question = question[: QUESTION_CHARS - 3] + "..."
        ending = (summary.stop_reason if summary else None) or "unfinished"
        streams.result(f"{run.id}  {ending:<13} {question}")
    if not runs:
        streams.note(f"no runs in {store.folder}")
    return DONE


@trace.command()
@click.argument("run", default="last")
@json_option
def show(run: str, as_json: bool) -> int:
    """Show RUN readably: an id or its unique start, a file, or the last one."""
    from rlm_rag.trace.reader import read_trace

    record = read_trace(TraceStore().find_run(run))
    if as_json:
        events = [_event(entry) for entry in record.records]
        streams.result_json({"events": events, "torn": record.torn})
        return DONE
    from rlm_rag.trace.show import render

    for line in render(record):
        streams.result(line)
    return DONE


@trace.command()
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@json_option
def clear(yes: bool, as_json: bool) -> int:
    """Remove every record of this user's runs."""
    store = TraceStore()
    count = len(store.list_runs())
    if count and not yes:
        if as_json or not sys.stdin.isatty():
            raise UsageError(f"this would remove {count} runs", hint="add --yes to do it")
        if not click.confirm(f"Remove {count} runs from {store.folder}?", err=True):
            streams.note("nothing was removed")
            return DONE
    removed = store.clear()
    if as_json:
        streams.result_json({"removed": removed})
    else:
        streams.note(f"{removed} runs removed from {store.folder}")
    return DONE


def _event(record: Record) -> dict[str, Any]:
    event = record.event
    values = {item.name: getattr(event, item.name) for item in fields(event)}
    return {"seq": record.seq, "time": record.time, "type": event.type} | values


def _listed(run: RunFile, summary: RunSummary | None) -> dict[str, Any]:
    return {
        "id": run.id,
        "started": run.started,
        "size_bytes": run.size_bytes,
        "path": str(run.path),
        "question": summary.question if summary else None,
        "model": summary.model if summary else None,
        "stop_reason": summary.stop_reason if summary else None,
    }


def _summary(run: RunFile) -> RunSummary | None:
    """Return a run in one line, None where its file cannot be read: the list goes on."""
    from rlm_rag.trace.reader import summarize

    try:
        return summarize(run.path)
    except TraceError:
        return None

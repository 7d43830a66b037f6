"""`rlm-rag trace`: the records of past runs."""

from __future__ import annotations

import json
import sys
from dataclasses import fields
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from rlm_rag.cli import streams
from rlm_rag.cli.exits import DONE
from rlm_rag.cli.options import json_option
from rlm_rag.errors import UsageError
from rlm_rag.trace.store import RunFile, TraceStore

if TYPE_CHECKING:
    from rlm_rag.trace.reader import Record

QUESTION_CHARS = 60
# A longer first or last event is not looked into.
END_BYTES = 1 << 20


class Summary(NamedTuple):
    """A run in two words; None where its file does not say."""

    question: str | None
    stop_reason: str | None


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
        question = " ".join((summary.question or "(cannot be read)").split())
        if len(question) > QUESTION_CHARS:
            question = question[: QUESTION_CHARS - 3] + "..."
        streams.result(f"{run.id}  {summary.stop_reason or 'unfinished':<13} {question}")
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
    return {"line": record.line, "time": record.time, "type": event.type} | values


def _listed(run: RunFile, summary: Summary) -> dict[str, Any]:
    return {
        "id": run.id,
        "started": run.started,
        "size_bytes": run.size_bytes,
        "path": str(run.path),
        "question": summary.question,
        "stop_reason": summary.stop_reason,
    }


def _summary(run: RunFile) -> Summary:
    """Read the two ends of a trace alone, since a list of many large ones must be quick."""
    try:
        with run.path.open("rb") as file:
            first = file.readline(END_BYTES)
            file.seek(max(0, run.size_bytes - END_BYTES))
            last = file.read(END_BYTES).rstrip(b"\n").rpartition(b"\n")[2]
    except OSError:
        return Summary(None, None)
    return Summary(_field(first, "run", "question"), _field(last, "answer", "stop_reason"))


def _field(line: bytes, kind: str, name: str) -> str | None:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    value = event.get(name) if isinstance(event, dict) and event.get("type") == kind else None
    return value if isinstance(value, str) else None

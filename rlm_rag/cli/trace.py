"""`rlm-rag trace`: the records of past runs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import fields
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from rlm_rag.cli import streams
from rlm_rag.cli.completion import files, runs
from rlm_rag.cli.exits import DONE, PARTIAL
from rlm_rag.cli.offering import asker
from rlm_rag.cli.options import (
    Command,
    Loading,
    decorated,
    json_option,
    opened,
    source_options,
    take_loading,
)
from rlm_rag.cli.view import view
from rlm_rag.counts import counted
from rlm_rag.errors import RlmRagError, UsageError
from rlm_rag.trace.locks import is_locked
from rlm_rag.trace.store import RunFile, TraceStore

if TYPE_CHECKING:
    from rlm_rag.api import SearchableCorpus
    from rlm_rag.cli.display import Display
    from rlm_rag.engine.answer import Answer
    from rlm_rag.trace.reader import Record, Trace

QUESTION_CHARS = 60
# A longer first or last event is not looked into.
END_BYTES = 1 << 20


class Summary(NamedTuple):
    """A run in three words; None where its file does not say."""

    question: str | None
    stop_reason: str | None
    goes_on: bool = False

    @property
    def ended_by(self) -> str:
        return self.stop_reason or ("running" if self.goes_on else "unfinished")


@click.group()
def trace() -> None:
    """List, show and clear the records of past runs, go on with one, or repeat one."""


trace.add_command(view)


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
        streams.result(f"{run.id}  {summary.ended_by:<13} {question}")
    if not runs:
        streams.note(f"no runs in {store.folder}")
    return DONE


@trace.command()
@click.argument("run", default="last", shell_complete=runs)
@json_option
def show(run: str, as_json: bool) -> int:
    """Show RUN readably: an id or its unique start, a file, or the last one.

    Exits with 1 where its file is torn, after all that can be read.
    """
    from rlm_rag.trace.reader import read_trace
    from rlm_rag.trace.show import render

    record = read_trace(TraceStore().find_run(run))
    if as_json:
        events = [_event(entry) for entry in record.records]
        streams.result_json({"events": events, "torn": record.torn})
    else:
        for line in render(record):
            streams.result(line)
        _warn_of_changes(record)
    return DONE if record.tear is None else PARTIAL


def _warn_of_changes(record: Trace) -> None:
    """Say which cited files have changed since, or that the source cannot be looked at."""
    from rlm_rag.cited import changed_since

    try:
        changed = changed_since(record)
    except RlmRagError as error:
        streams.note(streams.one_line(f"warning: the cited files cannot be checked: {error}"))
        return
    if changed:
        named = ", ".join(changed)
        streams.note(streams.one_line(f"warning: cited files have changed since: {named}"))


_AGAIN_OPTIONS = (
    click.argument("run", default="last", shell_complete=runs),
    click.argument("sources", nargs=-1, shell_complete=files, metavar="[SOURCE...]"),
    click.option("-q", "--quiet", is_flag=True, help="Say nothing but the answer."),
    click.option("-v", "--verbose", is_flag=True, help="Show code and output as they run."),
    source_options,
    json_option,
)
_MORE = click.IntRange(min=1)
_MORE_OF = click.FloatRange(min=0)
_NO_LIMIT = "none"


def _or_none(amount: click.ParamType[Any]) -> Callable[[str], Any]:
    """Take what a type takes, or `none` for no limit, which stays a word: None is not given."""

    def take(value: str) -> Any:
        if value.strip().lower() == _NO_LIMIT:
            return _NO_LIMIT
        return amount.convert(value, None, None)

    return take


def _again_options(command: Command) -> Command:
    return decorated(command, _AGAIN_OPTIONS)


@trace.command()
@_again_options
@click.option("--api-base", metavar="URL", help="Where the server is now.")
@click.option("--max-iterations", "iterations", type=_MORE, help="Turns of the root model.")
@click.option(
    "--max-calls", "calls", type=_or_none(_MORE), metavar="N", help="Requests to providers."
)
@click.option(
    "--max-tokens", "tokens", type=_or_none(_MORE), metavar="N", help="Tokens, in and out."
)
@click.option("--max-usd", "usd", type=_or_none(_MORE_OF), metavar="N", help="Money.")
@click.option(
    "--max-seconds",
    "seconds",
    type=_or_none(_MORE_OF),
    metavar="N",
    help="Time, all stretches together.",
)
@click.option("--max-errors", "errors", type=_MORE, help="Failed turns in a row.")
def resume(
    run: str,
    sources: tuple[str, ...],
    api_base: str | None,
    quiet: bool,
    verbose: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """Go on with RUN after a crash, `kill -9`, Ctrl-C or a limit, paying for nothing twice.

    RUN is an id or its unique start, a file, or the last one. Its blocks run again on the same
    corpus, from where it was loaded, or from SOURCE. Limits can be raised, those of calls, tokens,
    money and time to `none`; what was spent counts.
    """
    from rlm_rag.recovery import resume as resume_run

    loading = take_loading(options)
    raised = {
        name: None if value == _NO_LIMIT else value
        for name, value in options.items()
        if value is not None
    }

    def again(corpus: SearchableCorpus | None, display: Display) -> Answer:
        return resume_run(
            run,
            corpus,
            raised=raised,
            api_base=api_base,
            on_event=display,
            on_text=display.hear,
            ask_user=asker(display, quiet=quiet),
        )

    return _answer_again(again, sources, loading, quiet=quiet, verbose=verbose, as_json=as_json)


@trace.command()
@_again_options
def replay(
    run: str,
    sources: tuple[str, ...],
    quiet: bool,
    verbose: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """Repeat RUN from its trace alone: no model, no network, the same answer.

    RUN is an id or its unique start, a file, or the last one. It fails where the corpus, the
    code or the answer is not that of the trace.
    """
    from rlm_rag.recovery import replay as replay_run

    loading = take_loading(options)

    def again(corpus: SearchableCorpus | None, display: Display) -> Answer:
        return replay_run(run, corpus, on_event=display)

    return _answer_again(again, sources, loading, quiet=quiet, verbose=verbose, as_json=as_json)


def _answer_again(
    again: Callable[[SearchableCorpus | None, Display], Answer],
    sources: tuple[str, ...],
    loading: Loading,
    *,
    quiet: bool,
    verbose: bool,
    as_json: bool,
) -> int:
    from rlm_rag.cli.answers import answered, show_answer
    from rlm_rag.cli.display import choose_display

    display = choose_display(quiet=quiet, verbose=verbose)
    with opened(sources, quiet=quiet, **loading) if sources else nullcontext() as corpus:
        try:
            answer = answered(lambda: again(corpus, display))
        finally:
            display.close()
    origin = None if corpus is None else corpus.origin
    return show_answer(answer, origin=origin, as_json=as_json, quiet=quiet)


@trace.command()
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@json_option
def clear(yes: bool, as_json: bool) -> int:
    """Remove every record of this user's runs."""
    store = TraceStore()
    count = len(store.list_runs())
    if count and not yes:
        if as_json or not sys.stdin.isatty():
            raise UsageError(
                f"this would remove {counted(count, 'run')}", hint="add --yes to do it"
            )
        if not click.confirm(f"Remove {counted(count, 'run')} from {store.folder}?", err=True):
            streams.note("nothing was removed")
            return DONE
    removed = store.clear()
    if as_json:
        streams.result_json({"removed": removed})
    else:
        streams.note(f"{counted(removed, 'run')} removed from {store.folder}")
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
        "goes_on": summary.goes_on,
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
    question = _field(first, "run", "question")
    stop_reason = _field(last, "answer", "stop_reason")
    # A file is locked before its first line is written.
    goes_on = question is not None and stop_reason is None and is_locked(run.path)
    return Summary(question, stop_reason, goes_on)


def _field(line: bytes, kind: str, name: str) -> str | None:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    value = event.get(name) if isinstance(event, dict) and event.get("type") == kind else None
    return value if isinstance(value, str) else None

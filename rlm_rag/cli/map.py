"""`rlm-rag map`: one prompt asked of every document, an answer each."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rlm_rag.cli import streams, terminal
from rlm_rag.cli.asking import cache_option, estimate_option, settings_options
from rlm_rag.cli.completion import files
from rlm_rag.cli.display import Display
from rlm_rag.cli.estimate import show_estimate
from rlm_rag.cli.exits import DONE, PARTIAL
from rlm_rag.cli.model_options import model_options
from rlm_rag.cli.options import (
    STDIN,
    Loading,
    OutFile,
    json_option,
    question_of,
    source_options,
    split_last,
)
from rlm_rag.cli.questioner import Questioner, take_questioner
from rlm_rag.cli.spending import spent, unsent
from rlm_rag.counts import counted
from rlm_rag.errors import RlmRagError

if TYPE_CHECKING:
    from rlm_rag.engine.mapping import FileAnswer, MapPlan, MapSummary
    from rlm_rag.mapping import Map
    from rlm_rag.models.prices import ModelFacts

EXAMPLE = 'rlm-rag map ./repo "Which settings does it read?" -o settings.jsonl'


@click.command("map")
@click.argument("arguments", nargs=-1, shell_complete=files, metavar="SOURCE... PROMPT")
@click.option(
    "-o",
    "--out",
    type=OutFile(),
    metavar="FILE",
    help="Where the answers go, - for standard output; a file that has some is gone on with.",
)
@cache_option
@estimate_option
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but the answers.")
@settings_options
@model_options
@source_options
@json_option
def map_(
    arguments: tuple[str, ...],
    out: Path | None,
    estimate: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """Ask PROMPT of every document of SOURCE by itself, and write a line of JSON for each.

    A line has schema_version, path, ok, answer, error, truncated, model, usage, digest (of the
    text) and asked (a digest of PROMPT and model). With -o nothing that was answered is asked, or
    paid for, again, unless its text has changed; what failed is asked again. There is no limit
    on calls unless --max-calls, or a setting, is one; --estimate says what it may cost. --json
    prints the sum at the end, and needs -o. Exits with 1 where a document has no answer.

    \b
        rlm-rag map ./repo "Which settings does it read?" -o settings.jsonl --include '*.py'
        rlm-rag map ./minutes "What was decided?" --model openai/gpt-5-mini > decisions.jsonl
    """
    sources, prompt = split_last(arguments, what="the prompt", example=EXAMPLE)
    prompt = question_of(prompt, sources, what="the prompt")
    out = None if out == Path(STDIN) else out
    if out is not None:
        # Raises where the working folder is gone, which is told as such.
        out.absolute()
    if out is None and not estimate:
        _check_prints(as_json=as_json)
    questioner = _take_questioner(options, sources, prints=out is None)
    rlm = questioner.rlm(with_keys=not estimate)
    with (
        questioner.corpus(sources) as corpus,
        rlm.map(corpus, prompt, out=out) as mapped,
    ):
        if estimate:
            show_estimate(mapped.estimate, as_json=as_json)
            return DONE
        if not questioner.quiet:
            _announce(mapped.plan, mapped.parts, mapped.facts)
        _write(mapped, questioner.display, out, quiet=questioner.quiet)
        return _ended(mapped, as_json=as_json, quiet=questioner.quiet)


# A map runs no blocks, and its answers are its record.
_OFFERS_NOTHING = {"library": (), "artifacts": None, "verbose": False, "no_trace": True}


def _take_questioner(
    options: dict[str, Any], sources: Sequence[str], *, prints: bool
) -> Questioner:
    # Answers that come on the same terminal show how far it is.
    shows_progress = not (prints and terminal.is_terminal(sys.stdout))
    questioner = take_questioner(
        options | _OFFERS_NOTHING, sources=sources, shows_progress=shows_progress
    )
    return _on_nodes(_unbounded(questioner))


def _on_nodes(questioner: Questioner) -> Questioner:
    """Have the nodes of a cluster read the documents, which need not lie there."""
    shards = questioner.loading["shards"]
    if shards is None:
        return questioner
    loading: Loading = {**questioner.loading, "shards": None}
    return replace(questioner, loading=loading, ray=shards.partition(":")[2])


def _unbounded(questioner: Questioner) -> Questioner:
    """As many calls as the documents need, unless somebody set a number."""
    limits = {"calls": None, **questioner.settings.limits}
    return replace(questioner, settings=replace(questioner.settings, limits=limits))


def _check_prints(*, as_json: bool) -> None:
    if as_json:
        raise click.UsageError("--json prints the sum of a map, whose answers go to --out FILE")
    streams.check_is_open(hint="choose a place with -o")


def _announce(plan: MapPlan, calls: int, facts: ModelFacts) -> None:
    others = [f"{counted(len(plan.known), 'was', 'were')} answered before"] if plan.known else []
    if plan.empty:
        others.append(f"{counted(len(plan.empty), 'is', 'are')} empty and left out")
    if plan.own:
        own = streams.one_line(", ".join(plan.own))
        others.append(f"{own}, where the answers go, is left out")
    said = "no document to ask about"
    if plan.digests:
        said = (
            f"{counted(len(plan.digests), 'document')} to ask about, in about "
            f"{counted(calls, 'call')}"
        )
        if calls > len(plan.digests):
            said += f" at a window of {facts.assumed_window:,} tokens"
            # A server is asked by the run, not before.
            said += "" if facts.context_window else ", unless the server says another"
    streams.note("; ".join([said, *others]))


def _write(mapped: Map, display: Display, out: Path | None, *, quiet: bool) -> None:
    """Take the answers as they come, and print them where they go to no file."""
    printed = 0
    try:
        # The map ends first: calls that it cancels then are shown too.
        with closing(display), closing(mapped):
            for answer in mapped:
                if out is None:
                    _print(answer, mapped)
                    printed += answer.ok
    except (KeyboardInterrupt, RlmRagError):
        if out is not None and mapped.unwritten:
            _print_unwritten(mapped, out)
        if not quiet:
            _say_kept(mapped, out, printed)
        raise


def _print(answer: FileAnswer, mapped: Map) -> None:
    from rlm_rag.answer_file import line_of

    streams.result(line_of(answer, mapped.asked).decode("ascii").rstrip("\n"))
    streams.flush()


def _print_unwritten(mapped: Map, out: Path) -> None:
    """Print what was paid for and has no room in its file, which can be put there later."""
    for answer in mapped.unwritten:
        _print(answer, mapped)
    many = counted(len(mapped.unwritten), "answer")
    where = streams.one_line(str(out))
    streams.note(
        f"{many} could not be written, and went to standard output: once there is room, append "
        f"the lines to {where} before you go on"
    )


def _say_kept(mapped: Map, out: Path | None, printed: int) -> None:
    known = len(mapped.plan.known)
    documents = known + len(mapped.plan.digests)
    if out is None:
        said = f"{printed:,} of {documents:,} answers were printed; with -o a map can go on"
    else:
        name = streams.one_line(str(out))
        written = known + mapped.answered - sum(answer.ok for answer in mapped.unwritten)
        said = f"{written:,} of {documents:,} answers are in {name}"
        said += "; the same command goes on from there"
    streams.note(said)


def _ended(mapped: Map, *, as_json: bool, quiet: bool) -> int:
    from rlm_rag.engine.answer import usage_dict

    summary = mapped.summary
    if as_json:
        streams.result_json(
            {
                "stop_reason": summary.stop_reason,
                "answered": summary.answered,
                "failed": summary.failed,
                "unsent": summary.unsent,
                "partial": summary.partial,
                "truncated": summary.truncated,
                "failures": [asdict(failure) for failure in summary.failures],
                "known": len(mapped.plan.known),
                "empty": len(mapped.plan.empty),
                "usage": usage_dict(summary.usage),
            }
        )
    if not quiet:
        _note(summary)
    if summary.stop_reason == "answered":
        return DONE
    if summary.failed:
        most = summary.failures[0]
        streams.note(f"{counted(summary.failed, 'document')} failed; their lines have an error")
        streams.note(streams.one_line(f"{counted(most.documents, 'time')}: {most.error}"))
    cut = [
        f"{counted(number, 'document was', 'documents were')} {said}"
        for number, said in (
            (summary.unsent, "not asked about"),
            (summary.partial, "read in part, which is in the lines that are not ok"),
        )
        if number
    ]
    if cut:
        detail = f" ({summary.limit_detail})" if summary.limit_detail else ""
        streams.note(f"stopped early ({summary.stop_reason}): {'; '.join(cut)}{detail}")
    return PARTIAL


def _note(summary: MapSummary) -> None:
    usage = summary.usage
    streams.note(f"{summary.answered:,} answered, {spent(usage)}{unsent(usage)}")
    if summary.truncated:
        cut = counted(summary.truncated, "answer was", "answers were")
        streams.note(f"{cut} cut by the model's output limit")
    for warning in summary.warnings:
        streams.note(streams.one_line(f"warning: {warning}"))

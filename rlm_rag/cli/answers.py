"""An answer as the command line shows it, and what it says to the shell."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from rlm_rag.cli import streams, terminal
from rlm_rag.cli.cited import COLOURS, CitedPlaces
from rlm_rag.cli.exits import DONE, INTERRUPTED, PARTIAL
from rlm_rag.cli.spending import spent, unsent
from rlm_rag.counts import counted
from rlm_rag.errors import RunInterrupted
from rlm_rag.shown import as_read, printable, printable_json

if TYPE_CHECKING:
    from rlm_rag.engine.answer import Answer
    from rlm_rag.engine.citations import Citation


def answered(ask: Callable[[], Answer]) -> Answer:
    """Return the answer, or what an interrupted run has of one.

    Raises:
        KeyboardInterrupt: the run had made no turn and no call.
    """
    try:
        answer = ask()
    except RunInterrupted as interruption:
        answer = interruption.answer
    if answer.stop_reason == "interrupted" and not (answer.iterations or answer.usage.calls):
        raise KeyboardInterrupt
    return answer


def show_answer(
    answer: Answer,
    *,
    origin: str | None = None,
    as_json: bool,
    quiet: bool,
    require_citations: bool = False,
) -> int:
    """Print an answer, and its figures unless `quiet`; return the exit code.

    `origin` is the corpus's, whose files the cited places open on a terminal.
    """
    if as_json:
        streams.result_json(answer.to_dict())
    else:
        _show_text(answer, origin)
    # What was paid for is shown before anything else can be interrupted.
    streams.flush()
    if not quiet:
        _show_figures(answer)
    code = _exit_code(answer)
    if require_citations and not any(each.status == "verified" for each in answer.citations):
        streams.note("no citation was verified, and one was demanded")
        return code or PARTIAL
    return code


def _show_text(answer: Answer, origin: str | None) -> None:
    places = CitedPlaces(
        answer.citations, origin=origin, with_links=terminal.opens_links(sys.stdout)
    )
    text = answer.text.rstrip("\n")
    text = printable_json(text) if answer.fits else printable(text)
    # An answer of a form is data, and Markdown neither for a pipe nor for an old terminal.
    if answer.fits is None and terminal.obeys_codes(sys.stdout):
        streams.result_styled(_rendered(text, places))
    else:
        streams.result(quote_forgeries(text))
    if answer.citations:
        streams.result("")
        streams.heading("Citations")
    for citation in answer.citations:
        streams.result_styled(_listed(citation, places))


def _rendered(text: str, places: CitedPlaces) -> str:
    from rlm_rag.cli.markdown import rendered

    return rendered(
        terminal.in_letters_of(sys.stdout, text),
        columns=terminal.columns(sys.stdout),
        colours=terminal.has_colours(sys.stdout),
        letters=terminal.shows_all_letters(sys.stdout),
        pieces=places.pieces,
        forged=_LIST_LINE,
    )


def _listed(citation: Citation, places: CitedPlaces) -> str:
    lines = f"{citation.line}"
    if citation.end_line != citation.line:
        lines += f"-{citation.end_line}"
    url = None if citation.status == "false" else places.url(citation.path, citation.line)
    place = terminal.linked(f"{streams.one_line(citation.path)}:{lines}", url)
    mark = _MARKS[citation.status]
    if terminal.has_colours(sys.stdout):
        mark = terminal.coloured(mark, COLOURS[citation.status])
    return f"  {place}  {mark}"


MAX_LOOKED_SHOWN = 12
_MARKS = {
    "verified": "[verified]",
    "located": "[located]",
    "false": "[FALSE: not found in the corpus]",
}

_LIST_LINE = re.compile(r"\W*citations\W*|.*\[(verified|located|false\b.*)\]\W*", re.IGNORECASE)


def quote_forgeries(text: str) -> str:
    """Mark the lines of an answer that would pass for the checked list below it."""
    lines = text.splitlines(keepends=True)
    return "".join(f"> {line}" if _is_forged(line) else line for line in lines)


def _is_forged(line: str) -> bool:
    return _LIST_LINE.fullmatch(as_read(line).strip()) is not None


def _show_figures(answer: Answer) -> None:
    coverage = answer.coverage.to_dict()
    covered = (
        f"searched {coverage['searched']:,} of {counted(coverage['files'], 'file')}, "
        f"grepped {coverage['grepped']:,}, read {coverage['read']:,}, "
        f"delegated {coverage['delegated']:,}"
    )
    if coverage["unobserved"]:
        covered += ", blocks also used context itself"
    cost = f"{spent(answer.usage)}{unsent(answer.usage)}"
    streams.note(f"{covered}; {counted(answer.iterations, 'turn')}, {cost}")
    if not answer.found and coverage["looked"]:
        looked = "; ".join(coverage["looked"][:MAX_LOOKED_SHOWN])
        streams.note(streams.one_line(f"looked for: {looked}"))
    if answer.fingerprint:
        commit = f" at commit {answer.commit[:12]}" if answer.commit else ""
        streams.note(f"corpus: {answer.fingerprint[:12]}{commit}")
    for path in answer.artifacts:
        streams.note(streams.one_line(f"saved: {path}"))
    for warning in answer.warnings:
        streams.note(streams.one_line(f"warning: {warning}"))
    if answer.trace:
        streams.note(f"trace: {answer.trace}")


def _exit_code(answer: Answer) -> int:
    if answer.stop_reason == "answered":
        return PARTIAL if answer.fits is False else DONE
    if answer.stop_reason == "interrupted":
        streams.note("interrupted: the answer is partial")
        return INTERRUPTED
    detail = f": {answer.limit_detail}" if answer.limit_detail else ""
    streams.note(f"stopped early ({answer.stop_reason}){detail}; the answer may be partial")
    return PARTIAL

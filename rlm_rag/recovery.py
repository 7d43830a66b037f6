"""Runs taken up again from their traces, or repeated from them alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from rlm_rag.api import SearchableCorpus, load_origin, opened
from rlm_rag.corpus import Corpus
from rlm_rag.counts import counted
from rlm_rag.engine.answer import Answer
from rlm_rag.engine.blocking import answer_of
from rlm_rag.engine.form import form_of
from rlm_rag.engine.limits import Limits
from rlm_rag.engine.live import ReplyText
from rlm_rag.engine.offers import AskUser, Tool, offers_again
from rlm_rag.engine.options import Anew, from_trace, images_of, limits_of, started
from rlm_rag.engine.past import Past
from rlm_rag.engine.run import Run
from rlm_rag.errors import DivergedError, TraceError, UsageError
from rlm_rag.loaders.source import Source
from rlm_rag.trace.events import Event
from rlm_rag.trace.reader import Trace, read_trace
from rlm_rag.trace.store import TraceStore

# They shape what a run is told, so that another value would not repeat it.
_FIXED = ("depth", "output_chars")


def resume(
    run: str | Path = "last",
    corpus: Corpus | Source | None = None,
    *,
    limits: Limits | None = None,
    raised: Mapping[str, Any] | None = None,
    api_base: str | None = None,
    headers: Mapping[str, str] | None = None,
    on_event: Callable[[Event], None] | None = None,
    on_text: Callable[[ReplyText], None] | None = None,
    tools: Sequence[Callable[..., Any] | Tool] = (),
    ask_user: AskUser | None = None,
) -> Answer:
    """Take up a run where its trace ends, after a crash, `kill -9`, an interruption or a limit.

    `run` is a trace's file, an id or its unique start, or `last`. What the trace has a reply to
    is not paid for again; what was spent counts towards the limits, which may be higher now:
    those of `limits`, or the run's own but for those in `raised`, by their names. A request that
    was under way without a reply is sent again, and counted twice. Blocks run again, on a
    `corpus` that must be the same; it is loaded from where it was, unless it is given. Models
    and options are those of the run; keys come from the environment, `headers` and `tools`
    must be given again, and `ask_user` where a person is to be asked. The trace goes on in the
    same file. A run that had its answer gets it again, and asks nobody.

    Raises:
        TraceError: no such trace, or one that cannot be written, or that another process writes.
        DivergedError: the corpus is another one, or a block did something else this time.
        UsageError: a limit lower than the run's, missing headers, a corpus to be given.
        RlmRagError, RunInterrupted: as `RLM.ask`.
    """
    trace = _read(run)
    offers = offers_again(
        started(trace).options["offers"], tools=tools, ask_user=ask_user, replays=False
    )
    anew = Anew(
        limits=_limits_now(limits_of(trace), limits, raised or {}),
        offers=offers,
        headers=headers or {},
        api_base=api_base,
        on_event=on_event,
        on_text=on_text,
    )
    return _again(trace, corpus, anew, replays=False)


def replay(
    run: str | Path = "last",
    corpus: Corpus | Source | None = None,
    *,
    on_event: Callable[[Event], None] | None = None,
) -> Answer:
    """Repeat a run that came to an answer from its trace, without a model and without a network.

    Its blocks run again, on a corpus that must be the same; every answer of a model and of the
    host comes from the trace, which is not written to. `run` and `corpus` are as for `resume`.

    Raises:
        TraceError: no such trace, or its run has no answer.
        DivergedError: the corpus, a prompt, a block's code or output, or the answer differs.
    """
    trace = _read(run)
    if trace.answer is None or trace.answer.stop_reason == "interrupted":
        raise TraceError(
            f"the run of {trace.path} did not come to an answer",
            hint="go on with it: rlm-rag trace resume RUN",
        )
    sent = dict.fromkeys(started(trace).options["headers"], "")
    offers = offers_again(started(trace).options["offers"], tools=(), ask_user=None, replays=True)
    anew = Anew(limits=limits_of(trace), offers=offers, headers=sent, on_event=on_event)
    return _again(trace, corpus, anew, replays=True)


def _read(run: str | Path) -> Trace:
    path = run if isinstance(run, Path) else TraceStore().find_run(run)
    return read_trace(path)


def _again(trace: Trace, corpus: Corpus | Source | None, anew: Anew, *, replays: bool) -> Answer:
    root = started(trace)
    options = from_trace(trace, anew)
    with _opened(corpus, root.options["source"]) as found:
        _check_corpus(found, root.corpus)
        return answer_of(
            Run(
                corpus=found,
                retriever=found.ready_retriever(),
                question=root.question,
                options=options,
                images=() if replays else images_of(trace),
                past=Past(trace, replays=replays),
                form=form_of(root.options["schema"]),
            )
        )


def _opened(
    corpus: Corpus | Source | None, origin: str | None
) -> AbstractContextManager[SearchableCorpus]:
    if corpus is not None:
        return opened(corpus)
    if origin is None:
        raise UsageError(
            "the trace does not say where the corpus came from", hint="give the corpus too"
        )
    return load_origin(origin)


def _check_corpus(corpus: Corpus, recorded: Mapping[str, Any]) -> None:
    if corpus.fingerprint == recorded["fingerprint"]:
        return
    now = f"{counted(len(corpus), 'document')}, {corpus.total_bytes:,} bytes, "
    now += f"{corpus.line_count:,} lines"
    then = (
        f"{counted(recorded['documents'], 'document')}, {recorded['bytes']:,} bytes, "
        f"{recorded['lines']:,} lines"
    )
    raise DivergedError(
        f"the corpus is not the one of the run: it has {now}; then it had {then}"
        + (", with other paths or texts" if now == then else ""),
        hint="check out the same state of the source, or ask again to start anew",
    )


def _limits_now(then: Limits, given: Limits | None, raised: Mapping[str, Any]) -> Limits:
    """Return the limits that a run goes on with.

    Raises:
        UsageError: one is lower than it was.
    """
    now = replace(given or then, **raised)
    _check_limits(now, then)
    return now


def _check_limits(now: Limits, then: Limits) -> None:
    for item in fields(Limits):
        mine, recorded = getattr(now, item.name), getattr(then, item.name)
        fixed = item.name in _FIXED and mine != recorded
        lower = mine is not None and (recorded is None or mine < recorded)
        if fixed or lower:
            shown = "none" if recorded is None else _figure(recorded)
            raise UsageError(
                f"the limit {item.name} of the run is {shown}; it cannot be {_figure(mine)} now",
                hint="a run is taken up again with the same limits or higher ones",
            )


def _figure(amount: float) -> str:
    """Return an amount in full, which `g` alone would round to six digits."""
    return f"{amount:,.15g}"

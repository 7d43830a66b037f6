"""`rlm-rag ask`: a question in, a cited answer out."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from rlm_rag.cli import streams
from rlm_rag.cli.display import Display, choose_display
from rlm_rag.cli.estimate import show_estimate
from rlm_rag.cli.exits import DONE, INTERRUPTED, PARTIAL
from rlm_rag.cli.model_options import ModelFlags, model_options, take_models
from rlm_rag.cli.options import (
    LIMIT_DEFAULTS,
    json_option,
    opened,
    source_options,
    split_last,
    take_loading,
)
from rlm_rag.engine.limits import Limits
from rlm_rag.errors import RunInterrupted
from rlm_rag.settings import SANDBOXES, STRATEGIES, Settings, Value, read_settings

if TYPE_CHECKING:
    from rlm_rag.api import RLM, SearchableCorpus
    from rlm_rag.engine.answer import Answer

Command = TypeVar("Command", bound=Callable[..., Any])
EXAMPLE = 'rlm-rag ask ./repo "Where is retry backoff computed?"'

# Parsed by rlm_rag.settings like a variable or a file's value, hence plain text here.
_SETTINGS_OPTIONS = (
    click.option("--model", metavar="NAME", help="The root model, as litellm spells it."),
    click.option("--sub-model", metavar="NAME", help="The model of sub-calls; the same if unset."),
    click.option("--api-base", metavar="URL", help="An OpenAI-compatible server."),
    click.option("--sandbox", metavar="|".join(SANDBOXES), help="What confines the code."),
    click.option(
        "--sandbox-package",
        multiple=True,
        metavar="NAME",
        callback=lambda _context, _option, names: ",".join(names) or None,
        help="An installed package that the code may import.",
    ),
    click.option("--sandbox-image", metavar="IMAGE", help="The image of `--sandbox docker`."),
    click.option("--sandbox-memory", metavar="SIZE", help="Memory of the code, such as 2G."),
    click.option("--temperature", metavar="T", help="The provider's own if unset."),
    click.option("--strategy", metavar="|".join(STRATEGIES), help="How the answer is sought."),
    click.option("--max-iterations", metavar="N", help="Turns of the root model."),
    click.option("--max-depth", metavar="N", help="Levels of child models."),
    click.option("--max-calls", metavar="N", help="Requests to providers."),
    click.option("--max-tokens", metavar="N", help="Tokens, in and out."),
    click.option("--max-usd", metavar="USD", help="Money."),
    click.option("--max-seconds", metavar="S", help="Time."),
    click.option("--cell-seconds", metavar="S", help="Time of one block of code."),
    click.option("--max-errors", metavar="N", help="Failed turns in a row."),
    click.option("--concurrency", metavar="N", help="Calls in flight."),
)


def settings_options(command: Command) -> Command:
    """Add the options that `rlm_rag.settings` reads."""
    for option in reversed(_SETTINGS_OPTIONS):
        command = option(command)
    return command


@click.command()
@click.argument("arguments", nargs=-1, metavar="SOURCE... QUESTION")
@settings_options
@model_options
@click.option(
    "--image", multiple=True, type=click.Path(dir_okay=False), help="Shown with the question."
)
@click.option("--cache", is_flag=True, help="Keep replies, and take those kept before.")
@click.option("--estimate", is_flag=True, help="Say what it may cost, and send nothing.")
@click.option("--no-trace", is_flag=True, help="Keep no record of the run.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but the answer.")
@click.option("-v", "--verbose", is_flag=True, help="Show code and output as they run.")
@source_options
@json_option
def ask(
    arguments: tuple[str, ...],
    image: tuple[str, ...],
    cache: bool,
    estimate: bool,
    no_trace: bool,
    quiet: bool,
    verbose: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """Ask QUESTION of SOURCE; the answer comes with citations that were checked.

    \b
        rlm-rag ask ./repo "Where is retry backoff computed?" --model openai/gpt-5-mini
        git log -p | rlm-rag ask - "Which commit changed the default port?"
    """
    sources, question = split_last(arguments, what="the question", example=EXAMPLE)
    loading, models = take_loading(options), take_models(options)
    # A switch that is not given leaves the choice to the environment and the files.
    flags: dict[str, Value] = {"trace": False if no_trace else None, "cache": cache or None}
    settings = read_settings(options | flags, limit_defaults=LIMIT_DEFAULTS, sources=sources)
    _announce(settings)
    display = choose_display(quiet=quiet, verbose=verbose)
    _check_models(settings, models, with_keys=not estimate)
    rlm = _rlm(settings, models, display)
    with opened(sources, **loading) as corpus:
        if estimate:
            show_estimate(rlm.estimate(corpus, question), as_json=as_json)
            return DONE
        try:
            answer = _answered(rlm, corpus, question, image)
        finally:
            display.close()
        _show(answer, as_json=as_json)
        if not quiet:
            _show_figures(answer)
    return _exit_code(answer)


def _announce(settings: Settings) -> None:
    for warning in settings.warnings:
        streams.note(streams.one_line(f"warning: {warning}"))
    if settings.sandbox == "none":
        streams.note(
            "warning: no sandbox: code that the model writes runs with your own rights "
            f"({settings.origin('sandbox')})"
        )


def _check_models(settings: Settings, models: ModelFlags, *, with_keys: bool) -> None:
    """Before the sources are read, so that a wrong name or a missing key is told at once."""
    from rlm_rag.models.prices import parse_price
    from rlm_rag.models.router import open_model

    if models["price"]:
        parse_price(models["price"])
    if not with_keys:
        return
    names = [settings.model, settings.sub_model, *models["models_at_depth"].values()]
    names += [*models["fallback_models"], *models["allow_models"]]
    for name in dict.fromkeys(names):
        if name is not None:
            open_model(name, api_base=settings.api_base)


def _rlm(settings: Settings, models: ModelFlags, display: Display) -> RLM:
    from rlm_rag.api import RLM

    limits: dict[str, Any] = dict(settings.limits)
    return RLM(
        model=settings.model,
        sub_model=settings.sub_model,
        api_base=settings.api_base,
        limits=Limits(**limits),
        sandbox=settings.sandbox,
        sandbox_image=settings.sandbox_image,
        sandbox_packages=settings.sandbox_packages,
        sandbox_memory_bytes=settings.sandbox_memory,
        strategy=settings.strategy,
        temperature=settings.temperature,
        cache=settings.cache,
        trace=settings.trace,
        on_event=display,
        **models,
    )


def _answered(rlm: RLM, corpus: SearchableCorpus, question: str, images: tuple[str, ...]) -> Answer:
    """The answer, or what an interrupted run has of one; none where no turn was made."""
    try:
        answer = rlm.ask(corpus, question, images=images)
    except RunInterrupted as interruption:
        answer = interruption.answer
    if answer.stop_reason == "interrupted" and not answer.iterations:
        raise KeyboardInterrupt
    return answer


def _show(answer: Answer, *, as_json: bool) -> None:
    if as_json:
        streams.result_json(answer.to_dict())
    else:
        _show_text(answer)
    # What was paid for is shown before anything else can be interrupted.
    streams.flush()


def _show_text(answer: Answer) -> None:
    streams.result(quote_forgeries(answer.text.rstrip("\n")))
    if answer.citations:
        streams.heading("\nCitations")
    for citation in answer.citations:
        lines = f"{citation.line}"
        if citation.end_line != citation.line:
            lines += f"-{citation.end_line}"
        streams.result(f"  {streams.one_line(citation.path)}:{lines}  {_MARKS[citation.status]}")


_MARKS = {
    "verified": "[verified]",
    "located": "[located]",
    "false": "[FALSE: not found in the corpus]",
}


_LIST_LINE = re.compile(r"\W*citations\W*|.*\[(verified|located|false\b.*)\]\W*", re.IGNORECASE)


def quote_forgeries(text: str) -> str:
    """Mark the lines of an answer that would pass for the checked list below it."""
    lines = text.splitlines(keepends=True)
    return "".join(f"> {line}" if _LIST_LINE.fullmatch(line.strip()) else line for line in lines)


def _show_figures(answer: Answer) -> None:
    figures = answer.to_dict()
    usage, coverage = figures["usage"], figures["coverage"]
    covered = (
        f"searched {coverage['searched']:,} of {coverage['files']:,} files, "
        f"read {coverage['read']:,}, delegated {coverage['delegated']:,}"
    )
    price = "price unknown" if usage["usd"] is None else f"${usage['usd']:.4f}"
    tokens = usage["input_tokens"] + usage["output_tokens"]
    spent = f"{answer.iterations} turns, {usage['calls']:,} calls, {tokens:,} tokens, {price}"
    streams.note(f"{covered}; {spent}{_saved(usage)}")
    for warning in answer.warnings:
        streams.note(streams.one_line(f"warning: {warning}"))
    if answer.trace:
        streams.note(f"trace: {answer.trace}")


def _saved(usage: dict[str, Any]) -> str:
    if not usage["cached_calls"]:
        return ""
    money = f", ${usage['saved_usd']:.4f} saved" if usage["saved_usd"] else ""
    return f", {usage['cached_calls']:,} calls answered without sending{money}"


def _exit_code(answer: Answer) -> int:
    if answer.stop_reason == "answered":
        return DONE
    if answer.stop_reason == "interrupted":
        streams.note("interrupted: the answer is partial")
        return INTERRUPTED
    detail = f": {answer.limit_detail}" if answer.limit_detail else ""
    streams.note(f"stopped early ({answer.stop_reason}){detail}; the answer may be partial")
    return PARTIAL

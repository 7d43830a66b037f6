"""`rlm-rag ask`: a question in, a cited answer out."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from rlm_rag.cli import streams
from rlm_rag.cli.answers import answered, show_answer
from rlm_rag.cli.display import Display, choose_display
from rlm_rag.cli.estimate import show_estimate
from rlm_rag.cli.exits import DONE
from rlm_rag.cli.model_options import ModelFlags, model_options, take_models
from rlm_rag.cli.offering import asker, offering_options, take_offering
from rlm_rag.cli.options import (
    LIMIT_DEFAULTS,
    json_option,
    opened,
    source_options,
    split_last,
    take_loading,
)
from rlm_rag.engine.limits import Limits
from rlm_rag.setting_table import PROFILES, SANDBOXES, STRATEGIES, Value
from rlm_rag.settings import Settings, read_settings

if TYPE_CHECKING:
    from rlm_rag.rlm import RLM

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
    click.option("--profile", metavar="|".join(PROFILES), help="The prompts of root models."),
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
@offering_options
@click.option(
    "--image", multiple=True, type=click.Path(dir_okay=False), help="Shown with the question."
)
@click.option("--cache", is_flag=True, help="Keep replies, and take those kept before.")
@click.option("--estimate", is_flag=True, help="Say what it may cost, and send nothing.")
@click.option(
    "--require-citations", is_flag=True, help="Exit with 1 where none of them is verified."
)
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
    require_citations: bool,
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
    offering, schema = take_offering(options)
    # A switch that is not given leaves the choice to the environment and the files.
    flags: dict[str, Value] = {"trace": False if no_trace else None, "cache": cache or None}
    settings = read_settings(options | flags, limit_defaults=LIMIT_DEFAULTS, sources=sources)
    announce(settings)
    display = choose_display(quiet=quiet, verbose=verbose)
    check_models(settings, models, with_keys=not estimate)
    rlm = _rlm(settings, display, ask_user=asker(display, quiet=quiet), **models, **offering)
    with opened(sources, **loading) as corpus:
        if estimate:
            show_estimate(rlm.estimate(corpus, question), as_json=as_json)
            return DONE
        try:
            answer = answered(lambda: rlm.ask(corpus, question, images=image, schema=schema))
        finally:
            display.close()
        return show_answer(
            answer, as_json=as_json, quiet=quiet, require_citations=require_citations
        )


def announce(settings: Settings) -> None:
    """Say on standard error what was ignored of the settings, and that there is no sandbox."""
    for warning in settings.warnings:
        streams.note(streams.one_line(f"warning: {warning}"))
    if settings.sandbox == "none":
        streams.note(
            "warning: no sandbox: code that the model writes runs with your own rights "
            f"({settings.origin('sandbox')})"
        )


def check_models(settings: Settings, models: ModelFlags, *, with_keys: bool) -> None:
    """Open every model once, so that a wrong name or a missing key is told before any reading.

    Raises:
        UsageError: a price that cannot be read.
        ModelError: a name or a key that cannot be used.
    """
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


def _rlm(settings: Settings, display: Display, **flags: Any) -> RLM:
    from rlm_rag.rlm import RLM

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
        profile=settings.profile,
        temperature=settings.temperature,
        cache=settings.cache,
        trace=settings.trace,
        on_event=display,
        **flags,
    )

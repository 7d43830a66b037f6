"""What the commands that ask questions share: their options, and the RLM that these describe."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from rlm_rag.cli import streams
from rlm_rag.cli.completion import choices
from rlm_rag.cli.display import Display
from rlm_rag.cli.model_options import ModelFlags
from rlm_rag.cli.options import LIMIT_DEFAULTS, Command, decorated
from rlm_rag.engine.limits import Limits
from rlm_rag.setting_table import PROFILES, SANDBOXES, STRATEGIES, WEAK_SANDBOXES, Value
from rlm_rag.settings import Settings, read_settings

if TYPE_CHECKING:
    from rlm_rag.rlm import RLM


def _word_option(name: str, words: Sequence[str], text: str) -> Callable[[Command], Command]:
    return click.option(name, metavar="|".join(words), shell_complete=choices(words), help=text)


# Parsed by rlm_rag.settings like a variable or a file's value, hence plain text here.
_NAMING_OPTIONS = (
    click.option("--model", metavar="NAME", help="The root model, as litellm spells it."),
    click.option("--sub-model", metavar="NAME", help="The model of sub-calls; the same if unset."),
    click.option("--api-base", metavar="URL", help="An OpenAI-compatible server."),
)
_SETTINGS_OPTIONS = (
    *_NAMING_OPTIONS,
    click.option(
        "--context-window", metavar="N", help="Tokens that a model takes; found out if unset."
    ),
    click.option("--sub-context-window", metavar="N", help="The same, of the sub-model."),
    _word_option("--sandbox", SANDBOXES, "What confines the code."),
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
    _word_option("--strategy", STRATEGIES, "How the answer is sought."),
    _word_option("--profile", PROFILES, "The prompts of root models."),
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
cache_option = click.option(
    "--cache", is_flag=True, help="Keep replies, and take those kept before."
)
estimate_option = click.option(
    "--estimate", is_flag=True, help="Say what it may cost, and ask no model."
)


def settings_options(command: Command) -> Command:
    """Add the options that `rlm_rag.settings` reads."""
    return decorated(command, _SETTINGS_OPTIONS)


def naming_options(command: Command) -> Command:
    """Add those of them that name models, and where they are asked."""
    return decorated(command, _NAMING_OPTIONS)


def take_settings(options: Mapping[str, Value], *, sources: Sequence[str]) -> Settings:
    """Read the settings, `options` first; say on standard error what of them is to be known.

    That is what was ignored, and that there is no sandbox, or a weak one.

    Raises:
        SettingsError: as `read_settings`.
    """
    settings = read_settings(options, limit_defaults=LIMIT_DEFAULTS, sources=sources)
    for warning in settings.warnings:
        streams.note(streams.one_line(f"warning: {warning}"))
    if (weakness := WEAK_SANDBOXES.get(settings.sandbox)) is not None:
        streams.note(f"warning: {weakness} ({settings.origin('sandbox')})")
    return settings


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


def build_rlm(settings: Settings, display: Display, **flags: Any) -> RLM:
    """Return what asks by the settings; `flags` are those that `RLM` takes as they are."""
    from rlm_rag.rlm import RLM

    limits: dict[str, Any] = dict(settings.limits)
    return RLM(
        model=settings.model,
        sub_model=settings.sub_model,
        api_base=settings.api_base,
        context_window=settings.context_window,
        sub_context_window=settings.sub_context_window,
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
        on_text=display.hear,
        **flags,
    )

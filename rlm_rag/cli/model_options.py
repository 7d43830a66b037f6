"""The options of `ask` that say which models are asked, and how."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, TypedDict

import click

from rlm_rag.cli.options import Command, decorated
from rlm_rag.errors import UsageError


class ModelFlags(TypedDict):
    """What the options of `model_options` say, named as `rlm_rag.RLM` names it."""

    price: str | None
    models_at_depth: dict[int, str]
    fallback_models: tuple[str, ...]
    allow_models: tuple[str, ...]
    model_options: dict[str, Any]


_OPTIONS = (
    click.option(
        "--price", metavar="IN/OUT", help="Dollars a million tokens, where the price is not known."
    ),
    click.option(
        "--model-at-depth",
        multiple=True,
        metavar="N=NAME",
        help="The root model of children from depth N on (1: a child of the root).",
    ),
    click.option(
        "--fallback-model",
        multiple=True,
        metavar="NAME",
        help="Asked when a model's provider cannot be reached or fails; in order.",
    ),
    click.option(
        "--allow-model",
        multiple=True,
        metavar="NAME",
        help="A model that the code may name beside the sub-model.",
    ),
    click.option(
        "--model-option",
        multiple=True,
        metavar="KEY=VALUE",
        help="Sent with every request, such as top_p=0.9.",
    ),
)


def model_options(command: Command) -> Command:
    """Add the options that say which models are asked, and how."""
    return decorated(command, _OPTIONS)


def take_models(options: dict[str, Any]) -> ModelFlags:
    """Take the values of `model_options` out of all the options of a command.

    Raises:
        UsageError: one that is not NAME=VALUE, or a depth that is no number from 1 on.
    """
    return ModelFlags(
        price=options.pop("price"),
        models_at_depth=_depths(options.pop("model_at_depth")),
        fallback_models=options.pop("fallback_model"),
        allow_models=options.pop("allow_model"),
        model_options={
            name: _value(text)
            for name, text in pairs("--model-option", options.pop("model_option"), "top_p=0.9")
        },
    )


def _depths(given: Sequence[str]) -> dict[int, str]:
    example = "1=openai/gpt-5-mini"
    depths: dict[int, str] = {}
    for depth, name in pairs("--model-at-depth", given, example):
        if not depth.isdecimal() or int(depth) < 1:
            raise UsageError(
                f"--model-at-depth {depth}={name}: {depth!r} is no depth from 1 on",
                hint=f"for example --model-at-depth {example}; the root's own is --model",
            )
        depths[int(depth)] = name
    return depths


def pairs(option: str, given: Sequence[str], example: str) -> list[tuple[str, str]]:
    """Return values of the form NAME=VALUE as name and value.

    Raises:
        UsageError: one that is not.
    """
    found = []
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise UsageError(
                f"{option} {text}: no such pair", hint=f"for example {option} {example}"
            )
        found.append((name.strip(), value.strip()))
    return found


def _value(text: str) -> Any:
    """The value as JSON where it is that, else as text."""
    try:
        return json.loads(text)
    except ValueError:
        return text

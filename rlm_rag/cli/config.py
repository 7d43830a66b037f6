"""`rlm-rag config`: every setting in force, and where it comes from."""

from __future__ import annotations

import os

import click

from rlm_rag.cli import streams
from rlm_rag.cli.exits import DONE
from rlm_rag.cli.options import LIMIT_DEFAULTS, json_option
from rlm_rag.setting_table import SETTINGS, Setting, Value
from rlm_rag.settings import Settings, read_settings, user_config_file


@click.command()
@json_option
def config(as_json: bool) -> int:
    """Show the settings in force and where each comes from.

    A flag goes before a variable (RLM_RAG_MAX_USD for --max-usd), a variable before your own
    file (max-usd = 0.5), and that before [tool.rlm-rag] of the working folder's pyproject.toml.
    """
    settings = read_settings(limit_defaults=LIMIT_DEFAULTS)
    user_file = user_config_file()
    if as_json:
        shown = {
            row.name: {"value": value_of(settings, row), "origin": settings.origin(row.name)}
            for row in SETTINGS
        }
        file = str(user_file) if user_file else None
        warnings = list(settings.warnings)
        streams.result_json({"settings": shown, "user_file": file, "warnings": warnings})
        return DONE
    for row in SETTINGS:
        value = value_of(settings, row)
        text = "none" if value is None else str(value).lower() if isinstance(value, bool) else value
        said = f"{row.key:<15} {text!s:<24} {settings.origin(row.name)}"
        streams.result(streams.one_line(said))
    for warning in settings.warnings:
        streams.note(streams.one_line(f"warning: {warning}"))
    if user_file and not os.path.lexists(user_file):
        streams.note(f"your settings file would be {user_file}")
    return DONE


def value_of(settings: Settings, row: Setting) -> Value:
    """Return the value in force, fit to be shown: the default of a limit, no keys in a URL."""
    from rlm_rag.models.redact import environment_secrets, redact

    if row.limit:
        limit: Value = settings.limits.get(row.limit, LIMIT_DEFAULTS[row.limit])
        return limit
    value: Value = getattr(settings, row.name)
    return redact(value, environment_secrets()) if isinstance(value, str) else value

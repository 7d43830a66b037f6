"""`rlm-rag doctor`: what this machine offers, and how to mend what it lacks."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict

import click

from rlm_rag.cli import streams, terminal
from rlm_rag.cli.asking import naming_options
from rlm_rag.cli.examinations import EXAMINATIONS, Check, examine_models, examine_settings
from rlm_rag.cli.exits import DONE, PARTIAL
from rlm_rag.cli.options import json_option

_COLOURS = {"ok": "green", "note": "yellow", "failed": "red"}


@click.command()
@click.option("--ask", "asks", is_flag=True, help="Have each model say one word (some tokens).")
@naming_options
@json_option
def doctor(asks: bool, as_json: bool, **flags: str | None) -> int:
    """Check Python, sandbox, git, grammars, extras, folders, settings, keys (by name) and models.

    Says how to mend what is not as it should be. A server named by --api-base is asked which
    models it has; no model is asked anything without --ask. Exits with 1 where something failed
    that `ask` needs.
    """
    checks: list[Check] = []
    for check in _examined(flags, asks=asks):
        checks.append(check)
        if not as_json:
            _show(check)
    if as_json:
        streams.result_json({"checks": [asdict(check) for check in checks]})
    return PARTIAL if any(check.status == "failed" for check in checks) else DONE


def _examined(flags: Mapping[str, str | None], *, asks: bool) -> Iterator[Check]:
    for examine in EXAMINATIONS:
        yield examine()
    yield examine_settings(flags)
    yield from examine_models(flags, asks=asks)


def _show(check: Check) -> None:
    status = f"{check.status:<7}"
    if terminal.has_colours(sys.stdout):
        status = terminal.coloured(status, _COLOURS[check.status])
    streams.result_styled(f"{status} {check.name:<9} {streams.one_line(check.detail)}")
    if check.hint:
        streams.result(f"{'':<17} {streams.one_line(check.hint)}")
    streams.flush()

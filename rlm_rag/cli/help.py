"""Help that can be read on a terminal of forty columns."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from rlm_rag.cli import streams, terminal

NARROW_COLUMNS = 60
"""Below this an option's text stands under it, not beside it."""

_INDENT = 6


class Formatter(click.HelpFormatter):
    """As wide as the terminal, 80 columns at most."""

    def __init__(
        self, indent_increment: int = 2, width: int | None = None, max_width: int | None = None
    ) -> None:
        seen = terminal.columns(sys.stdout)
        super().__init__(indent_increment, seen - 1 if seen < NARROW_COLUMNS else width, max_width)

    def write_dl(
        self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2
    ) -> None:
        super().write_dl(rows, _INDENT if self.width < NARROW_COLUMNS else col_max, col_spacing)


class Context(click.Context):
    """A context whose help is written so, and as every other result is."""

    formatter_class = Formatter

    def __init__(self, command: click.Command, *arguments: Any, **options: Any) -> None:
        super().__init__(command, *arguments, **options)
        option = command.get_help_option(self)
        if option is not None:
            option.callback = _show_help

    @contextmanager
    def scope(self, cleanup: bool = True) -> Iterator[click.Context]:
        """As click's own; a wrong option of the command line knows whose it is too."""
        with super().scope(cleanup) as context:
            try:
                yield context
            except click.UsageError as error:
                error.ctx = error.ctx or self
                raise


def _show_help(context: click.Context, _option: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        streams.result_styled(context.get_help())
        context.exit()


def readable(command: click.Command) -> click.Command:
    """Have a command, and those below it, write their help so; return it."""
    command.context_class = Context
    if isinstance(command, click.Group):
        for inner in command.commands.values():
            readable(inner)
    return command

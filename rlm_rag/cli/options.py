"""Options and arguments that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack

import click

from rlm_rag.cli import streams
from rlm_rag.engine.limits import Limits
from rlm_rag.errors import UsageError

if TYPE_CHECKING:
    from rlm_rag.api import SearchableCorpus

Command = TypeVar("Command", bound=Callable[..., Any])
SHOWN_WARNINGS = 3
LIMIT_DEFAULTS: dict[str, float | int | None] = {
    item.name: getattr(Limits(), item.name) for item in fields(Limits)
}


class Loading(TypedDict):
    """What the options of `source_options` say, named as `rlm_rag.load_sources` names it."""

    include: tuple[str, ...]
    exclude: tuple[str, ...]
    hidden: bool
    ignore: bool
    max_file_bytes: int | None


_SOURCE_OPTIONS = (
    click.option(
        "--include", multiple=True, metavar="GLOB", help="Take only these (gitignore syntax)."
    ),
    click.option("--exclude", multiple=True, metavar="GLOB", help="Leave these out."),
    click.option("--hidden", is_flag=True, help="Take hidden files too."),
    click.option(
        "--no-ignore", "ignore", flag_value=False, default=True, help="Take ignored files too."
    ),
    click.option("--max-file-bytes", type=click.IntRange(min=1), help="Leave larger files out."),
)

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def source_options(command: Command) -> Command:
    """Add the options that say what of a source is taken."""
    for option in reversed(_SOURCE_OPTIONS):
        command = option(command)
    return command


def take_loading(options: dict[str, Any]) -> Loading:
    """Take the values of `source_options` out of all the options of a command."""
    return Loading(
        include=options.pop("include"),
        exclude=options.pop("exclude"),
        hidden=options.pop("hidden"),
        ignore=options.pop("ignore"),
        max_file_bytes=options.pop("max_file_bytes"),
    )


def split_last(arguments: Sequence[str], *, what: str, example: str) -> tuple[tuple[str, ...], str]:
    """Split `SOURCE... LAST` into the sources and the last argument.

    Raises:
        UsageError: fewer than two arguments, or a last one of spaces alone.
    """
    if len(arguments) < 2:
        missing = f"a source and {what}" if not arguments else what
        raise UsageError(
            f"{missing} is missing" if arguments else f"{missing} are missing",
            hint=f"for example: {example}",
        )
    *sources, last = arguments
    if not last.strip():
        raise UsageError(f"{what} is empty", hint=f"for example: {example}")
    return tuple(sources), last


@contextmanager
def opened(sources: Sequence[str], **loading: Unpack[Loading]) -> Iterator[SearchableCorpus]:
    """Load sources, say their warnings on standard error, and close the corpus at the end.

    Raises:
        SourceError: a source that cannot be loaded.
    """
    from rlm_rag.api import load_sources

    corpus = load_sources(list(sources), **loading)
    with corpus:
        for warning in corpus.warnings[:SHOWN_WARNINGS]:
            streams.note(streams.one_line(f"warning: {warning}"))
        more = len(corpus.warnings) - SHOWN_WARNINGS
        if more > 0:
            streams.note(f"warning: {more} more (rlm-rag pack --list shows them)")
        yield corpus

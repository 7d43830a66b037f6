"""Options and arguments that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack, cast

import click

from rlm_rag.cli import streams
from rlm_rag.cli.progress import IndexProgress, load_progress
from rlm_rag.engine.limits import Limits
from rlm_rag.errors import UsageError

if TYPE_CHECKING:
    from rlm_rag.api import SearchableCorpus

Command = TypeVar("Command", bound=Callable[..., Any])
STDIN = "-"
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
    follow_symlinks: bool
    max_file_bytes: int | None
    max_files: int | None
    max_total_bytes: int | None
    columns: tuple[str, ...]
    path_column: str | None
    null_paths: bool
    keep: bool
    shards: str | None
    shard_count: int | None


_SOURCE_OPTIONS = (
    click.option(
        "--include", multiple=True, metavar="GLOB", help="Take only these (gitignore syntax)."
    ),
    click.option("--exclude", multiple=True, metavar="GLOB", help="Leave these out."),
    click.option("--hidden", is_flag=True, help="Take hidden files too."),
    click.option(
        "--no-ignore", "ignore", flag_value=False, default=True, help="Take ignored files too."
    ),
    click.option("--follow-symlinks", is_flag=True, help="Follow links that stay in SOURCE."),
    click.option("--max-file-bytes", type=click.IntRange(min=1), help="Leave larger files out."),
    click.option("--max-files", type=click.IntRange(min=1), help="Take no more of each SOURCE."),
    click.option(
        "--max-total-bytes", type=click.IntRange(min=1), help="Take no more text of each SOURCE."
    ),
    click.option(
        "--column", "columns", multiple=True, metavar="NAME", help="A column of records to take."
    ),
    click.option("--path-column", metavar="NAME", help="The column that names each record."),
    click.option(
        "--no-keep", "keep", flag_value=False, default=True, help="Keep nothing in the cache."
    ),
    click.option(
        "--ray",
        "shards",
        metavar="ADDRESS",
        callback=lambda _context, _option, value: None if value is None else f"ray:{value}",
        help="Spread it over a Ray cluster: HOST:PORT, or local.",
    ),
    click.option(
        "--shard-count", type=click.IntRange(min=1), help="Shards on it (default: one a node)."
    ),
    click.option("-0", "--null", "null_paths", is_flag=True, help="- lists files, NUL after each."),
)

ray_option = click.option(
    "--ray", metavar="ADDRESS", help="Work on the nodes of a Ray cluster: HOST:PORT, or local."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def decorated(command: Command, options: Sequence[Callable[[Command], Command]]) -> Command:
    """Return a command with options and arguments, which its help lists in their order."""
    for option in reversed(options):
        command = option(command)
    return command


def source_options(command: Command) -> Command:
    """Add the options that say what of a source is taken."""
    return decorated(command, _SOURCE_OPTIONS)


def take_loading(options: dict[str, Any]) -> Loading:
    """Take the values of `source_options` out of all the options of a command."""
    taken: Any = {name: options.pop(name) for name in Loading.__annotations__}
    return cast(Loading, taken)


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
def opened(
    sources: Sequence[str],
    *,
    verify: bool = False,
    quiet: bool = False,
    **loading: Unpack[Loading],
) -> Iterator[SearchableCorpus]:
    """Load sources, say their warnings on standard error, and close the corpus at the end.

    `verify` reads every file again and says which were kept wrong. With `quiet` neither the
    warnings nor how far the load is are said.

    Raises:
        SourceError: a source that cannot be loaded.
    """
    from rlm_rag.api import load_sources

    if loading["null_paths"] and STDIN not in sources:
        raise UsageError("--null goes with the source -", hint="git ls-files -z | rlm-rag ... -0 -")
    with nullcontext() if quiet else load_progress() as progress:
        corpus = load_sources(list(sources), on_progress=progress, verify=verify, **loading)
    with corpus:
        if not quiet:
            warn_of(corpus.warnings)
            if streams.shows_progress():
                corpus.retriever.on_progress = IndexProgress()
        yield corpus


def warn_of(warnings: Sequence[str]) -> None:
    """Say on standard error what was told of a load, the first few of it."""
    for warning in warnings[:SHOWN_WARNINGS]:
        streams.note(streams.one_line(f"warning: {warning}"))
    more = len(warnings) - SHOWN_WARNINGS
    if more > 0:
        streams.note(f"warning: {more} more (rlm-rag pack --list shows them)")

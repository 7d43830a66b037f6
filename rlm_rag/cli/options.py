"""Options and arguments that several commands share."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack, cast

import click

from rlm_rag.cli import streams, terminal
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


class OutFile(click.Path):
    """A file to be written, whose name is no folder's, unless that is `dir_okay`, and not blank."""

    def __init__(self, *, dir_okay: bool = False) -> None:
        super().__init__(dir_okay=dir_okay, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str) and not value.strip():
            said = "blank" if value else "empty"
            self.fail(f"the name is {said}: give a file", param, ctx)
        return super().convert(value, param, ctx)


def question_of(last: str, sources: Sequence[str], *, what: str) -> str:
    """Return the last argument, or for `-` the text of standard input.

    Raises:
        UsageError: standard input is a source too, a terminal, closed, empty, or no UTF-8.
    """
    if last != STDIN:
        return last
    if STDIN in sources:
        raise UsageError(f"- is {what} and a source", hint="standard input can be one of them")
    hint = f"give {what} as an argument, or pipe it in"
    if sys.stdin is None or sys.stdin.closed:
        raise UsageError(f"{what} is -, and there is no standard input", hint=hint)
    if terminal.is_terminal(sys.stdin):
        raise UsageError(f"{what} is -, and standard input is a terminal", hint=hint)
    try:
        text = sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{what} on standard input is no UTF-8", hint=hint) from error
    if not text.strip():
        raise UsageError(f"{what} on standard input is empty", hint=hint)
    return text.rstrip("\r\n")


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

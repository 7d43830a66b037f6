"""The table of commands, each loaded only when it is called."""

from __future__ import annotations

import importlib
from typing import NamedTuple

import click
from click.shell_completion import CompletionItem

from rlm_rag import __version__
from rlm_rag.cli import streams
from rlm_rag.cli.help import Context, readable


class Row(NamedTuple):
    module: str
    attribute: str
    help: str


COMMANDS: dict[str, Row] = {
    "ask": Row("ask", "ask", "Ask a question; the answer's citations are checked."),
    "chat": Row("chat", "chat", "Ask one question after another; variables and answers stay."),
    "search": Row("retrieval", "search", "Find the passages that match a query best."),
    "grep": Row("retrieval", "grep", "Find the lines that match a regular expression."),
    "outline": Row("retrieval", "outline", "Show the definitions or headings of a document."),
    "symbols": Row("retrieval", "symbols", "Find where a name is defined, or used."),
    "read": Row("retrieval", "read", "Print numbered lines of a document."),
    "repo-map": Row("retrieval", "repo_map", "Show the definitions the rest leans on most."),
    "pack": Row("pack", "pack", "Write a corpus as one text, or list what is in it."),
    "index": Row("index", "index", "Build, show, verify and clear the stored search indexes."),
    "map": Row("map", "map_", "Ask a prompt of every document; an answer each, as JSON lines."),
    "eval": Row("eval", "eval_", "Run long-context benchmarks, and report and compare them."),
    "trace": Row("trace", "trace", "List, show, view, resume, replay and clear past runs."),
    "mcp": Row("mcp", "mcp", "Serve a corpus to editors and agents (Model Context Protocol)."),
    "completion": Row("completion", "completion", "Print what completes commands in a shell."),
    "config": Row("config", "config", "Show the settings in force and where each comes from."),
    "doctor": Row("doctor", "doctor", "Check what this machine offers and how to mend it."),
}


class LazyGroup(click.Group):
    """A group whose help needs no command's module."""

    context_class = Context

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        row = COMMANDS.get(cmd_name)
        if row is None:
            return None
        module = importlib.import_module(f"rlm_rag.cli.{row.module}")
        command: click.Command = getattr(module, row.attribute)
        return readable(command)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, row.help) for name, row in COMMANDS.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        names = [
            CompletionItem(name, help=row.help)
            for name, row in COMMANDS.items()
            if name.startswith(incomplete)
        ]
        return names + click.Command.shell_complete(self, ctx, incomplete)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            if not ctx.resilient_parsing:
                raise _no_such_command(args[0], ctx)
            # Where a shell completes, nothing follows a command that is none.
            return args[0], click.Command(args[0], add_help_option=False), args[1:]
        return super().resolve_command(ctx, args)


def _no_such_command(name: str, context: click.Context) -> click.UsageError:
    import difflib

    close = difflib.get_close_matches(name, COMMANDS, n=1)
    meant = f" Did you mean {close[0]}?" if close else ""
    return click.UsageError(f"There is no command {name!r}.{meant}", ctx=context)


def _show_version(context: click.Context, _option: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        streams.result(f"rlm-rag {__version__}")
        context.exit()


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_show_version,
    help="Show the version and exit.",
)
def root() -> None:
    """Ask a question of a corpus far larger than any context window.

    A SOURCE is a folder, file, archive, glob, repository (repo@v1.2, repo@a..b, an address),
    web page, table, mailbox, or - for standard input.

    \b
        rlm-rag ask ./repo "Where is retry backoff computed?" --model openai/gpt-5-mini
        rlm-rag search ./repo "retry backoff"

    Without --model, ask searches and quotes and uses no language model. Exit codes: 0 done,
    1 done in part (a limit; what was found is printed), 2 unusable input, 130 interrupted.
    """

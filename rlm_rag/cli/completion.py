"""`rlm-rag completion`, and what the shells ask of it when a person presses Tab."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    add_completion_class,
    get_completion_class,
    shell_complete,
)

from rlm_rag.cli import streams
from rlm_rag.cli.exits import DONE

SHELLS = ("bash", "zsh", "fish")
PROGRAM = "rlm-rag"
VARIABLE = "_RLM_RAG_COMPLETE"
"""Set by the script of a shell when it asks for completions."""

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


@add_completion_class
class Bash(BashComplete):
    """Bash, which takes a colon for a word of its own: `ruler:niah` comes as three."""

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the one under the cursor, and that one, whole."""
        before, last = super().get_completion_args()
        words: list[str] = []
        for word in (*before, last):
            if words and (set(word) == {":"} or words[-1].endswith(":")):
                words[-1] += word
            else:
                words.append(word)
        # Where the user has told bash not to part at colons, all of the word is replaced.
        self._held = words[-1].rpartition(":")[0] if words[-1] != last else ""
        return words[:-1], words[-1]

    def format_completion(self, item: CompletionItem) -> str:
        """Return what takes the place of the part after the last colon."""
        if self._held and item.type == "plain":
            item.value = item.value.removeprefix(f"{self._held}:")
        return super().format_completion(item)


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> int:
    """Print the script by which SHELL completes commands, options and files.

    \b
        eval "$(rlm-rag completion bash)"  # in ~/.bashrc
        eval "$(rlm-rag completion zsh)"   # in ~/.zshrc
        rlm-rag completion fish > ~/.config/fish/completions/rlm-rag.fish
    """
    from rlm_rag.cli.commands import root

    found = get_completion_class(shell)
    assert found is not None
    script = found(root, {}, PROGRAM, VARIABLE).source().strip()
    # click's own script for fish cuts a description, and a name, at its first comma.
    streams.result(script.replace('string split ","', 'string split --max 1 ","'))
    return DONE


def is_asked_for() -> bool:
    """Whether this process was started by a shell that completes a command line."""
    return bool(os.environ.get(VARIABLE))


def complete() -> int:
    """Print what the word under the cursor may become, as the shell's script reads it."""
    from rlm_rag.cli.commands import root

    with streams.writing():
        return shell_complete(root, {}, PROGRAM, VARIABLE, os.environ[VARIABLE])


def files(_context: click.Context, _parameter: click.Parameter, word: str) -> list[CompletionItem]:
    """Complete files and folders, as the shell itself does it."""
    return [CompletionItem(word, type="file")]


def choices(words: Sequence[str]) -> Completer:
    """Return what completes one of some words."""

    def completer(
        _context: click.Context, _parameter: click.Parameter, word: str
    ) -> list[CompletionItem]:
        return _begun(words, word)

    return completer


def _begun(words: Iterable[str], word: str) -> list[CompletionItem]:
    return [CompletionItem(one) for one in words if one.startswith(word)]


def runs(context: click.Context, parameter: click.Parameter, word: str) -> list[CompletionItem]:
    """Complete the ids of runs on record, the latest first; files where none begins so."""
    from rlm_rag.errors import RlmRagError
    from rlm_rag.trace.store import TraceStore

    try:
        ids = [run.id for run in TraceStore().list_runs()]
    except RlmRagError:
        # Nothing may be written where a person types.
        return []
    return _begun(("last", *reversed(ids)), word) or files(context, parameter, word)


def tasks(context: click.Context, parameter: click.Parameter, word: str) -> list[CompletionItem]:
    """Complete the names of benchmarks; files where none begins so."""
    from rlm_rag.evals.tasks import task_entries

    names = (entry.name for entry in task_entries())
    return _begun(names, word) or files(context, parameter, word)

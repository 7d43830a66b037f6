"""What a chat does besides answering: lines that begin with a slash."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rlm_rag.cli import streams
from rlm_rag.cli.prompt import MAX_COMPLETIONS
from rlm_rag.cli.spending import spent
from rlm_rag.counts import counted
from rlm_rag.errors import UsageError

if TYPE_CHECKING:
    from rlm_rag.conversation import Conversation
    from rlm_rag.sessions import HeldSessions

REPLACE = "--replace"


class Chat(NamedTuple):
    conversation: Conversation
    sessions: HeldSessions


class Row(NamedTuple):
    call: Callable[[Chat, str], None] | None
    argument: str
    help: str


def _undo(chat: Chat, _argument: str) -> None:
    question = chat.conversation.undo()
    if question is None:
        streams.note("there is nothing to undo")
    else:
        streams.note(streams.one_line(f"undone, with its variables: {question}"))


def _cost(chat: Chat, _argument: str) -> None:
    questions = counted(len(chat.conversation.exchanges), "question")
    streams.note(f"{questions}, {spent(chat.conversation.usage)}")


def _sources(chat: Chat, _argument: str) -> None:
    for name, origin, count in chat.conversation.sources:
        streams.note(
            streams.one_line(f"{name}: {origin or '(text)'}, {counted(count, 'document')}")
        )


def _add(chat: Chat, argument: str) -> None:
    if not argument:
        raise UsageError("/add needs a source", hint="for example: /add ./docs")
    name = chat.conversation.add(argument)
    documents = counted(chat.conversation.sources[-1][2], "document")
    streams.note(streams.one_line(f"{name}: {argument}, {documents}"))


def _save(chat: Chat, argument: str) -> None:
    words = argument.split()
    names = [word for word in words if word != REPLACE]
    if not names:
        raise UsageError("/save needs a name", hint="for example: /save refactoring")
    name = " ".join(names)
    path = chat.sessions.save(name, chat.conversation.saved(), replace=REPLACE in words)
    streams.note(streams.one_line(f"saved: {path}; go on: rlm-rag chat --session {name}"))


def _help(_chat: Chat, _argument: str) -> None:
    for name, row in COMMANDS.items():
        streams.note(f"  {f'{name} {row.argument}'.strip():<14} {row.help}")
    streams.note("All else is a question; so is what begins with a space.")


COMMANDS: dict[str, Row] = {
    "/add": Row(_add, "SOURCE", "Add a corpus; search spans all of them."),
    "/sources": Row(_sources, "", "Name the corpora."),
    "/undo": Row(_undo, "", "Drop the last question, and what it did to variables."),
    "/cost": Row(_cost, "", "Say what the questions cost."),
    "/save": Row(
        _save,
        "NAME",
        "Keep the conversation as a session; --replace NAME: in the place of another.",
    ),
    "/help": Row(_help, "", "Show this."),
    "/quit": Row(None, "", "End the chat; so does Ctrl-D."),
}


def run_command(conversation: Conversation, sessions: HeldSessions, line: str) -> bool:
    """Run one; `sessions` are those that the chat has to itself. False where it ends the chat.

    Raises:
        UsageError: there is no such command, or its argument is missing.
        SessionError: a session would be replaced, or another chat has it.
        RlmRagError: what the command could not do.
    """
    name, _, argument = line.partition(" ")
    row = COMMANDS.get(name)
    if row is None:
        raise UsageError(
            f"there is no command {name!r:.80}",
            hint="/help lists them; a question that begins with a slash needs a space before it",
        )
    if row.call is None:
        return False
    row.call(Chat(conversation, sessions), argument.strip())
    return True


def _files(word: str) -> Sequence[str]:
    folder, name = os.path.split(word)
    try:
        entries = sorted(Path(folder or ".").iterdir())
    except OSError:
        return []
    found = [entry for entry in entries if entry.name.startswith(name)]
    return [os.path.join(folder, e.name) + ("/" if e.is_dir() else "") for e in found]  # noqa: PTH118


def completions(conversation: Conversation, before: str, word: str) -> Sequence[str]:
    """Return what a word may become: a command, a file after /add, a path of the corpus."""
    if not before and word.startswith("/"):
        return [
            f"{name} " if row.argument else name
            for name, row in COMMANDS.items()
            if name.startswith(word)
        ]
    if before.strip() == "/add":
        return _files(word)
    if not word or before.startswith("/"):
        return []
    paths = (path for path in conversation.corpus.paths() if path.startswith(word))
    return list(islice(paths, MAX_COMPLETIONS))

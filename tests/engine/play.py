"""Plays root, children and leaves on a scripted server, told apart by what they are asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import rlm_rag
from rlm_rag import Answer, SearchableCorpus
from tests.servers.loopback import Received, Step, reply
from tests.servers.openai_chat import OpenAiChatServer

QUESTION = "What does the root want to know?"
CHILD_MARK = "(Another RLM asks you this"
DOCUMENTS = {
    "src/retry.py": "def backoff(attempt):\n    return 2 ** attempt\n",
    "src/cache.py": "def lookup(key):\n    return key\n",
    "docs/guide.md": "# Guide\n\nThe backoff doubles.\n",
}

Leaf = Callable[[str], Step | str]
Turns = Sequence[Step | str] | Callable[[str, int], Step | str]


def block(code: str) -> Step:
    return reply(f"```repl\n{code}\n```")


def first_prompt(request: Received) -> str:
    """What an RLM was asked first; empty for a leaf call."""
    messages = request.messages
    return str(messages[1]["content"]) if messages[0]["role"] == "system" else ""


def play(
    server: OpenAiChatServer,
    corpus: SearchableCorpus,
    *,
    root: Turns,
    child: Turns = (),
    leaf: Leaf = lambda prompt: "leaf",
    **options: Any,
) -> Answer:
    """Ask QUESTION: `root` and `child` give a turn's reply, `leaf` answers every other prompt.

    A sequence is taken by turn; a function gets the RLM's first prompt and the turn, from 0.
    """

    def script(request: Received) -> Step | str:
        first = first_prompt(request)
        if not first:
            return leaf(request.prompt)
        turns = child if CHILD_MARK in first else root
        return turns(first, request.turn) if callable(turns) else turns[request.turn]

    server.script = script
    options.setdefault("trace", False)
    options.setdefault("strategy", "rlm")
    return rlm_rag.ask(corpus, QUESTION, model="test", api_base=server.api_base, **options)


def leaves(server: OpenAiChatServer) -> list[str]:
    """The prompts of leaf calls, in the order they came."""
    return [request.prompt for request in server.received if not first_prompt(request)]


def told_root(server: OpenAiChatServer) -> list[str]:
    """What the root was told at each of its turns, its first prompt included."""
    return [
        request.prompt
        for request in server.received
        if first_prompt(request) and CHILD_MARK not in first_prompt(request)
    ]

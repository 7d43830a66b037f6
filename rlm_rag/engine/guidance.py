"""What a small model is shown beside its prompts: how to begin, and what is there."""

from __future__ import annotations

from itertools import islice

from rlm_rag.engine.view import View
from rlm_rag.lines import split_lines
from rlm_rag.sandbox.inside.records import rows_of

MAX_DOCUMENTS = 3
MAX_LINES = 3
MAX_LINE_CHARS = 300
MAX_TEXT_CHARS = 100_000
MAX_QUESTION_CHARS = 800

ONE_BLOCK = ("\n```\n",)
"""Ends a small model's reply with its first block: what comes after it is the output that it
imagines, and a second block made for that (1.5B, on records)."""

ONLY_FIRST = "Only the first block was run: send one, read what it prints, then send the next."

LOOK_FIRST = (
    "You have not looked at the documents yet. Reply with a block, such as:\n"
    "```repl\n"
    'text = context[0]["content"]\n'
    'print(context[0]["path"], len(text.splitlines()), text.splitlines()[:3])\n'
    "```"
)


def asked_again(question: str) -> str:
    """Return how what a small model is told ends: with the question, and what to reply.

    Without it the 1.5B sent the block of its first turn twenty times over; with it, the one that
    computes the answer (trial of a count over 1,200 records).
    """
    cut = question if len(question) <= MAX_QUESTION_CHARS else f"{question[:MAX_QUESTION_CHARS]}..."
    return f"Question: {cut}\nReply with the next block."


def with_closed_fence(reply: str) -> str:
    """Return a reply that `ONE_BLOCK` ended as the model would have it before it."""
    return f"{reply}\n```" if reply.count("```") % 2 else reply


def first_look(view: View) -> str:
    """Return what a question that code is to answer needs to see of the first documents.

    Where they hold records, the first of them as `records` gives it, else their first lines.
    Small models guess the form of records, and guess it wrong, where they do not see it.
    """
    return "\n".join(_shown(view, path) for path in islice(view.paths(), MAX_DOCUMENTS))


def _shown(view: View, path: str) -> str:
    text = (view.text(path) or "")[:MAX_TEXT_CHARS]
    lines = split_lines(text)
    whole = lines if len(text) < MAX_TEXT_CHARS else lines[:-1]
    rows = rows_of("\n".join(whole))
    if rows:
        return f"records({path!r}) is a list of dicts, the first of them:\n  {_cut(str(rows[0]))}"
    begun = "".join(f"\n  {_cut(line)}" for line in lines[:MAX_LINES])
    return f"{path} begins:{begun}"


def _cut(line: str) -> str:
    return line if len(line) <= MAX_LINE_CHARS else f"{line[:MAX_LINE_CHARS]}..."

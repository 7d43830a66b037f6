"""What a small model is shown beside its prompts: how to begin, and what is there."""

from __future__ import annotations

from itertools import islice

from rlm_rag.engine.view import View
from rlm_rag.lines import split_lines

MAX_DOCUMENTS = 3
MAX_LINES = 3
MAX_LINE_CHARS = 160
MAX_TEXT_CHARS = 100_000

LOOK_FIRST = (
    "You have not looked at the documents yet. Reply with a block, such as:\n"
    "```repl\n"
    'text = context[0]["content"]\n'
    'print(context[0]["path"], len(text.splitlines()), text.splitlines()[:3])\n'
    "```"
)


def first_look(view: View) -> str:
    """Return the first lines of the first documents, for a question that code is to answer.

    Small models guess the form of records, and guess it wrong, where they do not see it.
    """
    shown = []
    for path in islice(view.paths(), MAX_DOCUMENTS):
        lines = split_lines((view.text(path) or "")[:MAX_TEXT_CHARS])[:MAX_LINES]
        begun = "".join(f"\n  {line[:MAX_LINE_CHARS]}" for line in lines)
        shown.append(f"{path} begins:{begun}")
    return "\n".join(shown)

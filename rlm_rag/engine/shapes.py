"""What a root model is told of `context`, by the shape that its corpus was given in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Told:
    """Of a shape: what `context` is, how `each` of it is printed, and a block to `look` with."""

    context: str
    each: str
    look: str


TOLD: Mapping[str, Told] = {
    "documents": Told(
        '`context` is a list of {"path", "content"}, one a document.',
        '`context` is a list of dicts with the keys "path" and "content": '
        'for d in context: print(d["path"], len(d["content"])).',
        'text = context[0]["content"]\n'
        'print(context[0]["path"], len(text.splitlines()), text.splitlines()[:3])',
    ),
    "text": Told(
        "`context` is one str; retrieval calls it the document `<context>`.",
        "`context` is one str: print(len(context), context[:500]).",
        "lines = context.splitlines()\nprint(len(lines), lines[:3])",
    ),
    "texts": Told(
        "`context` is a list of str; retrieval calls them `<context[0]>`, `<context[1]>`, ...",
        "`context` is a list of str: for text in context: print(len(text), text[:200]).",
        "lines = context[0].splitlines()\nprint(len(context), len(lines), lines[:3])",
    ),
    "mapping": Told(
        "`context` is a dict of path to text.",
        "`context` is a dict of path to text: "
        "for path, text in context.items(): print(path, len(text)).",
        "path, text = next(iter(context.items()))\n"
        "print(path, len(text.splitlines()), text.splitlines()[:3])",
    ),
}
"""By `packed.SHAPES`."""

"""The text of the offline policy's answer: excerpts with their places, word for word."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rlm_rag.models.offline_clues import Clues
from rlm_rag.models.offline_excerpts import Excerpt

MAX_OTHERS = 6
MAX_WORDS_NAMED = 8
UNFINISHED = (
    "No language model was used, and the search did not come to its end, "
    "so that nothing can be said of what the corpus holds.\n"
)
_NOT_CITABLE = re.compile(r"[`\r\n]")


def answer_text(
    clues: Clues, excerpts: Sequence[Excerpt], looked_at: Sequence[str], *, looked: bool
) -> str:
    """Return the answer: what it is, the excerpts, the other files; or that nothing was found.

    `looked` false says that the search did not come to its end, so that nothing can be denied.
    """
    if not excerpts:
        return _nothing_found(clues, looked_at) if looked or looked_at else UNFINISHED
    parts = [
        "No language model was used: these are the passages that match the question best, "
        "found by search.",
        *(_shown(number, excerpt, clues) for number, excerpt in enumerate(excerpts, 1)),
    ]
    shown = {excerpt.path for excerpt in excerpts}
    others = [path for path in looked_at if path not in shown][:MAX_OTHERS]
    if others:
        parts.append("Also looked at: " + ", ".join(_code(path) for path in others) + ".")
    return "\n\n".join(parts) + "\n"


def _shown(number: int, excerpt: Excerpt, clues: Clues) -> str:
    lines = str(excerpt.line)
    if excerpt.end_line != excerpt.line:
        lines += f"-{excerpt.end_line}"
    words = dict.fromkeys(
        word for stem, word in clues.terms.items() if stem in excerpt.terms and word.isalnum()
    )
    told = ", ".join(list(words)[:MAX_WORDS_NAMED])
    place = _code(f"{excerpt.path}:{lines}")
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+|~+", excerpt.text)), default=0))
    heading = f"{number}. {place}" + (f", on {told}:" if told else ":")
    return f"{heading}\n\n{fence}text\n{excerpt.text}\n{fence}"


def _nothing_found(clues: Clues, looked_at: Sequence[str]) -> str:
    words = ", ".join(dict.fromkeys(clues.terms.values())) or clues.query
    text = f"No language model was used, and nothing was found in the corpus for: {words[:500]}."
    if clues.names:
        text += " Names looked for: " + ", ".join(map(_code, clues.names)) + "."
    if looked_at:
        text += " Looked at: " + ", ".join(map(_code, looked_at[:MAX_OTHERS])) + "."
    return text + "\n"


def _code(text: str) -> str:
    return text if _NOT_CITABLE.search(text) else f"`{text}`"

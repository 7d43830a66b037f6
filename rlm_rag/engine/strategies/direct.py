"""`direct`: the corpus in one prompt, its lines numbered, as much of it as fits the window."""

from __future__ import annotations

from rlm_rag.engine.added import PREFIX
from rlm_rag.engine.calls import CAP_TOKENS, REPLY_SHARE, PricedModel
from rlm_rag.engine.coverage import Coverage
from rlm_rag.engine.strategies.answering import Prepared
from rlm_rag.engine.view import View
from rlm_rag.lines import split_lines
from rlm_rag.models.tokens import count_tokens
from rlm_rag.shown import printable_line

FRAME_TOKENS = 600
"""Of a window, what is kept for the instructions and the lines around the documents."""


async def whole_corpus(
    view: View, coverage: Coverage, *, question: str, root: PricedModel
) -> Prepared:
    """Return the prompt that shows the documents in their order, cut where the window ends."""
    window = root.facts.assumed_window
    reply = min(root.facts.max_output_tokens or CAP_TOKENS, int(window * REPLY_SHARE))
    left = window - reply - FRAME_TOKENS - count_tokens(question)
    parts: list[str] = []
    whole = 0
    for path in [*view.paths(), *view.added.documents]:
        shown, lines, total = _fitting(await view.fetched(path) or "", left)
        if not lines and total:
            break
        head = f"=== {printable_line(path)} ({total} lines)\n"
        parts.append(head + shown)
        left -= count_tokens(head + shown) + 2
        if not path.startswith(PREFIX):
            coverage.delegated(path, 1, lines)
        if lines < total:
            break
        whole += 1
    notes = _left_out(whole, len(view) + len(view.added.documents), root)
    told = "".join(f"\n\n({note})" for note in notes)
    return Prepared("\n\n".join(parts) + f"{told}\n\nQuestion: {question}", notes=notes)


def _fitting(text: str, budget_tokens: int) -> tuple[str, int, int]:
    """Return the numbered lines that fit, how many they are, and how many there are."""
    lines = [f"{number}: {line}" for number, line in enumerate(split_lines(text), 1)]
    whole = "\n".join(lines)
    if count_tokens(whole) <= budget_tokens:
        return whole, len(lines), len(lines)
    low, high = 0, len(lines)
    while low < high:
        middle = (low + high + 1) // 2
        if count_tokens("\n".join(lines[:middle])) <= budget_tokens:
            low = middle
        else:
            high = middle - 1
    return "\n".join(lines[:low]), low, len(lines)


def _left_out(whole: int, documents: int, root: PricedModel) -> tuple[str, ...]:
    if whole == documents:
        return ()
    taken = "" if root.facts.context_window else "taken as "
    size = f"{taken}{root.facts.assumed_window:,} tokens"
    return (
        f"{documents - whole:,} of {documents:,} documents do not fit the window of {root.name}, "
        f"{size}, whole or in part; --strategy rlm or retrieve looks at all of them",
    )

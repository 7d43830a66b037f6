"""The corpus in figures: all that the root model is told of it before it looks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from statistics import median
from typing import Protocol

from rlm_rag.corpus import Skipped
from rlm_rag.engine.shapes import TOLD

TREE_BUDGET_CHARS = 1500
CHARS_A_TOKEN = 4
SHOWN_SUFFIXES = 8


class Described(Protocol):
    """What figures can be given of: a corpus, or the part of it that an RLM sees."""

    @property
    def skipped(self) -> tuple[Skipped, ...]: ...
    @property
    def shape(self) -> str: ...
    @property
    def total_bytes(self) -> int: ...
    def __len__(self) -> int: ...
    def paths(self) -> Iterator[str]: ...
    def line_counts(self) -> Iterator[int]: ...


def describe(corpus: Described) -> str:
    """Return files, lines, tokens, file types, sizes and a tree, within about 2,500 characters."""
    lines = list(corpus.line_counts())
    paths = list(corpus.paths())
    out = [
        f"{len(corpus):,} documents, {sum(lines):,} lines, {corpus.total_bytes:,} bytes "
        f"(about {corpus.total_bytes // CHARS_A_TOKEN:,} tokens)",
        f"lines a document: min {min(lines, default=0):,}, "
        f"median {int(median(lines)) if lines else 0:,}, max {max(lines, default=0):,}",
        "types: " + _types(paths),
    ]
    if corpus.skipped:
        out.append(f"not in the corpus: {len(corpus.skipped):,} skipped entries")
    out.extend([TOLD[corpus.shape].context, "", "tree:", tree(paths, TREE_BUDGET_CHARS)])
    return "\n".join(out)


def _types(paths: list[str]) -> str:
    suffixes = Counter(_suffix(path) for path in paths)
    shown = [f"{suffix} {n:,}" for suffix, n in suffixes.most_common(SHOWN_SUFFIXES)]
    rest = len(suffixes) - len(shown)
    return ", ".join(shown) + (f", and {rest:,} other types" if rest > 0 else "")


def _suffix(path: str) -> str:
    name = path.rpartition("/")[2]
    dot = name.rfind(".")
    return name[dot:][:20] if dot > 0 else "no suffix"


def tree(paths: list[str], budget_chars: int) -> str:
    """Return the folders and files of `paths`, deepest level first to go, within the budget."""
    deepest = max((path.count("/") for path in paths), default=0)
    for depth in range(min(deepest, 5), -1, -1):
        text = _tree_to(paths, depth)
        if len(text) <= budget_chars:
            return text
    return text[:budget_chars].rpartition("\n")[0] + "\n..."


def _tree_to(paths: list[str], depth: int) -> str:
    shown: Counter[str] = Counter()
    for path in paths:
        parts = path.split("/")
        key = path if len(parts) <= depth + 1 else "/".join(parts[: depth + 1]) + "/"
        shown[key] += 1
    return "\n".join(
        f"{key} ({n:,})" if key.endswith("/") else key for key, n in sorted(shown.items())
    )

"""Several documents at a glance: one line each, or one a folder where that does not fit."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence

from rlm_rag.counts import counted
from rlm_rag.indexes.catalogue import Definitions
from rlm_rag.indexes.requests import TextResult
from rlm_rag.indexes.skeleton import MINOR_KINDS, Definition
from rlm_rag.packed import PackedCorpus

# Less room than this for the names in a file tells too little to look for them.
_LEAST_NAMES_CHARS = 16
_MOST_NAMES_CHARS = 300


def listing(
    corpus: PackedCorpus, definitions: Definitions, numbers: Sequence[int], budget: int
) -> TextResult:
    """Return a line for each document: path, lines, and the names that it defines outermost.

    Where the lines alone do not fit in `budget` characters, the documents are counted by folder,
    and where these do not fit either, by folders further up.
    """
    heads = [f"{corpus.path(number)} ({corpus.line_count(number)} lines)" for number in numbers]
    used = _length(heads)
    if used > budget:
        return _by_folder([corpus.path(number) for number in numbers], budget)
    room = min((budget - used) // len(heads) - len(": "), _MOST_NAMES_CHARS)
    if room < _LEAST_NAMES_CHARS:
        return TextResult("\n".join(heads), note="budget_chars leaves no room for definitions")
    lines = []
    said: dict[str, None] = {}
    found, _ = definitions.several(numbers)
    for outlined, head in zip(found, heads, strict=True):
        if outlined.said:
            said.setdefault(outlined.said)
        names = _names(outlined.definitions, room)
        lines.append(f"{head}: {names}" if names else head)
    return TextResult("\n".join(lines), note="; ".join(said)[:1000] or None)


def fitting_count(lines: Sequence[str], budget: int) -> int:
    """Return how many of the first lines fit in `budget` characters, line feeds between them."""
    count = used = 0
    while count < len(lines) and used + len(lines[count]) <= budget:
        used += len(lines[count]) + 1
        count += 1
    return count


def _names(found: Sequence[Definition], room: int) -> str:
    """Return the outermost names, each once, as many as there is room for."""
    outermost = [one for one in found if one.depth == 0 and one.kind != "package"]
    inside = [one for one in found if one.depth == 1 and one.kind not in MINOR_KINDS]
    # A file of one namespace or title says more by what is in that.
    chosen = inside if len(outermost) == 1 and inside else outermost
    major = [one for one in chosen if one.kind not in MINOR_KINDS] or chosen
    names = list(dict.fromkeys(one.name for one in major))
    shown = ""
    for at, name in enumerate(names):
        longer = f"{shown}, {name}" if shown else name
        rest = len(names) - at - 1
        more = f" and {rest} more" if rest else ""
        if len(longer) + len(more) > room:
            return f"{shown} and {len(names) - at} more" if shown else f"{len(names)} definitions"
        shown = longer
    return shown


def _by_folder(paths: Sequence[str], budget: int) -> TextResult:
    depths = range(max(path.count("/") for path in paths) + 1)
    # Folders further down take more room, and a hostile name has thousands of them.
    fitting = bisect_right(depths, budget, key=lambda depth: _length(list(_folders(paths, depth))))
    lines = list(_folders(paths, max(0, fitting - 1)))
    if fitting:
        note = f"{len(paths)} files do not fit in budget_chars={budget}: folders are shown"
        return TextResult("\n".join(lines), note=note)
    count = fitting_count(lines, budget)
    note = f"{count} of {len(lines)} folders fit in budget_chars={budget}"
    return TextResult("\n".join(lines[:count]), note=note)


def _length(lines: Sequence[str]) -> int:
    return sum(map(len, lines)) + len(lines) - 1


def _folders(paths: Sequence[str], depth: int) -> Iterator[str]:
    """Yield each folder of at most that depth with how many files are in it, or beneath it."""
    counts: Counter[str] = Counter()
    for path in paths:
        folders = path.split("/")[:-1][:depth]
        counts["/".join([*folders, ""]) or "./"] += 1
    for folder, count in counts.items():
        yield f"{folder} ({counted(count, 'file')})"

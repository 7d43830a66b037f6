"""Lines of the corpus gathered for a prompt: in order of worth, within a budget of tokens."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rlm_rag.engine.added import PREFIX
from rlm_rag.engine.coverage import Coverage
from rlm_rag.engine.view import View
from rlm_rag.lines import split_lines
from rlm_rag.models.tokens import count_tokens
from rlm_rag.shown import printable_line

MAX_LINE_CHARS = 1_000
# Windows that lie so near each other are shown as one.
_NEAR_LINES = 3


@dataclass(frozen=True, slots=True)
class _Wanted:
    whole: tuple[int, int]
    core: tuple[int, int] | None


class Passages:
    """Ranges of lines, the most wanted first; each line is shown once."""

    def __init__(self, view: View, coverage: Coverage) -> None:
        self._view = view
        self._coverage = coverage
        self._wanted: dict[str, list[_Wanted]] = {}

    def want(self, path: str, first: int, last: int, core: tuple[int, int] | None = None) -> None:
        """Ask for lines of a document, after all that was asked for before; twice is as once.

        `core` are those of them that are shown where there is no room for all.
        """
        wanted = _Wanted((max(first, 1), last), core)
        ranges = self._wanted.setdefault(path, [])
        if wanted not in ranges:
            ranges.append(wanted)

    async def shown(self, budget_tokens: int) -> str:
        """Return the documents' lines, numbered under their paths, and count them as read.

        A document has its place by its first range; what does not fit is left out.
        """
        parts: list[str] = []
        left = budget_tokens
        for path, ranges in self._wanted.items():
            text = await self._view.fetched(path)
            lines = split_lines(text) if text is not None else []
            taken: list[tuple[int, int]] = []
            for wanted in ranges:
                for first, last in filter(None, (wanted.whole, wanted.core)):
                    cost = count_tokens(_numbered(lines, first, last))
                    if cost <= left:
                        left -= cost
                        taken.append((first, min(last, len(lines))))
                        break
            if taken:
                parts.append(self._document(path, lines, taken))
            if left < budget_tokens // 50:
                break
        return "\n\n".join(parts)

    def _document(self, path: str, lines: list[str], ranges: list[tuple[int, int]]) -> str:
        shown = []
        for first, last in _merged(ranges):
            if not path.startswith(PREFIX):
                self._coverage.read(path, first, last)
            shown.append(_numbered(lines, first, last))
        return f"=== {printable_line(path)} ({len(lines)} lines)\n" + "\n...\n".join(shown)


def _merged(ranges: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    begin, end = 0, -1
    for first, last in sorted(ranges):
        if end < 0:
            begin, end = first, last
        elif first <= end + _NEAR_LINES:
            end = max(end, last)
        else:
            yield begin, end
            begin, end = first, last
    if end >= 0:
        yield begin, end


def _numbered(lines: list[str], first: int, last: int) -> str:
    shown = lines[first - 1 : last]
    return "\n".join(f"{at}: {_clipped(line)}" for at, line in enumerate(shown, first))


def _clipped(line: str) -> str:
    return line if len(line) <= MAX_LINE_CHARS else line[:MAX_LINE_CHARS] + " ..."

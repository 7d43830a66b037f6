"""Lines of documents as a trace has them: what its run read, grepped and searched."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rlm_rag.trace.events import Event, Retrieved

# A hit's text of this length may be cut (docs/design.md section 4.1).
_CUT_CHARS = 400
_NUMBERED = re.compile(r"(\d{1,15}): ?(.*)", re.DOTALL)


@dataclass(slots=True)
class KnownLines:
    """The lines of one document by number; `trimmed` of them lack their indentation."""

    whole: dict[int, str] = field(default_factory=dict)
    trimmed: dict[int, str] = field(default_factory=dict)

    def get(self, number: int) -> str | None:
        """Return a line, as exactly as it is known."""
        return self.whole.get(number, self.trimmed.get(number))


def known_lines(events: Collection[Event], paths: Collection[str]) -> Mapping[str, KnownLines]:
    """Return what a trace's events show of these documents."""
    known = {path: KnownLines() for path in paths}
    for event in events:
        if not isinstance(event, Retrieved) or event.error is not None:
            continue
        if event.name == "read":
            _take_read(event, known)
        elif event.name == "grep_context" and isinstance(event.result, Mapping):
            for path, number, text in _hits(event.result.get("hits"), "text"):
                if path in known and len(text) < _CUT_CHARS:
                    known[path].whole.setdefault(number, text)
        elif event.name == "search":
            for path, _, snippet in _hits(event.result, "snippet"):
                if path in known:
                    known[path].trimmed.update(_numbered(snippet))
    return known


def _take_read(event: Retrieved, known: Mapping[str, KnownLines]) -> None:
    """Take lines that are numbered in order from where the host says that it read."""
    if len(event.seen) != 1 or not isinstance(event.result, str):
        return
    match list(event.seen[0]):
        case [str() as path, int() as first, int() as last] if path in known:
            expected = first
            for number, text in _numbered(event.result):
                if number == expected and number <= last:
                    known[path].whole[number] = text
                    expected += 1


def _numbered(text: str) -> Iterator[tuple[int, str]]:
    for row in text.split("\n"):
        match = _NUMBERED.fullmatch(row.lstrip(" "))
        if match is not None:
            yield int(match[1]), match[2]


def _hits(hits: Any, name: str) -> Iterator[tuple[str, int, str]]:
    for hit in hits if isinstance(hits, list) else ():
        match hit:
            case {"path": str() as path, "line": int() as line, **rest}:
                text = rest.get(name)
                if isinstance(text, str):
                    yield path, line, text

"""Which lines of which documents a run saw, from its events, as a map of the corpus."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from rlm_rag.errors import UsageError
from rlm_rag.globs import compile_glob
from rlm_rag.shown import printable, printable_line
from rlm_rag.trace.events import Delegated, Event, Retrieved

Ranges = list[list[int]]

# Nodes named for a document; a map of more documents would be larger than most traces.
MAX_NODES = 20
MAX_DOCUMENTS = 50_000
# The globs of a hostile trace may take as long as the greps themselves.
_MAX_GLOBS = 20


@dataclass(frozen=True, slots=True)
class Documents:
    """The documents of the run's corpus with their line counts, and where they were read.

    `lines` is None where the corpus as it was is not to be had; `note` says why.
    """

    lines: Mapping[str, int] | None
    note: str


@dataclass(slots=True)
class _Seen:
    searched: list[tuple[int, int]] = field(default_factory=list)
    read: list[tuple[int, int]] = field(default_factory=list)
    delegated: list[tuple[int, int]] = field(default_factory=list)
    nodes: dict[int, None] = field(default_factory=dict)


class Coverage:
    """Takes the events of root and children, and gives what they saw of each document."""

    def __init__(self) -> None:
        self._seen: dict[str, _Seen] = {}
        self._globs: dict[str | None, None] = {}
        self._root: str | None = None

    def add(self, event: Event, node: int) -> None:
        """Count what an event shows, which belongs to the node with that number."""
        if self._root is None:
            self._root = event.run
        if isinstance(event, Delegated):
            self._add("delegated", event.path, event.first, event.last, node)
        elif isinstance(event, Retrieved):
            kind = "read" if event.name == "read" else "searched"
            for place in event.seen:
                self._add(kind, *_place(place), node)
            # A child may have had some of the documents alone.
            if event.name == "grep_context" and event.error is None and event.run == self._root:
                glob = event.arguments.get("path_glob")
                self._globs[glob if isinstance(glob, str) else None] = None

    def map_of(self, summary: Mapping[str, Any], documents: Documents) -> dict[str, Any]:
        """Return the map as JSON; `summary` is the coverage that the run's answer has.

        A document is its path, lines (None where not known), ranges of lines that were searched,
        read and delegated, nodes, and whether a grep went through it.
        """
        lines = documents.lines or {}
        listed = summary.get("lines")
        listed = listed if isinstance(listed, Mapping) else {}
        paths = list(dict.fromkeys([*self._seen, *listed]))
        others = [path for path in lines if path not in self._seen and path not in listed]
        shown = paths + others[: max(0, MAX_DOCUMENTS - len(paths))]
        grepped = self._grepped(shown)
        return {
            "documents": [
                self._document(path, lines.get(path), listed.get(path), path in grepped)
                for path in shown
            ],
            "left_out": len(paths) + len(others) - len(shown),
            "complete": documents.lines is not None,
            "note": printable(documents.note),
            "figures": {
                name: summary[name]
                for name in ("files", "searched", "read", "delegated", "grepped", "untouched")
                if isinstance(summary.get(name), int)
            },
            "unobserved": summary.get("unobserved") is True,
            "looked": [printable_line(each) for each in _texts(summary.get("looked"))],
        }

    def _add(self, kind: str, path: str, first: int, last: int, node: int) -> None:
        if last < max(first, 1):
            return
        seen = self._seen.setdefault(path, _Seen())
        getattr(seen, kind).append((max(first, 1), last))
        if len(seen.nodes) < MAX_NODES:
            seen.nodes[node] = None

    def _document(self, path: str, lines: int | None, listed: Any, grepped: bool) -> list[Any]:
        seen = self._seen.get(path)
        if seen is None:
            ranges = [_merged(_pairs(listed)), [], []]
            nodes: list[int] = []
        else:
            ranges = [_merged(seen.searched), _merged(seen.read), _merged(seen.delegated)]
            nodes = list(seen.nodes)
        return [printable_line(path), lines, ranges, nodes, grepped]

    def _grepped(self, paths: Sequence[str]) -> set[str]:
        found: set[str] = set()
        for glob in islice(self._globs, _MAX_GLOBS):
            if glob is None:
                return set(paths)
            # One that is none, in a trace that nobody wrote, matches nothing.
            with suppress(UsageError):
                matches = compile_glob(glob)
                found.update(path for path in paths if matches(path))
        return found


def _merged(ranges: Iterable[tuple[int, int]]) -> Ranges:
    merged: Ranges = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1] + 1:
            merged[-1][1] = max(merged[-1][1], last)
        else:
            merged.append([first, last])
    return merged


def _place(place: Sequence[Any]) -> tuple[str, int, int]:
    """A place of a trace; one that is none is empty."""
    match list(place):
        case [str() as path, int() as first, int() as last]:
            return path, first, last
    return "", 1, 0


def _pairs(listed: Any) -> Iterator[tuple[int, int]]:
    """Ranges as a summary lists them, without what is none."""
    for each in listed if isinstance(listed, list) else ():
        match each:
            case [int() as first, int() as last] if first <= last:
                yield first, last


def _texts(value: Any) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []

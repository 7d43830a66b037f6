"""What the blocks of the offline policy found, read back from their output and ranked.

A block prints each finding as one line: the run's mark, then a JSON object in which every line
end is escaped, so that no text of the corpus can start a line of its own. Lines that were cut
or damaged on the way are left out.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

# Weights of what speaks for a file, against 1 for holding the best window of the search.
MORE_WINDOWS = 0.15
DEFINES_NAME = 1.0
MENTIONS_NAME = 0.3
IS_NAMED = 2.0
COUNTED_WINDOWS = 3


@dataclass(frozen=True, slots=True)
class Window:
    """Lines of a document that the search ranked."""

    path: str
    line: int
    end_line: int
    score: float
    snippet: str


@dataclass(frozen=True, slots=True)
class Definition:
    """Where a name of the question is defined."""

    name: str
    path: str
    line: int


@dataclass(frozen=True, slots=True)
class Mention:
    """How often a document holds a name of the question, and where first."""

    name: str
    path: str
    line: int
    count: int


_Named = TypeVar("_Named", Definition, Mention)


@dataclass(slots=True)
class Evidence:
    """All that was found; `lines` holds what was read, by path and line.

    `looked` says that the searching block ran to its end.
    """

    looked: bool = False
    windows: list[Window] = field(default_factory=list)
    definitions: list[Definition] = field(default_factory=list)
    mentions: list[Mention] = field(default_factory=list)
    named: list[str] = field(default_factory=list)
    lines: dict[str, dict[int, str]] = field(default_factory=lambda: defaultdict(dict))
    outlines: dict[str, str] = field(default_factory=dict)


def read_evidence(outputs: Iterable[str], mark: str) -> Evidence:
    """Return the findings in what the blocks printed; never raises."""
    evidence = Evidence()
    for output in outputs:
        for line in output.split("\n"):
            if not line.startswith(mark):
                continue
            try:
                _add(evidence, json.loads(line.removeprefix(mark)))
            except (ValueError, KeyError, TypeError, RecursionError):
                # A line that the output's cap cut through; the others still count.
                continue
    return evidence


def _add(evidence: Evidence, found: Mapping[str, Any]) -> None:
    kind, path = found["kind"], str(found["path"])
    if kind == "window":
        line, end_line, score = int(found["line"]), int(found["end_line"]), float(found["score"])
        evidence.windows.append(Window(path, line, end_line, score, str(found["snippet"])))
    elif kind == "definition":
        evidence.definitions.append(Definition(str(found["name"]), path, int(found["line"])))
    elif kind == "mention":
        line, count = int(found["line"]), int(found["count"])
        evidence.mentions.append(Mention(str(found["name"]), path, line, count))
    elif kind == "looked":
        evidence.looked = True
    elif kind == "named":
        evidence.named.append(path)
    elif kind == "outline":
        evidence.outlines[path] = str(found["text"])
    elif kind == "lines":
        first = int(found["line"])
        for number, text in enumerate(found["lines"], first):
            evidence.lines[path][number] = str(text)


def rank_files(evidence: Evidence) -> list[str]:
    """Return the paths of all findings, best first: search, definitions and names agreeing."""
    scores: dict[str, float] = defaultdict(float)
    _score_windows(evidence.windows, scores)
    for name, definitions in _by_name(evidence.definitions).items():
        paths = {definition.path for definition in definitions}
        weight = DEFINES_NAME / math.sqrt(len(paths))
        for path in paths:
            scores[path] += weight * _wholeness(name)
    for mentions in _by_name(evidence.mentions).values():
        most = max(mention.count for mention in mentions)
        for mention in mentions:
            share = math.log1p(mention.count) / math.log1p(most)
            scores[mention.path] += MENTIONS_NAME * share / math.sqrt(len(mentions))
    for path in set(evidence.named):
        scores[path] += IS_NAMED / math.sqrt(len(set(evidence.named)))
    return sorted(scores, key=lambda path: (-scores[path], path))


def _score_windows(windows: Sequence[Window], scores: dict[str, float]) -> None:
    best = max((window.score for window in windows), default=0.0)
    if best <= 0:
        return
    of_file: dict[str, list[float]] = defaultdict(list)
    for window in windows:
        of_file[window.path].append(window.score / best)
    for path, shares in of_file.items():
        first, *more = sorted(shares, reverse=True)
        scores[path] += first + MORE_WINDOWS * sum(more[:COUNTED_WINDOWS])


def _wholeness(name: str) -> float:
    """A name that is one plain word may be meant as a word."""
    return 0.5 if name.isalpha() and name.islower() else 1.0


def _by_name(found: Sequence[_Named]) -> dict[str, list[_Named]]:
    by_name: dict[str, list[_Named]] = defaultdict(list)
    for item in found:
        by_name[item.name].append(item)
    return by_name

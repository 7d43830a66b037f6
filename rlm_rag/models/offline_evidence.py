"""What the blocks of the offline policy found, read back from their output and ranked.

A block prints each finding as one line: the run's mark, then a JSON object in which every line
end is escaped, so that no text of the corpus can start a line of its own. Lines that were cut
or damaged on the way are left out.
"""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from rlm_rag.models.offline_clues import is_stop_word

# Weights of what speaks for a file, against 1 for holding the best window of a search.
MORE_WINDOWS = 0.02
DEFINES_NAME = 1.0
DECLARES_NAME = 0.5
MENTIONS_NAME = 0.3
IS_NAMED = 2.0
COUNTED_WINDOWS = 3
# Tests repeat the words of what they test, and seldom are what a question is after.
TEST_SHARE = 0.6
TEST_PATH = re.compile(
    r"(?:^|/)(?:tests?|testing|specs?|__tests__)/|(?:^|/)(?:test_[^/]*|conftest\.py)$"
    r"|[._](?:test|spec)\.\w+$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Window:
    """Lines of a document that the search ranked; `query` numbers the search."""

    path: str
    line: int
    end_line: int
    score: float
    snippet: str
    query: int = 0


@dataclass(frozen=True, slots=True)
class Definition:
    """Where a name of the question is defined; `declared` says that the body is elsewhere.

    Where a question asks who calls a name that is a stop word, it is where that is `called`.
    """

    name: str
    path: str
    line: int
    declared: bool = False
    called: bool = False


@dataclass(frozen=True, slots=True)
class Mention:
    """How often a document holds a name of the question, and where first."""

    name: str
    path: str
    line: int
    count: int


# What the first lines of a definition say where they promise a body and have none.
_DECLARATION = re.compile(
    r"NotImplemented|abstractmethod|\babstract\b|UnsupportedOperation|\A[^={]*;\s*$|:\s*\.\.\.\s*$",
    re.MULTILINE,
)
# How a block's stderr begins to say that a search failed, which then gave no hits.
_SEARCH_FAILED = "search: Error: "
_Named = TypeVar("_Named", Definition, Mention)


@dataclass(slots=True)
class Evidence:
    """All that was found; `lines` holds what was read, by path and line.

    `looked` says that the searching block ran to its end, and that no search in it failed.
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
    has_failed = False
    for output in outputs:
        for line in output.split("\n"):
            if not line.startswith(mark):
                has_failed = has_failed or line.startswith(_SEARCH_FAILED)
                continue
            try:
                _add(evidence, json.loads(line.removeprefix(mark)))
            except (ValueError, KeyError, TypeError, RecursionError):
                # A line that the output's cap cut through; the others still count.
                continue
    evidence.looked = evidence.looked and not has_failed
    return evidence


def _add(evidence: Evidence, found: Mapping[str, Any]) -> None:
    kind, path = found["kind"], str(found["path"])
    if kind == "window":
        evidence.windows.append(
            Window(
                path,
                line=int(found["line"]),
                end_line=int(found["end_line"]),
                score=float(found["score"]),
                snippet=str(found["snippet"]),
                query=int(found["query"]),
            )
        )
    elif kind == "definition":
        declared = bool(_DECLARATION.search(str(found["head"])))
        evidence.definitions.append(
            Definition(str(found["name"]), path, int(found["line"]), declared)
        )
    elif kind == "call":
        name, line = str(found["name"]), int(found["line"])
        evidence.definitions.append(Definition(name, path, line, called=True))
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


def rank_files(evidence: Evidence, *, of_tests: bool = False) -> dict[str, float]:
    """Return the paths of all findings with their scores, best first.

    What speaks for a file is added up, so that searches, definitions and names that agree win.
    `of_tests` says that tests are asked for; otherwise they count for less.
    """
    scores: dict[str, float] = defaultdict(float)
    for query in sorted({window.query for window in evidence.windows}):
        _score_windows([window for window in evidence.windows if window.query == query], scores)
    _score_names(evidence, scores)
    for path in scores:
        if not of_tests and TEST_PATH.search(path):
            scores[path] *= TEST_SHARE
    named = set(evidence.named)
    for path in named:
        scores[path] += IS_NAMED / math.sqrt(len(named))
    return dict(sorted(scores.items(), key=lambda item: (-item[1], item[0])))


def _score_windows(windows: Sequence[Window], scores: dict[str, float]) -> None:
    best = max(window.score for window in windows)
    if best <= 0:
        return
    of_file: dict[str, list[float]] = defaultdict(list)
    for window in windows:
        of_file[window.path].append(window.score / best)
    for path, shares in of_file.items():
        first, *more = sorted(shares, reverse=True)
        scores[path] += first + MORE_WINDOWS * sum(more[:COUNTED_WINDOWS])


def _score_names(evidence: Evidence, scores: dict[str, float]) -> None:
    for name, definitions in _by_name(evidence.definitions).items():
        weights: dict[str, float] = {}
        for found in definitions:
            weight = DECLARES_NAME if found.declared else DEFINES_NAME
            weights[found.path] = max(weight, weights.get(found.path, 0.0))
        for path, weight in weights.items():
            scores[path] += weight * _wholeness(name) / math.sqrt(len(weights))
    for mentions in _by_name(evidence.mentions).values():
        most = max(mention.count for mention in mentions)
        for mention in mentions:
            share = math.log1p(mention.count) / math.log1p(most)
            scores[mention.path] += MENTIONS_NAME * share / math.sqrt(len(mentions))


def _wholeness(name: str) -> float:
    """A name that is one plain word may be meant as a word; of a stop word no search can tell."""
    if is_stop_word(name):
        return 2.0
    return 0.5 if name.isalpha() and name.islower() else 1.0


def _by_name(found: Sequence[_Named]) -> dict[str, list[_Named]]:
    by_name: dict[str, list[_Named]] = defaultdict(list)
    for item in found:
        by_name[item.name].append(item)
    return by_name

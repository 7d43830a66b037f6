"""What can be asked of an index, and what it answers: plain values, safe to send between processes.

A request names one retrieval primitive; `Retriever.retrieve` answers it. Lines are 1-based
and inclusive, counted by `rlm_rag.packed`. `within` restricts a request to documents of exactly
these paths.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from rlm_rag.errors import RetrievalError

MAX_GREP_HITS = 200
MAX_CONTEXT_LINES = 10
MAX_LINE_CHARS = 400
MAX_SNIPPET_CHARS = 400
MAX_K = 1000
MAX_TIMEOUT_SECONDS = 300.0
MAX_QUERY_CHARS = 200_000
MAX_PATTERN_CHARS = 10_000
# The longest path that Linux opens; a glob of that length is compiled in milliseconds.
MAX_PATH_CHARS = 4096
MAX_NAME_CHARS = 1000


@dataclass(frozen=True, slots=True)
class SearchRequest:
    query: str
    k: int = 10
    path_glob: str | None = None
    within: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class GrepRequest:
    pattern: str
    k: int = 50
    path_glob: str | None = None
    before: int = 0
    after: int = 0
    ignore_case: bool = False
    timeout_seconds: float = 20.0
    within: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class OutlineRequest:
    path: str
    budget_chars: int | None = None
    within: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class SymbolsRequest:
    name: str
    path_glob: str | None = None
    references: bool = False
    within: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class ReadRequest:
    path: str
    start: int = 1
    end: int | None = None


@dataclass(frozen=True, slots=True)
class RepoMapRequest:
    focus: str | None = None
    budget_chars: int = 4000
    within: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class BordersRequest:
    """Where a text may be split: the document `path`, or `text`, read as `path` names it."""

    path: str
    text: str | None = None


@dataclass(frozen=True, slots=True)
class IndexRequest:
    """Bring the search index up to date; with `verify`, read all that is stored of it as well."""

    verify: bool = False


@dataclass(frozen=True, slots=True)
class LoadRequest:
    """Load the source where it is to lie, unless that was done; other requests do so as well."""


@dataclass(frozen=True, slots=True)
class HoldRequest:
    """Fetch the texts of the documents of these numbers, from where they lie, to this machine."""

    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PathsRequest:
    """Which documents `names` mean, each a path, the end of one, or a glob."""

    names: tuple[str, ...]
    within: tuple[str, ...] | None = None


Request = (
    SearchRequest
    | GrepRequest
    | OutlineRequest
    | SymbolsRequest
    | ReadRequest
    | RepoMapRequest
    | BordersRequest
    | PathsRequest
    | HoldRequest
)


@dataclass(frozen=True, slots=True)
class ExplainRequest:
    """Why the document of that path ranks where it does for a query."""

    query: str
    path: str


# What a caller who owns the index may ask as well; no REPL can.
AnyRequest = Request | IndexRequest | ExplainRequest | LoadRequest


@dataclass(frozen=True, slots=True)
class Hit:
    """One ranked window: a pointer with a numbered snippet, not a body."""

    path: str
    line: int
    end_line: int
    score: float
    snippet: str


@dataclass(frozen=True, slots=True)
class SearchResult:
    hits: tuple[Hit, ...]
    note: str | None = None


@dataclass(frozen=True, slots=True)
class GrepHit:
    """One matching line; `before` and `after` are `(line, text)` pairs of its neighbours."""

    path: str
    line: int
    text: str
    before: tuple[tuple[int, str], ...] = ()
    after: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class GrepResult:
    """`counts` (matching lines a path) and `total` are complete even when `hits` is capped.

    With `error` set `truncated` is true and counts are partial; `error_kind` tells a pattern that
    cannot be used from the time limit, and from `partial`, a part of the corpus that is lost.
    """

    hits: tuple[GrepHit, ...]
    counts: Mapping[str, int] = field(default_factory=dict)
    total: int = 0
    truncated: bool = False
    error: str | None = None
    note: str | None = None
    error_kind: Literal["pattern", "time_limit", "partial"] | None = None


@dataclass(frozen=True, slots=True)
class Symbol:
    """A definition, or a use (of the kind `reference`, its line the signature).

    `scope` names what it stands in, as `Server.handle` (empty at the margin); `doc` is the first
    line of its documentation.
    """

    path: str
    line: int
    kind: str
    name: str
    signature: str
    end_line: int = 0
    scope: str = ""
    doc: str = ""


@dataclass(frozen=True, slots=True)
class SymbolsResult:
    symbols: tuple[Symbol, ...]
    note: str | None = None


@dataclass(frozen=True, slots=True)
class TextResult:
    """The text of `outline`, `read` or `repo_map`.

    `path` is the document that answered (None where there was none, or several), and
    `line`..`end_line` the lines of it that the text shows (0, 0 where it shows none).
    `error` says what was wrong with the request, with the candidates, and `text` is then empty.
    """

    text: str
    path: str | None = None
    line: int = 0
    end_line: int = 0
    error: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class BordersResult:
    """`(line, depth)` of each definition or heading; the outermost have depth 0."""

    borders: tuple[tuple[int, int], ...]
    note: str | None = None


@dataclass(frozen=True, slots=True)
class IndexResult:
    """What the search index of a corpus is.

    `added` of the documents were indexed for this answer; `damaged` segments were found and
    made anew. `folder` is where it is kept, None in memory; in `shards` on other machines, each
    keeps its own.
    """

    documents: int
    windows: int
    segments: int
    size_bytes: int
    added: int
    damaged: int = 0
    folder: str | None = None
    note: str | None = None
    shards: int | None = None


@dataclass(frozen=True, slots=True)
class PathsResult:
    """The paths that each name means; a name that means none is left out."""

    found: Mapping[str, tuple[str, ...]]
    note: str | None = None


@dataclass(frozen=True, slots=True)
class HoldResult:
    """The texts are here, but for those `lacking`; `note` says why, of the first of them."""

    lacking: tuple[int, ...] = ()
    note: str | None = None


@dataclass(frozen=True, slots=True)
class LoadResult:
    """What was left out of a source, each path with its reason, and what was guessed."""

    skipped: tuple[tuple[str, str], ...] = ()
    warnings: tuple[str, ...] = ()
    note: str | None = None


Result = (
    SearchResult
    | GrepResult
    | SymbolsResult
    | TextResult
    | BordersResult
    | PathsResult
    | IndexResult
    | HoldResult
    | LoadResult
)


_MOST_CHARS: Mapping[str, int] = {
    "query": MAX_QUERY_CHARS,
    "focus": MAX_QUERY_CHARS,
    "pattern": MAX_PATTERN_CHARS,
    "path": MAX_PATH_CHARS,
    "path_glob": MAX_PATH_CHARS,
    "name": MAX_NAME_CHARS,
}


def check_lengths(request: AnyRequest) -> None:
    """Refuse a request whose texts are longer than anything that could be found by them.

    Raises:
        RetrievalError: one is; the message says which, and does not repeat it.
    """
    for name, most in _MOST_CHARS.items():
        _check_length(name, getattr(request, name, None), most)
    if isinstance(request, PathsRequest):
        for path in request.names:
            _check_length("a path or glob", path, MAX_PATH_CHARS)


def _check_length(name: str, value: object, most: int) -> None:
    if isinstance(value, str) and len(value) > most:
        raise RetrievalError(f"{name} has {len(value):,} characters, of at most {most:,}")


def checked_timeout(seconds: object) -> float:
    """Return a grep's time limit if it can be one.

    Raises:
        RetrievalError: it is no number above 0 and up to `MAX_TIMEOUT_SECONDS`.
    """
    if isinstance(seconds, (int, float)) and 0 < seconds <= MAX_TIMEOUT_SECONDS:
        return float(seconds)
    raise RetrievalError(
        f"timeout_seconds must be a number above 0 and up to {MAX_TIMEOUT_SECONDS:g}, "
        f"not {seconds!r}"
    )


def joined_notes(*notes: str | None) -> str | None:
    """Return the notes that say something as one, None where none does."""
    return "; ".join(note for note in notes if note) or None


class Retriever(Protocol):
    """Answers retrieval requests about one corpus; safe to call concurrently."""

    async def retrieve(self, request: Request) -> Result:
        """Answer one request.

        Raises:
            RetrievalError: the index process died and could not be brought back.
        """
        ...

    async def aclose(self) -> None:
        """End the index process; idempotent."""
        ...

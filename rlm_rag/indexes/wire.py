"""Requests and results as JSON: between processes, and as the REPL and `--json` show them."""

from __future__ import annotations

import json
from typing import Any

from rlm_rag.errors import RetrievalError
from rlm_rag.indexes.requests import (
    AnyRequest,
    BordersRequest,
    BordersResult,
    ExplainRequest,
    GrepHit,
    GrepRequest,
    GrepResult,
    Hit,
    HoldRequest,
    HoldResult,
    IndexRequest,
    IndexResult,
    LoadRequest,
    LoadResult,
    OutlineRequest,
    PathsRequest,
    PathsResult,
    ReadRequest,
    RepoMapRequest,
    Result,
    SearchRequest,
    SearchResult,
    Symbol,
    SymbolsRequest,
    SymbolsResult,
    TextResult,
)

_REQUESTS: dict[str, type[AnyRequest]] = {
    kind.__name__: kind
    for kind in (
        SearchRequest,
        GrepRequest,
        OutlineRequest,
        SymbolsRequest,
        ReadRequest,
        RepoMapRequest,
        BordersRequest,
        PathsRequest,
        HoldRequest,
        LoadRequest,
        IndexRequest,
        ExplainRequest,
    )
}

# What a line begins with that is no reply, and so no JSON.
_PROGRESS = b"progress "


def to_json(result: Result) -> Any:
    """Return a result as the REPL and `--json` give it.

    A search or symbols result is a list of dicts, a text result its text (or what was wrong,
    after `Error: `), a grep result a dict with `error` and `note` only where set, and with
    `before` and `after` only in hits that have neighbours.
    """
    if isinstance(result, SearchResult):
        return list(map(_fields, result.hits))
    if isinstance(result, SymbolsResult):
        return list(map(_fields, result.symbols))
    if isinstance(result, BordersResult):
        return [list(border) for border in result.borders]
    if isinstance(result, IndexResult | HoldResult | LoadResult):
        return _fields(result)
    if isinstance(result, PathsResult):
        return {name: list(paths) for name, paths in result.found.items()}
    if isinstance(result, TextResult):
        return f"Error: {result.error}" if result.error else result.text
    value: dict[str, Any] = {
        "hits": [_grep_hit(hit) for hit in result.hits],
        "counts": dict(result.counts),
        "total": result.total,
        "truncated": result.truncated,
    }
    if result.error:
        value["error"] = result.error
    if result.note:
        value["note"] = result.note
    return value


def _grep_hit(hit: GrepHit) -> dict[str, Any]:
    value: dict[str, Any] = {"path": hit.path, "line": hit.line, "text": hit.text}
    for name, lines in (("before", hit.before), ("after", hit.after)):
        if lines:
            value[name] = [{"line": line, "text": text} for line, text in lines]
    return value


def encode_request(number: int, request: AnyRequest) -> bytes:
    """Return a request as one line.

    Raises:
        RetrievalError: an argument of it is no JSON value.
    """
    try:
        value = {"id": number, "kind": type(request).__name__, "fields": _fields(request)}
        return json.dumps(value).encode("ascii") + b"\n"
    except (TypeError, ValueError, RecursionError) as error:
        raise RetrievalError(f"the request cannot be sent: {error}") from error


def decode_request(line: bytes) -> tuple[int, AnyRequest]:
    """Read what `encode_request` wrote."""
    value = json.loads(line)
    return value["id"], _REQUESTS[value["kind"]](**value["fields"])


def encode_result(number: int, result: Result) -> bytes:
    """Return the answer to the request of that number as one line."""
    value = {"id": number, "kind": type(result).__name__, "fields": _fields(result)}
    return json.dumps(value, default=_fields).encode("ascii") + b"\n"


def encode_failure(number: int, message: str, hint: str | None) -> bytes:
    """Return, as one line, why the request of that number was not answered."""
    value = {"id": number, "failed": message, "hint": hint}
    return json.dumps(value).encode("ascii") + b"\n"


def encode_progress(done: int, total: int) -> bytes:
    """Return, as one line, how many documents are indexed by now, and of how many."""
    return _PROGRESS + json.dumps([done, total]).encode("ascii") + b"\n"


def decode_progress(line: bytes) -> tuple[int, int] | None:
    """Read what `encode_progress` wrote; None for a line that is a reply."""
    if not line.startswith(_PROGRESS):
        return None
    done, total = json.loads(line[len(_PROGRESS) :])
    return done, total


def decode_result(line: bytes) -> tuple[int, Result | RetrievalError]:
    """Read what `encode_result` or `encode_failure` wrote."""
    value = json.loads(line)
    number: int = value["id"]
    if "failed" in value:
        return number, RetrievalError(value["failed"], hint=value["hint"])
    fields = value["fields"]
    match value["kind"]:
        case "SearchResult":
            hits = tuple(Hit(**hit) for hit in fields["hits"])
            return number, SearchResult(hits, fields["note"])
        case "SymbolsResult":
            found = tuple(Symbol(**symbol) for symbol in fields["symbols"])
            return number, SymbolsResult(found, fields["note"])
        case "GrepResult":
            fields["hits"] = tuple(_decoded_grep_hit(hit) for hit in fields["hits"])
            return number, GrepResult(**fields)
        case "PathsResult":
            meant = {name: tuple(paths) for name, paths in fields["found"].items()}
            return number, PathsResult(meant, fields["note"])
        case "BordersResult":
            borders = tuple((line, depth) for line, depth in fields["borders"])
            return number, BordersResult(borders, fields["note"])
        case "LoadResult":
            skipped = tuple((path, reason) for path, reason in fields["skipped"])
            return number, LoadResult(skipped, tuple(fields["warnings"]), fields["note"])
        case "HoldResult":
            return number, HoldResult(tuple(fields["lacking"]), fields["note"])
        case "IndexResult":
            return number, IndexResult(**fields)
        case _:
            return number, TextResult(**fields)


def _fields(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass as they are: `asdict` copies all that is in them."""
    return {name: getattr(value, name) for name in value.__dataclass_fields__}


def _decoded_grep_hit(hit: dict[str, Any]) -> GrepHit:
    before = tuple((line, text) for line, text in hit["before"])
    after = tuple((line, text) for line, text in hit["after"])
    return GrepHit(hit["path"], hit["line"], hit["text"], before, after)

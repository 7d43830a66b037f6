"""The tools that look things up in the corpus, and need no model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rlm_rag.indexes.requests import (
    MAX_GREP_HITS,
    AnyRequest,
    GrepRequest,
    GrepResult,
    OutlineRequest,
    ReadRequest,
    RepoMapRequest,
    SearchRequest,
    SearchResult,
    SymbolsRequest,
    SymbolsResult,
    TextResult,
    joined_notes,
)
from rlm_rag.indexes.wire import to_json
from rlm_rag.mcp import schemas
from rlm_rag.mcp.replies import Reply, fitting, refused, shown, with_note
from rlm_rag.mcp.schemas import Schema

MAX_COUNTS = 100

_NARROW = "narrow path_glob for the others"


@dataclass(frozen=True, slots=True)
class Lookup:
    """A tool: `request` is called with the arguments, `reply` with what answers it."""

    name: str
    title: str
    description: str
    takes: Schema
    replies: Schema
    request: Callable[..., AnyRequest]
    reply: Callable[[Any], Reply]


def _searched(result: SearchResult) -> Reply:
    hits = shown(to_json(result))
    kept = fitting(hits, lambda hit: len(hit["snippet"]) + len(hit["path"]))
    lines = []
    for hit in kept:
        lines.append(f"{hit['path']}:{hit['line']}-{hit['end_line']}  {hit['score']:.2f}")
        lines.extend(f"  {line}" for line in hit["snippet"].split("\n"))
    return _listed("hits", kept, hits, lines, result.note)


def _found(result: SymbolsResult) -> Reply:
    symbols = shown(to_json(result))
    kept = fitting(symbols, lambda one: sum(len(str(value)) for value in one.values()))
    lines = []
    for one in kept:
        scope = f" in {one['scope']}" if one["scope"] else ""
        doc = f"  # {one['doc']}" if one["doc"] else ""
        place = f"{one['path']}:{one['line']}"
        lines.append(f"{place}: {one['signature']}  [{one['kind']}{scope}]{doc}")
    return _listed("symbols", kept, symbols, lines, result.note)


def _listed(
    name: str,
    kept: Sequence[dict[str, Any]],
    every: Sequence[dict[str, Any]],
    lines: list[str],
    note: str | None,
) -> Reply:
    cut = None
    if len(kept) < len(every):
        cut = f"{len(kept)} of {len(every)} {name} fit into a reply; {_NARROW}"
    note = joined_notes(shown(note or ""), cut) or (None if every else "no match")
    return Reply(with_note(lines, note), {name: list(kept)} | _noted(note))


def _grepped(result: GrepResult) -> Reply:
    if result.error and result.error_kind == "pattern":
        return refused(result.error, "pattern is a Python regular expression")
    data = shown(to_json(result))
    hits, counts = data["hits"], data["counts"]
    kept = fitting(
        hits, lambda hit: len(hit["path"]) + sum(len(text) for _, _, text in _lines(hit))
    )
    notes = [data.get("note")]
    if len(kept) < result.total:
        shown_of = f"{len(kept):,} of {result.total:,} matching lines are shown"
        notes.append(f"{shown_of}; raise k (to {MAX_GREP_HITS} at most) or {_NARROW}")
    if len(counts) > MAX_COUNTS:
        most = sorted(counts, key=lambda path: -counts[path])[:MAX_COUNTS]
        notes.append(f"counts has the {MAX_COUNTS} of {len(counts):,} files with most of them")
        counts = {path: counts[path] for path in most}
    note = joined_notes(*notes) or (None if hits or result.error else "no match")
    text = with_note(_grouped(kept), joined_notes(data.get("error"), note))
    truncated = result.truncated or len(kept) < len(hits)
    cut = {"hits": list(kept), "counts": counts, "truncated": truncated}
    return Reply(text, data | cut | _noted(note))


def _grouped(hits: Sequence[dict[str, Any]]) -> list[str]:
    """Return hits as `number: text` and their neighbours as `number- text`, below their path."""
    by_path: dict[str, dict[int, tuple[str, str]]] = {}
    for hit in hits:
        numbered = by_path.setdefault(hit["path"], {})
        for number, mark, text in _lines(hit):
            if mark == ":" or number not in numbered:
                numbered[number] = (mark, text)
    lines = []
    for path, numbered in by_path.items():
        lines.append(path)
        lines += [f"{number}{mark} {text}" for number, (mark, text) in sorted(numbered.items())]
    return lines


def _lines(hit: Mapping[str, Any]) -> list[tuple[int, str, str]]:
    around = [*hit.get("before", ()), *hit.get("after", ())]
    return [
        (hit["line"], ":", hit["text"]),
        *((one["line"], "-", one["text"]) for one in around),
    ]


def _text(result: TextResult) -> Reply:
    if result.error is not None:
        return refused(result.error)
    data = shown({name: value for name, value in asdict(result).items() if value is not None})
    return Reply(with_note([data["text"]] if data["text"] else [], data.get("note")), data)


def _noted(note: str | None) -> dict[str, str]:
    return {"note": note} if note else {}


def _outline(path: str = "**", budget_chars: int | None = None) -> AnyRequest:
    return OutlineRequest(path=path, budget_chars=budget_chars)


LOOKUPS: Mapping[str, Lookup] = {
    one.name: one
    for one in (
        Lookup(
            "search",
            "Search",
            "Find the passages that match a query best, by words and names: path, lines, score "
            "and the lines that match. Start here, then read.",
            schemas.SEARCH_ARGUMENTS,
            schemas.SEARCH_REPLY,
            SearchRequest,
            _searched,
        ),
        Lookup(
            "grep",
            "Grep",
            "Find every line that matches a regular expression. Counts are complete, also where "
            "not all lines are shown: use it to count and to be sure that there is no more.",
            schemas.GREP_ARGUMENTS,
            schemas.GREP_REPLY,
            GrepRequest,
            _grepped,
        ),
        Lookup(
            "outline",
            "Outline",
            "Show the definitions or headings of a document with their lines; of a folder, a glob "
            "or everything, one line a file.",
            schemas.OUTLINE_ARGUMENTS,
            schemas.TEXT_REPLY,
            _outline,
            _text,
        ),
        Lookup(
            "symbols",
            "Symbols",
            "Find where a function, class or other name is defined, or where it is used.",
            schemas.SYMBOLS_ARGUMENTS,
            schemas.SYMBOLS_REPLY,
            SymbolsRequest,
            _found,
        ),
        Lookup(
            "read",
            "Read",
            "Read numbered lines of a document, at most 400 lines and 20,000 characters a call; "
            "the note says how to go on.",
            schemas.READ_ARGUMENTS,
            schemas.TEXT_REPLY,
            ReadRequest,
            _text,
        ),
        Lookup(
            "repo_map",
            "Repository map",
            "Show the definitions that the rest leans on most, signatures only: a first look at "
            "code that is new to you.",
            schemas.REPO_MAP_ARGUMENTS,
            schemas.TEXT_REPLY,
            RepoMapRequest,
            _text,
        ),
    )
}

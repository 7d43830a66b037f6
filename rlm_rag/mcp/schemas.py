"""JSON schemas of what the tools take and reply."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rlm_rag.indexes.requests import (
    MAX_CONTEXT_LINES,
    MAX_GREP_HITS,
    MAX_NAME_CHARS,
    MAX_PATH_CHARS,
    MAX_PATTERN_CHARS,
    MAX_QUERY_CHARS,
)
from rlm_rag.mcp.replies import MAX_REPLY_CHARS

Schema = dict[str, Any]

MAX_SEARCH_HITS = 50

_TEXT: Schema = {"type": "string"}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_LINE: Schema = {"type": "integer", "minimum": 1}
_NOTE: Schema = {"type": "string", "description": "What was cut or guessed, and what to do."}


def taking(required: tuple[str, ...], **properties: Schema) -> Schema:
    """Return the schema of a tool's arguments."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def _object(properties: Mapping[str, Schema], *optional: str) -> Schema:
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": dict(properties), "required": required}


def _list_of(item: Schema) -> Schema:
    return {"type": "array", "items": item}


def text(description: str, most_chars: int) -> Schema:
    """Return the schema of a text that is not empty."""
    return {
        "type": "string",
        "minLength": 1,
        "maxLength": most_chars,
        "description": description,
    }


def whole(
    description: str, least: int, most: int | None = None, default: int | None = None
) -> Schema:
    """Return the schema of a whole number."""
    schema: Schema = {"type": "integer", "minimum": least, "description": description}
    if most is not None:
        schema["maximum"] = most
    if default is not None:
        schema["default"] = default
    return schema


def switch(description: str) -> Schema:
    """Return the schema of what is off unless it is asked for."""
    return {"type": "boolean", "default": False, "description": description}


GLOB = text(
    "Only documents whose path matches: gitignore syntax, such as src/**/*.py.", MAX_PATH_CHARS
)
PATH = text("A path as the other tools show it, or the end of one.", MAX_PATH_CHARS)

SEARCH_ARGUMENTS = taking(
    ("query",),
    query=text("Words, names or a whole question.", MAX_QUERY_CHARS),
    k=whole("How many passages.", 1, MAX_SEARCH_HITS, 10),
    path_glob=GLOB,
)
GREP_ARGUMENTS = taking(
    ("pattern",),
    pattern=text("A Python regular expression, matched line by line.", MAX_PATTERN_CHARS),
    k=whole("How many lines to show; all are counted.", 1, MAX_GREP_HITS, 50),
    path_glob=GLOB,
    before=whole("Lines to show before each.", 0, MAX_CONTEXT_LINES, 0),
    after=whole("Lines to show after each.", 0, MAX_CONTEXT_LINES, 0),
    ignore_case=switch("Ignore case."),
)
OUTLINE_ARGUMENTS = taking(
    (),
    path=PATH | {"description": "A document; or a folder or glob, for one line a file: all."},
    budget_chars=whole("The deepest levels are cut first.", 1, MAX_REPLY_CHARS, 20_000),
)
SYMBOLS_ARGUMENTS = taking(
    ("name",),
    name=text("A name, or Class.method.", MAX_NAME_CHARS),
    path_glob=GLOB,
    references=switch("Where it is used, not defined."),
)
READ_ARGUMENTS = taking(
    ("path",),
    path=PATH,
    start=whole("The first line.", 1, None, 1),
    end=whole("The last line; as many as fit if not given.", 1),
)
REPO_MAP_ARGUMENTS = taking(
    (),
    focus=text("Begin at what bears on this.", MAX_QUERY_CHARS),
    budget_chars=whole("How long it may be.", 1, MAX_REPLY_CHARS, 4000),
)
ASK_ARGUMENTS = taking(
    ("question",), question=text("One question, as you would put it to a person.", MAX_QUERY_CHARS)
)

SEARCH_REPLY = _object(
    {
        "hits": _list_of(
            _object(
                {
                    "path": _TEXT,
                    "line": _LINE,
                    "end_line": _LINE,
                    "score": {"type": "number"},
                    "snippet": _TEXT,
                }
            )
        ),
        "note": _NOTE,
    },
    "note",
)
_NEIGHBOURS = _list_of(_object({"line": _LINE, "text": _TEXT}))
GREP_REPLY = _object(
    {
        "hits": _list_of(
            _object(
                {
                    "path": _TEXT,
                    "line": _LINE,
                    "text": _TEXT,
                    "before": _NEIGHBOURS,
                    "after": _NEIGHBOURS,
                },
                "before",
                "after",
            )
        ),
        "counts": {"type": "object", "additionalProperties": _COUNT},
        "total": _COUNT,
        "truncated": {"type": "boolean"},
        "error": _TEXT,
        "note": _NOTE,
    },
    "error",
    "note",
)
SYMBOLS_REPLY = _object(
    {
        "symbols": _list_of(
            _object(
                {
                    "path": _TEXT,
                    "line": _LINE,
                    "kind": _TEXT,
                    "name": _TEXT,
                    "signature": _TEXT,
                    "end_line": _COUNT,
                    "scope": _TEXT,
                    "doc": _TEXT,
                }
            )
        ),
        "note": _NOTE,
    },
    "note",
)
TEXT_REPLY = _object(
    {"text": _TEXT, "path": _TEXT, "line": _COUNT, "end_line": _COUNT, "note": _NOTE},
    "path",
    "line",
    "end_line",
    "note",
)
ASK_REPLY = _object(
    {
        "answer": _TEXT,
        "citations": _list_of(
            _object(
                {
                    "path": _TEXT,
                    "line": _COUNT,
                    "end_line": _COUNT,
                    "quote": {"type": ["string", "null"]},
                    "status": {"enum": ["verified", "located", "false"]},
                    "verified": {"type": "boolean"},
                }
            )
        ),
        "found": {"type": "boolean"},
        "stop_reason": _TEXT,
        "usage": {"type": "object"},
        "coverage": {"type": "object"},
        "warnings": _list_of(_TEXT),
    }
)

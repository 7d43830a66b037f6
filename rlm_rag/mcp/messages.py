"""What a line from a client is, where it is no message of the protocol."""

from __future__ import annotations

import json
from typing import Any

import mcp_types as types
from pydantic import ValidationError

_SURROGATE = "a text in it holds half of a surrogate pair, which is no character"


def refusal(line: str) -> types.JSONRPCError | None:
    """Return the error that a line is answered with; None where it is a message.

    -32700 for what is no JSON, -32600 for all else, with the id where it has one.
    """
    try:
        types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError:
        return _refused(line)
    return None


def _refused(line: str) -> types.JSONRPCError:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        return _error(None, types.PARSE_ERROR, f"the line is no JSON: {error!s:.200}")
    if isinstance(value, list):
        return _error(None, types.INVALID_REQUEST, "batches are not taken: a message a line")
    if not isinstance(value, dict):
        return _error(None, types.INVALID_REQUEST, "a message is an object")
    given = value.get("id")
    known: int | str | None
    known = given if isinstance(given, int) and not isinstance(given, bool) else None
    if isinstance(given, str) and _is_text(given):
        known = given
    return _error(known, types.INVALID_REQUEST, _complaint(value))


def _complaint(value: dict[str, Any]) -> str:
    if not _is_text(json.dumps(value, ensure_ascii=False)):
        return _SURROGATE
    if value.get("jsonrpc") != "2.0":
        return "'jsonrpc' must be \"2.0\""
    if not isinstance(value.get("params", {}), dict):
        return "'params' must be an object"
    return "it is neither a request nor a notification nor a reply"


def _is_text(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _error(given: int | str | None, code: int, message: str) -> types.JSONRPCError:
    return types.JSONRPCError(
        jsonrpc="2.0", id=given, error=types.ErrorData(code=code, message=message)
    )

"""The tools as a client is told of them, and what is wrong with what it calls them with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jsonschema
import mcp_types as types

from rlm_rag.mcp import schemas
from rlm_rag.mcp.lookups import LOOKUPS
from rlm_rag.mcp.replies import Reply, refused

ASK = "ask"

_MAX_COMPLAINTS = 3
_MAX_CHARS = 200
_MAX_SHOWN_CHARS = 60
_ASK_DESCRIPTION = (
    "Have a language model read as much as it takes and answer a question; the answer's citations "
    "are checked. Takes seconds to minutes and costs money: use search, grep and read for what "
    "they can tell."
)
_LOOKS_ONLY = types.ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)
# It spends money at a provider, so that a client should ask its user first.
_SPENDS = types.ToolAnnotations(
    read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=True
)


def tools(*, with_ask: bool) -> dict[str, types.Tool]:
    """Return the tools by name; `ask` needs a model."""
    found = [
        types.Tool(
            name=one.name,
            title=one.title,
            description=one.description,
            input_schema=one.takes,
            output_schema=one.replies,
            annotations=_LOOKS_ONLY,
        )
        for one in LOOKUPS.values()
    ]
    if with_ask:
        found.append(
            types.Tool(
                name=ASK,
                title="Ask",
                description=_ASK_DESCRIPTION,
                input_schema=schemas.ASK_ARGUMENTS,
                output_schema=schemas.ASK_REPLY,
                annotations=_SPENDS,
            )
        )
    return {tool.name: tool for tool in found}


def complaint(tool: types.Tool, arguments: Mapping[str, Any]) -> Reply | None:
    """Return what is wrong with the arguments of a call; None where nothing is."""
    validator = jsonschema.Draft202012Validator(tool.input_schema)
    errors = [_said(error) for error in validator.iter_errors(dict(arguments))]
    if not errors:
        return None
    return refused("; ".join(errors[:_MAX_COMPLAINTS]), f"{tool.name} takes {_signature(tool)}")


def _said(error: Any) -> str:
    where, said, given = "".join(f"{name}: " for name in error.path), error.message, error.instance
    if len(said) <= _MAX_CHARS:
        return f"{where}{said}"
    # What was given comes last, and cut.
    shown = repr(given)
    reason = said.removeprefix(shown).strip()
    if error.validator == "maxLength":
        reason = f"has {len(given):,} characters, more than {error.validator_value:,}"
    return f"{where}{reason[:_MAX_CHARS]}: {shown[:_MAX_SHOWN_CHARS]}…"


def _signature(tool: types.Tool) -> str:
    required = tool.input_schema["required"]
    names = tool.input_schema["properties"]
    return ", ".join(name if name in required else f"[{name}]" for name in names)

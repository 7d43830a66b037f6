"""Replies that a provider holds to a JSON schema: how it is asked for, and when it refuses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rlm_rag.errors import ContextWindowError, ModelError, ModelRequestError

NAME = "answer"
_OF_A_SCHEMA = re.compile(r"response[_ ]?format|schema|grammar|structured output", re.I)


@dataclass(slots=True)
class Schemas:
    """Whether a model may be asked for replies of a schema, and what its provider said in this run.

    `offered` is what is known before; it has `taken` a request with a schema, or `refused` one.
    """

    offered: bool = False
    taken: bool = False
    refused: bool = False


def response_format(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameter by which an OpenAI-compatible server is asked for it.

    Not strict: OpenAI takes only some schemas then. llama.cpp makes a grammar of any.
    """
    return {"type": "json_schema", "json_schema": {"name": NAME, "schema": dict(schema)}}


def may_refuse_schema(error: ModelError) -> bool:
    """Whether a request that had a schema may have failed for it.

    A request that was refused as it was made, and whatever names a schema in its reason: a
    server's word for what it does not know may be 404 or 500 too.
    """
    if isinstance(error, ContextWindowError):
        return False
    if isinstance(error, ModelRequestError):
        return True
    return _OF_A_SCHEMA.search(error.provider_message or "") is not None

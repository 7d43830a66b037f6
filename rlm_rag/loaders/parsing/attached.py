"""A file within a document, such as an attachment: parsed, read as text, or refused."""

from __future__ import annotations

import importlib

from rlm_rag.errors import DocumentError
from rlm_rag.loaders.parsing.formats import format_of, refusal_of
from rlm_rag.loaders.parsing.parts import ParsedDocument, plain_text
from rlm_rag.loaders.secrets import SECRET_REASON, holds_private_key, may_hold_secrets

MAX_NESTING = 5

_depth = 0


def parse_attached(name: str, data: bytes) -> ParsedDocument:
    """Return what a file of that name holds.

    Raises:
        DocumentError: it cannot be read, may hold secrets, or lies too deep within others.
    """
    global _depth
    known = format_of(name)
    if may_hold_secrets(name) or holds_private_key(name, data):
        raise DocumentError(SECRET_REASON)
    if known is None:
        return plain_text(data)
    refusal = refusal_of(known)
    if refusal is not None:
        raise DocumentError(refusal)
    if _depth >= MAX_NESTING:
        raise DocumentError(f"more than {MAX_NESTING} messages within one another")
    _depth += 1
    try:
        parsed: ParsedDocument = importlib.import_module(known.module).parse(data)
    finally:
        _depth -= 1
    return parsed

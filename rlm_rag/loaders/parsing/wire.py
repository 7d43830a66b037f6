"""What goes between the host and a parser process; the host takes nothing on trust.

A request is two lengths, then a module's name and bytes; the process says TAKEN once it has it.
A reply is a length, then JSON.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from typing import IO, Any, BinaryIO

from rlm_rag.errors import DocumentError
from rlm_rag.loaders.parsing.parts import MAX_PARTS, PART_NAME, ParsedDocument, Part

TAKEN = b"\x06"

_REQUEST = struct.Struct("<IQ")
_REPLY = struct.Struct("<Q")
# JSON may write a character as six bytes.
_MAX_REPLY_BYTES = 512 << 20
_MAX_SAID_CHARS = 300


def encode_request(module: str, data: bytes) -> Iterator[bytes]:
    """Yield the pieces of a request."""
    name = module.encode()
    yield _REQUEST.pack(len(name), len(data)) + name
    yield data


def read_request(stream: BinaryIO) -> tuple[str, bytes] | None:
    """Read one request; None at the end of the stream."""
    head = stream.read(_REQUEST.size)
    if len(head) < _REQUEST.size:
        return None
    lengths = _REQUEST.unpack(head)
    module, data = (stream.read(length) for length in lengths)
    return None if len(data) < lengths[1] else (module.decode(), data)


def encode_reply(result: ParsedDocument | str) -> bytes:
    """Encode a parsed document, or the reason why it is skipped."""
    record: dict[str, Any]
    if isinstance(result, str):
        record = {"refused": result}
    else:
        record = {
            "parts": [[part.name, part.content, part.encoding] for part in result.parts],
            "skipped": result.skipped,
            "warnings": result.warnings,
        }
    body = json.dumps(record, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return _REPLY.pack(len(body)) + body


def read_framed(stream: IO[bytes]) -> bytes | None:
    """Read the body of one reply; None where the stream ends before it does."""
    head = stream.read(_REPLY.size)
    if len(head) < _REPLY.size:
        return None
    (length,) = _REPLY.unpack(head)
    if length > _MAX_REPLY_BYTES:
        return b""
    body = stream.read(length)
    return body if len(body) == length else None


def decode_reply(body: bytes) -> ParsedDocument | str:
    """Decode a reply of a process that may have been taken over by what it parsed.

    Raises:
        DocumentError: it is none.
    """
    try:
        record = json.loads(body.decode("utf-8", "surrogatepass"))
        if "refused" in record:
            return _said(record["refused"])
        parts = tuple(_part(part) for part in record["parts"])
        skipped = tuple((_name(name), _said(reason)) for name, reason in record["skipped"])
        warnings = tuple(_said(warning) for warning in record["warnings"])
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise _nonsense() from error
    if len({part.name for part in parts}) < len(parts) or len(parts) > MAX_PARTS:
        raise _nonsense()
    return ParsedDocument(parts, skipped, warnings)


def _part(record: object) -> Part:
    if not isinstance(record, list):
        raise TypeError
    name, content, encoding = record
    if encoding is not None and not encoding.replace("-", "_").isidentifier():
        raise ValueError
    return Part(_name(name), _text(content), encoding)


def _name(value: object) -> str:
    name = _text(value)
    if name and not PART_NAME.fullmatch(name):
        raise ValueError
    return name


def _said(value: object) -> str:
    return _text(value).replace("\n", " ")[:_MAX_SAID_CHARS]


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _nonsense() -> DocumentError:
    return DocumentError("its parser gave no answer that makes sense")

"""A file's bytes to documents: text decoded, documents taken apart, the rest left out and told."""

from __future__ import annotations

import os

from rlm_rag.corpus import Skipped
from rlm_rag.loaders.documents import is_document, parse_document
from rlm_rag.loaders.files import failure_reason, read_regular, too_large_reason
from rlm_rag.loaders.keys import find_keys
from rlm_rag.loaders.options import Entry, LoadReport
from rlm_rag.loaders.packed_names import reason_by_packing
from rlm_rag.loaders.secrets import SECRET_REASON, holds_private_key
from rlm_rag.loaders.text import SNIFF_BYTES, decode_text, is_plain_utf_8
from rlm_rag.packing import Utf8Text
from rlm_rag.traits import is_lfs_pointer

BINARY_REASON = "binary"
_MOST_KEYS_SHOWN = 3
# As text it may take four times its bytes, and is made bytes again.
_LARGE_BYTES = 8 << 20


def read_file(
    path: str,
    location: str,
    report: LoadReport,
    *,
    max_file_bytes: int,
    status: os.stat_result | None = None,
) -> list[Entry]:
    """Return the documents of the file at `location` under `path`; none, with the reason told.

    At most `max_file_bytes` are read, also from a file that grows meanwhile. `status` is what
    `lstat` says of it, where the caller has just asked.
    """
    data: bytes | str
    parsed = is_document(path)
    try:
        data = read_regular(location, max_file_bytes, whole=parsed, status=status)
    except OSError as error:
        data = failure_reason(error)
    if isinstance(data, str):
        report.miss(path, data)
        return []
    if parsed and not is_lfs_pointer(data, size_bytes=len(data)):
        return _document(path, data, report)
    return _text(path, data, report)


def read_bytes(
    path: str,
    data: bytes,
    report: LoadReport,
    *,
    max_file_bytes: int,
    charset: str | None = None,
) -> list[Entry]:
    """Return the documents of a file's bytes; `charset` is what their carrier says of them."""
    if len(data) > max_file_bytes:
        report.miss(path, too_large_reason(max_file_bytes))
        return []
    if is_document(path) and not is_lfs_pointer(data, size_bytes=len(data)):
        return _document(path, data if charset is None else _in_utf_8(data, charset), report)
    return _text(path, data, report, charset)


def _text(path: str, data: bytes, report: LoadReport, charset: str | None = None) -> list[Entry]:
    if holds_private_key(path, data[:SNIFF_BYTES]):
        report.skip(path, SECRET_REASON)
        return []
    content: str | Utf8Text
    if len(data) > _LARGE_BYTES and is_plain_utf_8(data):
        content, encoding, warning = Utf8Text(data), "utf-8", None
    else:
        decoded = decode_text(data, charset=charset)
        if decoded is None:
            report.skip(path, reason_by_packing(path) or BINARY_REASON)
            return []
        content, encoding, warning = decoded
    if warning is not None:
        report.warn(path, warning)
    keys = find_keys(data)
    if keys:
        shown = ", ".join(f"{key.kind} (line {key.line})" for key in keys[:_MOST_KEYS_SHOWN])
        more = len(keys) - _MOST_KEYS_SHOWN
        report.warn(path, f"may hold keys: {shown}{f' and {more} more' if more > 0 else ''}")
    return [Entry(path, content, encoding)]


def _in_utf_8(data: bytes, charset: str) -> bytes:
    """Return a text that its carrier knows the encoding of with a mark that tells it."""
    decoded = decode_text(data, charset=charset)
    return data if decoded is None else decoded.content.encode("utf-8-sig", "surrogatepass")


def _document(path: str, data: bytes, report: LoadReport) -> list[Entry]:
    parsed = parse_document(path, data)
    if isinstance(parsed, Skipped):
        report.miss(path, parsed.reason)
        return []
    for name, reason in parsed.skipped:
        report.skip(_part(path, name), reason)
    for warning in parsed.warnings:
        report.warn(path, warning)
    return [Entry(_part(path, part.name), part.content, part.encoding) for part in parsed.parts]


def _part(path: str, name: str) -> str:
    return f"{path}#{name}" if name else path

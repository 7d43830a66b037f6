"""Bytes to text: which encoding they are in, or that they are no text at all."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

SNIFF_BYTES = 8192
"""git looks at as much to tell text from binary (buffer_is_binary)."""

# The longer mark first: UTF-32's little-endian one begins with UTF-16's.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_MAX_BAD_SHARE = 0.01
_CONTROLS = bytes(set(range(32)) - set(b"\b\t\n\r\f\x1b"))


@dataclass(frozen=True, slots=True)
class DecodedText:
    """`warning` says what was lost or guessed; None where the bytes were plain."""

    content: str
    encoding: str
    warning: str | None = None


def is_binary(head: bytes) -> bool:
    """Tell from a file's first `SNIFF_BYTES` whether it is no text in any encoding known here."""
    if head.startswith(tuple(mark for mark, _ in _MARKS)):
        return False
    return b"\0" in head[:SNIFF_BYTES] or head.startswith(b"%PDF-")


def decode_text(data: bytes) -> DecodedText | None:
    """Decode a file's bytes; None where they are binary. Line ends stay as they are.

    A byte order mark decides; then strict UTF-8; then UTF-8 with under 1 % bad bytes replaced
    by U+FFFD, where it has good sequences too; then cp1252, or latin-1 where that fails.
    """
    if is_binary(data[:SNIFF_BYTES]):
        return None
    encoding = next((name for mark, name in _MARKS if data.startswith(mark)), "utf-8")
    try:
        return DecodedText(data.decode(encoding), encoding)
    except UnicodeDecodeError:
        if encoding in ("utf-8", "utf-8-sig"):
            return _decode_damaged(data, encoding)
        content = data.decode(encoding, "replace")
        bad = content.count("\ufffd")
        if bad > len(content) * _MAX_BAD_SHARE + 1:
            return None
        return DecodedText(content, encoding, _lost(bad, encoding))


def _decode_damaged(data: bytes, encoding: str) -> DecodedText | None:
    content = data.decode(encoding, "replace")
    bad = content.count("\ufffd") - data.count("\ufffd".encode())
    beyond_ascii = len(content) - len(content.encode("ascii", "ignore"))
    good = beyond_ascii - content.count("\ufffd")
    if encoding == "utf-8-sig" or (bad < len(data) * _MAX_BAD_SHARE and good >= bad):
        return DecodedText(content, encoding, _lost(bad, "utf-8"))
    if _looks_like_machine_data(data[:SNIFF_BYTES]):
        return None
    try:
        content, encoding = data.decode("cp1252"), "cp1252"
    except UnicodeDecodeError:
        content, encoding = data.decode("latin-1"), "latin-1"
    return DecodedText(content, encoding, f"not UTF-8; read as {encoding}, which is a guess")


def _lost(bad: int, encoding: str) -> str:
    return f"{bad} bad {encoding} sequence{'s' * (bad != 1)} replaced by U+FFFD"


def _looks_like_machine_data(head: bytes) -> bool:
    return len(head) - len(head.translate(None, _CONTROLS)) > len(head) * _MAX_BAD_SHARE

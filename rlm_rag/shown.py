"""Text from models and corpora as it may be shown: on a terminal, in a pipe, as JSON."""

from __future__ import annotations

import json
import re
from typing import Any

# Controls other than newline and tab, DEL and C1; lone surrogates; line and paragraph
# separators; direction overrides, isolates and marks; invisible fillers, tags and selectors.
# Zero-width joiners stay, and the selectors of text and emoji: Persian and emoji need them.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\ud800-\udfff\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff9-\ufffb"
    "\U000e0000-\U000e01ef]"
)

_JOINERS = re.compile("[\u034f\u200c\u200d\ufe0e\ufe0f]")
_LONE = re.compile("[\ud800-\udfff]")
# Bytes of a name that are no UTF-8, as the system gives them to a program.
_BYTE = re.compile("[\udc80-\udcff]")
_BEYOND_ASCII = re.compile("[^\x00-\x7f]")
_UNSAFE_IN_LINE = re.compile(f"[\t\n]|{_UNSAFE.pattern}")
_ESCAPE = re.compile(
    r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U(000[0-9a-f]{5}|0010[0-9a-f]{4})|([nrt\\'\"]))"
)
_NAMED_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}


def printable(text: str) -> str:
    """Return `text` with what a terminal would obey or hide shown as an escape, `\\x1b`.

    Newlines and tabs stay, CR LF becomes LF. The result encodes to UTF-8.
    """
    if text.isascii() and text.isprintable():
        return text
    return _UNSAFE.sub(_escaped, text.replace("\r\n", "\n"))


def printable_line(text: str) -> str:
    """Return `text` as `printable` does, with newlines and tabs as escapes too: for a path.

    A file's name may hold any character but a slash and NUL, and so could pass for a line.
    """
    if text.isprintable():
        return text
    return _UNSAFE_IN_LINE.sub(_escaped, text)


def with_bytes(name: str) -> str:
    """Return the name of a file with its bytes that are no UTF-8 as `\\xff`."""
    return name if name.isascii() else _BYTE.sub(_byte, name)


def unescaped(text: str) -> str:
    """Return what `printable_line`, or Python's `repr`, spells as `text`."""
    return _ESCAPE.sub(_meant, text)


def printable_json(text: str) -> str:
    """Return a text that is JSON as `printable` does, still JSON: with its escapes, `\\u00ad`."""
    # A carriage return of JSON stands between its values.
    return _UNSAFE.sub(lambda match: json.dumps(match[0])[1:-1], text.replace("\r", "\n"))


def whole(text: str) -> str:
    """Return a text with lone surrogates, which no encoding has, as escapes; most are returned."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode()
    return text


def json_text(value: Any, *, indent: int | None = None) -> str:
    """Return a value as JSON in ASCII that every reader takes: lone surrogates are spelled out."""
    separators = (",", ":") if indent is None else None
    text = json.dumps(value, indent=indent, separators=separators)
    if "\\ud" not in text:
        return text
    text = json.dumps(value, indent=indent, separators=separators, ensure_ascii=False)
    text = _LONE.sub(lambda match: f"\\\\u{ord(match[0]):04x}", text)
    return _BEYOND_ASCII.sub(lambda match: json.dumps(match[0])[1:-1], text)


def as_read(text: str) -> str:
    """Return a printable text as a reader sees it: without joiners and selectors of letters."""
    return _JOINERS.sub("", text)


def _meant(match: re.Match[str]) -> str:
    code = match[1] or match[2] or match[3]
    return chr(int(code, 16)) if code else _NAMED_ESCAPES.get(match[4], match[4])


def _byte(match: re.Match[str]) -> str:
    return f"\\x{ord(match[0]) & 0xFF:02x}"


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"

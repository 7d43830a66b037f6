"""Make text from models and corpora safe to show on a terminal."""

from __future__ import annotations

import re

# Controls other than newline and tab, DEL and C1; lone surrogates; line and paragraph
# separators; direction overrides, isolates and marks; invisible fillers, tags and selectors.
# Zero-width joiners stay, and the selectors of text and emoji: Persian and emoji need them.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\ud800-\udfff\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff9-\ufffb"
    "\U000e0000-\U000e01ef]"
)

_UNSAFE_IN_LINE = re.compile(f"[\t\n]|{_UNSAFE.pattern}")


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


def only_visible(text: str) -> str:
    """Return a text without what a terminal would obey or hide: as a reader sees it."""
    return _UNSAFE.sub("", text)


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"

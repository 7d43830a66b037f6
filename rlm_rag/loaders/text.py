"""Bytes to text: which encoding they are in, or that they are no text at all."""

from __future__ import annotations

import codecs
import re
import unicodedata
from typing import NamedTuple

from rlm_rag.loaders.charsets import declared_encoding, guess_encoding

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
_MARK_BYTES = tuple(mark for mark, _ in _MARKS)
_DOCUMENT = b"%PDF-"
_NO_PLAIN_STARTS = (codecs.BOM_UTF8, _DOCUMENT)
_PIECE_BYTES = 1 << 20
_MAX_BAD_SHARE = 0.01
# Letters of another encoding are rarely a sequence of UTF-8: of 248,000 texts of one and three
# lines of translations in 21 old encodings, none had six good ones for each that is bad.
_GOOD_FOR_ONE_BAD = 8
_CONTROLS = bytes(set(range(32)) - set(b"\b\t\n\r\f\x1b"))
_CONTROL_CHARACTER = re.compile("[\x00-\x07\x0e-\x1a\x1c-\x1f\ufffe\uffff]")
# Formats whose start may hold no NUL; what decodes as UTF-8 is text all the same.
_MAGIC = (
    b"\x89PNG",
    b"\xff\xd8\xff",
    b"\x1f\x8b",
    b"BZh",
    b"\xfd7zXZ",
    b"\x28\xb5\x2f\xfd",
    b"\x80\x04\x95",
)
# What of UTF-16 may look like two letters of ASCII: of Chinese a fourth does.
_MAX_TWO_LETTER_SHARE = 0.5
_TWO_LETTERS = re.compile("[\u2020-\u7e7e]")
_NO_CHARACTERS = frozenset(("Cn", "Co", "Cs"))


class DecodedText(NamedTuple):
    """`warning` says what was lost or guessed; None where the bytes were plain."""

    content: str
    encoding: str
    warning: str | None = None


def is_binary(head: bytes) -> bool:
    """Tell from a file's first `SNIFF_BYTES` whether it is no text in any encoding known here."""
    head = head[:SNIFF_BYTES]
    if b"\0" not in head:
        return head.startswith(_DOCUMENT)
    return not head.startswith(_MARK_BYTES) and _unmarked_utf_16(head) is None


def decode_text(data: bytes, *, charset: str | None = None) -> DecodedText | None:
    """Decode a file's bytes; None where they are binary. Line ends stay as they are.

    In this order: a byte order mark; strict UTF-8; UTF-16 without a mark; `charset` (what a
    server or a mail says) or what a Python, XML or HTML file declares of itself; UTF-8 with
    few bad bytes replaced by U+FFFD (under 1 % and no more than good sequences, or an eighth of
    these); the encoding that a detector takes the lines beyond ASCII for; cp1252, or latin-1 where
    that fails.
    """
    head = data[:SNIFF_BYTES]
    # Most files by far.
    if _starts_plainly(head):
        plain = _strict(data, "utf-8")
        if plain is not None:
            return plain
    if is_binary(head):
        return None
    marked = None
    if head.startswith(_MARK_BYTES):
        marked = next(name for mark, name in _MARKS if head.startswith(mark))
    if marked is None and b"\0" in head:
        marked = _unmarked_utf_16(head)
    encoding = marked or "utf-8"
    try:
        content = data.decode(encoding)
    except UnicodeDecodeError:
        if encoding in ("utf-8", "utf-8-sig"):
            return _decode_damaged(data, encoding, charset)
        return _decode_marked(data, encoding)
    # One byte is looked for far faster than two.
    if b"\x1b" in head and b"\x1b$" in head and marked is None:
        return _strict(data, "iso2022_jp_2") or DecodedText(content, encoding)
    return DecodedText(content, encoding)


def is_plain_utf_8(data: bytes) -> bool:
    """Tell whether bytes are what `decode_text` gives without a mark, a guess or a loss.

    They are looked at piece by piece, and no text is made of them.
    """
    if not _starts_plainly(data[:SNIFF_BYTES]):
        return False
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for at in range(0, len(data), _PIECE_BYTES):
            decoder.decode(data[at : at + _PIECE_BYTES])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _starts_plainly(head: bytes) -> bool:
    # Marks but that of UTF-8 are no UTF-8.
    return not (0 in head or 27 in head or head.startswith(_NO_PLAIN_STARTS))


def _unmarked_utf_16(head: bytes) -> str | None:
    """Name the byte order of UTF-16 that has no mark, None where the bytes are something else."""
    head = head[: len(head) // 2 * 2]
    if len(head) < 4:
        return None
    spaces = {name: _spaces_of_utf_16(head, name) for name in ("utf-16-le", "utf-16-be")}
    encoding = max(spaces, key=lambda name: spaces[name])
    return encoding if spaces[encoding] > 0 else None


def _spaces_of_utf_16(head: bytes, encoding: str) -> int:
    """Count letters and spaces of ASCII where all is text in that encoding, else 0."""
    try:
        # The sniffed bytes may end within a surrogate pair.
        text = codecs.getincrementaldecoder(encoding)().decode(head)
    except UnicodeDecodeError:
        return 0
    if _CONTROL_CHARACTER.search(text):
        return 0
    if any(unicodedata.category(character) in _NO_CHARACTERS for character in set(text)):
        return 0
    pairs = sum(_is_two_letters(found[0]) for found in _TWO_LETTERS.finditer(text))
    if pairs > len(text) * _MAX_TWO_LETTER_SHARE:
        return 0
    return len(text.encode("ascii", "ignore"))


def _is_two_letters(character: str) -> bool:
    return all(0x20 <= half < 0x7F for half in divmod(ord(character), 256))


def _decode_marked(data: bytes, encoding: str) -> DecodedText | None:
    content = data.decode(encoding, "replace")
    bad = content.count("\ufffd")
    if bad > len(content) * _MAX_BAD_SHARE + 1:
        return None
    return DecodedText(content, encoding, _lost(bad, encoding))


def _decode_damaged(data: bytes, encoding: str, charset: str | None) -> DecodedText | None:
    if data.startswith(_MAGIC):
        return None
    declared = declared_encoding(data[:SNIFF_BYTES], charset)
    decoded = _strict(data, declared) if declared is not None else None
    if decoded is not None:
        return decoded
    decoded = _decode_surrogates(data) or _decode_few_bad(data, encoding)
    if decoded is not None:
        return decoded
    if _looks_like_machine_data(data[:SNIFF_BYTES]):
        return None
    guessed = guess_encoding(data)
    for name in (guessed, "cp1252"):
        decoded = _strict(data, name) if name is not None else None
        if decoded is not None:
            warning = f"not UTF-8; read as {name}, which is a guess"
            return DecodedText(decoded.content, decoded.encoding, warning)
    if guessed is not None:
        content = data.decode(guessed, "replace")
        bad = content.count("\ufffd")
        if bad <= len(content) * _MAX_BAD_SHARE:
            warning = f"not UTF-8; read as {guessed}, which is a guess; {_lost(bad, guessed)}"
            return DecodedText(content, guessed, warning)
    warning = "not UTF-8; read as latin-1, which is a guess"
    return DecodedText(data.decode("latin-1"), "latin-1", warning)


def _decode_surrogates(data: bytes) -> DecodedText | None:
    """Read UTF-8 that wrote UTF-16's surrogates one by one, as Java and Oracle do (CESU-8)."""
    try:
        halves = data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return None
    content = halves.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    bad = content.count("\ufffd") - halves.count("\ufffd")
    return DecodedText(content, "utf-8", _lost(bad, "utf-8") if bad else None)


def _decode_few_bad(data: bytes, encoding: str) -> DecodedText | None:
    content = data.decode(encoding, "replace")
    bad = content.count("\ufffd") - data.count("\ufffd".encode())
    beyond_ascii = len(content) - len(content.encode("ascii", "ignore"))
    good = beyond_ascii - content.count("\ufffd")
    few = bad < len(data) * _MAX_BAD_SHARE and good >= bad
    if few or encoding == "utf-8-sig" or good >= bad * _GOOD_FOR_ONE_BAD:
        return DecodedText(content, encoding, _lost(bad, "utf-8"))
    return None


def _strict(data: bytes, encoding: str) -> DecodedText | None:
    try:
        return DecodedText(data.decode(encoding), encoding)
    except UnicodeDecodeError:
        return None


def _lost(bad: int, encoding: str) -> str:
    return f"{bad} bad {encoding} sequence{'s' * (bad != 1)} replaced by U+FFFD"


def _looks_like_machine_data(head: bytes) -> bool:
    return len(head) - len(head.translate(None, _CONTROLS)) > len(head) * _MAX_BAD_SHARE

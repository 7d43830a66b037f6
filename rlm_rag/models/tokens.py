"""How many tokens a text is, estimated without a tokenizer or a network."""

from __future__ import annotations

import math
import re
import string
import unicodedata
from collections.abc import Iterable, Sequence

from rlm_rag.models.base import Message

# Tokens a character of a class (a byte, where not ASCII), fitted to cl100k and o200k on Python,
# Markdown, JSON, CSV and nine languages so as to lie above the true count rather than below.
_PER_LETTER = 1 / 4.2
_PER_CAPITAL = 1 / 3.2
_PER_DIGIT = 0.7
_PER_PUNCTUATION = 0.65
_PER_OTHER_BYTE = 0.5
# Characters in a row that no language has words of: base64 (0.72 tokens a character with cl100k,
# 0.77 with Mistral's Tekken), hexadecimal (0.57), random letters (0.54).
_DENSE = re.compile(rb"[A-Za-z0-9+/]{32,}")
_PER_DENSE = 0.8
# Most texts have none, which is seen in a tenth of the time that the pattern takes.
_DENSE_BYTES = f"{string.ascii_letters}{string.digits}+/".encode()
_IS_DENSE = bytes(byte in _DENSE_BYTES for byte in range(256))
_LEAST_DENSE = b"\x01" * 32
# Bytes of scripts that cl100k, o200k, DeepSeek's or Claude's tokenizer makes more of than
# `_PER_OTHER_BYTE`: what each character costs besides, by its first byte. Measured on random
# letters of each script; Cyrillic, Chinese, Japanese and Korean prose stays below it anyhow.
_COSTLIER = (
    (0.5, bytes({*range(0xC2, 0xD0), 0xD2, 0xD3, *range(0xD7, 0xE0)})),
    (1.0, bytes(range(0xD4, 0xD7))),
    (0.6, b"\xe0"),
    (1.0, b"\xe2"),
    (1.5, b"\xe1\xee\xef"),
    (2.0, bytes(range(0xF0, 0xF5))),
)
# Dashes, quotes and spaces of prose, mostly one token each.
_PUNCTUATION_OF_PROSE = b"\xe2\x80"
# What chat formats put around each message, and before the reply (OpenAI's cookbook: 3 and 3).
_PER_MESSAGE = 4
_PER_PROMPT = 3
IMAGE_TOKENS = 1600
"""What an image is shrunk to costs at most about so much at Anthropic until Opus 4.6 and, in high
detail, with gpt-4o (1,445 for 2048 x 768). What it costs at most anywhere: `image_tokens`."""

_CAPITALS = string.ascii_uppercase.encode()
_DIGITS = string.digits.encode()
_PUNCTUATION = string.punctuation.encode()
_LETTERS = string.ascii_letters.encode()
_NOT_LETTERS = bytes(set(range(256)).difference(_LETTERS))
_NOT_DIGITS = bytes(set(range(256)).difference(_DIGITS))
_WORDS = bytes.maketrans(_NOT_LETTERS, b" " * len(_NOT_LETTERS))
_NUMBERS = bytes.maketrans(_NOT_DIGITS, b" " * len(_NOT_DIGITS))


def count_tokens(text: str) -> int:
    """An estimate of `text` in tokens, meant to be too high rather than too low.

    Against cl100k and o200k: 1.1 to 1.25 of the true count for source code, prose and JSON,
    1.2 to 2.2 for Chinese, Japanese and Korean, up to 4 for other scripts with o200k; 0.8 for
    hexadecimal and 0.5 for base64, where it is too low: `count_message_tokens` adds that. About
    200 MB/s.
    """
    data = text.encode("utf-8", "surrogatepass")
    ascii_only = text.encode("ascii", "ignore")
    capitals = len(ascii_only) - len(ascii_only.translate(None, _CAPITALS))
    digits = len(ascii_only) - len(ascii_only.translate(None, _DIGITS))
    punctuation = len(ascii_only) - len(ascii_only.translate(None, _PUNCTUATION))
    letters = len(ascii_only) - capitals - digits - punctuation
    return math.ceil(
        letters * _PER_LETTER
        + capitals * _PER_CAPITAL
        + digits * _PER_DIGIT
        + punctuation * _PER_PUNCTUATION
        + (len(data) - len(ascii_only)) * _PER_OTHER_BYTE
    )


def count_message_tokens(messages: Iterable[Message]) -> int:
    """An estimate of a chat prompt in tokens, what stands around its messages included.

    Calls are admitted by it, so that base64 and its like, minified code and costly scripts are
    counted in full too, at 30 to 70 MB/s. It is no bound: the true count of cl100k, o200k,
    DeepSeek's and an older tokenizer of Claude's is up to 1.1 times as high for French and random
    ASCII, 1.3 for dumps of bytes, 1.5 for single digits between spaces, 1.7 for random Chinese
    characters and Korean syllables, 2 for squared units, 5 for ligatures that NFKC takes apart.
    """
    prompt = tuple(messages)
    return framing_tokens(prompt) + sum(
        max(count_tokens(m.content) + _uncounted(m.content), _pieces(m.content)) for m in prompt
    )


def most_message_tokens(messages: Iterable[Message]) -> int:
    """The most tokens that a byte-level tokenizer makes of a chat prompt: one for each byte.

    Some put a text into NFKC before, an older one of Claude's and SentencePiece's among them, of
    which one character may become eighteen: the bytes of that count where they are more.
    """
    prompt = tuple(messages)
    return framing_tokens(prompt) + sum(_most_bytes(message.content) for message in prompt)


def _most_bytes(text: str) -> int:
    most = len(text.encode("utf-8", "surrogatepass"))
    if text.isascii() or unicodedata.is_normalized("NFKC", text):
        return most
    return max(most, len(unicodedata.normalize("NFKC", text).encode("utf-8", "surrogatepass")))


def framing_tokens(messages: Sequence[Message]) -> int:
    """What a chat prompt has beside its texts: what stands around its messages, and images."""
    return _PER_PROMPT + sum(_PER_MESSAGE + IMAGE_TOKENS * len(m.images) for m in messages)


def _uncounted(text: str) -> int:
    """What `count_tokens` leaves out of characters in a row that are no words, and of scripts."""
    data = text.encode("utf-8", "surrogatepass")
    return _dense(data) + (0 if text.isascii() else math.ceil(_scripts(data)))


def _dense(data: bytes) -> int:
    if _LEAST_DENSE not in data.translate(_IS_DENSE):
        return 0
    return sum(
        max(0, math.ceil(len(run) * _PER_DENSE) - count_tokens(run.decode()))
        for run in _DENSE.findall(data)
    )


def _scripts(data: bytes) -> float:
    more = sum(rate * (len(data) - len(data.translate(None, first))) for rate, first in _COSTLIER)
    return more - data.count(_PUNCTUATION_OF_PROSE)


def _pieces(text: str) -> int:
    """How often an ASCII text changes between words, numbers, signs and lines.

    Few tokenizers join those: this counts short words between signs, as in minified code, which
    an average for each letter does not.
    """
    data = text.encode("ascii", "ignore")
    signs = len(data) - len(data.translate(None, _PUNCTUATION))
    digits = len(data) - len(data.translate(None, _DIGITS))
    words = len(data.translate(_WORDS).split())
    numbers = len(data.translate(_NUMBERS).split()) + digits // 3
    return words + numbers + signs + data.count(b"\n") + data.count(b"\t")

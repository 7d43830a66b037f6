"""Subtitles and transcripts (SRT, WebVTT): one line a cue, `[00:01:02] text`."""

from __future__ import annotations

import re
from html import unescape

from rlm_rag.loaders.parsing.markdown import one_line
from rlm_rag.loaders.parsing.parts import ParsedDocument, Parts, as_written, decoded_text

_TIMES = re.compile(
    r"^[ \t]*(?:(\d{1,3}):)?(\d{1,2}):(\d{2})[.,](\d{1,3})[ \t]*-->[ \t]*"
    r"(?:\d{1,3}:)?\d{1,2}:\d{2}[.,]\d{1,3}[^\n]*$",
    re.MULTILINE,
)
_VOICE = re.compile(r"<v(?:\.[^ >]{0,100})?[ \t]+([^>\n]{1,200})>")
_TAG = re.compile(r"</?[a-zA-Z][^<>\n]{0,200}>|<\d[\d:.]{0,20}>|\{\\[^{}\n]{0,100}\}")


def parse(data: bytes) -> ParsedDocument:
    """Read the cues with the times at which they start; what has no times stays as it is.

    Raises:
        DocumentError: its bytes are no text.
    """
    decoded = decoded_text(data)
    text = decoded.content.replace("\r\n", "\n").replace("\r", "\n")
    found = list(_TIMES.finditer(text))
    if not found:
        return as_written(decoded)
    parts = Parts()
    if decoded.warning is not None:
        parts.warn(decoded.warning)
    lines: list[str] = []
    for at, match in enumerate(found):
        end = found[at + 1].start() if at + 1 < len(found) else len(text)
        body = text[match.end() : end]
        # A cue ends at a blank line; what follows is the next one's number or name, or a note.
        cue = _shown(body.lstrip("\n").partition("\n\n")[0])
        if cue:
            hours, minutes, seconds = (int(group or 0) for group in match.groups()[:3])
            lines.append(f"[{hours:02d}:{minutes:02d}:{seconds:02d}] {cue}")
    parts.add("", "\n".join(lines))
    return parts.done()


def _shown(body: str) -> str:
    spoken = _VOICE.sub(r"\1: ", body)
    return one_line(unescape(_TAG.sub("", spoken)))

"""A corpus to JSON Lines, from which `load` makes the same corpus again."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Protocol

from rlm_rag.corpus import Document

_SURROGATE_PAIR = re.compile("(?<=[\ud800-\udbff])(?=[\udc00-\udfff])")


class TextSink(Protocol):
    def write(self, text: str, /) -> object: ...


def write_jsonl(documents: Iterable[Document], sink: TextSink) -> int:
    """Write one ASCII JSON object a line, and return how many.

    Each holds `path`, `content` and, where the document had one, `encoding`. Nothing is lost:
    line ends, NUL and lone surrogates come back as they are.
    """
    written = 0
    for document in documents:
        record = {"path": _value(document.path), "content": _value(document.content)}
        if document.encoding is not None:
            record["encoding"] = document.encoding
        sink.write(json.dumps(record) + "\n")
        written += 1
    return written


def _value(text: str) -> str | list[str]:
    # Two surrogates side by side would be read back as the one character that they encode.
    pieces = _SURROGATE_PAIR.split(text)
    return text if len(pieces) == 1 else pieces

"""Which documents are likely to define a name, told without reading them whole."""

from __future__ import annotations

import re

from rlm_rag.indexes.definitions import definition_at, scannable
from rlm_rag.indexes.languages import language_of

_WORD = rb"[\w\x80-\xff]"
# Of a document in no known language: a line of nothing else, or a key or label.
_ALONE = rb"\n[^\w\n\x80-\xff]{0,80}(?:%s)(?:[^\w\n\x80-\xff]{0,80}(?=\n|\Z)|[\"'` \t]{0,9}[:={(])"


class Likely:
    """Tells documents by one name; `case` is 0, or `re.IGNORECASE`."""

    def __init__(self, name: str, case: int) -> None:
        encoded = name.encode("utf-8", "surrogatepass")
        escaped = re.escape(encoded)
        before = rb"(?<!%s)" % _WORD if re.match(_WORD, encoded) else b""
        after = rb"(?!%s)" % _WORD if re.match(_WORD, encoded[-1:]) else b""
        self._word = re.compile(before + escaped + after, case)
        self._anywhere = re.compile(escaped, case)
        self._alone = re.compile(_ALONE % escaped, case)

    def occurs(self, path: str, data: bytes) -> bool:
        """Whether the name stands in a document at all; in source code, as a word."""
        found = self._word if language_of(path, data) else self._anywhere
        return found.search(data) is not None

    def is_defined(self, path: str, data: bytes) -> bool:
        """Whether a line looks as if it defined the name, strings and comments not masked.

        What looks so may be none, and a form that the lexical scan does not know is not seen.
        """
        text = scannable(data)
        language = language_of(path, data)
        if language is None:
            return self._alone.search(text) is not None
        at = 0
        while found := self._word.search(text, at):
            line_feed = text.rfind(b"\n", 0, found.start())
            match = definition_at(text, line_feed, language)
            if match is not None and self._word.fullmatch(match.name.rpartition(b".")[2]):
                return True
            # The next line: a line defines one name.
            at = text.find(b"\n", found.end())
            if at < 0:
                return False
        return False

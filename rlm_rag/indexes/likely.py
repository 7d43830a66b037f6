"""Which documents are likely to define a name, told without reading them whole."""

from __future__ import annotations

import re
from collections.abc import Mapping

from rlm_rag.indexes.atomic import compiled
from rlm_rag.indexes.definitions import definition_at, heading_markup, scannable
from rlm_rag.indexes.grammars import grammar_of
from rlm_rag.indexes.languages import language_of

_WORD = rb"[\w\x80-\xff]"
# Behind which, by grammar, stands what is defined elsewhere.
_ELSEWHERE: Mapping[str, tuple[bytes, ...]] = {
    **dict.fromkeys(("python", "java", "rust"), (b".",)),
    **dict.fromkeys(("c", "cpp"), (b".", b"->")),
    "php": (b"->", b"::"),
}
# In scripts so does what stands behind a dot, unless it is set, or ends a name in quotes.
_SCRIPTS = frozenset(("javascript", "typescript", "tsx"))
_SET = rb"(?=\s*+(?:=(?!=)|[/\"'`]))"
# In Python a name is defined behind one of three words, or before what it is set to, alone or as
# one of several. What a grammar passes over may stand between.
_BLANK = rb"[\s\\\x80-\xff]"
_BEFORE = compiled(rb"\b(?:def|class|type)(?:%s|#[^\n]*+\n)++\Z" % _BLANK)
_BEHIND = compiled(rb"%s{0,200}+(?:=(?!=)|:(?!=)|%s|(,))" % (_BLANK, _BLANK))
_BEFORE_BYTES = 200
# Of a longer line it is not told what a comma parts.
_LINE_BYTES = 2000
# What else than words stands in the line of a title.
_MARKS = bytes(byte for byte in range(256) if not re.match(rb"[\w\r\n]", bytes((byte,))))
_MARKS_TO_END = re.compile(rb"[^\w\r\n]*+(?:[\r\n]|\Z)")
# Of a document in no known language: a line of nothing else, or a key or label.
_ALONE = rb"\n[^\w\n\x80-\xff]{0,80}(?:%s)(?:[^\w\n\x80-\xff]{0,80}(?=\n|\Z)|[\"'` \t]{0,9}[:={(])"


class Likely:
    """Tells documents by one name; `case` is 0, or `re.IGNORECASE`."""

    def __init__(self, name: str, case: int) -> None:
        encoded = name.encode("utf-8", "surrogatepass")
        escaped = re.escape(encoded)
        # The name comes first in each pattern: so it is found fast.
        before = rb"(?<!%s%s)" % (_WORD, escaped) if re.match(_WORD, encoded) else b""
        after = rb"(?!%s)" % _WORD if re.match(_WORD, encoded[-1:]) else b""
        self._escaped, self._case = escaped, case
        self._written_word = escaped + before + after
        self._word = re.compile(self._written_word, case)
        self._own: dict[str, re.Pattern[bytes]] = {}
        self._anywhere = re.compile(escaped, case)
        self._alone = re.compile(_ALONE % escaped, case)

    def occurs(self, path: str, data: bytes) -> bool:
        """Whether the name stands in a document at all; in source code, as a word."""
        found = self._word if language_of(path, data) else self._anywhere
        return found.search(data) is not None

    def may_be_defined(self, path: str, data: bytes) -> bool:
        """Whether a definition of the name could be found in a document.

        What its places look like tells in some languages that none could.
        """
        grammar = grammar_of(path, data)
        name = grammar.name if grammar else ""
        if grammar is None and heading_markup(path, data) is not None:
            return any(map(_is_alone, self._anywhere.finditer(data)))
        if name not in _ELSEWHERE and name not in _SCRIPTS:
            return self.occurs(path, data)
        found = self._own_words(name).finditer(data)
        if name == "python":
            return any(_may_be_python(data, one.start(), one.end()) for one in found)
        return next(found, None) is not None

    def _own_words(self, language: str) -> re.Pattern[bytes]:
        """Return what finds the name where it is not plain that it is defined elsewhere."""
        known = self._own.get(language)
        if known is None:
            marks = map(re.escape, _ELSEWHERE.get(language, (b".",)))
            behind = b"".join(rb"(?<!%s%s)" % (mark, self._escaped) for mark in marks)
            if language in _SCRIPTS:
                behind = rb"(?:%s|%s)" % (behind, _SET)
            known = re.compile(self._written_word + behind, self._case)
            self._own[language] = known
        return known

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


def _is_alone(found: re.Match[bytes]) -> bool:
    """Whether nothing but marks stands beside a name in its line, as in a title that it is."""
    data, start = found.string, found.start()
    before = data[max(0, start - _BEFORE_BYTES) : start].rstrip(_MARKS)
    is_first = before[-1:] in (b"\n", b"\r", b"")
    return is_first and _MARKS_TO_END.match(data, found.end()) is not None


def _may_be_python(data: bytes, start: int, end: int) -> bool:
    """Whether what stands between two offsets of a text in Python may be a name defined there."""
    behind = _BEHIND.match(data, end)
    if behind is None:
        return _BEFORE.search(data, max(0, start - _BEFORE_BYTES), start) is not None
    if not behind[1]:
        return True
    # A comma: one of several that are set, and no argument of a call.
    _, _, before = data[max(0, start - _LINE_BYTES) : start].rpartition(b"\n")
    rest, _, _ = data[end : end + _LINE_BYTES].partition(b"\n")
    if _LINE_BYTES in (len(before), len(rest)):
        return True
    is_set = b"=" in rest or rest.rstrip().endswith(b"\\")
    return is_set and before.count(b"(") <= before.count(b")")

"""Find an answer that a model wrote as `FINAL(...)` or `FINAL_VAR(...)` in plain text."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

_CALL = re.compile(r"^[ \t>]*[*`_]*(?P<name>FINAL_VAR|FINAL)\(", re.MULTILINE)
_LITERAL = re.compile(
    r"\s*(?P<literal>[rRuU]?(?:\"\"\".*?\"\"\"|'''.*?'''"
    r"|\"[^\"\\]*+(?>(?:\\.[^\"\\]*+)*)\"|'[^'\\]*+(?>(?:\\.[^'\\]*+)*)'))\s*,?\s*\)",
    re.DOTALL,
)
# Parentheses count, but not those of a list's markers, of quotations or of code spans. An
# apostrophe inside a word opens no quotation.
_TOKEN = re.compile(
    r"(?P<skip>^[ \t]*(?:\d{1,3}|[A-Za-z])\)"
    r"|(?<!\w)\"[^\"\n]*\"|(?<!\w)'[^'\n]*'(?!\w)|`[^`\n]*`)"
    r"|(?P<open>\()|(?P<close>\))",
    re.MULTILINE,
)
_ENDS_THERE = re.compile(
    r"[\s.,;!?*_`\"')\]}>]*(?:$|(?<=[\s.!?])[^\W\d_a-z]|(?<=\s)[-–—]\s)", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class FinalText:
    """`name` is FINAL or FINAL_VAR, `content` what stood in its parentheses, unwrapped."""

    name: str
    content: str
    line: int


def find_final(text: str) -> FinalText | None:
    """The first answer written at the start of a line, to its balancing parenthesis.

    Where no parenthesis balances, the answer goes to the end of the text. A mention whose
    sentence goes on after the parenthesis, and an empty one, is no answer.
    """
    for match in _CALL.finditer(text):
        content = _content(text, match.end())
        if content is not None and content.strip():
            line = text.count("\n", 0, match.start("name")) + 1
            name = match["name"]
            if name == "FINAL_VAR":
                content = content.strip().strip("\"'`").strip()
            return FinalText(name, content, line)
    return None


def mentions_final(text: str) -> int | None:
    """The 1-based line of the first `FINAL(` or `FINAL_VAR(` that starts a line, if any."""
    match = _CALL.search(text)
    return None if match is None else text.count("\n", 0, match.start("name")) + 1


def _content(text: str, start: int) -> str | None:
    literal = _LITERAL.match(text, start)
    if literal is not None and _ENDS_THERE.match(text, literal.end()):
        return _unwrapped(literal["literal"])
    depth = 1
    last_line_end = -1
    for token in _TOKEN.finditer(text, start):
        if token["skip"] is not None:
            continue
        if 0 <= last_line_end < token.start():
            return None
        depth += 1 if token["open"] else -1
        if depth == 0:
            if _ENDS_THERE.match(text, token.end()):
                return text[start : token.start()].strip()
            # Prose goes on: either this is only a mention, or the parenthesis was a stray one.
            depth = 1
            if last_line_end < 0:
                newline = text.find("\n", token.end())
                last_line_end = len(text) if newline < 0 else newline
    return None if last_line_end >= 0 else text[start:].strip()


def _unwrapped(literal: str) -> str:
    try:
        value = ast.literal_eval(literal)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        value = literal.lstrip("rRuU")[1:-1]
    return value if isinstance(value, str) else literal

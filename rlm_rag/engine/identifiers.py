"""The identifiers that a question names, and the lines of Python that look it up."""

from __future__ import annotations

import re

from rlm_rag.engine.guidance import MAX_QUESTION_CHARS
from rlm_rag.engine.named_files import MOST_NAMES

NAME = re.compile(r"[A-Za-z_]\w*(?:\.\w+)*", re.ASCII)

_QUOTED = re.compile(r"`([^`\n]{2,100})`|\"([^\"\n]{3,100})\"|“([^”\n]{3,100})”")
_IDENTIFIER = re.compile(
    r"(?<![\w.])(?:[A-Za-z_]\w*(?=\()|[A-Za-z]\w*_\w+|_\w+|[a-z]+[A-Z]\w*"
    r"|(?:[A-Z][a-z0-9]+){2,}|[A-Z][A-Z0-9]*_[A-Z0-9_]+)",
    re.ASCII,
)


def named_in(question: str) -> tuple[list[str], list[str]]:
    """Return the identifiers that a question names, and the words it quotes that are none."""
    quoted = [next(filter(None, found.groups())) for found in _QUOTED.finditer(question)]
    plain = [words.strip().rstrip("()") for words in quoted]
    names = [words for words in plain if NAME.fullmatch(words)]
    names += _IDENTIFIER.findall(_QUOTED.sub(" ", question))
    others = [words for words in plain if not NAME.fullmatch(words)]
    return list(dict.fromkeys(names))[:MOST_NAMES], list(dict.fromkeys(others))[:MOST_NAMES]


def looking_up(question: str) -> str:
    """Return lines that print where the names of a question are defined, else what is found for it.

    They bind no name that a small model gave to something, but `s` and `h`.
    """
    asked = question[:MAX_QUESTION_CHARS]
    searching = f'for h in search({asked!r}, k=3):\n    print(h["path"], h["line"], h["snippet"])'
    names, _ = named_in(question)
    if not names:
        return searching
    inner = searching.replace("\n", "\n    ")
    return (
        f"_defined = [s for name in {names!r} for s in symbols(name)[:4]]\n"
        'for s in _defined:\n    print(s["path"], s["line"], s["signature"])\n'
        f"if not _defined:\n    {inner}"
    )

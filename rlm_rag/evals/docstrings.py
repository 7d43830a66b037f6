"""Documented Python functions, and sources without the docstrings that would give them away."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

_SENTENCE = re.compile(r"(?s)(.+?)(?:[.!?](?=\s|$)|\n\s*\n|$)")
_LEAST_WORDS = 5
_LEAST_BODY_LINES = 3


@dataclass(frozen=True, slots=True)
class Documented:
    """A function with the first sentence of its docstring.

    `def_line` is the line of its `def`; `first_line` to `last_line` are those of the docstring.
    `code` is the function without it, from its `def` on.
    """

    path: str
    name: str
    def_line: int
    first_line: int
    last_line: int
    sentence: str
    code: str

    @property
    def label(self) -> str:
        return f"{self.path}:{self.name}:{self.def_line}"


def documented_functions(documents: Iterable[tuple[str, str]]) -> list[Documented]:
    """Return the functions of Python documents whose docstring begins with a sentence.

    Of five words at least, with three lines of body after it.
    """
    return [
        function
        for path, source in documents
        if path.endswith(".py")
        for function in _of_source(path, source)
    ]


def _of_source(path: str, source: str) -> Iterator[Documented]:
    # Line ends as `ast` counts them.
    source = source.replace("\r\n", "\n").replace("\r", "\n")
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    lines = source.split("\n")
    for node in ast.walk(tree):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        text, statement = ast.get_docstring(node), node.body[0]
        last = node.end_lineno or 0
        if text is None or statement.end_lineno is None or statement.lineno == node.lineno:
            continue
        if last - statement.end_lineno < _LEAST_BODY_LINES:
            continue
        found = _SENTENCE.match(text.strip())
        sentence = " ".join(found[1].split()) if found else ""
        if len(sentence.split()) < _LEAST_WORDS:
            continue
        code = [*lines[node.lineno - 1 : statement.lineno - 1], *lines[statement.end_lineno : last]]
        yield Documented(
            path,
            node.name,
            node.lineno,
            statement.lineno,
            statement.end_lineno,
            sentence,
            "\n".join(code),
        )


def without_docstrings(
    documents: Iterable[tuple[str, str]], functions: Sequence[Documented]
) -> Iterator[tuple[str, str]]:
    """Yield the documents without the docstrings of these functions."""
    of_path: dict[str, list[Documented]] = defaultdict(list)
    for function in functions:
        of_path[function.path].append(function)
    for path, source in documents:
        if path not in of_path:
            yield path, source
            continue
        lines = source.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        for function in sorted(of_path[path], key=lambda one: -one.first_line):
            del lines[function.first_line - 1 : function.last_line]
        yield path, "\n".join(lines)

"""Documented functions, and sources without the documentation that would give them away."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rlm_rag.indexes.grammars import Grammar, grammar_of
from rlm_rag.indexes.parsers import Parsers
from rlm_rag.indexes.signatures import comment_rows, comment_text
from rlm_rag.indexes.skeleton import Definition

_SENTENCE = re.compile(r"(?s)(.+?)(?:[.!?](?=\s|$)|\n\s*(?:\n|[@\\:])|$)")
_LEAST_WORDS = 5
_LEAST_BODY_LINES = 3
_FUNCTIONS = ("function", "method")


@dataclass(frozen=True, slots=True)
class Documented:
    """A function with the first sentence of its documentation.

    `def_line` is the line that names it; `first_line` to `last_line` are those of the docstring,
    or of the comment above. `code` is the function without it, from `def_line` on.
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
    """Return the functions whose documentation begins with a sentence, in the documents' order.

    Of five words at least, with three lines of body. Of Python by its docstring, of all other
    languages that a grammar reads by the comment above it.
    """
    given = [(path, _with_line_feeds(source)) for path, source in documents]
    found = {path: list(_of_python(path, text)) for path, text in given if path.endswith(".py")}
    sources = dict(given)
    parsers = Parsers()
    try:
        for (path, grammar), parsed in parsers.parse(_parsable(given)):
            found[path] = list(_of_definitions(path, sources[path], grammar, parsed.definitions))
    finally:
        parsers.close()
    return [function for path, _ in given for function in found.get(path, ())]


def _with_line_feeds(source: str) -> str:
    return source.replace("\r\n", "\n").replace("\r", "\n")


def _parsable(
    documents: Iterable[tuple[str, str]],
) -> Iterator[tuple[tuple[str, Grammar], Grammar, bytes]]:
    for path, text in documents:
        data = text.encode("utf-8", "replace")
        grammar = grammar_of(path, data)
        if grammar is not None and not grammar.inside:
            yield (path, grammar), grammar, data


def _of_definitions(
    path: str, source: str, grammar: Grammar, definitions: Iterable[Definition]
) -> Iterator[Documented]:
    lines = source.split("\n")
    encoded = [line.encode("utf-8", "replace") for line in lines]
    for one in definitions:
        if one.kind not in _FUNCTIONS or one.end_line - one.line < _LEAST_BODY_LINES:
            continue
        first, behind = comment_rows(encoded, one.line - 1, grammar.comment)
        sentence = _sentence(comment_text(encoded[first:behind]))
        if sentence is not None:
            code = "\n".join(lines[one.line - 1 : one.end_line])
            yield Documented(path, one.name, one.line, first + 1, behind, sentence, code)


def _sentence(text: str) -> str | None:
    """Return the first sentence of a documentation; None where it says too little."""
    found = _SENTENCE.match(text.strip())
    words = found[1].split() if found else []
    return " ".join(words) if len(words) >= _LEAST_WORDS else None


def _of_python(path: str, source: str) -> Iterator[Documented]:
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
        sentence = _sentence(text)
        if sentence is None:
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
    """Yield the documents without the documentation of these functions."""
    of_path: dict[str, list[Documented]] = defaultdict(list)
    for function in functions:
        of_path[function.path].append(function)
    for path, source in documents:
        if path not in of_path:
            yield path, source
            continue
        lines = _with_line_feeds(source).split("\n")
        for function in sorted(of_path[path], key=lambda one: -one.first_line):
            del lines[function.first_line - 1 : function.last_line]
        yield path, "\n".join(lines)

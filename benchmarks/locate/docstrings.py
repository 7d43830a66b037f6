"""A docstring's first sentence -> its function, the docstring being taken out of the source."""

from __future__ import annotations

import ast
import random
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.locate.questions import MAX_FILE_BYTES, Question, QuestionSet
from benchmarks.locate.tests_of import is_test

_SENTENCE = re.compile(r"(?s)(.+?)(?:[.!?](?=\s|$)|\n\s*\n|$)")
_LEFT_OUT = ("site-packages", "dist-packages", "__pycache__", "idlelib", "lib2to3")
_LEAST_WORDS = 5
_LEAST_BODY_LINES = 3


@dataclass(frozen=True, slots=True)
class _Documented:
    path: str
    name: str
    def_line: int
    first_line: int
    last_line: int
    sentence: str


def docstring_set(folder: Path, *, group: str, count: int, seed: int = 0) -> QuestionSet:
    """Choose `count` documented functions of the Python files of a folder, tests left out."""
    sources = dict(_sources(folder))
    functions = [
        function
        for path, source in sources.items()
        if not is_test(path)
        for function in _documented(path, source)
    ]
    chosen = random.Random(seed).sample(functions, min(count, len(functions)))
    of_file: dict[str, list[_Documented]] = defaultdict(list)
    for function in chosen:
        of_file[function.path].append(function)
    questions: list[Question] = []
    for path, documented in of_file.items():
        sources[path] = _without(sources[path], documented)
        for function in documented:
            line = function.def_line - sum(
                other.last_line - other.first_line + 1
                for other in documented
                if other.first_line < function.def_line
            )
            questions.append(
                Question(
                    f"{path}:{function.name}:{line}",
                    function.sentence,
                    frozenset((path,)),
                    line=line,
                    gold_line=line,
                )
            )
    return QuestionSet("docstrings", group, list(sources.items()), questions)


def _sources(folder: Path) -> Iterator[tuple[str, str]]:
    for file in sorted(folder.rglob("*.py")):
        path = file.relative_to(folder)
        if any(part in _LEFT_OUT for part in path.parts) or file.stat().st_size > MAX_FILE_BYTES:
            continue
        try:
            # Line ends as `ast` counts them.
            yield path.as_posix(), file.read_text("utf-8")
        except UnicodeDecodeError:
            continue


def _documented(path: str, source: str) -> Iterator[_Documented]:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return
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
        if len(sentence.split()) >= _LEAST_WORDS:
            yield _Documented(
                path, node.name, node.lineno, statement.lineno, statement.end_lineno, sentence
            )


def _without(source: str, documented: list[_Documented]) -> str:
    lines = source.split("\n")
    for function in sorted(documented, key=lambda one: -one.first_line):
        del lines[function.first_line - 1 : function.last_line]
    return "\n".join(lines)

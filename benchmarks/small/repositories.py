"""Questions of repositories: where a name is defined, which file does something, constants, tests.

What is right is read off the syntax tree, and kept only where the plain text says the same.
"""

from __future__ import annotations

import ast
import re
import warnings
import zlib
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, NamedTuple

from benchmarks.small.questions import Place, Question, places, rng_of
from benchmarks.small.sources import Files, repository

GROUP = "repositories"
KINDS = ("defined", "purpose", "constant", "tests")
_CORPORA = {
    "defined": ("json", "asyncio", "click", "networkx", "stdlib"),
    "purpose": ("asyncio", "click", "networkx", "stdlib", "json"),
    "constant": ("stdlib", "asyncio", "click", "stdlib", "networkx"),
    "tests": ("click", "networkx", "stdlib", "click", "networkx"),
}
_PATH = "Give the path of the file."
_SENTENCE_WORDS = range(7, 31)
_TESTS = range(3, 61)
_TRIED = 3
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class _Found(NamedTuple):
    name: str
    text: str
    gold: dict[str, Any]


def repository_questions(
    seed: int, count: int, read: Callable[[str], Files] = repository
) -> Iterator[Question]:
    """Yield `count` questions; those of seeds whose parity differs have no name in common.

    Raises:
        RuntimeError: a distribution is neither kept nor to be fetched.
    """
    asked: set[str] = set()
    for place in places(KINDS, "01234", count):
        yield _draw(place, seed, read, asked)


def _draw(place: Place, seed: int, read: Callable[[str], Files], asked: set[str]) -> Question:
    row = _CORPORA[place.kind]
    # Where one has nothing left that was not asked, the next has.
    names = [row[int(place.corpus)], *dict.fromkeys(row)]
    for name in names:
        rng = rng_of(GROUP, seed, f"{place.number}/{name}")
        for found in _candidates(place.kind, read(name), rng):
            if found.name not in asked and zlib.crc32(found.name.encode()) % 2 == seed % 2:
                asked.add(found.name)
                return Question(kind=place.kind, corpus=name, text=found.text, gold=found.gold)
    raise RuntimeError(f"none of {', '.join(names)} has a {place.kind} that was not asked yet")


def _candidates(kind: str, files: Files, rng: Random) -> Iterator[_Found]:
    """Yield what can be asked, from files in random order, at most three of each."""
    is_wanted = _is_tests if kind == "tests" else _is_code
    chosen = [(path, text) for path, text in files if is_wanted(path)]
    rng.shuffle(chosen)
    for path, text in chosen:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                tree = ast.parse(text)
            except (SyntaxError, ValueError):
                # Files that test the parser are in the library too.
                continue
        found = list(_FINDERS[kind](path, text, tree))
        rng.shuffle(found)
        yield from (each for each in found[:_TRIED] if _is_sure(kind, each, files))


def _is_tests(path: str) -> bool:
    return path.rpartition("/")[2].startswith("test_") and path.endswith(".py")


def _is_code(path: str) -> bool:
    return path.endswith(".py") and not re.search(r"(^|/)(tests?|doc|docs|examples)/", path)


def _defined(path: str, _text: str, tree: ast.Module) -> Iterator[_Found]:
    for node in tree.body:
        if isinstance(node, _DEFINITIONS) and len(node.name) > 5 and node.name[0] != "_":
            question = f"In which file is the {_word(node)} {node.name} defined? {_PATH}"
            yield _Found(node.name, question, {"path": path})


def _purpose(path: str, _text: str, tree: ast.Module) -> Iterator[_Found]:
    for node in tree.body:
        if not isinstance(node, _DEFINITIONS):
            continue
        line = (ast.get_docstring(node) or "").partition("\n")[0].strip()
        is_whole = line.endswith(".") and len(line.split()) in _SENTENCE_WORDS
        if is_whole and node.name.casefold() not in line.casefold():
            question = f"Which file has the {_word(node)} that is described so: {line} {_PATH}"
            yield _Found(line, question, {"path": path})


def _constant(path: str, _text: str, tree: ast.Module) -> Iterator[_Found]:
    for node in tree.body:
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Constant):
            continue
        target, value = node.targets[0], node.value.value
        if len(node.targets) > 1 or not isinstance(target, ast.Name) or len(target.id) < 5:
            continue
        if not re.fullmatch(r"[A-Z][A-Z0-9_]+", target.id):
            continue
        question = f"What is the value of the constant {target.id}?"
        if type(value) is int:
            yield _Found(target.id, question, {"number": value})
        elif isinstance(value, str) and re.fullmatch(r"[\w.:/%-]{3,40}", value):
            yield _Found(target.id, question, {"text": value})


def _tests(path: str, text: str, tree: ast.Module) -> Iterator[_Found]:
    bodies = [tree.body, *(node.body for node in tree.body if isinstance(node, ast.ClassDef))]
    count = sum(
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test")
        for body in bodies
        for node in body
    )
    written = len(re.findall(r"^\s*(?:async\s+)?def\s+test", text, re.MULTILINE))
    if count == written and count in _TESTS:
        question = f"How many test functions, whose names begin with test, does {path} define?"
        yield _Found(path, question, {"number": count})


_FINDERS: dict[str, Callable[[str, str, ast.Module], Iterator[_Found]]] = {
    "defined": _defined,
    "purpose": _purpose,
    "constant": _constant,
    "tests": _tests,
}


def _word(node: ast.stmt) -> str:
    return "class" if isinstance(node, ast.ClassDef) else "function"


def _is_sure(kind: str, found: _Found, files: Files) -> bool:
    """Whether the text of all files holds what is asked for once alone."""
    name = re.escape(found.name)
    pattern = {
        "defined": rf"^[ \t]*(?:async[ \t]+def|def|class)[ \t]+{name}\b",
        "purpose": name,
        "constant": rf"^[ \t]*{name}[ \t]*(?::[^=\n]+)?=(?!=)",
        "tests": "",
    }[kind]
    if not pattern:
        return True
    places = re.compile(pattern, re.MULTILINE)
    return sum(len(places.findall(text)) for _, text in files if found.name in text) == 1

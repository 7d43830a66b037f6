"""The keys and tables of a document in YAML, TOML, JSON or INI, found line by line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from rlm_rag.indexes.skeleton import MAX_SIGNATURE_CHARS, Definition
from rlm_rag.lines import split_lines_bytes

MAX_KEYS = 5_000
MAX_DEPTH = 3

_FORMS = {
    ".yaml": "yaml",
    ".yml": "yaml",
    ".toml": "toml",
    ".json": "json",
    ".jsonc": "json",
    ".json5": "json",
    ".webmanifest": "json",
    ".ini": "ini",
    ".cfg": "ini",
    ".conf": "ini",
    ".properties": "ini",
    ".editorconfig": "ini",
    ".gitconfig": "ini",
}
_TOML_FILES = frozenset(("Cargo.lock", "poetry.lock", "uv.lock", "Pipfile"))

_YAML_KEY = re.compile(
    r"(?P<indent> *)(?P<items>(?:- +)*)"
    r"(?P<name>\"[^\"]{1,200}\"|'[^']{1,200}'"
    r"|(?:[^\s#\"'\[\]{},&*!|>%@`-]|-[^\s:])[^:#\n]{0,200}?)"
    r"[ \t]*:(?=\s|$)(?P<value>.*)"
)
_YAML_BLOCK = re.compile(r"[ \t]*(?:[&!][^\s]+[ \t]+)*[|>][-+\d]*[ \t]*(?:#.*)?")
_TOML_TABLE = re.compile(
    r"[ \t]*\[{1,2}[ \t]*([^\[\]\n]{1,200}|[^\n]{1,200}?)[ \t]*\]{1,2}[ \t]*(?:#.*)?"
)
_TOML_KEY = re.compile(
    r"[ \t]*((?:[\w.-]|\"[^\"]{0,200}\"|'[^']{0,200}'){1,200})[ \t]*=(?P<value>.*)"
)
_INI_SECTION = re.compile(r"[ \t]*\[([^\]\n]{1,200})\][ \t]*(?:[#;].*)?")
_INI_KEY = re.compile(r"([^\s#;=:\[!][^=:\n]{0,200}?)[ \t]*[=:].*")
_JSON_TOKEN = re.compile(
    r"\"((?:[^\"\\\n]|\\.){0,2000})\"(\s{0,200}:)?|[\[\]{}]|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL
)

# Line, level from 1, name, kind.
_Key = tuple[int, int, str, str]


def form_of(name: str) -> str | None:
    """Return the form that a document's file name tells of its keys, or None."""
    if name in _TOML_FILES:
        return "toml"
    _, dot, suffix = name.rpartition(".")
    return _FORMS.get(dot + suffix.lower())


def keys(data: bytes, form: str) -> list[Definition]:
    """Return the keys of a text, in order, three levels deep; at most 5,000."""
    lines = [line.decode("utf-8", "replace") for line in split_lines_bytes(data)]
    found: list[Definition] = []
    enclosing: list[tuple[int, str]] = []
    for line, level, name, kind in _FINDERS[form](lines):
        while enclosing and enclosing[-1][0] >= level:
            enclosing.pop()
        parents = tuple(parent for _, parent in enclosing)
        enclosing.append((level, name))
        if len(parents) < MAX_DEPTH:
            shown = _shown(lines[line - 1], name, form)
            found.append(Definition(line, kind, name, shown, parents, len(parents)))
        if len(found) >= MAX_KEYS:
            break
    return found


def _shown(line: str, name: str, form: str) -> str:
    """Return the line as written; of JSON, which may have no lines, the key alone."""
    text = f'"{name}"' if form == "json" else line.strip()
    return text if len(text) <= MAX_SIGNATURE_CHARS else text[: MAX_SIGNATURE_CHARS - 1] + "…"


def _yaml(lines: list[str]) -> Iterator[_Key]:
    # Deeper lines than this belong to a text, not to the mapping.
    text_indent = -1
    for at, line in enumerate(lines, start=1):
        indent = len(line) - len(line.lstrip(" "))
        if text_indent >= 0:
            if not line.strip() or indent > text_indent:
                continue
            text_indent = -1
        match = _YAML_KEY.match(line)
        if match is None:
            continue
        column = len(match["indent"]) + len(match["items"])
        if _YAML_BLOCK.fullmatch(match["value"]):
            text_indent = len(match["indent"])
        # Of the items of a list, only what names the list is a key to look up.
        if not match["items"]:
            yield at, column + 1, match["name"].strip("\"' "), "key"


def _toml(lines: list[str]) -> Iterator[_Key]:
    inside = ""
    below = 0
    for at, line in enumerate(lines, start=1):
        if inside:
            inside = "" if inside in line else inside
            continue
        if table := _TOML_TABLE.fullmatch(line):
            below = 1
            yield at, 1, table[1].strip("\"' "), "table"
        elif key := _TOML_KEY.match(line):
            yield at, below + 1, key[1].strip("\"'"), "key"
            for quotes in ('"""', "'''"):
                if key["value"].count(quotes) == 1:
                    inside = quotes


def _ini(lines: list[str]) -> Iterator[_Key]:
    below = 0
    for at, line in enumerate(lines, start=1):
        if section := _INI_SECTION.fullmatch(line):
            below = 1
            yield at, 1, section[1].strip(), "table"
        elif key := _INI_KEY.match(line):
            yield at, below + 1, key[1].strip(), "key"


def _json(lines: list[str]) -> Iterator[_Key]:
    depth = line = 0
    starts = [0]
    for text in lines:
        starts.append(starts[-1] + len(text) + 1)
    for match in _JSON_TOKEN.finditer("\n".join(lines)):
        token = match[0]
        if token in "{[":
            depth += 1
        elif token in "}]":
            depth = max(0, depth - 1)
        elif match[2] is not None and depth <= MAX_DEPTH + 1:
            while line < len(lines) and starts[line] <= match.start():
                line += 1
            yield line, max(1, depth), match[1], "key"


_FINDERS: dict[str, Callable[[list[str]], Iterator[_Key]]] = {
    "yaml": _yaml,
    "toml": _toml,
    "ini": _ini,
    "json": _json,
}

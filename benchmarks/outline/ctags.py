"""What universal-ctags finds in files."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

# What is imported, included or read there is not defined there; nor are blocks of tests.
_NOT_DEFINED = {
    "Python": "-I-i-x",
    "Go": "-P",
    "C": "-h",
    "C++": "-h",
    "Ruby": "-L",
    "Sh": "-h-s",
    "PHP": "-a",
    "TypeScript": "-z",
    "C#": "-lt",
    "R": "-l-s-v-c-L-d-n",
    "Perl": "-l",
}
_STATE = frozenset(("variable", "constant"))
_RUNS_CODE = frozenset(("function", "method", "func", "generator", "getter", "setter"))
_WITHOUT_WHICH_NONE = {
    "PHP": re.compile(r"\b(?:public|protected|private|var|static|readonly|function)\b"),
    "Kotlin": re.compile(r"\b(?:fun|constructor|val|var|get|set|init)\b"),
}
_EXPORTED = "(?:export |declare |default )*"
_BLOCKS = frozenset(("describe", "context"))
_NAMES = {
    "python": "Python",
    "typescript": "TypeScript",
    "tsx": "TypeScript",
    "javascript": "JavaScript",
    "go": "Go",
    "rust": "Rust",
    "java": "Java",
    "kotlin": "Kotlin",
    "c": "C",
    "cpp": "C++",
    "csharp": "C#",
    "ruby": "Ruby",
    "php": "PHP",
    "bash": "Sh",
    "lua": "Lua",
    "perl": "Perl",
    "r": "R",
    "julia": "Julia",
    "haskell": "Haskell",
    "ocaml": "OCaml",
    "elixir": "Elixir",
    "erlang": "Erlang",
    "make": "Make",
    "css": "CSS",
    "proto": "Protobuf",
}

Tag = tuple[int, str]


def command() -> str:
    """Return the program.

    Raises:
        SystemExit: it is not installed, or another of the same name.
    """
    found = shutil.which("ctags-universal") or shutil.which("ctags")
    said = found and subprocess.run(
        [found, "--version"], capture_output=True, text=True, check=False
    )
    if not found or not said or "Universal Ctags" not in said.stdout:
        raise SystemExit("universal-ctags is not installed: apt-get install universal-ctags")
    return found


def tags(files: Sequence[Path], grammar: str) -> Mapping[Path, Mapping[Tag, str]] | None:
    """Return the kind of each `(line, name)` of each file; None for languages it does not read."""
    language = _NAMES.get(grammar)
    if language is None:
        return None
    options = [f"--language-force={language}", "--output-format=json", "--fields=+nK", "-f", "-"]
    if language in _NOT_DEFINED:
        options.append(f"--kinds-{language}={_NOT_DEFINED[language]}")
    done = subprocess.run(
        [command(), *options, "-L", "-"],
        input="\n".join(map(str, files)).encode(),
        capture_output=True,
        check=True,
    )
    found: dict[Path, dict[Tag, str]] = defaultdict(dict)
    for line in done.stdout.splitlines():
        tag = json.loads(line.decode("utf-8", "replace"))
        if tag.get("_type") == "tag" and _counts(tag, language):
            found[Path(tag["path"])][int(tag["line"]), str(tag["name"])] = str(tag.get("kind"))
    return found


def _counts(tag: Mapping[str, object], language: str) -> bool:
    """Whether a tag is a definition with a name: no local variable, no function without one."""
    name, kind = str(tag.get("name", "")), str(tag.get("kind"))
    if (
        not name
        or name.startswith(("__anon", "AnonymousFunction", "anonymous", "anonFunc"))
        or name[0] == "<"
    ):
        return False
    if language == "Sh" and name.endswith("="):
        # An array that is assigned, taken for a function.
        return False
    return kind not in _BLOCKS and not _is_local(tag, language, kind, name)


def _is_local(tag: Mapping[str, object], language: str, kind: str, name: str) -> bool:
    """Whether a tag is of a variable in a function, as far as its line tells."""
    scope, pattern = str(tag.get("scopeKind", "")), str(tag.get("pattern", ""))
    needed = _WITHOUT_WHICH_NONE.get(language)
    if needed is not None and kind in ("variable", "method") and not needed.search(pattern):
        # Or a lambda, taken for a member.
        return True
    if kind in (*_STATE, "alias") and language == "TypeScript" and not scope:
        # Of a function without a name; or a word of an expression.
        declared = rf"/\^{_EXPORTED}(?:const|let|var|type)\b[^=:]*\b{re.escape(name)}\b"
        return re.match(declared, pattern) is None
    return kind in _STATE and scope in _RUNS_CODE

"""The pages of the project and the fenced blocks on them, for the tests that run what they show.

What a block's tag promises: `console` is run, and prints what stands under its commands; `sh`
is run, and every command succeeds; `python` is run; where a `text` block stands right after one
of these two, that is what it prints. `toml`, `json` and `yaml` parse. What is asked of a model
that needs a key is answered by a loopback server (`tests/docs/reader.py`). A line
`<!-- needs: WHAT -->` before a block says what it can be run with alone; `tests/docs/test_pages.py`
has the list of them.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]
PAGES = (
    ROOT / "README.md",
    ROOT / "SECURITY.md",
    ROOT / "examples" / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
)
TAGS = frozenset({"console", "python", "sh", "toml", "json", "yaml", "text", ""})
_FENCE = re.compile(
    r"(?:^<!-- needs: (?P<needs>[^\n]+) -->\n)?"
    r"^(?P<ticks>`{3,})(?P<tag>[^\n`]*)\n(?P<body>.*?)^(?P=ticks)$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Fence:
    """A fenced block; `shown` is the output right under it, `needs` why it is not run."""

    tag: str
    body: str
    needs: str = ""
    shown: str = ""


def name_of(page: Path) -> str:
    """The page's path within the project."""
    return page.relative_to(ROOT).as_posix()


def generated() -> ModuleType:
    """The module that makes pages from the program."""
    where = ROOT / "docs" / "_ext" / "generated.py"
    spec = importlib.util.spec_from_file_location("generated", where)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def fences(page: Path) -> list[Fence]:
    """Return the fenced blocks of a page, in their order."""
    return fences_of(page.read_text(encoding="utf-8"))


def fences_of(text: str) -> list[Fence]:
    """Return the fenced blocks of a page's text, in their order."""
    found = list(_FENCE.finditer(text))
    return [
        Fence(match["tag"].strip(), match["body"], match["needs"] or "", _under(text, match, after))
        for match, after in zip_longest(found, found[1:])
    ]


def tagged(*tags: str) -> Iterator[tuple[Path, Fence]]:
    """Yield the blocks of all pages that have one of these tags, each with its page."""
    for page in PAGES:
        for fence in fences(page):
            if fence.tag in tags:
                yield page, fence


def commands(fence: Fence) -> Iterator[tuple[str, str]]:
    """Yield each `$ command` of a console block, with the output that stands under it."""
    for part in re.split(r"^\$ ", fence.body, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        yield command, shown


def is_shown(printed: str, shown: str) -> bool:
    """Whether it is what a page shows.

    There a line `...` stands for any number of lines, and one at the end or the beginning of a
    line for the rest of it.
    """
    lines = [
        r"(?:.*\n)*?" if line.strip() == "..." else _line(line.rstrip()) + r"\n"
        for line in shown.rstrip("\n").split("\n")
    ]
    ended = "\n".join(line.rstrip() for line in printed.rstrip("\n").split("\n")) + "\n"
    return re.fullmatch("".join(lines), ended) is not None


def _line(shown: str) -> str:
    start = ".*" if shown.startswith("...") else ""
    end = ".*" if shown.endswith("...") else ""
    return start + re.escape(shown.removeprefix("...").removesuffix("...").rstrip()) + end


def _under(text: str, match: re.Match[str], after: re.Match[str] | None) -> str:
    if after is None or after["tag"].strip() not in ("text", ""):
        return ""
    return "" if text[match.end() : after.start()].strip() else after["body"]

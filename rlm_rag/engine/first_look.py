"""What a small model sees of the documents before it counts in them: how records look there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from typing import Any

from rlm_rag.engine.services import Services
from rlm_rag.engine.view import View
from rlm_rag.lines import split_lines
from rlm_rag.sandbox.inside.records import rows_of
from rlm_rag.sandbox.session import ServiceCall, ServiceError

MAX_DOCUMENTS = 3
MAX_LINES = 3
MAX_ROWS = 2
MAX_LINE_CHARS = 300
MAX_TEXT_CHARS = 100_000
MOST_NAMES = 6
OUTLINE_CHARS = 600

_DEFINES = re.compile(
    r"^\s*\d+: .*\b(?:def|class|func|function|fn|struct|interface)\b", re.MULTILINE
)
_FILE_NAME = re.compile(r"(?<![\w./-])([\w./-]*\w\.[A-Za-z]\w{0,5})(?![\w/])", re.ASCII)


async def first_look(services: Services, view: View, question: str) -> str:
    """Return what a question that code is to answer needs to see of the documents it is about.

    Those are the files that it names, or else what a search for it finds. Of records two are
    shown as `records` gives them, else the definitions or the first lines: small models guess the
    form of records where they do not see it, and of a single one the 1.5B took a value for a
    condition. What is asked of the index is numbered 0, as of no block, so that the trace has it.
    """
    named = (await view.select(await globs_named(view, question))).paths
    paths = list(named)
    if not paths:
        paths = list(dict.fromkeys((*await _found(services, question), *_first(view))))
    return "\n".join([await _shown(services, view, path) for path in paths[:MAX_DOCUMENTS]])


async def globs_named(view: View, question: str) -> list[str]:
    """Return a glob for each file that a question names and the corpus has."""
    names = [found[1] for found in _FILE_NAME.finditer(question)]
    globs = dict.fromkeys(f"**/{name.lstrip('./')}" for name in names[:MOST_NAMES])
    selection = await view.select(list(globs))
    return [glob for glob in globs if glob not in selection.unknown]


async def _found(services: Services, question: str) -> Sequence[str]:
    hits = await _served(services, "search", query=question, k=MAX_DOCUMENTS)
    return [hit["path"] for hit in hits or ()]


async def _served(services: Services, name: str, /, **arguments: Any) -> Any:
    """Return what a service gives a block, None where it refuses; the trace has either."""
    try:
        return (await services.serve(ServiceCall(0, 1, name, (), arguments))).value
    except ServiceError:
        return None


def _first(view: View) -> Sequence[str]:
    return list(islice(view.paths(), MAX_DOCUMENTS))


async def _shown(services: Services, view: View, path: str) -> str:
    text = (view.text(path) or "")[:MAX_TEXT_CHARS]
    lines = split_lines(text)
    whole = lines if len(text) < MAX_TEXT_CHARS else lines[:-1]
    rows = rows_of("\n".join(whole))
    if rows:
        shown = "".join(f"\n  {_cut(str(row))}," for row in rows[:MAX_ROWS])
        more = "\n  ..." if len(rows) > MAX_ROWS else ""
        return f"records({path!r}) is a list of dicts:{shown}{more}"
    outline = await _served(services, "outline", path=path, budget_chars=OUTLINE_CHARS)
    if _DEFINES.search(outline or ""):
        counted = f'outline({path!r}).count("def ")'
        return f"print(outline({path!r})) shows:\n{outline}\nn = {counted} counts the functions."
    begun = "".join(f"\n  {_cut(line)}" for line in lines[:MAX_LINES])
    return f"{path} begins:{begun}"


def _cut(line: str) -> str:
    return line if len(line) <= MAX_LINE_CHARS else f"{line[:MAX_LINE_CHARS]}..."

"""The files of a corpus that a question names."""

from __future__ import annotations

import re
from collections import defaultdict

from rlm_rag.engine.view import View
from rlm_rag.errors import RetrievalError

MOST_NAMES = 6

_WITH_SUFFIX = re.compile(r"(?<![\w./-])([\w./-]*\w\.[A-Za-z]\w{0,5})(?![\w/])", re.ASCII)
_QUOTED = re.compile(r"[`'\"“]([\w./+-]{2,100})[`'\"”]")
_WORD = re.compile(r"(?<![\w./+-])[\w./+-]{2,100}(?![\w./+-])")
_FROM_HERE = re.compile(r"(?:\.*/|\.{2,})+")


async def globs_named(view: View, question: str) -> list[str]:
    """Return a glob for each file that a question names and the corpus has, 6 at most.

    A name without a suffix (`Makefile`, `.gitignore`, `docs/LICENSE`) counts where a file is called
    exactly so, and the question gives it with a capital, a first dot, or in quotes. None where
    the look-up fails.
    """
    names = [_plain(found[1]) for found in _WITH_SUFFIX.finditer(question)]
    globs = dict.fromkeys(f"**/{name}" for name in names[:MOST_NAMES])
    try:
        selection = await view.select(list(globs))
    except RetrievalError:
        # Whatever is looked up for the question next meets the error, and tells it.
        return []
    named = [glob for glob in globs if glob not in selection.unknown]
    return [*named, *(f"**/{name}" for name in _without_suffix(view, question))][:MOST_NAMES]


def _without_suffix(view: View, question: str) -> list[str]:
    """Return the names without a suffix that files of the corpus have, the quoted ones first."""
    quoted = [found[1] for found in _QUOTED.finditer(question)]
    words = [word.rstrip(".") for word in _WORD.findall(question)]
    marked = [word for word in words if word.startswith(".") or any(map(str.isupper, word))]
    names = dict.fromkeys(_plain(name) for name in (*quoted, *marked))
    by_last = defaultdict(list)
    for name in names:
        if len(name) > 1 and not _WITH_SUFFIX.fullmatch(name):
            by_last[name.rpartition("/")[2]].append(name)
    found = {
        name
        for path in view.paths()
        for name in by_last.get(path.rpartition("/")[2], ())
        if f"/{path}".endswith(f"/{name}")
    }
    return [name for name in names if name in found]


def _plain(name: str) -> str:
    """Return a name without what leads to it from some folder: `../a.py` is `a.py`."""
    found = _FROM_HERE.match(name)
    return name[found.end() :] if found else name

"""Where a file of this machine lies among the documents of sources."""

from __future__ import annotations

import os
import re
from pathlib import Path

from rlm_rag.errors import UsageError
from rlm_rag.loaders.options import sources_and_options
from rlm_rag.loaders.source import split_name

_MAGIC = re.compile(r"[*?\[]")


def folder_of(source: str) -> Path | None:
    """Return the folder that a source, or NAME=SOURCE, is or, of a glob, begins with."""
    named = Path(split_name(source)[1])
    parents = named.parents if _MAGIC.search(str(named)) else ()
    # Not `is_dir`, which raises where a text is too long to be a path.
    folder = next((one for one in (named, *parents) if os.path.isdir(one)), None)  # noqa: PTH112
    return None if folder is None else folder.resolve()


def paths_of(file: Path, origin: str | None) -> frozenset[str]:
    """Return the paths, without parts, that `file` may have in the corpus of that `origin`.

    It need not exist. An origin that is None, or an address, has none.

    Raises:
        UsageError: it is one of the sources itself.
    """
    target = file.resolve()
    found: set[str] = set()
    for word in sources_and_options(origin)[0]:
        name, source = split_name(word)
        folder = folder_of(source)
        if folder is None and os.path.realpath(source) == str(target):
            raise UsageError(
                f"{file} is the source itself", hint="choose another place for what is written"
            )
        if folder is not None and target.is_relative_to(folder):
            path = target.relative_to(folder).as_posix()
            found.add(path if name is None else f"{name}/{path}")
    return frozenset(found)

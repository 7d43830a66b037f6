"""What a source that was kept is called, found again from what a person calls it."""

from __future__ import annotations

import os
from pathlib import Path

from rlm_rag.globs import without_part
from rlm_rag.loaders.addresses import GitAddress, parse_address, without_credentials
from rlm_rag.loaders.options import sources_and_options
from rlm_rag.loaders.revisions import find_revision
from rlm_rag.loaders.source import split_name


def origin_of(source: str) -> str:
    """Return the origin of `source`; one that ends with `@` begins those of its revisions.

    Nothing is fetched, so that of an address all that was kept is meant, whatever its revision.

    Raises:
        SourceError: it may be a revision, and git is not installed.
    """
    address = parse_address(source)
    if isinstance(address, GitAddress):
        return f"{without_credentials(address.url)}@"
    named = address if isinstance(address, str) else source
    if not os.path.lexists(named):
        places = [place for place, character in enumerate(named) if character == "@"]
        for place in reversed(places):
            folder = os.path.expanduser(named[:place] or ".")  # noqa: PTH111 - of a glob, too
            if not os.path.isdir(folder):  # noqa: PTH112
                continue
            revision = find_revision(folder, named[place + 1 :])
            if revision is not None:
                return f"{os.path.realpath(folder)}@{revision.commits}"
    return os.path.realpath(os.path.expanduser(named))  # noqa: PTH111


def file_of(origin: str | None, path: str) -> Path | None:
    """Return the file that a document of a corpus was read from; None where there is none now.

    What came from a revision, an archive, a page or standard input lies in no file of its own.
    """
    sources, _ = sources_and_options(origin)
    rest = without_part(path)
    for source in sources:
        name, place = split_name(source)
        if name is None:
            inner = rest
        elif rest == name or rest.startswith(f"{name}/"):
            inner = rest[len(name) + 1 :]
        else:
            continue
        folder = Path(place)
        single = folder.is_file() and inner in ("", folder.name)
        found = folder if single else folder / inner
        if found.is_file():
            return found
    return None

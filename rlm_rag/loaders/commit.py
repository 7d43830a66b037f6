"""The commit that a loaded source is at, for answers to name."""

from __future__ import annotations

from pathlib import Path

from rlm_rag.errors import SourceError
from rlm_rag.loaders.options import sources_and_options
from rlm_rag.loaders.revisions import find_revision


def commit_of(origin: str | None) -> str | None:
    """Return the full hash of the commit that a corpus's origin names, or lies at.

    None for several sources, for one outside any repository, and where git is not installed. Of
    a folder it is HEAD, whatever was changed since.
    """
    sources, _ = sources_and_options(origin)
    if len(sources) != 1:
        return None
    folder, at, name = sources[0].rpartition("@")
    if Path(sources[0]).exists():
        folder, name = sources[0], "HEAD"
    elif not at or not Path(folder).is_dir():
        return None
    place = Path(folder) if Path(folder).is_dir() else Path(folder).parent
    try:
        revision = find_revision(str(place), name)
    except SourceError:
        # An answer is one without a commit too.
        return None
    return None if revision is None else revision.commit

"""Packages of the host as a folder of links, for layers whose workers see the host's own paths."""

from __future__ import annotations

from pathlib import Path

from rlm_rag.sandbox.confine.view import LIBRARIES_INSIDE, View


def link_libraries(folder: Path, view: View) -> Path:
    """Make `folder` look like what `view` would mount at `LIBRARIES_INSIDE`, and return it."""
    folder.mkdir(exist_ok=True)
    for mount in view.mounts:
        if mount.target.startswith(f"{LIBRARIES_INSIDE}/"):
            link = folder / mount.target.removeprefix(f"{LIBRARIES_INSIDE}/")
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(mount.source)
    return folder

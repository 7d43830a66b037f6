"""The user's folders that this program keeps its own files in, and the tag of its cache folders."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

CACHE_TAG_NAME = "CACHEDIR.TAG"
CACHE_TAG = (
    b"Signature: 8a477f597d28d172789f06886806bc55\n"
    b"# What rlm-rag keeps here it can make again; see https://bford.info/cachedir\n"
)
"""The first line makes it a cache folder to any program that knows of them, the second ours."""


def cache_folder(environ: Mapping[str, str] | None = None) -> Path | None:
    """The user's cache folder for this program: in `XDG_CACHE_HOME` or the platform's own.

    None where none is chosen and this user has no home folder.
    """
    below = "Library/Caches" if sys.platform == "darwin" else ".cache"
    return _folder(environ, "XDG_CACHE_HOME", below, within="Cache")


def state_folder(environ: Mapping[str, str] | None = None) -> Path | None:
    """The user's state folder for this program: in `XDG_STATE_HOME` or the platform's own.

    None where none is chosen and this user has no home folder.
    """
    below = {"win32": "AppData/Local", "darwin": "Library/Application Support"}
    return _folder(environ, "XDG_STATE_HOME", below.get(sys.platform, ".local/state"))


def _folder(
    environ: Mapping[str, str] | None, variable: str, below: str, *, within: str = ""
) -> Path | None:
    """Return the folder that a variable chooses, or else the one `below` the home folder.

    On Windows it is that of the system for programs' files, where there is one, and `within` it.
    """
    environ = os.environ if environ is None else environ
    chosen = environ.get(variable, "")
    if chosen and Path(chosen).is_absolute():
        return Path(chosen) / "rlm-rag"
    local = environ.get("LOCALAPPDATA", "")
    if sys.platform == "win32" and local:
        return Path(local) / "rlm-rag" / within
    try:
        return Path.home() / below / "rlm-rag"
    except RuntimeError:
        return None

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
    environ = os.environ if environ is None else environ
    chosen = environ.get("XDG_CACHE_HOME", "")
    if chosen and Path(chosen).is_absolute():
        return Path(chosen) / "rlm-rag"
    local = environ.get("LOCALAPPDATA", "")
    if sys.platform == "win32" and local:
        return Path(local) / "rlm-rag" / "Cache"
    home = _home()
    below = "Library/Caches" if sys.platform == "darwin" else ".cache"
    return None if home is None else home / below / "rlm-rag"


def state_folder(environ: Mapping[str, str] | None = None) -> Path | None:
    """The user's state folder for this program: in `XDG_STATE_HOME` or the platform's own.

    None where none is chosen and this user has no home folder.
    """
    environ = os.environ if environ is None else environ
    chosen = environ.get("XDG_STATE_HOME", "")
    if chosen and Path(chosen).is_absolute():
        return Path(chosen) / "rlm-rag"
    local = environ.get("LOCALAPPDATA")
    if sys.platform == "win32" and local:
        return Path(local) / "rlm-rag"
    home = _home()
    if home is None:
        return None
    if sys.platform == "win32":
        return home / "AppData" / "Local" / "rlm-rag"
    if sys.platform == "darwin":
        return home / "Library" / "Application Support" / "rlm-rag"
    return home / ".local" / "state" / "rlm-rag"


def _home() -> Path | None:
    try:
        return Path.home()
    except RuntimeError:
        return None

"""Which release of a package is installed, told without importing it."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path

_ABOUT_SUFFIXES = (".dist-info", ".egg-info")


@cache
def release_of(package: str) -> str:
    """Return what differs between releases of a package of that import name, "" for none.

    It is read from the names of the folders beside it, as installers leave them:
    `importlib.metadata` would be 20 ms of every start.
    """
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        return ""
    home = Path(spec.origin).parent.parent
    names = [name for name in _folders_about(home) if name.startswith(f"{package.lower()}-")]
    return " ".join((spec.origin, *names))


@cache
def _folders_about(home: Path) -> tuple[str, ...]:
    try:
        names = sorted(one.name.lower() for one in home.iterdir())
    except OSError:
        # Within an archive, whose path is what there is to tell.
        return ()
    return tuple(name for name in names if name.endswith(_ABOUT_SUFFIXES))

"""The host's packages that a worker is given: those the caller named, and dill for snapshots."""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path, PurePosixPath

from rlm_rag.errors import MissingExtraError
from rlm_rag.sandbox.inside.worker import PACKAGES, PRIVATE

_NAME = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")


@cache
def library_files(packages: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Return (path on the host, path in the worker's folder of libraries), parents first.

    `packages` are names of distributions or of what they are imported as; what they require is
    given with them, optional requirements apart.

    Raises:
        MissingExtraError: one is not installed, or not as files that can be bound.
    """
    found = {f"{PRIVATE}/{name}": path for path, name in _entries(_distribution("dill"))}
    for distribution in _closure(packages):
        found |= {f"{PACKAGES}/{name}": path for path, name in _entries(distribution)}
    return tuple((found[name], name) for name in sorted(found))


def _closure(packages: Sequence[str]) -> Iterator[importlib.metadata.Distribution]:
    waiting = [_distribution(name) for name in packages]
    seen: set[str] = set()
    while waiting:
        distribution = waiting.pop()
        if distribution.name in seen:
            continue
        seen.add(distribution.name)
        yield distribution
        for requirement in distribution.requires or ():
            name = _NAME.match(requirement)
            if name is None or "extra ==" in requirement:
                continue
            try:
                waiting.append(importlib.metadata.distribution(name[1]))
            except importlib.metadata.PackageNotFoundError:
                continue  # Its marker excludes it here, or the import will say what is missing.


def _distribution(name: str) -> importlib.metadata.Distribution:
    if _NAME.fullmatch(name):
        try:
            return importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            for owner in importlib.metadata.packages_distributions().get(name, ()):
                return importlib.metadata.distribution(owner)
    raise MissingExtraError(
        f"the package {name!r}, wanted inside the sandbox, is not installed",
        hint=f"pip install {name}",
    )


def _entries(distribution: importlib.metadata.Distribution) -> Iterator[tuple[str, str]]:
    """Yield the files and folders that a distribution consists of, and their import paths."""
    files = [PurePosixPath(file) for file in distribution.files or ()]
    packages = {file.parent for file in files if file.name == "__init__.py"}
    # Folders without an __init__.py, which other distributions may share: their parts are bound.
    shared = {package.parts[0] for package in packages if package.parts}
    shared -= {str(package) for package in packages}
    tops = {
        "/".join(file.parts[: 2 if file.parts[0] in shared else 1])
        for file in files
        if file.parts[0] not in ("..", "/", "__pycache__") and file.suffix != ".pth"
    }
    places = [(str(Path(str(distribution.locate_file(top))).resolve()), top) for top in tops]
    existing = [(path, top) for path, top in places if Path(path).exists()]
    if all(top.endswith((".dist-info", ".egg-info")) for _, top in existing):
        raise MissingExtraError(
            f"the package {distribution.name} has no files that a sandbox can be given "
            "(installed in editable mode?)",
            hint=f"pip install --force-reinstall {distribution.name}",
        )
    yield from existing

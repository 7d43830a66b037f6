"""The host's packages that a worker is given: those the caller named, and dill for snapshots."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from rlm_rag.errors import MissingExtraError
from rlm_rag.sandbox.frames import PACKAGES, PRIVATE

if TYPE_CHECKING:
    from importlib.metadata import Distribution

_NAME = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")


@cache
def library_files(packages: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Return (path on the host, path in the worker's folder of libraries), parents first.

    `packages` are names of distributions or of what they are imported as; what they require is
    given with them, optional requirements apart.

    Raises:
        MissingExtraError: one is not installed, or not as files that can be bound.
    """
    spec = importlib.util.find_spec("dill")
    folders = spec.submodule_search_locations if spec else None
    if not folders:
        raise MissingExtraError("dill is not installed", hint="pip install dill")
    found = {f"{PRIVATE}/dill": str(Path(folders[0]).resolve())}
    for distribution in _closure(packages) if packages else ():
        found |= {f"{PACKAGES}/{name}": path for path, name in _entries(distribution)}
    return tuple((found[name], name) for name in sorted(found))


def _closure(packages: Sequence[str]) -> Iterator[Distribution]:
    # It takes as long to import as a worker to start.
    from importlib.metadata import PackageNotFoundError, distribution

    waiting = [_distribution(name) for name in packages]
    seen: set[str] = set()
    while waiting:
        found = waiting.pop()
        if found.name in seen:
            continue
        seen.add(found.name)
        yield found
        for requirement in found.requires or ():
            name = _NAME.match(requirement)
            if name is None or "extra ==" in requirement:
                continue
            try:
                waiting.append(distribution(name[1]))
            except PackageNotFoundError:
                continue  # Its marker excludes it here, or the import will say what is missing.


def _distribution(name: str) -> Distribution:
    from importlib.metadata import PackageNotFoundError, distribution, packages_distributions

    if _NAME.fullmatch(name):
        try:
            return distribution(name)
        except PackageNotFoundError:
            for owner in packages_distributions().get(name, ()):
                return distribution(owner)
    raise MissingExtraError(
        f"the package {name!r}, wanted inside the sandbox, is not installed",
        hint=f"pip install {name}",
    )


def _entries(distribution: Distribution) -> Iterator[tuple[str, str]]:
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

"""Real text to ask about: this interpreter's standard library, and two source distributions."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

from rlm_rag.kept import default_kept_folder

Files = tuple[tuple[str, str], ...]
"""Paths with their text, in the order of the paths."""

SDISTS = {
    "click": ("8.1.8", "ed53c9d8990d83c2a27deae68e4ee337473f6330c040a31d4225c9574d16096a"),
    "networkx": ("3.4.2", "307c3669428c5362aab27c8a1260aa8f47c4e91d3891f48be0141738d8d053e1"),
}
"""Version and SHA-256 of each, as PyPI has them."""

STDLIB_BYTES = 20 << 20
FETCH_SECONDS = 300
_DOWNLOAD = "-m pip download -q --no-deps --no-binary :all:"
_TEXT = (".py", ".rst", ".md", ".txt", ".toml", ".cfg", ".ini")
_LEFT_OUT = ("site-packages", "__pycache__", "lib2to3", "idlelib", "turtledemo")


def repository(name: str) -> Files:
    """Return the files of `json`, `asyncio` (packages of the library), `click`, `networkx`,
    `stdlib`.

    Raises:
        RuntimeError: a distribution is neither kept nor to be fetched.
    """
    return _REPOSITORIES[name]()


@cache
def _stdlib() -> Files:
    """The library and, up to 20 MB, its tests."""
    root = Path(sysconfig.get_path("stdlib"))
    found = [path.relative_to(root) for path in root.rglob("*.py")]
    found = [path for path in found if not set(path.parts) & set(_LEFT_OUT)]
    found.sort(key=lambda path: ("test" in path.parts or "tests" in path.parts, path.as_posix()))
    kept, left = [], STDLIB_BYTES
    for path in found:
        left -= (root / path).stat().st_size
        if left < 0:
            break
        kept.append(root / path)
    return _read(kept)


@cache
def _package(name: str) -> Files:
    return _read((Path(sysconfig.get_path("stdlib")) / name).rglob("*.py"))


def _read(paths: Iterable[Path]) -> Files:
    root = Path(sysconfig.get_path("stdlib"))
    return tuple(
        sorted((p.relative_to(root).as_posix(), p.read_text("utf-8", "replace")) for p in paths)
    )


@cache
def _sdist(name: str) -> Files:
    with tarfile.open(_kept(name)) as archive:
        return tuple(sorted(_members(archive)))


def _members(archive: tarfile.TarFile) -> Iterator[tuple[str, str]]:
    for member in archive:
        path = member.name.partition("/")[2]
        file = archive.extractfile(member) if path.endswith(_TEXT) else None
        if file is not None and ".egg-info/" not in path:
            yield path, file.read().decode("utf-8", "replace")


_REPOSITORIES: dict[str, Callable[[], Files]] = {
    "json": lambda: _package("json"),
    "asyncio": lambda: _package("asyncio"),
    "click": lambda: _sdist("click"),
    "networkx": lambda: _sdist("networkx"),
    "stdlib": _stdlib,
}


def _kept(name: str) -> Path:
    """The archive, in the user's cache; fetched with pip where it is not there."""
    version, digest = SDISTS[name]
    kept = default_kept_folder()
    if kept is None:
        raise RuntimeError("there is no cache folder: set XDG_CACHE_HOME")
    archive = kept.with_name("benchmarks") / f"{name}-{version}.tar.gz"
    if not archive.exists():
        archive.parent.mkdir(parents=True, exist_ok=True)
        _fetch(f"{name}=={version}", archive)
    if hashlib.sha256(archive.read_bytes()).hexdigest() != digest:
        archive.unlink()
        raise RuntimeError(f"{archive.name} is not the one that was measured; it was removed")
    return archive


def _fetch(requirement: str, archive: Path) -> None:
    with tempfile.TemporaryDirectory(dir=archive.parent) as folder:
        done = subprocess.run(
            [sys.executable, *_DOWNLOAD.split(), "-d", folder, requirement],
            capture_output=True,
            text=True,
            timeout=FETCH_SECONDS,
        )
        fetched = Path(folder) / archive.name
        if not fetched.exists():
            raise RuntimeError(f"{requirement} cannot be fetched: {done.stderr.strip()[-300:]}")
        fetched.replace(archive)

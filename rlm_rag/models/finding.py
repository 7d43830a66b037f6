"""The local models that lie on this machine, by the names that `--model` takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

MAX_ENTRIES = 20_000
"""Entries of a folder tree that are looked at; more are no folder of models."""


OLLAMA_SERVICE = Path("/usr/share/ollama/.ollama/models")
"""Where Ollama keeps models as a service of Linux, whose user it is (its FAQ)."""


def find_local_models(
    home: Path, environ: Mapping[str, str], *, service: Path = OLLAMA_SERVICE
) -> list[str]:
    """Return `local:FILE` for GGUF files in the usual folders, `ollama/NAME` for Ollama's own.

    The folders are `models` and those of the Hugging Face hub, LM Studio, llama.cpp and of our
    own cache below `home`, what `HF_HOME` and `OLLAMA_MODELS` name, and `service`, of an Ollama
    that runs as one. No network, no program is asked.
    """
    hub = Path(environ.get("HF_HOME") or home / ".cache" / "huggingface") / "hub"
    folders = (
        home / "models",
        hub,
        home / ".lmstudio" / "models",
        home / ".cache" / "lm-studio" / "models",
        home / ".cache" / "llama.cpp",
        Path(environ.get("XDG_CACHE_HOME") or home / ".cache") / "rlm-rag" / "models",
    )
    files = sorted({str(file) for folder in folders for file in _gguf_files(folder)})
    ollama = (Path(environ.get("OLLAMA_MODELS") or home / ".ollama" / "models"), service)
    names = sorted({name for folder in ollama for name in _ollama_names(folder / "manifests")})
    return [*(f"local:{file}" for file in files), *names]


def _gguf_files(folder: Path) -> Iterator[Path]:
    for path in _entries(folder):
        if path.suffix == ".gguf" and path.is_file():
            yield path


def _ollama_names(manifests: Path) -> Iterator[str]:
    """Read names off the tree of manifests: host, library, model, tag."""
    for path in _entries(manifests):
        parts = path.relative_to(manifests).parts
        if len(parts) == 4 and path.is_file():
            owner = "" if parts[1] == "library" else f"{parts[1]}/"
            yield f"ollama/{owner}{parts[2]}:{parts[3]}"


def _entries(folder: Path) -> Iterator[Path]:
    try:
        yield from islice(folder.rglob("*"), MAX_ENTRIES)
    except OSError:
        # A folder that may not be entered has no model for this user.
        return

"""Local models are found where programs of their kind keep them."""

from __future__ import annotations

from pathlib import Path

from rlm_rag.models.finding import find_local_models


def touch(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"GGUF")
    return path


def test_files_and_names_are_found_in_the_usual_folders(tmp_path: Path) -> None:
    own = touch(tmp_path / "models" / "a.gguf")
    hub = touch(tmp_path / "hf" / "hub" / "models--x" / "snapshots" / "1" / "b.gguf")
    kept = touch(tmp_path / ".cache" / "rlm-rag" / "models" / "c.gguf")
    touch(tmp_path / "models" / "readme.md")
    manifests = tmp_path / ".ollama" / "models" / "manifests" / "registry.ollama.ai"
    touch(manifests / "library" / "qwen2.5-coder" / "1.5b")
    touch(manifests / "someone" / "model" / "latest")
    found = find_local_models(tmp_path, {"HF_HOME": str(tmp_path / "hf")})
    assert found == [
        *sorted([f"local:{own}", f"local:{hub}", f"local:{kept}"]),
        "ollama/qwen2.5-coder:1.5b",
        "ollama/someone/model:latest",
    ]


def test_a_home_without_models_has_none(tmp_path: Path) -> None:
    assert find_local_models(tmp_path / "nobody", {}) == []

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
    found = find_local_models(
        tmp_path, {"HF_HOME": str(tmp_path / "hf")}, service=tmp_path / "none"
    )
    assert found == [
        *sorted([f"local:{own}", f"local:{hub}", f"local:{kept}"]),
        "ollama/qwen2.5-coder:1.5b",
        "ollama/someone/model:latest",
    ]


def test_a_home_without_models_has_none(tmp_path: Path) -> None:
    assert find_local_models(tmp_path / "nobody", {}, service=tmp_path / "none") == []


def test_models_of_a_service_and_of_a_folder_of_ones_own_are_found_once(tmp_path: Path) -> None:
    service, own = tmp_path / "service", tmp_path / "own"
    for folder, tag in ((service, "1.5b"), (service, "7b"), (own, "1.5b")):
        touch(folder / "manifests" / "registry.ollama.ai" / "library" / "qwen2.5-coder" / tag)
    touch(tmp_path / ".ollama" / "models" / "manifests" / "host" / "library" / "unused" / "1b")
    found = find_local_models(tmp_path, {"OLLAMA_MODELS": str(own)}, service=service)
    assert found == ["ollama/qwen2.5-coder:1.5b", "ollama/qwen2.5-coder:7b"]

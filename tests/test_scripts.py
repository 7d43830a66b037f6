from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TOOLS = ("sh", "dirname", "cat", "cksum", "printf")
SCRIPTS = ("check", "test", "demo", "docs", "get_model")

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the scripts are for a POSIX shell")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout without a `.venv`, and a PATH on which there is no Python."""
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / "bin").mkdir()
    for tool in TOOLS:
        where = shutil.which(tool)
        if where:
            (tmp_path / "bin" / tool).symlink_to(where)
    return tmp_path


def call(checkout: Path, script: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [shutil.which("sh") or "sh", str(checkout / "scripts" / script)],
        env={"PATH": str(checkout / "bin")} | env,
        capture_output=True,
        text=True,
        timeout=60,
    )


def fake_python(checkout: Path, body: str) -> None:
    file = checkout / "bin" / "python3"
    file.write_text(f"#!{shutil.which('sh')}\n{body}\n")
    file.chmod(0o755)


@pytest.mark.parametrize("script", SCRIPTS)
def test_without_python_the_scripts_say_what_to_install(checkout: Path, script: str) -> None:
    done = call(checkout, script)
    assert done.returncode == 2
    assert "Python 3.11 or newer is needed" in done.stderr
    assert "apt-get install python3 python3-venv" in done.stderr


def test_a_python_that_is_too_old_is_passed_over(checkout: Path) -> None:
    fake_python(checkout, "exit 1")
    assert "Python 3.11 or newer is needed" in call(checkout, "test").stderr


def test_a_debian_without_venv_is_told_the_package(checkout: Path) -> None:
    fake_python(checkout, f'case "$2" in *ensurepip*) exit 1;; esac; exec {sys.executable} "$@"')
    done = call(checkout, "test")
    assert done.returncode == 2
    assert "apt-get install python3-venv" in done.stderr
    assert not (checkout / ".venv").exists()


def test_the_gate_and_the_scripts_are_executable() -> None:
    for file in (ROOT / ".ci" / "run", *(ROOT / "scripts" / name for name in SCRIPTS)):
        assert os.access(file, os.X_OK), file


def test_root_of_a_debian_without_venv_gets_it_by_apt(checkout: Path) -> None:
    fake_python(checkout, f'case "$2" in *ensurepip*) exit 1;; esac; exec {sys.executable} "$@"')
    for name, body in {"id": "echo 0", "apt-get": f'echo "$@" >>{checkout}/asked'}.items():
        file = checkout / "bin" / name
        file.write_text(f"#!{shutil.which('sh')}\n{body}\n")
        file.chmod(0o755)
    done = call(checkout, "demo")
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    asked = (checkout / "asked").read_text()
    assert asked.splitlines()[-1].endswith(f"python{version}-venv")
    # This one only said that it was installed.
    assert done.returncode == 2
    assert "cannot create virtual environments" in done.stderr

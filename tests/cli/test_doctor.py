from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import pytest

from rlm_rag.api import load_sources
from rlm_rag.cli import doctor, examinations
from rlm_rag.cli.main import main
from rlm_rag.sandbox import layers
from rlm_rag.sandbox.confine.windows import JobObject
from tests.servers.loopback import raw
from tests.servers.openai_chat import OpenAiChatServer

from .conftest import Run
from .processes import fill, small_disk


def test_what_there_is_is_shown_and_keys_by_name_only(process: Run) -> None:
    done = process("doctor", "--json", env={"OPENAI_API_KEY": "sk-very-secret-thing"})
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert set(checks) == {
        "python",
        "packages",
        "extras",
        "sandbox",
        "git",
        "grammars",
        "temporary",
        "traces",
        "cache",
        "settings",
        "keys",
        "local",
    }
    assert checks["keys"]["detail"] == "set: OPENAI_API_KEY"
    assert checks["grammars"]["status"] == "ok"
    assert "docs" in checks["extras"]["detail"]
    assert "very-secret" not in done.stdout + done.stderr
    failed = any(check["status"] == "failed" for check in checks.values())
    assert done.returncode == (1 if failed else 0)


@pytest.mark.parametrize(
    ("before", "told"), [(3, "all installed: b"), (99, "installed: none; not installed: b")]
)
def test_an_extra_that_this_python_needs_no_package_for_counts_as_installed(
    before: int, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = f"no-such-thing>=1; (python_version < '3.{before}') and extra == 'b'"
    monkeypatch.setattr(examinations.importlib.metadata, "requires", lambda _: [wanted])
    assert examinations._extras().detail == told


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """A working folder and a home without settings, and no slow examination."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(doctor, "EXAMINATIONS", (examinations._keys,))
    return monkeypatch


def test_a_model_that_is_set_is_looked_for_and_asked_only_with_ask(
    here: pytest.MonkeyPatch, openai_server: OpenAiChatServer, capsys: pytest.CaptureFixture[str]
) -> None:
    openai_server.own = None
    openai_server.script = lambda request: (
        raw('{"data": [{"id": "qwen"}]}') if request.method == "GET" else "OK"
    )
    here.setenv("RLM_RAG_MODEL", "qwen")
    here.setenv("RLM_RAG_API_BASE", openai_server.api_base)
    assert main(["doctor"]) == 0
    assert "answers and has it" in capsys.readouterr().out
    assert [request.method for request in openai_server.received] == ["GET"]
    assert main(["doctor", "--ask"]) == 0
    assert "qwen answers (18 tokens)" in capsys.readouterr().out
    assert main(["doctor", "--api-base", "http://127.0.0.1:9/v1"]) == 1
    assert "failed  model" in capsys.readouterr().out
    assert main(["doctor", "--model", "offline"]) == 0
    assert "model offline;" in capsys.readouterr().out


def test_without_git_it_is_told_what_is_lost_and_what_to_install(
    here: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    here.setenv("PATH", str(tmp_path))
    check = examinations._git()
    assert (check.status, check.detail) == ("note", "not found")
    assert check.hint is not None and check.hint.endswith("install git")
    (tmp_path / "git").write_text("no program")
    (tmp_path / "git").chmod(0o755)
    assert "does not run: " in examinations._git().detail


def test_a_weak_sandbox_that_starts_is_told_and_does_not_pass(here: pytest.MonkeyPatch) -> None:
    here.setattr("sys.platform", "win32")
    here.setattr(layers, "_CONFINING", (JobObject(),))
    here.setattr(layers, "_verdicts", {"job": ""})
    check = examinations._sandbox()
    assert check.status == "failed"
    assert "files and network open); job starts where it is named" in check.detail
    here.setitem(layers._verdicts, "job", "start a process: OPEN")
    assert "starts where" not in examinations._sandbox().detail


def test_a_model_without_its_key_fails(here: pytest.MonkeyPatch) -> None:
    here.setenv("RLM_RAG_MODEL", "openai/gpt-5-mini")
    here.setenv("RLM_RAG_SUB_MODEL", "offline")
    root, sub = examinations.examine_models({}, asks=False)
    assert (root.status, root.hint is not None) == ("failed", True)
    assert "OPENAI_API_KEY" in root.detail
    assert (sub.status, sub.hint) == ("ok", None)


def test_it_reads_well_without_json_and_a_broken_setting_is_a_finding(
    here: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    here.setenv("RLM_RAG_SANDBOX", "tin")
    here.setenv("FORCE_COLOR", "1")
    assert main(["doctor"]) == 1
    shown = capsys.readouterr().out
    assert "\x1b[33mnote   \x1b[0m keys      none is set\n" in shown
    assert "RLM_RAG_SANDBOX must be one of" in shown


def test_local_models_are_named_as_they_are_given_to_model(
    here: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here.setattr(doctor, "EXAMINATIONS", (examinations._local_models,))
    file = tmp_path / "models" / "small.gguf"
    file.parent.mkdir()
    file.write_bytes(b"GGUF")
    assert main(["doctor"]) == 0
    assert f"local:{file}" in capsys.readouterr().out


@pytest.mark.skipif(sys.platform != "linux", reason="needs a disk of its own")
def test_a_disk_that_is_full_is_noticed(here: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 64) as disk:
        fill(disk, but_bytes=8 << 10)
        for variable in ("XDG_CACHE_HOME", "XDG_STATE_HOME"):
            here.setenv(variable, str(disk))
        here.setattr(tempfile, "tempdir", str(disk))
        found = (examinations._cache(), examinations._traces(), examinations._temporary_folder())
    assert [check.status for check in found] == ["note", "failed", "failed"]
    for check in found:
        assert "cannot be written: No space left on device" in check.detail
        assert "free" in str(check.hint)


def test_a_cache_folder_is_weighed(here: pytest.MonkeyPatch, tmp_path: Path) -> None:
    here.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert "0 sources, 0.0 MB" in examinations._cache().detail
    with load_sources([__file__]) as corpus:
        corpus.search("cache")
    check = examinations._cache()
    assert (check.status, "1 source, " in check.detail) == ("ok", True)

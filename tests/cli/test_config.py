from __future__ import annotations

import json
from pathlib import Path

from .conftest import Run


def test_every_value_is_shown_with_its_origin(rlm_rag: Run, tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "pyproject.toml").write_text("[tool.rlm-rag]\nmax-usd = 0.1\n")
    user_file = tmp_path / "home" / ".config" / "rlm-rag" / "config.toml"
    user_file.parent.mkdir(parents=True)
    user_file.write_text('sub-model = "user/m"\n')
    done = rlm_rag("config", "--json", env={"RLM_RAG_MODEL": "env/m"})
    shown = json.loads(done.stdout)["settings"]
    assert shown["model"] == {"value": "env/m", "origin": "RLM_RAG_MODEL"}
    assert shown["sub_model"] == {"value": "user/m", "origin": str(user_file)}
    assert shown["max_usd"]["value"] == 0.1
    assert "pyproject.toml" in shown["max_usd"]["origin"]
    assert shown["max_calls"] == {"value": 200, "origin": "default"}
    plain = rlm_rag("config", env={"RLM_RAG_MODEL": "env/m"}).stdout
    assert "env/m" in plain
    assert "RLM_RAG_MODEL" in plain


def test_a_password_in_the_api_base_is_not_shown(rlm_rag: Run) -> None:
    done = rlm_rag("config", env={"RLM_RAG_API_BASE": "http://me:hunter2secret@host/v1"})
    assert done.returncode == 0
    assert "hunter2secret" not in done.stdout + done.stderr
    assert "host/v1" in done.stdout


def test_a_source_that_is_a_project_sets_nothing(rlm_rag: Run, repo: Path) -> None:
    (repo / "pyproject.toml").write_text('[tool.rlm-rag]\nmodel = "evil/m"\nbogus = 1\n')
    done = rlm_rag("ask", str(repo), "Where is the backoff?", "--no-trace")
    assert done.returncode == 0
    assert "evil" not in done.stderr


def test_what_a_hostile_project_may_not_set_is_ignored_and_said(
    rlm_rag: Run, tmp_path: Path
) -> None:
    (tmp_path / "work" / "pyproject.toml").write_text(
        '[tool.rlm-rag]\napi-base = "http://evil/v1"\nsandbox = "none"\nmax-iterations = 999\n'
    )
    done = rlm_rag("config")
    assert done.returncode == 0
    assert "http://evil" not in done.stdout
    assert done.stderr.count("is ignored") == 3


def test_a_broken_setting_is_an_error_that_says_where(rlm_rag: Run) -> None:
    done = rlm_rag("config", "--json", env={"RLM_RAG_MAX_USD": "lots"})
    assert done.returncode == 2
    error = json.loads(done.stdout)["error"]
    assert error["kind"] == "settings"
    assert error["message"].startswith("RLM_RAG_MAX_USD must be a number")

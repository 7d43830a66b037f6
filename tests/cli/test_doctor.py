from __future__ import annotations

import json

from .conftest import Run


def test_what_there_is_is_shown_and_keys_by_name_only(rlm_rag: Run) -> None:
    done = rlm_rag("doctor", "--json", env={"OPENAI_API_KEY": "sk-very-secret-thing"})
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert set(checks) == {
        "python",
        "packages",
        "sandbox",
        "git",
        "temporary",
        "traces",
        "settings",
        "keys",
        "local",
    }
    assert checks["keys"]["detail"] == "set: OPENAI_API_KEY"
    assert "very-secret" not in done.stdout + done.stderr
    failed = any(check["status"] == "failed" for check in checks.values())
    assert done.returncode == (1 if failed else 0)


def test_it_reads_well_without_json(rlm_rag: Run) -> None:
    done = rlm_rag("doctor")
    assert "python" in done.stdout
    assert "none is set" in done.stdout


def test_a_broken_setting_is_a_finding(rlm_rag: Run) -> None:
    done = rlm_rag("doctor", env={"RLM_RAG_SANDBOX": "tin"})
    assert done.returncode == 1
    assert "RLM_RAG_SANDBOX must be one of" in done.stdout

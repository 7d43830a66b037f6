"""What README, docs and help show runs: commands and code do what their page says they do."""

from __future__ import annotations

import io
import json
import tomllib
from contextlib import redirect_stdout
from pathlib import Path

import pytest
import yaml

from .prose import (
    PAGES,
    ROOT,
    Fence,
    commands,
    fences,
    fences_of,
    generated,
    is_shown,
    name_of,
    tagged,
)
from .reader import SAYS, Reader


def pages_with(*tags: str) -> list[object]:
    return [
        pytest.param(page, id=name_of(page))
        for page in PAGES
        if any(fence.tag in tags and not fence.needs for fence in fences(page))
    ]


@pytest.mark.parametrize("page", pages_with("console", "sh"))
def test_commands_do_what_their_page_shows(page: Path, reader: Reader) -> None:
    for fence in fences(page):
        if fence.tag == "console":
            check_console(fence, reader)
        elif fence.tag == "sh" and not fence.needs:
            printed = reader.runs(fence.body)
            assert not fence.shown or is_shown(printed, fence.shown), printed


def check_console(fence: Fence, reader: Reader) -> None:
    code = 0
    for command, shown in commands(fence):
        if command == "echo $?":
            assert (f"{code}\n", command) == (shown, command)
            code = 0
            continue
        assert code == 0, f"the command before {command!r} ended with {code}"
        (done,) = reader.shell().run(command)
        code = done.returncode
        assert is_shown(done.stdout, shown), f"$ {command}\n{done.stdout[:2000]}{done.stderr}"
    assert code == 0


def test_the_examples_of_every_help_run(reader: Reader) -> None:
    shown = [fence for fence in fences_of(generated().command_reference()) if fence.tag == "sh"]
    assert len(shown) >= 7
    for fence in shown:
        reader.runs(fence.body)


@pytest.mark.parametrize("page", pages_with("python"))
def test_code_prints_what_its_page_shows(
    page: Path, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in reader.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(reader.work)
    monkeypatch.setattr("builtins.input", lambda prompt: "the last one")
    names: dict[str, object] = {"__name__": "__main__"}
    for fence in fences(page):
        if fence.tag == "python" and not fence.needs:
            run_code(fence, name_of(page), reader, names)


def run_code(fence: Fence, page: str, reader: Reader, names: dict[str, object]) -> None:
    printed = io.StringIO()
    before = reader.requests
    with redirect_stdout(printed):
        exec(compile(reader.here(fence.body), page, "exec"), names)
    if reader.requests > before and not fence.shown:
        # What a model says cannot stand on the page.
        assert "print(" not in fence.body or SAYS in printed.getvalue(), printed.getvalue()
    else:
        assert is_shown(printed.getvalue(), fence.shown), printed.getvalue()


def test_the_job_of_the_page_runs(reader: Reader) -> None:
    (job,) = [yaml.safe_load(fence.body) for _, fence in tagged("yaml")]
    steps = job["jobs"]["changes"]["steps"]
    ran = [reader.runs(step["run"]) for step in steps if "run" in step]
    assert len(ran) == 2
    answer = json.loads((reader.work / "answer.json").read_text(encoding="utf-8"))
    assert [citation["verified"] for citation in answer["citations"]] == [True]


def test_the_settings_file_of_the_page_is_read(reader: Reader) -> None:
    page = ROOT / "docs" / "reference" / "settings.md"
    (shown,) = [fence.body for fence in fences(page) if fence.tag == "toml"]
    file = reader.work.parent / ".config" / "rlm-rag" / "config.toml"
    file.parent.mkdir()
    file.write_text(shown, encoding="utf-8")
    (done,) = reader.shell().run("rlm-rag config --json")
    settings = json.loads(done.stdout)["settings"]
    for key, value in tomllib.loads(shown).items():
        assert settings[key.replace("-", "_")] == {"value": value, "origin": str(file)}

"""The scripts of completion, sourced by the shells themselves."""

from __future__ import annotations

import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from rlm_rag.cli.commands import COMMANDS
from rlm_rag.cli.completion import SHELLS, VARIABLE
from rlm_rag.cli.main import main
from rlm_rag.setting_table import STRATEGIES

from .conftest import COMMAND, Run

BASH = """
eval "$(rlm-rag completion bash)"
completed() {
    COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
    _rlm_rag_completion rlm-rag 2>/dev/null
    echo "${COMPREPLY[*]}"
}
completed rlm-rag re
completed rlm-rag ask --strategy ""
completed rlm-rag eval run ruler : niah_single_
"""
ZSH = """
autoload -Uz compinit && compinit -u -D
eval "$(rlm-rag completion zsh)"
echo $_comps[rlm-rag]
compadd() { print -r -- "${(P)@[-1]}" }
_describe() { local -a found; found=("${(@P)@[-2]}"); print -r -- "${found[@]%%:*}" }
words=(rlm-rag re); CURRENT=2; _rlm_rag_completion
words=(rlm-rag ask --strategy ""); CURRENT=4; _rlm_rag_completion
"""
FISH = """
rlm-rag completion fish | source
complete -C "rlm-rag re" | string split -f1 \\t | string join " "
complete -C "rlm-rag ask --strategy " | string join " "
complete -C "rlm-rag tra"
"""


@pytest.fixture
def shell(environment: dict[str, str], tmp_path: Path) -> dict[str, str]:
    """An environment whose PATH has the command under its name."""
    program = tmp_path / "bin" / "rlm-rag"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {" ".join(COMMAND)} "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return environment | {"PATH": f"{program.parent}:{environment['PATH']}", "TERM": "dumb"}


@pytest.mark.parametrize(
    ("name", "arguments", "script"),
    [
        ("bash", ["--norc"], BASH),
        pytest.param("zsh", ["-f"], ZSH, marks=pytest.mark.deep),
        pytest.param("fish", ["--no-config"], FISH, marks=pytest.mark.deep),
    ],
)
def test_a_shell_completes_commands_and_choices(
    name: str, arguments: list[str], script: str, shell: dict[str, str], tmp_path: Path
) -> None:
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    done = subprocess.run(
        [name, *arguments],
        input=script,
        env=shell,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    lines = done.stdout.split("\n")
    if name == "zsh":
        assert lines.pop(0) == "_rlm_rag_completion"
    wanted = sorted(each for each in COMMANDS if each.startswith("re"))
    assert sorted(lines[0].split()) == wanted, done.stderr
    assert sorted(lines[1].split()) == sorted(STRATEGIES)
    if name == "bash":
        assert lines[2].split() == ["niah_single_1", "niah_single_2", "niah_single_3"]
    if name == "fish":
        assert lines[2].startswith("trace\tList, show")


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        (["ask", "./a"], "file,./a"),
        (["doctor", "--j"], "plain,--json"),
        (["trace", "show", "la"], "plain,last"),
        (["trace", "view", "la"], "plain,last"),
        (["trace", "view", "./t"], "file,./t"),
        (["eval", "run", "ruler:niah_single_1"], "plain,ruler:niah_single_1"),
        (["eval", "run", "./qa"], "file,./qa"),
        (["completion", "z"], "plain,zsh"),
    ],
)
def test_files_options_runs_and_shells_are_completed(
    words: list[str],
    completed: str,
    capsysbinary: pytest.CaptureFixture[bytes],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv(VARIABLE, "bash_complete")
    monkeypatch.setenv("COMP_WORDS", " ".join(["rlm-rag", *words]))
    monkeypatch.setenv("COMP_CWORD", str(len(words)))
    assert main([]) == 0
    assert capsysbinary.readouterr().out.decode().split() == [completed]


def test_after_a_command_that_is_none_nothing_is_said(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "rlm-rag nope ")
    monkeypatch.setenv("COMP_CWORD", "2")
    main([])
    shown = capsys.readouterr()
    assert (shown.out.strip(), shown.err) == ("", "")


def test_an_unknown_shell_is_named_with_those_there_are(process: Run) -> None:
    done = process("completion", "tcsh")
    assert done.returncode == 2
    assert all(shell in done.stderr for shell in SHELLS)

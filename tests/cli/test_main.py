from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import click
import pytest

from rlm_rag.cli import failures, main
from rlm_rag.cli.commands import COMMANDS, root
from rlm_rag.errors import SourceError

from .conftest import COMMAND, Run


def test_help_goes_to_standard_output_and_names_every_command(process: Run) -> None:
    done = process("--help")
    assert (done.returncode, done.stderr) == (0, "")
    for name in COMMANDS:
        assert f"  {name} " in done.stdout
    assert process().stdout == done.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name: str) -> None:
    context = click.Context(root)
    command = root.get_command(context, name)
    assert command is not None
    assert command.help
    assert command.name == name


def test_an_unknown_command_names_the_nearest(process: Run) -> None:
    done = process("serch", ".", "x")
    assert done.returncode == 2
    assert done.stdout == ""
    assert "There is no command 'serch'. Did you mean search?" in done.stderr


def test_an_unknown_option_names_the_nearest(process: Run) -> None:
    done = process("ask", ".", "x", "--modle", "m")
    assert done.returncode == 2
    assert "--model" in done.stderr


def test_a_usage_error_obeys_json(process: Run) -> None:
    done = process("search", "--json", "only-one")
    assert done.returncode == 2
    shown = json.loads(done.stdout)
    assert shown["schema_version"] == 1
    assert shown["error"]["kind"] == "usage"
    assert "rlm-rag search" in shown["error"]["hint"]
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [(["ask", "--json"], True), (["grep", "--", "--json"], False), (["ask"], False)],
)
def test_json_is_wanted_only_as_an_option(arguments: list[str], wanted: bool) -> None:
    assert failures.wants_json(arguments) is wanted


def test_an_error_is_a_message_and_a_hint(capsys: pytest.CaptureFixture[str]) -> None:
    code = failures.report(SourceError("no such folder: x", hint="did you mean y?"), as_json=False)
    assert code == 2
    assert capsys.readouterr() == ("", "rlm-rag: no such folder: x\n  did you mean y?\n")


def test_an_unexpected_error_is_one_line_and_says_how_to_see_more(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(failures.DEBUG_VARIABLE, raising=False)
    assert failures.report(ZeroDivisionError("by zero"), as_json=False) == 2
    shown = capsys.readouterr().err
    assert "unexpected ZeroDivisionError: by zero" in shown
    assert "RLM_RAG_DEBUG=1 shows the traceback" in shown
    monkeypatch.setenv(failures.DEBUG_VARIABLE, "1")
    try:
        raise ZeroDivisionError("by zero")
    except ZeroDivisionError as error:
        failures.report(error, as_json=False)
    assert "Traceback (most recent call last)" in capsys.readouterr().err


def test_no_key_is_ever_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a-key-of-no-known-shape-0123")
    monkeypatch.setenv(failures.DEBUG_VARIABLE, "1")
    error = ValueError("header a-key-of-no-known-shape-0123 and sk-abcdefghijklmnop")
    failures.report(error, as_json=False)
    failures.report(error, as_json=True)
    shown = "".join(capsys.readouterr())
    assert "no-known-shape" not in shown
    assert "sk-abcdefghij" not in shown


def test_a_full_disk_says_what_to_do() -> None:
    failure = failures.describe(OSError(28, "No space left on device", "/tmp/x"))
    assert failure.kind == "disk_full"
    assert failure.hint is not None and "TMPDIR" in failure.hint


def test_main_returns_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["--help"]) == 0
    assert main.main(["nonsense"]) == 2
    capsys.readouterr()


@pytest.mark.parametrize("arguments", ["--help", "--version", "ask --help", "trace show -h"])
def test_a_reader_that_left_ends_the_command_quietly(
    environment: dict[str, str], arguments: str
) -> None:
    # Nobody reads from the start: of a shell's pipe, the reader may still be there.
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = _writing_to(writing, arguments, environment)
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", ["config", "--help", "--version"])
def test_a_full_disk_behind_standard_output_is_said(
    environment: dict[str, str], arguments: str
) -> None:
    with Path("/dev/full").open("w") as full:
        done = _writing_to(full.fileno(), arguments, environment)
    assert done.returncode == 1
    assert "cannot write to standard output: No space left on device" in done.stderr
    assert "Traceback" not in done.stderr


def _writing_to(
    stdout: int, arguments: str, environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments.split()],
        env=environment,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
    )


@pytest.mark.skipif(os.name != "posix", reason="shell redirections")
def test_closed_streams_do_no_harm(environment: dict[str, str]) -> None:
    script = f"{' '.join(COMMAND)} config >&- 2>&-; echo $?"
    done = subprocess.run(
        ["bash", "-c", script], env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "0\n"


def test_any_text_fits_an_ascii_stream(process: Run) -> None:
    done = process("sérch", env={"PYTHONIOENCODING": "ascii:strict"})
    assert done.returncode == 2
    assert "s\\xe9rch" in done.stderr


def test_an_option_without_its_value_leads_to_the_help_of_its_command(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main.main(["ask", "repo", "lost?", "--fallback-model"]) == 2
    assert "see rlm-rag ask --help" in capsys.readouterr().err

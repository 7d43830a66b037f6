"""`rlm-rag map`: what is printed, and what it says to the shell."""

from __future__ import annotations

import json
import re
import sys
from contextlib import redirect_stderr
from pathlib import Path

import pytest

from rlm_rag import FileAnswer
from rlm_rag.cli.main import main
from rlm_rag.cli.progress import ERASE_LINE
from rlm_rag.counts import counted
from rlm_rag.mapping import Map
from tests.cli.processes import small_disk
from tests.cli.terminals import Terminal
from tests.servers.loopback import failed, reply
from tests.servers.openai_chat import OpenAiChatServer


@pytest.fixture
def arguments(
    openai_server: OpenAiChatServer, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    """A map of `repo` by a server that answers yes."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    openai_server.script = lambda request: reply("yes\x1b[2J")
    return ["map", str(repo), "Is it?", "--model", "test", "--api-base", openai_server.api_base]


def test_answers_go_to_standard_output_a_line_each(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments, "--include", "*.py"]) == 0
    shown = capsys.readouterr()
    assert shown.out.isascii() and "\x1b" not in shown.out
    rows = [json.loads(line) for line in shown.out.splitlines()]
    assert {row["path"] for row in rows} == {"src/client.py", "src/retry.py"}
    assert rows[0]["answer"] == "yes\x1b[2J"
    assert shown.err.splitlines() == [
        "2 documents to ask about, in about 2 calls",
        "2 answered, 2 calls, 36 tokens, $0.0000",
    ]


@pytest.mark.parametrize(
    ("own", "said"),
    [
        ((), "8,192 tokens, unless the server says another"),
        (("--context-window", "8000"), "8,000 tokens"),
    ],
)
def test_the_window_that_the_calls_are_counted_for_is_said_where_documents_are_cut(
    arguments: list[str],
    repo: Path,
    capsys: pytest.CaptureFixture[str],
    own: tuple[str, ...],
    said: str,
) -> None:
    (repo / "long.py").write_text("value = compute(value)\n" * 2_000)
    assert main([*arguments, "--include", "long.py", *own]) == 0
    first = capsys.readouterr().err.splitlines()[0]
    assert re.fullmatch(rf"1 document to ask about, in about \d calls at a window of {said}", first)


@pytest.mark.skipif(sys.platform != "linux", reason="needs a disk of its own")
def test_answers_that_have_no_room_are_printed(
    arguments: list[str],
    openai_server: OpenAiChatServer,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    openai_server.script = lambda request: reply("x" * 100_000)
    with small_disk(tmp_path / "disk", 128) as disk:
        out = disk / "out.jsonl"
        assert main([*arguments, "--concurrency", "1", "-o", str(out)]) == 2
        shown = capsys.readouterr()
        assert len(out.read_text().splitlines()) == 1
        printed = shown.out.splitlines()
        assert f"{counted(len(printed), 'answer')} could not be written, and went to" in shown.err
        assert f"1 of 3 answers are in {out}" in shown.err
        kept = tmp_path / "kept.jsonl"
        kept.write_text(out.read_text() + shown.out)
    # What was printed is what the file would hold: the same command goes on with both.
    assert len(openai_server.received) == 1 + len(printed)
    assert main([*arguments, "-o", str(kept)]) == 0
    assert len(openai_server.received) == 3


def test_what_failed_makes_it_done_in_part_and_the_same_command_goes_on(
    arguments: list[str],
    openai_server: OpenAiChatServer,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = ["-o", str(tmp_path / "out.jsonl")]
    openai_server.script = lambda request: (
        failed(400, "no") if "client.py" in request.prompt else reply("yes")
    )
    assert main([*arguments, *out]) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "1 document failed" in shown.err
    assert "1 time: http://127.0.0.1:" in shown.err and "answered 400" in shown.err
    assert main([*arguments, *out, "--max-calls", "1", "--json"]) == 1
    openai_server.script = ["yes"]
    assert main([*arguments, *out, "--json", "-q"]) == 0
    shown = capsys.readouterr()
    total = json.loads(shown.out.partition("\n}\n")[2])
    assert (total["answered"], total["known"], total["stop_reason"]) == (1, 2, "answered")
    assert main([*arguments, *out]) == 0
    assert "no document to ask about; 3 were answered before" in capsys.readouterr().err


def test_a_limit_is_said_and_is_done_in_part(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments, "--max-calls", "1"]) == 1
    shown = capsys.readouterr()
    assert len(shown.out.splitlines()) == 1
    assert "stopped early (budget_calls): 2 documents were not asked about" in shown.err


def test_a_document_that_was_read_in_part_is_printed_and_said(
    arguments: list[str], repo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (repo / "long.md").write_text("A paragraph of some words.\n\n" * 3_000)
    assert main([*arguments, "--include", "long.md", "--max-calls", "1"]) == 1
    shown = capsys.readouterr()
    (row,) = [json.loads(line) for line in shown.out.splitlines()]
    assert (row["path"], row["ok"], row["usage"]["calls"]) == ("long.md", False, 1)
    assert "stopped early (budget_calls): 1 document was read in part" in shown.err
    assert "not asked about" not in shown.err


def test_an_estimate_heeds_the_limit_of_calls(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    estimates = []
    for limit in ((), ("--max-calls", "2")):
        assert main([*arguments, *limit, "--estimate", "--json"]) == 0
        estimates.append(json.loads(capsys.readouterr().out))
    whole, cut = estimates
    for case in ("low", "likely", "high"):
        assert (whole[case]["calls"], cut[case]["calls"]) == (3, 2)
        for tokens in ("input_tokens", "output_tokens"):
            assert abs(cut[case][tokens] - whole[case][tokens] * 2 / 3) <= 1
    assert "of which --max-calls lets 2 be sent" in cut["assumptions"][0]
    assert "--max-calls" not in str(whole["assumptions"])


def test_an_estimate_sends_nothing(
    arguments: list[str], openai_server: OpenAiChatServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments, "--estimate"]) == 0
    assert "3 calls" in capsys.readouterr().out
    assert openai_server.received == []
    assert main([*arguments, "--json"]) == 2
    assert "--out" in json.loads(capsys.readouterr().out)["error"]["message"]


@pytest.mark.parametrize("source", ["repo", "named=repo", "repo/**/*.jsonl"])
def test_what_it_writes_into_its_source_is_left_out_and_said_once(
    arguments: list[str],
    openai_server: OpenAiChatServer,
    repo: Path,
    capsys: pytest.CaptureFixture[str],
    source: str,
) -> None:
    (repo / "answers.jsonl").touch()
    (repo / "sub").mkdir()
    (repo / "sub/answers.jsonl").write_text('{"question": "A document like others?"}\n')
    command = ["map", source.replace("repo", str(repo)), *arguments[2:], "--hidden"]
    command += ["-o", str(repo / "answers.jsonl")]
    assert main(command) == 0
    capsys.readouterr()
    sent = len(openai_server.received)
    assert main(command) == 0
    assert len(openai_server.received) == sent, "its own answers are no documents"
    own = "named/answers.jsonl" if "=" in source else "answers.jsonl"
    assert f"{own}, where the answers go, is left out" in capsys.readouterr().err
    rows = [json.loads(line) for line in (repo / "answers.jsonl").read_text().splitlines()]
    assert any("sub/answers.jsonl" in row["path"] for row in rows)


def test_answers_are_not_asked_about_themselves(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments, "-o", "out.jsonl"]) == 0
    assert main(["map", "out.jsonl", *arguments[2:], "-o", str(tmp_path / "out.jsonl")]) == 2
    assert "is the source itself" in capsys.readouterr().err


def test_a_closed_standard_output_is_refused_before_any_call(
    arguments: list[str],
    openai_server: OpenAiChatServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("rlm_rag.cli.streams.is_closed", lambda: True)
    assert main(arguments) == 2
    assert "standard output is closed" in capsys.readouterr().err
    assert openai_server.received == []


def test_a_dash_is_standard_output(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments, "-o", "-"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
    assert not (tmp_path / "-").exists()


def test_a_refused_key_ends_it_and_says_what_is_kept(
    arguments: list[str], openai_server: OpenAiChatServer, capsys: pytest.CaptureFixture[str]
) -> None:
    out = ["-o", "out.jsonl", "--concurrency", "1"]
    openai_server.script = lambda request: (
        reply("yes") if "README" in request.prompt else failed(401, "no")
    )
    assert main([*arguments, *out]) == 2
    assert len(openai_server.received) == 2
    said = capsys.readouterr().err
    assert "1 of 3 answers are in out.jsonl; the same command goes on from there" in said
    assert "answered 401" in said


def test_answers_that_were_cut_are_counted(
    arguments: list[str], openai_server: OpenAiChatServer, capsys: pytest.CaptureFixture[str]
) -> None:
    openai_server.script = lambda request: reply("half", finish_reason="length")
    assert main(arguments) == 0
    assert "3 answers were cut by the model's output limit" in capsys.readouterr().err


def test_an_interrupt_clears_the_line_and_says_how_to_go_on(
    arguments: list[str], openai_server: OpenAiChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    openai_server.script = lambda request: reply(
        "yes", delay_seconds=0 if "README" in request.prompt else 9
    )

    def interrupted(self: Map) -> FileAnswer:
        take(self)
        raise KeyboardInterrupt

    take = Map.__next__
    monkeypatch.setattr(Map, "__next__", interrupted)
    with redirect_stderr(screen):
        assert main([*arguments, "-o", "out.jsonl"]) == 130
    shown = screen.text.split(ERASE_LINE)
    assert any("mapping 3 documents" in line for line in shown[:-1])
    assert shown[-1] == (
        "1 of 3 answers are in out.jsonl; the same command goes on from there\ninterrupted\n"
    )


def test_a_file_that_cannot_be_made_ends_it_before_anything_is_said_or_asked(
    arguments: list[str],
    openai_server: OpenAiChatServer,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "nowhere" / "z"
    assert main([*arguments, "-o", str(out)]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith(f"rlm-rag: {out} cannot be written: ")
    assert "what was written stays" not in shown.err
    assert openai_server.prompts == []


def test_a_file_without_a_name_is_refused_for_that(
    arguments: list[str], openai_server: OpenAiChatServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments, "-o", ""]) == 2
    assert "the name is empty" in capsys.readouterr().err
    assert openai_server.prompts == []

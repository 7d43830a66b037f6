"""`rlm-rag mcp` called in ways that lead to no server."""

from __future__ import annotations

import sys

import pytest

from rlm_rag.cli.main import main


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "a source is missing"),
        (["-"], "standard input is where the client speaks"),
        (["docs", "--port", "8765"], "--port goes with --http"),
        (["docs", "--http", "--port", "99999"], "99999 is not in the range"),
        (["docs", "--model", "openai/gpt-5-mini"], "OPENAI_API_KEY"),
    ],
)
def test_what_cannot_be_served_is_told_before_anything_is_read(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["mcp", *arguments]) == 2
    shown = capsys.readouterr()
    assert said in shown.err
    assert shown.out == ""


def test_a_port_that_is_taken_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    from rlm_rag.mcp.http import listening

    with listening(0) as taken:
        port = str(taken.getsockname()[1])
        assert main(["mcp", "docs", "--http", "--port", port]) == 2
    assert f"cannot listen on 127.0.0.1:{port}" in capsys.readouterr().err


def test_where_the_sdk_is_missing_the_command_that_installs_it_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    assert main(["mcp", "docs"]) == 2
    assert 'pip install "rlm-rag[mcp]"' in capsys.readouterr().err

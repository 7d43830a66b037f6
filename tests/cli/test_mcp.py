"""`rlm-rag mcp` called in ways that lead to no server."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rlm_rag import RLM, SearchableCorpus
from rlm_rag.cli.main import main
from rlm_rag.mcp import serving


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


def test_without_standard_streams_there_is_nobody_to_serve(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", None)
    assert main(["mcp", "docs"]) == 2
    assert "standard input or output is closed" in capsys.readouterr().err


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


def test_a_model_of_the_environment_that_cannot_be_used_costs_no_more_than_ask(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    served: list[object] = []
    monkeypatch.setattr(serving, "serve", lambda *_, rlm, **options: served.append(rlm))
    monkeypatch.setenv("RLM_RAG_MODEL", "openai/gpt-5-mini")
    assert main(["mcp", str(tmp_path)]) == 0
    assert served == [None]
    shown = capsys.readouterr().err
    assert "there will be no ask: " in shown
    assert "(RLM_RAG_MODEL)" in shown
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789")
    assert main(["mcp", str(tmp_path)]) == 0
    assert isinstance(served[-1], RLM)


def test_what_is_told_of_a_load_is_said_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.txt").write_bytes("größe\n".encode("latin-1") * 20)

    def twice(_sources: object, load: Callable[[], SearchableCorpus], **_options: object) -> None:
        for _ in range(2):
            load().close()

    monkeypatch.setattr(serving, "serve", twice)
    assert main(["mcp", str(tmp_path)]) == 0
    assert capsys.readouterr().err.count("warning: a.txt: ") == 1

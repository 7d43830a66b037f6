from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.index.__main__ import main


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in range(12):
        text = f"def handler_{number}(request, response):\n    return request.retry({number})\n"
        (tmp_path / f"m{number}.py").write_text(text * 30)
    return tmp_path


def test_engines_are_measured_beside_each_other(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ["rlm-rag", "plain Python", "FTS5"]
    options = [word for name in names for word in ("--only", name)]
    assert main([str(folder), "--json", *options]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["corpus"]["documents"] == 12
    assert list(report["engines"]) == names
    for measured in report["engines"].values():
        assert measured["build_wall_s"] > 0
        assert measured["query_p50_ms"] > 0
        assert measured["update_ms"] > 0
    assert report["engines"]["rlm-rag"]["open_ms"] > 0


def test_an_engine_that_is_not_installed_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(folder), "--only", "plain Python", "--only", "tantivy"]) == 0
    shown = capsys.readouterr().out
    assert "| plain Python |" in shown
    assert "tantivy" in shown

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest

from benchmarks import overhead
from benchmarks.corpora import documents
from benchmarks.environment import machine
from benchmarks.figures import Figure, Report, Section, interleaved
from benchmarks.plan import KB, Plan

TINY = Plan(
    corpus_bytes=(KB, 64 * KB),
    processes=1,
    starts=1,
    turns=2,
    runs=1,
    leaf_calls=4,
    leaf_rounds=1,
    index_rounds=1,
    queries=2,
    source=Path(overhead.__file__).parent,
    with_litellm=False,
)


@pytest.mark.deep
def test_every_section_is_measured_and_nothing_is_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert overhead.main(["--json"], plan=TINY) == 0
    shown = json.loads(capsys.readouterr().out)
    names = {
        figure["name"]: figure for section in shown["sections"] for figure in section["figures"]
    }
    assert {
        "rlm-rag --help",
        "none, 1 KB",
        "none, 64 KB",
        "ask, one turn",
        "rlm-rag ask, whole command",
        "in process",
        "HTTP, direct",
        "query",
    } <= set(names)
    assert all(figure["median"] > 0 for figure in names.values())
    assert names["none, 64 KB"]["base"] == "none, 1 KB"
    assert shown["machine"].keys() >= {"Python", "cores"}
    assert list(tmp_path.iterdir()) == []


def test_a_generated_corpus_has_the_size_asked_for_and_is_the_same_each_time() -> None:
    first = list(documents(100 * KB))
    assert sum(len(content) for _, content in first) == 100 * KB
    assert len({path for path, _ in first}) == len(first)
    assert first == list(documents(100 * KB))


def test_rounds_are_interleaved_and_the_first_does_not_count() -> None:
    order: list[str] = []

    def action(name: str) -> float:
        order.append(name)
        return float(len(order))

    taken = interleaved(2, {"a": lambda: action("a"), "b": lambda: action("b")})
    assert order == ["a", "b"] * 3
    assert taken == {"a": [3.0, 5.0], "b": [4.0, 6.0]}


def test_a_table_shows_medians_ratios_and_targets() -> None:
    section = Section(
        "Turns",
        (
            Figure(name="small", unit="ms", values=(1.0, 2.0, 9.0), at_most=1.5),
            Figure(name="large", unit="ms", values=(4.0,), base="small", at_most=5),
        ),
        ("Not measured: a layer.",),
    )
    lines = Report(machine(), (section,)).to_markdown().splitlines()
    assert "| small | 2 ms | 1 - 9 | 3 |  | <= 1.5: missed |" in lines
    assert "| large | 4 ms |  | 1 | 2 x small | <= 5: met |" in lines
    assert lines[-1] == "Not measured: a layer."

"""Each numbered script under `examples/` prints what its last lines say that it prints."""

from __future__ import annotations

import re
import runpy
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import rlm_rag
from rlm_rag.evals import Models, RunConfig, RunFolder, report_of, start
from rlm_rag.evals.tasks import task_entries
from tests.installed import lay_plugin

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
SCRIPTS = sorted(EXAMPLES.glob("[0-9]*.py"))
MAX_LINES = 49


def shown(script: Path) -> str:
    """What a script says that it prints: the comment that ends it."""
    _, _, comment = script.read_text(encoding="utf-8").partition("\n# Prints:\n")
    return "".join(f"{line.removeprefix('#').removeprefix(' ')}\n" for line in comment.splitlines())


def test_the_scripts_are_numbered_short_and_say_what_they_show() -> None:
    assert [int(script.name[:2]) for script in SCRIPTS] == list(range(1, len(SCRIPTS) + 1))
    table = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    for script in SCRIPTS:
        text = script.read_text(encoding="utf-8")
        assert text.count("\n") <= MAX_LINES, script.name
        assert re.match(r'"""[^\n]+"""\n', text), script.name
        assert shown(script), script.name
        assert f"| [{script.name}]({script.name}) | " in table


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_an_example_prints_what_it_says(
    script: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    runpy.run_path(str(script), run_name="__main__")
    assert capsys.readouterr().out == shown(script)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Lay the plugin out as pip would have installed it."""
    lay_plugin(tmp_path / "site")
    monkeypatch.syspath_prepend(tmp_path / "site")
    yield
    sys.modules.pop("diary_plugin", None)


@pytest.mark.usefixtures("installed")
def test_the_plugin_loads_its_source_and_runs_its_benchmark_on_its_model(tmp_path: Path) -> None:
    diary = tmp_path / "notes.sqlite"
    with closing(sqlite3.connect(diary)) as database, database:
        database.execute("CREATE TABLE entries (day, text)")
        database.execute("INSERT INTO entries VALUES ('monday', 'The belt stood still.')")
    with rlm_rag.load(f"diary:{diary}") as corpus:
        assert [(each.path, each.content) for each in corpus] == [
            ("monday.md", "The belt stood still.")
        ]

    assert "diary-colours" in [entry.name for entry in task_entries()]
    run = tmp_path / "run"
    models = Models(model="echo:anything")
    start(RunConfig(tasks=("diary-colours",), strategies=("direct",), models=models), run)
    # Asked directly, it repeats the prompt, which holds all doors and so every colour.
    (cell,) = report_of([RunFolder.open(run)]).cells
    assert (cell.scored, cell.score) == (3, 1.0)

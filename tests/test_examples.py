"""Each numbered script under `examples/` prints what its last lines say that it prints."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

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

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest

from benchmarks.subcalls.__main__ import Sizes, main

TINY = Sizes(
    calls=4,
    quick_calls=4,
    children=(2,),
    large=(3, 6),
    storm_calls=101,
    rounds=1,
    litellm=False,
)


def test_every_section_is_measured_and_nothing_is_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert main(["--json"], sizes=TINY) == 0
    shown = json.loads(capsys.readouterr().out)
    figures = {
        (section["title"], figure["name"]): figure
        for section in shown["sections"]
        for figure in section["figures"]
    }
    assert {name for _, name in figures} == {
        "the model's time alone",
        "rlm-rag, in process",
        "rlm-rag, HTTP",
        "2 children",
        "3 prompts, a call",
        "6 prompts, a call",
        "3 prompts, memory added",
        "6 prompts, memory added",
        "as fast as the rate allows",
        "rlm-rag",
        "requests refused",
        "the whole run",
        "taken up again",
        "calls paid for twice",
    }
    twice = next(each for (_, name), each in figures.items() if name == "calls paid for twice")
    assert twice["median"] == 0.0
    storm = next(figure for (title, name), figure in figures.items() if name == "rlm-rag")
    # The hundred and first call has to wait for the provider's next second.
    assert 0.9 <= storm["median"] < 5
    assert "--peers" in shown["sections"][0]["notes"][0]
    assert list(tmp_path.iterdir()) == []

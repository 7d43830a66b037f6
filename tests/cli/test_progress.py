"""A load that takes long says how far it is, on a terminal and nowhere else."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from rlm_rag.cli import progress, streams
from rlm_rag.loaders.source import load_corpus


def test_nothing_is_shown_of_a_load_that_is_soon_done(capsys: pytest.CaptureFixture[str]) -> None:
    shown = progress.LoadProgress()
    with load_corpus(["a", "b"], on_progress=shown):
        shown.close()
    assert capsys.readouterr().err == ""


def test_a_long_load_has_one_line_that_goes_at_its_end(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "SHOWN_AFTER_SECONDS", 0.0)
    monkeypatch.setattr(streams, "shows_progress", lambda: True)
    with progress.load_progress() as shown, load_corpus(["a" * 10**6] * 3, on_progress=shown):
        pass
    line, rest = capsys.readouterr().err.removeprefix("\r\x1b[K").split("\r\x1b[K")
    assert line == "loading: 1 document, 1 MB, 0 s"
    assert rest == ""


def test_the_line_comes_when_a_second_has_passed_and_not_before(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SimpleNamespace(now=50.0)
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: clock.now))
    shown = progress.LoadProgress()
    said = []
    for clock.now in (50.0, 50.99, 51.0, 51.05, 51.2):
        shown(7, 2_000_000)
        said.append(capsys.readouterr().err)
    line = "\r\x1b[Kloading: 7 documents, 2 MB, 1 s"
    assert said == ["", "", line, "", line]


def test_off_a_terminal_there_is_no_progress() -> None:
    with progress.load_progress() as shown:
        assert shown is None


def test_an_index_that_takes_long_has_a_line_that_goes_when_all_is_indexed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    shown = progress.IndexProgress()
    shown(0, 1999)
    shown(1999, 1999)
    assert capsys.readouterr().err == ""
    for done in (0, 40_000, 41_000, 42_000):
        shown(done, 42_000)
    first, second, third, end = capsys.readouterr().err.removeprefix("\r\x1b[K").split("\r\x1b[K")
    assert first == "indexing: 0 of 42,000 documents"
    # What is begun to be shown is shown to the end.
    assert (second, third, end) == (
        "indexing: 40,000 of 42,000 documents",
        "indexing: 41,000 of 42,000 documents",
        "",
    )

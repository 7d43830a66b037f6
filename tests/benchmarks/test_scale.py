from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.scale import texts
from benchmarks.scale.__main__ import main
from benchmarks.scale.small_files import make_tree


def test_copies_of_a_text_are_in_other_words_and_the_same_every_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words = "import library, consider prefixes, postfix, windows, corpora; return nothing\n"
    monkeypatch.setattr(texts, "_library", lambda: (("a.py", words), ("b.py", words * 2)))
    first = dict(texts.documents(1000))
    assert dict(texts.documents(1000)) == first
    assert 1000 <= sum(map(len, first.values())) < 1200
    copies = [text for path, text in first.items() if path.endswith("/a.py")]
    assert len(set(copies)) == len(copies) > 3


def test_one_index_is_measured_without_ray(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--megabytes", "1", "--shards", ""])
    *_, row = capsys.readouterr().out.splitlines()
    assert row.startswith("| whole | ")


def test_rows_that_the_folder_has_are_not_measured_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--megabytes", "1", "--shards", "", "--keep", str(tmp_path)]
    main(arguments)
    *_, first = capsys.readouterr().out.splitlines()
    main(arguments)
    *_, second = capsys.readouterr().out.splitlines()
    assert second == first
    (tmp_path / "whole.json").unlink()
    main(arguments)
    *_, third = capsys.readouterr().out.splitlines()
    assert third != first


def test_small_files_are_as_many_and_as_large_as_asked_for(tmp_path: Path) -> None:
    done = make_tree(tmp_path, files=120, total_bytes=600_000)
    sizes = [path.stat().st_size for path in tmp_path.rglob("*.py")]
    assert len(sizes) == 120
    assert 400_000 < done < 800_000
    assert 2 * max(sizes) > done / 120


@pytest.mark.deep
def test_plain_is_killed_and_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Set by the measurement, and so put back.
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    keep = ["--keep", str(tmp_path / "work")]
    main(["--plain", "--files", "4000", "--gb", "0.02", *keep])
    said = capsys.readouterr().out
    assert said.count("| load and index, killed") == 1
    assert "first search" in said.splitlines()[-1]

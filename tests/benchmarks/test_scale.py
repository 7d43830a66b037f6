from __future__ import annotations

import pytest

from benchmarks.scale import texts
from benchmarks.scale.__main__ import main


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

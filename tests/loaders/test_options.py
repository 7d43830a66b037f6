"""What a load is told, and what is on its way into the packed file."""

from __future__ import annotations

from pathlib import Path

from rlm_rag.holes import write_holes
from rlm_rag.loaders.options import Entry
from rlm_rag.packed import PackedCorpus
from rlm_rag.packing import PackedWriter, StoredText


def test_the_size_of_a_text_is_known_where_the_text_lies_elsewhere(tmp_path: Path) -> None:
    with PackedWriter(tmp_path / "whole") as writer:
        writer.add("a.md", "grö\ud800ße")
    with PackedCorpus.open(tmp_path / "whole") as whole:
        write_holes(whole, tmp_path / "holes")
    with PackedCorpus.open(tmp_path / "holes") as corpus:
        assert Entry("a.md", StoredText(corpus, 0)).size_bytes == 10
    assert Entry("a.md", "grö\ud800ße").size_bytes == 10

"""A corpus as its callers see it: a sequence, immutable, gone when they are done."""

from __future__ import annotations

import copy
import gc
import pickle
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from rlm_rag.corpus import Corpus, Document, Skipped
from rlm_rag.errors import PackedCorpusError, SourceError


@pytest.fixture
def corpus() -> Iterator[Corpus]:
    documents = [("a.py", "x = 1\r\ny = 2"), ("b/ü.md", "é\n"), ("empty", "")]
    with Corpus.from_documents(documents, skipped=[Skipped("c.bin", "binary")]) as made:
        yield made


def test_it_is_a_sequence_of_documents(corpus: Corpus) -> None:
    assert isinstance(corpus, Sequence)
    assert [document.path for document in corpus] == ["a.py", "b/ü.md", "empty"]
    assert corpus[0] == Document("a.py", "x = 1\r\ny = 2", 2, 12, None)
    assert corpus[-1].path == "empty"
    assert [document.path for document in corpus[1:]] == ["b/ü.md", "empty"]
    assert corpus[::-1] == list(reversed(corpus))
    assert corpus.index(corpus[1]) == 1
    with pytest.raises(IndexError):
        corpus[3]


def test_documents_are_found_by_path(corpus: Corpus) -> None:
    assert corpus["b/ü.md"].content == "é\n"
    assert corpus.get("b/ü.md") == corpus[1]
    assert corpus.get("nowhere") is None
    assert corpus.get("nowhere", "default") == "default"
    assert "a.py" in corpus and corpus[0] in corpus
    assert "nowhere" not in corpus and Document("a.py", "other", 1, 5) not in corpus
    with pytest.raises(KeyError, match="nowhere"):
        corpus["nowhere"]


def test_totals_and_what_was_left_out_are_known(corpus: Corpus) -> None:
    assert corpus.skipped == (Skipped("c.bin", "binary"),)
    assert corpus.line_count == 3
    assert corpus.total_bytes == 15
    assert list(corpus.paths()) == ["a.py", "b/ü.md", "empty"]
    assert corpus[0].lines() == ["x = 1", "y = 2"]
    assert corpus[2].lines() == []


def test_it_cannot_be_changed(corpus: Corpus) -> None:
    for name in ("shape", "skipped", "anything"):
        with pytest.raises(AttributeError):
            setattr(corpus, name, 1)
    with pytest.raises(AttributeError):
        corpus[0].content = "x"  # type: ignore[misc]


def test_pickling_and_copying_are_refused_with_what_to_do_instead(corpus: Corpus) -> None:
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="packed_path"):
            attempt(corpus)


def test_skipped_and_warnings_may_grow_while_documents_are_made() -> None:
    skipped: list[Skipped] = []
    warnings: list[str] = []

    def documents() -> Iterator[tuple[str, str]]:
        yield "a", "1"
        skipped.append(Skipped("b", "binary"))
        warnings.append("a: odd")

    with Corpus.from_documents(documents(), skipped=skipped, warnings=warnings) as corpus:
        assert corpus.skipped == (Skipped("b", "binary"),)
        assert corpus.warnings == ("a: odd",)


def test_documents_outlive_the_corpus(corpus: Corpus) -> None:
    document = corpus[0]
    corpus.close()
    corpus.close()
    assert document.content == "x = 1\r\ny = 2"
    with pytest.raises(ValueError, match="closed"):
        corpus[0]


def test_its_file_is_private_and_gone_after_close(corpus: Corpus) -> None:
    file = corpus.packed_path
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    corpus.close()
    assert not file.parent.exists()


def test_its_file_is_gone_when_it_is_forgotten() -> None:
    corpus = Corpus.from_documents([("a", "1")])
    folder = corpus.packed_path.parent
    del corpus
    gc.collect()
    assert not folder.exists()


def test_a_failure_halfway_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(SourceError):
        Corpus.from_documents([("a", "1"), ("a", "2")])
    assert list(tmp_path.iterdir()) == []


def test_a_temporary_folder_that_is_missing_is_an_error_with_a_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    with pytest.raises(PackedCorpusError, match="temporary folder") as caught:
        Corpus.from_documents([("a", "1")])
    assert "TMPDIR" in str(caught.value.hint)


def test_the_same_documents_have_the_same_fingerprint(corpus: Corpus) -> None:
    pairs = [(document.path, document.content) for document in corpus]
    with Corpus.from_documents(pairs, shape="mapping") as same:
        assert same.fingerprint == corpus.fingerprint
        assert same.shape == "mapping"
    with Corpus.from_documents(pairs[::-1]) as other:
        assert other.fingerprint != corpus.fingerprint

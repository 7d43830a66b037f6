"""What `pack` writes, `load` reads back, byte for byte."""

from __future__ import annotations

import io
import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_rag.corpus import Corpus
from rlm_rag.errors import SourceError
from rlm_rag.loaders.pack import write_jsonl
from rlm_rag.loaders.source import load_corpus

CHARACTERS = st.characters(codec=None) | st.sampled_from(
    "\r\n\x00\ufeff\ud83d\ude00\u2028\U0001f600"
)
ANY_TEXT = st.text(CHARACTERS, max_size=30)


def pack(corpus: Corpus) -> str:
    sink = io.StringIO()
    assert write_jsonl(corpus, sink) == len(corpus)
    return sink.getvalue()


@given(documents=st.dictionaries(ANY_TEXT.filter(bool), ANY_TEXT, min_size=1, max_size=5))
def test_any_corpus_comes_back_the_same(documents: dict[str, str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "packed.jsonl"
        with Corpus.from_documents(documents.items()) as corpus:
            file.write_text(pack(corpus), encoding="ascii")
            with load_corpus(file) as again:
                assert again.fingerprint == corpus.fingerprint
                assert list(again) == list(corpus)


def test_encodings_come_back_too(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "a.txt").write_bytes(b"\xef\xbb\xbfa\r\n")
    with load_corpus(tmp_path / "tree") as corpus:
        (tmp_path / "c.jsonl").write_text(pack(corpus))
        with load_corpus(tmp_path / "c.jsonl") as again:
            assert again[0] == corpus[0] and again[0].encoding == "utf-8-sig"


def test_documents_written_by_others_are_read(tmp_path: Path) -> None:
    lines = ['{"path": "é", "content": "日本", "id": 7, "encoding": "no codec!"}', "", "  "]
    lines.append('{"content": "x", "path": "b"}')
    (tmp_path / "o.JSONL").write_bytes(b"\xef\xbb\xbf" + "\r\n".join(lines).encode())
    with load_corpus(tmp_path / "o.JSONL") as corpus:
        assert [(d.path, d.content, d.encoding) for d in corpus] == [
            ("é", "日本", None), ("b", "x", None)
        ]  # fmt: skip


@pytest.mark.parametrize(
    "line",
    ["not json", "[1]", '{"path": "b"}', '{"path": "", "content": ""}', "[" * 5000, "\ud800"],
)
def test_a_line_that_is_no_document_is_named(tmp_path: Path, line: str) -> None:
    first = json.dumps({"path": "a", "content": "x"})
    data = f"{first}\n{line}\n".encode("utf-8", "surrogatepass")
    (tmp_path / "c.jsonl").write_bytes(data)
    with pytest.raises(SourceError, match="Line 2 of"):
        load_corpus(tmp_path / "c.jsonl")


def test_a_line_longer_than_a_document_may_be_is_refused(tmp_path: Path) -> None:
    line = json.dumps({"path": "a", "content": "x" * 100_000})
    (tmp_path / "c.jsonl").write_text(line)
    with pytest.raises(SourceError, match=r"Line 1 of .* is longer"):
        load_corpus(tmp_path / "c.jsonl", max_file_bytes=10)


def test_a_file_of_other_records_is_a_text(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text('{"event": 1}\n')
    with load_corpus(tmp_path / "log.jsonl") as corpus:
        assert (corpus[0].path, corpus[0].content) == ("log.jsonl", '{"event": 1}\n')


def test_globs_choose_among_packed_documents(tmp_path: Path) -> None:
    with Corpus.from_documents([("a.py", "x"), ("b.md", "y")]) as corpus:
        (tmp_path / "c.jsonl").write_text(pack(corpus))
    with load_corpus(tmp_path / "c.jsonl", include="*.py") as chosen:
        assert list(chosen.paths()) == ["a.py"]

"""Records become documents by the columns that are chosen; a mailbox becomes its messages."""

from __future__ import annotations

import json
import sys
import zipfile
from email.message import EmailMessage
from pathlib import Path

import pytest

from rlm_rag.errors import MissingExtraError, SourceError, UsageError
from rlm_rag.loaders.source import NO_TABLE, load_corpus, load_sources

ROWS = [
    {"id": "q/1", "title": "Größe", "body": "two\nlines"},
    {"id": "q/2", "title": "b", "body": ""},
    {"id": "q/1", "title": "c", "body": "third"},
]


def load(path: Path, **options: object) -> dict[str, str]:
    with load_corpus(path, **options) as corpus:  # type: ignore[arg-type]
        return {one.path: one.content for one in corpus}


def write_csv(path: Path) -> None:
    path.write_bytes(
        'id;title;body\r\nq/1;Größe;"two\nlines"\r\nq/2;b;\r\nq/1;c;third\r\n'.encode("cp1252")
    )


def write_jsonl(path: Path) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))


def write_parquet(path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.Table.from_pylist(ROWS), path)


WRITERS = {"t.csv": write_csv, "t.jsonl": write_jsonl, "t.parquet": write_parquet}


@pytest.mark.parametrize("name", WRITERS)
def test_each_record_is_a_document_of_the_columns_chosen(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    WRITERS[name](path)
    assert load(path, columns="body") == {
        f"{name}#row=1": "two\nlines", f"{name}#row=2": "", f"{name}#row=3": "third"
    }  # fmt: skip
    assert load(path, columns=("title", "body"), path_column="id") == {
        "q/1": "title: Größe\nbody: two\nlines\n",
        "q/2": "title: b\nbody: \n",
        "q/1~2": "title: c\nbody: third\n",
    }
    assert load(path, path_column="title")["b"] == "id: q/2\ntitle: b\nbody: \n"
    with pytest.raises(UsageError, match="no column 'text'") as caught:
        load(path, columns=["text"])
    assert caught.value.hint == "The columns are: id, title, body."
    with load_corpus(path, columns="body", max_files=2) as corpus:
        assert len(corpus) == 2 and "beyond the limit" in corpus.warnings[0]


def test_without_columns_a_table_of_text_is_a_text(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    assert load(tmp_path / "t.csv") == {"t.csv": "a,b\n1,2\n"}


def test_columns_of_what_is_no_table_are_a_warning(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text('[{"body": "x"}]')
    with load_corpus(tmp_path / "t.json", columns=["body"]) as corpus:
        assert list(corpus.paths()) == ["t.json"]
        assert "--column takes nothing" in corpus.warnings[0]


@pytest.mark.parametrize("source", ["folder", "folder/*.csv", "t.zip"])
def test_columns_of_sources_that_only_hold_tables_are_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "t.csv").write_text("id,body\n1,two\n")
    with zipfile.ZipFile(tmp_path / "t.zip", "w") as archive:
        archive.write(tmp_path / "folder" / "t.csv", "t.csv")
    with load_corpus(source, path_column="id") as corpus:
        assert [warning.partition(": ")[2] for warning in corpus.warnings] == [NO_TABLE]
    with load_sources([source, source], columns="body") as corpus:
        names = {path.partition("/")[0] for path in corpus.paths()}
        assert set(corpus.warnings) == {f"{name}: {NO_TABLE}" for name in names}
    with load_sources([source, "folder/t.csv"], columns="body") as corpus:
        assert corpus.warnings == ()
        assert "t.csv/t.csv#row=1" in corpus


@pytest.mark.parametrize(
    ("text", "texts", "warning"),
    [
        ("id,text,text\n1,a,b\n", ["b"], "several columns are called 'text': the last one counts"),
        (
            'id,text\n1,a\n\n2,"torn b\n3,lost\n',
            ["a", "torn b\n3,lost\n"],
            "a quote in line 4 is not closed: the rest is one cell",
        ),
        ("id,text\n1,a\n2,b,more\n3\n", ["a", "b", ""], "2 rows have more or fewer cells than"),
        ('id,text\n1,a\n2,5" disk\n', ["a", '5" disk'], None),
        (",text\n0,a\n1,b\n", ["a", "b"], None),
        ('id,text\n1,"a\nb"\n', ["a\nb"], None),
    ],
)
def test_cells_that_are_not_as_they_were_meant_are_told(
    tmp_path: Path, text: str, texts: list[str], warning: str | None
) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text)
    with load_corpus(path, columns="text") as corpus:
        assert [document.content for document in corpus] == texts
        assert len(corpus.warnings) == (warning is not None)
        assert warning is None or corpus.warnings[0].startswith(f"t.csv: {warning}")


def test_parquet_has_records_without_being_asked(tmp_path: Path) -> None:
    write_parquet(tmp_path / "t.parquet")
    assert load(tmp_path / "t.parquet")["t.parquet#row=3"] == "id: q/1\ntitle: c\nbody: third\n"


def test_without_its_reader_parquet_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.delitem(sys.modules, "pyarrow", raising=False)
    with pytest.raises(MissingExtraError) as caught:
        load(tmp_path / "t.parquet")
    assert caught.value.hint == "pip install 'rlm-rag[parquet]'"


def test_values_that_are_no_text_are_written_as_json_would(tmp_path: Path) -> None:
    row = {"a": None, "b": 1.5, "c": [1, "é"], "d": {"k": True}}
    (tmp_path / "t.jsonl").write_text(json.dumps(row))
    assert load(tmp_path / "t.jsonl", columns=list("abcd")) == {
        "t.jsonl#row=1": 'a: \nb: 1.5\nc: [1, "é"]\nd: {"k": true}\n'
    }


@pytest.mark.parametrize(
    ("name", "data"), [("t.jsonl", b'{"a": 1}\n[2]\n'), ("t.csv", b"\0\1"), ("t.parquet", b"PAR1x")]
)
def test_a_table_that_is_damaged_is_an_error(tmp_path: Path, name: str, data: bytes) -> None:
    if name == "t.parquet":
        pytest.importorskip("pyarrow")
    (tmp_path / name).write_bytes(data)
    with pytest.raises(SourceError):
        load(tmp_path / name, path_column="a")


def message(subject: str, text: str) -> bytes:
    one = EmailMessage()
    one["From"], one["Subject"], one["Date"] = "a@example.org", subject, "Mon, 1 Jan 2024 00:00:00"
    one.set_content(text)
    return bytes(one)


def test_a_mailbox_is_its_messages(tmp_path: Path) -> None:
    first = message("first", "one\n>From the start\nFrom within\n")
    quoted = first.replace(b">From", b">>From").replace(b"\nFrom within", b"\n>From within")
    separator = b"From a@example.org Mon Jan  1 00:00:00 2024\n"
    box = separator + quoted + b"\n" + separator + message("second", "two\n")
    (tmp_path / "a.mbox").write_bytes(box)
    found = load(tmp_path / "a.mbox")
    assert list(found) == ["a.mbox#message=1", "a.mbox#message=2"]
    assert "first" in found["a.mbox#message=1"]
    assert "one\n>From the start\nFrom within\n" in found["a.mbox#message=1"]
    assert "second" in found["a.mbox#message=2"] and "two" in found["a.mbox#message=2"]
    with load_corpus(tmp_path / "a.mbox", max_file_bytes=len(first) - 20) as corpus:
        assert [one.path for one in corpus.skipped] == ["a.mbox#message=1"]
        assert list(corpus.paths()) == ["a.mbox#message=2"]


def test_what_is_no_mailbox_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.mbox").write_text("Dear diary\n")
    with pytest.raises(SourceError, match="does not begin with a message"):
        load(tmp_path / "a.mbox")

"""Records of documents as dicts: each form, numbers, and what has none."""

import csv
import io
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_rag.packed import PackedCorpus
from rlm_rag.packing import pack
from rlm_rag.sandbox.inside.documents import Documents
from rlm_rag.sandbox.inside.records import Records
from rlm_rag.sandbox.inside.rows import rows_of


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("a,b\n1,x\n2,y\n", [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]),
        ("a;b\n1,5;x\n2,5;y\n", [{"a": "1,5", "b": "x"}, {"a": "2,5", "b": "y"}]),
        ("\ufeffa\tb\r\n1\t\r\n\t2.5\r\n", [{"a": 1, "b": None}, {"a": None, "b": 2.5}]),
        ('a,b\n"x\ny",007\n"z, w",1\n', [{"a": "x\ny", "b": "007"}, {"a": "z, w", "b": "1"}]),
        ("1,2\n3,4\n", [{"column1": 1, "column2": 2}, {"column1": 3, "column2": 4}]),
        ("| a | b |\n|---|:-:|\n| 1 | x |\n", [{"a": 1, "b": "x"}]),
        ("# T\n\ntext\n\n| a | b |\n|---|---|\n| 1 | x |\n\nmore | text\n", [{"a": 1, "b": "x"}]),
        ('{"a": 1}\n{"a": "2"}\n', [{"a": 1}, {"a": "2"}]),
        ('[{"a": 1}, {"b": [2]}]', [{"a": 1}, {"b": [2]}]),
        ('{"n": 2, "rows": [\n{"a": 1},\n{"a": 2}\n]}', [{"a": 1}, {"a": 2}]),
        (
            "2025-01-01 LATE id=7 note=left at 5\n2025-01-02 LOST id=8 note=none left\n",
            [
                {"word1": "2025-01-01", "word2": "LATE", "id": 7, "note": "left at 5"},
                {"word1": "2025-01-02", "word2": "LOST", "id": 8, "note": "none left"},
            ],
        ),
        (
            'at=1 by="x id=7" note=" a b  \nat=2 by="y"z note=\n',
            [
                {"at": 1, "by": "x id=7", "note": " a b"},
                {"at": 2, "by": 'y"z', "note": ""},
            ],
        ),
        ('{"a": "x\u2028y"}\n{"a": "z"}\n', [{"a": "x\u2028y"}, {"a": "z"}]),
        ("a,b\n" + "x" * 140_000 + ",1\n", [{"a": "x" * 140_000, "b": 1}]),
        (
            "country,1990,1991\nIceland,5,6\n",
            [{"country": "Iceland", "1990": 5, "1991": 6}],
        ),
        ("id,id,v\n1,2,x\n", [{"id": 1, "id_2": 2, "v": "x"}]),
        ("a,,b\n1,2,3\n", [{"a": 1, "column2": 2, "b": 3}]),
        ("a=1 b=x\n" * 4 + "a=3\n", [*[{"a": 1, "b": "x"}] * 4, {"a": 3}]),
        ("| a | b |\n|---|---|\n| x\\|y | 1 |\n", [{"a": "x|y", "b": 1}]),
        (
            "of,release\nx,3.9\ny,3.10\n",
            [{"of": "x", "release": "3.9"}, {"of": "y", "release": "3.10"}],
        ),
        ("of,price\nx,2.50\ny,3.00\n", [{"of": "x", "price": 2.5}, {"of": "y", "price": 3.0}]),
        (
            "of,digest\nx,1e10\ny,2e99\n",
            [{"of": "x", "digest": "1e10"}, {"of": "y", "digest": "2e99"}],
        ),
        ("of,n\nx,1.5e-10\ny,2e-3\n", [{"of": "x", "n": 1.5e-10}, {"of": "y", "n": 0.002}]),
        (
            "of,exact\nx,0.1234567890123456\ny,0.5\n",
            [{"of": "x", "exact": "0.1234567890123456"}, {"of": "y", "exact": "0.5"}],
        ),
        (
            "Date: May 5 || User: 12 || Text: a: b\nDate: May 6 || User: 3 || Text: c\n",
            [
                {"Date": "May 5", "User": 12, "Text": "a: b"},
                {"Date": "May 6", "User": 3, "Text": "c"},
            ],
        ),
    ],
)
def test_the_records_of_a_text_are_dicts(text: str, rows: list[dict[str, object]]) -> None:
    assert rows_of(text) == (rows, 0)


@pytest.mark.parametrize(
    ("text", "rows", "odd"),
    [
        (
            "a,b\n" + "1,2\n" * 8 + "3,4,5\n6\n",
            [*[{"a": 1, "b": 2}] * 8, {"a": 3, "b": 4, "column3": 5}, {"a": 6}],
            2,
        ),
        ('{"a": 1}\n' * 4 + '{"a": \n', [{"a": 1}] * 4, 1),
        ('{"a": 1}\n' * 4 + "torn\n", [{"a": 1}] * 4, 1),
        ('{"a": 1}\n' * 3 + '{"a": \n', [{"a": 1}] * 3, 1),
        ("a=1 b=2\n" * 3 + "and so on\n", [{"a": 1, "b": 2}] * 3, 1),
        ("a: 1; b: 2\n" * 3 + "and so on\n", [{"a": 1, "b": 2}] * 3, 1),
        (
            "id,name,v\n1,a,2\n2,b\n3,c,4\n",
            [
                {"id": 1, "name": "a", "v": 2},
                {"id": 2, "name": "b"},
                {"id": 3, "name": "c", "v": 4},
            ],
            1,
        ),
        (
            "id,name,v\n1,a,2\n2,b\n3,c,4\n4,d,5\n",
            [
                {"id": 1, "name": "a", "v": 2},
                {"id": 2, "name": "b"},
                {"id": 3, "name": "c", "v": 4},
                {"id": 4, "name": "d", "v": 5},
            ],
            1,
        ),
        ("a=1 b=2\n" * 4 + "and so on\n", [{"a": 1, "b": 2}] * 4, 1),
        ("| a | b |\n|---|---|\n| 1 | 2 |\n| 3 |\n", [{"a": 1, "b": 2}, {"a": 3}], 1),
        (
            "a,b\n" + "1,x\n" * 30 + '2,"torn\n3,""y""\n4,z\n',
            [*[{"a": 1, "b": "x"}] * 30, {"a": 2, "b": 'torn\n3,"y"\n4,z\n'}],
            2,
        ),
        (
            "a,b\n" + "1,x\n" * 30 + '2,"two\nlines"\n',
            [*[{"a": 1, "b": "x"}] * 30, {"a": 2, "b": "two\nlines"}],
            0,
        ),
        (
            'a,b,c\n1,"open,1\n2,b,2\n\n3,"closed",3\n4,d,4\n5,"e\nf",5\n',
            [
                {"a": 1, "b": 'open,1\n2,b,2\n\n3,closed"', "c": 3},
                {"a": 4, "b": "d", "c": 4},
                {"a": 5, "b": "e\nf", "c": 5},
            ],
            2,
        ),
        (
            'a;b\r\n1;"it said ""no"";\r\n""yes""" \r\n2;"two\r\n\r\nlines"  ;\r\n',
            [
                {"a": 1, "b": 'it said "no";\r\n"yes" '},
                {"a": 2, "b": "two\r\n\r\nlines  ", "column3": ""},
            ],
            1,
        ),
    ],
)
def test_lines_of_another_form_are_counted(
    text: str, rows: list[dict[str, object]], odd: int
) -> None:
    assert rows_of(text) == (rows, odd)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n",
        "Call me Ishmael. Some years ago, never mind how long,\nI thought I would sail about.\n",
        "def f(a, b):\n    return a + b\n\n\nx = f(1, 2)\n",
        "We saw sheep on it, wool and weather.\nAnd then a cow on it, milk and weather.\n",
        "[1, 2, 3]",
        '{"a": 1}',
        '{"a": 1,\n"b": 2,\n"c": 3}x\n',
        '{"a": 1}\n{"a": \n',
        '{"a": 1}\n{"a": 2}\ntorn\ntoo\n',
        "id,name,v\n1,a,2\n2,b\n3\n4,c,5\n",
        "Call me, Ann\nbefore you go\nor tomorrow, early\nif so, bye\n",
        "Dear Ann, dear Bob,\nwe came, we saw, and left.\nIt rained.\nYours, Eve\n",
        "x = f(1, 2)\ny = g(x, 3)\nprint(x, y)\nreturn x\n",
        "{not json",
        "[" * 100_000,
        '{"a":' * 100_000,
        "|\n|\n",
        "int a;\nint b;\nint c;\n",
        '<?xml version="1.0" encoding="UTF-8"?>\n',
        "a,b\nx\ry,1\n",
        "# Title\n\nA paragraph: with a colon.\n\n- one\n- two\n",
    ],
)
def test_a_text_of_another_form_has_no_records(text: str) -> None:
    assert rows_of(text) is None


_CELLS = st.text(st.characters(codec="utf-8", exclude_characters="\r\x00"), max_size=8)


@given(st.lists(st.tuples(_CELLS, st.integers(-(10**9), 10**9)), min_size=2, max_size=20))
def test_what_was_written_as_csv_is_read_back(cells: list[tuple[str, int]]) -> None:
    out = io.StringIO(newline="")
    csv.writer(out, quoting=csv.QUOTE_ALL).writerows([("name", "n"), *cells])
    read = rows_of(out.getvalue())
    assert read is not None
    rows, odd = read
    assert odd == 0
    assert [row["n"] for row in rows] == [n for _, n in cells]
    if any(row["name"] is not None and not isinstance(row["name"], (int, float)) for row in rows):
        assert [row["name"] for row in rows] == [name for name, _ in cells]


@given(st.text(max_size=300))
def test_no_text_is_too_odd_to_be_looked_at(text: str) -> None:
    read = rows_of(text)
    assert read is None or (read[0] and all(isinstance(row, dict) for row in read[0]))


@pytest.mark.parametrize("filling", [" ", "x ", "a=", '"', 'a="', ",", "|", ": "])
def test_a_line_without_an_end_is_looked_at_in_time_of_its_length(filling: str) -> None:
    text = f"a=1 b={filling * 10_000}x"
    began = time.process_time()
    rows_of(text)
    rows_of(f"{text} || c: d")
    assert time.process_time() - began < 1.0


def test_as_many_names_as_lines_take_no_longer_than_as_many_lines() -> None:
    text = "".join(f"a{n}=1 b{n}=x\n" for n in range(6_000))
    began = time.process_time()
    read = rows_of(text)
    assert read is not None and read[0][5_999] == {"a5999": 1, "b5999": "x"}
    assert time.process_time() - began < 1.0


@pytest.fixture
def notes() -> list[str]:
    return []


@pytest.fixture
def records(tmp_path: Path, notes: list[str]) -> Iterator[Records]:
    documents = {
        "sales/jan.csv": "shop,price\nnorth,5\nsouth,7\n",
        "sales/feb.csv": "shop,price\nnorth,1\n",
        "log.jsonl": "".join(json.dumps({"level": level}) + "\n" for level in ("info", "error")),
        "notes.md": "No records here.\n",
        "torn.csv": "shop,price\nnorth,5\nsouth,7\nwest,8,9\neast,1\neast,2\n",
    }
    path = tmp_path / "corpus.pack"
    pack(documents.items(), path)
    with PackedCorpus.open(path) as packed:
        yield Records(Documents(packed), notes.append)


def test_a_path_its_end_or_a_glob_names_documents(records: Records) -> None:
    assert records.of("sales/jan.csv") == records.of("jan.csv") == records.of("./sales/jan.csv")
    assert [row["price"] for row in records.of("sales/")] == [5, 7, 1]
    assert len(records.of("*/*.csv")) == 3
    assert len(records.of(None)) == 10


def test_what_is_left_out_of_several_documents_is_noted(records: Records, notes: list[str]) -> None:
    records.of("sales/")
    assert notes == []
    records.of(None)
    assert notes == [
        "records: left out, since no records can be told apart: notes.md",
        "records: lines of another form, left out, or with more or fewer cells than the head: "
        "torn.csv (1)",
    ]


def test_what_a_block_does_to_a_record_stays_with_the_block(records: Records) -> None:
    records.of("jan.csv")[0]["price"] = 99
    assert records.of("jan.csv")[0]["price"] == 5


def test_a_name_without_documents_and_documents_without_records_are_told(records: Records) -> None:
    with pytest.raises(ValueError, match=r"no document has the path 'mar\.csv'"):
        records.of("mar.csv")
    with pytest.raises(ValueError, match=r"no records .* in notes\.md"):
        records.of("notes.md")


def test_what_is_kept_of_many_documents_has_a_bound(
    records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlm_rag.sandbox.inside.records._KEPT_CHARS", 40)
    assert len(records.of("*/*.csv")) == 3
    assert set(records._kept) == {"sales/jan.csv"}
    assert len(records.of("*/*.csv")) == 3

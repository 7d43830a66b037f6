"""A document is found by the path that results show, and an error shows paths in that way too."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import rlm_rag
from rlm_rag.errors import RetrievalError

ODD = "new\nline.md"


@pytest.mark.parametrize("asked", ["nev\nline.md", "line.md"])
def test_an_error_names_paths_as_results_show_them(asked: str) -> None:
    documents = {f"a/{ODD}": "one\n", f"b/{ODD}": "two\n"}
    with rlm_rag.load(documents) as corpus:
        with pytest.raises(RetrievalError) as caught:
            corpus.read(asked)
        assert r"a/new\x0aline.md, b/new\x0aline.md" in str(caught.value)
        assert "one" in corpus.read(r"a/new\x0aline.md")


def test_a_name_that_is_no_utf8_is_found_as_a_shell_gives_it(tmp_path: Path) -> None:
    name = os.fsdecode(b"bad\xff.txt")
    try:
        (tmp_path / name).write_text("hello\n")
    except OSError:
        pytest.skip("the file system takes no such name")
    with rlm_rag.load(tmp_path) as corpus:
        assert corpus.read(name) == "1: hello"
        assert corpus.read("bad\\xff.txt") == "1: hello"
        with pytest.raises(RetrievalError):
            corpus.read(os.fsdecode(b"bad\xfe.txt"))


def test_a_path_of_which_there_are_several_names_them_in_one_line() -> None:
    with rlm_rag.load({f"a/{ODD}": "one\n", f"b/{ODD}": "two\n"}) as corpus:
        with pytest.raises(RetrievalError, match="ambiguous") as caught:
            corpus.read(ODD)
        assert r"a/new\x0aline.md, b/new\x0aline.md" in str(caught.value)


@pytest.mark.parametrize("asked", ["../a.py", "../lib/b.py", "lib/../../a.py", "..\\a.py", ".."])
def test_a_path_out_of_the_source_is_not_found(asked: str) -> None:
    with rlm_rag.load({"a.py": "one\n", "lib/b.py": "two\n"}) as corpus:
        for look in (corpus.read, corpus.outline):
            with pytest.raises(RetrievalError, match="no document has the path") as caught:
                look(asked)
            assert "relative to the source" in str(caught.value)
        assert corpus.read("lib/../a.py") == "1: one"


def test_a_document_whose_path_leads_out_is_read_by_it() -> None:
    with rlm_rag.load({"../a.py": "one\n"}) as corpus:
        assert corpus.read("../a.py") == "1: one"

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from benchmarks.outline.__main__ import by_language, has, measured, places
from benchmarks.outline.ctags import Tag
from rlm_rag.indexes.skeleton import Definition

needs_ctags = pytest.mark.skipif(
    shutil.which("ctags") is None, reason="universal-ctags is not installed"
)


@needs_ctags
def test_recall_counts_what_ctags_finds_and_the_outline_has_not(tmp_path: Path) -> None:
    (tmp_path / "a.go").write_text("package p\nfunc F() {\n\tx := 1\n}\ntype T struct{ A int }\n")
    (tmp_path / "b.ts").write_text(
        "export const a = () => 1;\nit('', () => {\n  const b = 1;\n});\n"
    )
    (tmp_path / "c.py").write_text("def f(): pass\nglobals()['g'] = 1\n")
    files = by_language([tmp_path])
    assert sorted(files) == ["go", "python", "typescript"]
    for name, tags in (("go", 4), ("typescript", 1), ("python", 1)):
        row = measured(name, files[name])
        assert row is not None
        assert (row.files, row.tags, row.found, row.missed) == (1, tags, tags, [])


@pytest.mark.parametrize(
    ("tag", "found"),
    [
        ((3, "f"), True),
        ((4, "f"), True),
        ((4, "A.f"), True),
        ((5, "f"), False),
        ((3, "g"), False),
    ],
)
def test_a_definition_counts_on_its_line_or_one_beside_it(tag: Tag, found: bool) -> None:
    assert has(places([Definition(3, "method", "f", "def f()", ("A",))]), tag) is found

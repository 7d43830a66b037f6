"""Parts of a source that are loaded by themselves are together what the whole is."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlm_rag.corpus import Corpus
from rlm_rag.distributed.part_loading import (
    FolderSource,
    Loaded,
    load_part,
    skipped_of,
    warnings_of,
    write_merged,
)
from rlm_rag.errors import EmptyCorpusError, RetrievalError
from rlm_rag.loaders.source import find_folders, load_sources
from rlm_rag.packing import Described

NAMES = st.sampled_from(
    ("a.py", "b.md", "B.md", "src/a.py", "src/deep/c.txt", "src.py", "é.txt", "notes/猫.md")
) | st.sampled_from(("t.csv", "image.png", ".gitignore", "big.json", "n.ipynb", ".env"))
NOTEBOOK = b'{"cells": [{"cell_type": "code", "source": ["x = 1"]}, ' + (
    b'{"cell_type": "markdown", "source": ["# y"]}], "nbformat": 4, "metadata": {}}'
)
TEXTS = st.sampled_from(
    (b"x = 1\n", b"", b"\x00\x01\x02", "é\r\n猫".encode(), b"\xff\xfe", b"*.md\n")
)
TREES = st.dictionaries(NAMES, TEXTS | st.just(NOTEBOOK), min_size=1)
OPTIONS = st.sampled_from(
    ({}, {"include": ["*.py", "*.md"]}, {"exclude": "src/"}, {"hidden": True})
)


def written(folder: Path, tree: dict[str, bytes]) -> Path:
    for name, data in tree.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


def loaded(source: FolderSource, count: int, root: Path | None = None) -> list[Loaded]:
    parts = []
    for at in range(count):
        with load_part(source, at, count, root) as part:
            parts.append(pickle.loads(pickle.dumps(Loaded.of(part))))
    return parts


def folders(sources: list[str], **options: object) -> FolderSource:
    found = find_folders(sources, **options)  # type: ignore[arg-type]
    assert found is not None
    source = FolderSource.of(found, verify=False)
    assert FolderSource.from_json(source.to_json()) == source
    return source


@settings(max_examples=12)
@given(trees=st.lists(TREES, min_size=1, max_size=2), options=OPTIONS, count=st.integers(1, 4))
def test_parts_are_together_what_the_whole_is(
    tmp_path_factory: pytest.TempPathFactory,
    trees: list[dict[str, bytes]],
    options: dict[str, object],
    count: int,
) -> None:
    root = tmp_path_factory.mktemp("parts")
    sources = [str(written(root / f"s{n}" / "same", tree)) for n, tree in enumerate(trees)]
    source = folders(sources, **options)
    parts = loaded(source, count)
    try:
        whole = load_sources(sources, **options)  # type: ignore[arg-type]
    except EmptyCorpusError:
        assert not any(part.documents for part in parts)
        return
    write_merged(parts, source.names, root / "merged")
    with whole, Corpus(root / "merged") as merged, merged.view() as packed, whole.view() as all_of:
        numbers = range(len(all_of))
        assert [Described.of(packed, n) for n in range(len(packed))] == [
            Described.of(all_of, n) for n in numbers
        ]
        assert merged.fingerprint == whole.fingerprint
        assert set(skipped_of(parts)) == set(whole.skipped)
        assert set(warnings_of(parts, source.names)) == set(whole.warnings)


def test_a_part_that_is_kept_reads_only_what_changed(tmp_path: Path) -> None:
    tree = {f"{n}.py": f"x = {n}\n".encode() for n in range(9)}
    source = folders([str(written(tmp_path / "source", tree))])
    first = loaded(source, 3, tmp_path / "cache" / "indexes")
    (tmp_path / "source" / "4.py").write_bytes(b"x = 44\n")
    second = loaded(source, 3, tmp_path / "cache" / "indexes")
    changed = [
        (before, after)
        for one, other in zip(first, second, strict=True)
        for before, after in zip(one.documents, other.documents, strict=True)
        if before != after
    ]
    assert [(before.path, after.size_bytes) for before, after in changed] == [("4.py", 7)]
    assert len(list((tmp_path / "cache" / "indexes").iterdir())) == 3


@pytest.mark.parametrize("change", ["gone", "another"])
def test_a_node_where_the_folder_is_another_says_so(tmp_path: Path, change: str) -> None:
    place = written(tmp_path / "source", {"a.py": b"x = 1\n"})
    source = folders([str(place)])
    source.check()
    place.rename(tmp_path / "moved")
    if change == "another":
        written(place, {"a.py": b"x = 1\n"})
    with pytest.raises(RetrievalError, match="is not on a node" if change == "gone" else "another"):
        source.check()


def test_a_node_that_would_read_documents_otherwise_says_so(tmp_path: Path) -> None:
    source = folders([str(written(tmp_path / "source", {"a.py": b"x = 1\n"}))])
    with pytest.raises(RetrievalError, match="other versions"):
        replace(source, stamp="00").check()


def test_only_whole_folders_are_loaded_in_parts(tmp_path: Path) -> None:
    folder = str(written(tmp_path / "source", {"a.py": b"x = 1\n"}))
    for sources, options in (
        ([], {}),
        ([f"{folder}/a.py"], {}),
        ([folder, f"{folder}/a.py"], {}),
        ([folder], {"max_files": 3}),
        ([folder], {"max_total_bytes": 3}),
        (["-"], {}),
        (["x\ny"], {}),
    ):
        assert find_folders(sources, **options) is None  # type: ignore[arg-type]


def test_parts_in_another_order_are_not_put_together(tmp_path: Path) -> None:
    told = [Described(path, 0, 0, b"0" * 16) for path in ("b", "a")]
    with pytest.raises(RetrievalError, match="order"):
        write_merged([Loaded(tuple(told), (), ())], (), tmp_path / "merged")

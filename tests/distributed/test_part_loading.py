"""Parts of a source that are loaded by themselves are together what the whole is."""

from __future__ import annotations

import gzip
import io
import pickle
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlm_rag.corpus import Corpus
from rlm_rag.distributed.part_loading import (
    Loaded,
    PlaceSource,
    load_part,
    skipped_of,
    warnings_of,
    write_merged,
)
from rlm_rag.errors import RetrievalError, SourceError
from rlm_rag.loaders.source import NO_DOCUMENT, find_places, load_sources
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


def loaded(source: PlaceSource, count: int, root: Path | None = None) -> list[Loaded]:
    parts = []
    for at in range(count):
        with load_part(source, at, count, root) as part:
            parts.append(pickle.loads(pickle.dumps(Loaded.of(part))))
    return parts


def folders(sources: list[str], **options: object) -> PlaceSource:
    found = find_places(sources, **options)  # type: ignore[arg-type]
    assert found is not None
    source = PlaceSource.of(found, verify=False)
    assert PlaceSource.from_json(source.to_json()) == source
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
    check_parts(sources, options, count, root / "merged")


def check_parts(sources: list[str], options: dict[str, object], count: int, path: Path) -> None:
    source = folders(sources, **options)
    try:
        parts = loaded(source, count)
        source.check_files(parts)
    except (SourceError, RetrievalError):
        # It is loaded in one place, which says why.
        parts = []
    try:
        whole = load_sources(sources, **options)  # type: ignore[arg-type]
    except SourceError:
        assert not any(part.documents for part in parts)
        return
    with whole, whole.view() as all_of:
        files = [
            name
            for name, at in zip(source.names, source.places, strict=False)
            if Path(at).is_file()
        ]
        if not parts:
            assert any(f"{name}: {NO_DOCUMENT}" in whole.warnings for name in files)
            return
        write_merged(parts, source.names, path)
        with Corpus(path) as merged, merged.view() as packed:
            assert [Described.of(packed, n) for n in range(len(packed))] == [
                Described.of(all_of, n) for n in range(len(all_of))
            ]
            assert merged.fingerprint == whole.fingerprint
            assert set(skipped_of(parts)) == set(whole.skipped)
            assert set(warnings_of(parts, source.names)) == set(whole.warnings)


def within(tree: dict[str, bytes], folder: Path) -> Path:
    return written(folder, tree)


def packed_zip(tree: dict[str, bytes], folder: Path) -> Path:
    with zipfile.ZipFile(folder / "one.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in tree.items():
            archive.writestr(name, data)
    return folder / "one.zip"


def packed_tar(tree: dict[str, bytes], folder: Path) -> Path:
    with tarfile.open(folder / "one.tar.gz", "w:gz") as archive:
        for name, data in [*tree.items(), *list(tree.items())[:1]]:
            info = tarfile.TarInfo(f"./{name}")
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return folder / "one.tar.gz"


def single(tree: dict[str, bytes], folder: Path) -> Path:
    name, data = next(iter(tree.items()))
    return next(written(folder, {Path(name).name: data}).iterdir())


def squeezed(tree: dict[str, bytes], folder: Path) -> Path:
    (folder / "one.py.gz").write_bytes(gzip.compress(next(iter(tree.values()))))
    return folder / "one.py.gz"


def mailbox(tree: dict[str, bytes], folder: Path) -> Path:
    mails = (f"From a\nSubject: {name}\n\nText of it.\n\n" for name in tree)
    (folder / "one.mbox").write_text("".join(mails))
    return folder / "one.mbox"


def starred(tree: dict[str, bytes], folder: Path) -> Path:
    return written(folder, tree) / "*.md"


KINDS = (within, packed_zip, packed_tar, single, squeezed, mailbox, starred)
SOURCES = st.tuples(st.sampled_from(KINDS), TREES, st.integers(0, 9))


@settings(max_examples=15)
@given(given=st.lists(SOURCES, min_size=1, max_size=3), options=OPTIONS, count=st.integers(2, 3))
def test_parts_of_files_and_archives_are_together_what_the_whole_is(
    tmp_path_factory: pytest.TempPathFactory,
    given: list[tuple[Callable[[dict[str, bytes], Path], Path], dict[str, bytes], int]],
    options: dict[str, object],
    count: int,
) -> None:
    root = tmp_path_factory.mktemp("parts")
    sources = []
    for number, (make, tree, cut) in enumerate(given):
        (root / f"s{number}").mkdir()
        sources.append(made := make(tree, root / f"s{number}"))
        if cut == 1 and made.is_file():
            # A file that is not whole.
            made.write_bytes(made.read_bytes()[:-20])
    check_parts([str(source) for source in sources], options, count, root / "merged")


@pytest.mark.parametrize("make", [packed_zip, packed_tar])
def test_an_archive_that_is_too_large_ends_for_all_parts_where_it_does_for_the_whole(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    make: Callable[[dict[str, bytes], Path], Path],
) -> None:
    monkeypatch.setattr("rlm_rag.loaders.bounded.MAX_UNPACKED_BYTES", 40_000)
    tree = {f"{n}.{'bin' if n == 2 else 'txt'}": b"one line\n" * 600 for n in range(12)}
    path = make(tree, tmp_path)
    with load_sources([str(path)]) as whole:
        assert 3 < len(whole) < 12
        assert any("the rest of it was left out" in warning for warning in whole.warnings)
    check_parts([str(path)], {"exclude": "*.bin"}, 3, tmp_path / "merged")


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


def test_what_is_not_read_by_paths_or_hangs_on_what_came_before_is_loaded_whole(
    tmp_path: Path,
) -> None:
    tree = {"a.py": b"x = 1\n", "d.jsonl": b'{"path": "b", "content": "c"}\n'}
    folder = str(written(tmp_path / "source", tree))
    (tmp_path / "link.txt").symlink_to(f"{folder}/a.py")
    for sources, options in (
        ([], {}),
        ([folder], {"max_files": 3}),
        ([folder], {"max_total_bytes": 3}),
        (["-"], {}),
        ([folder, "-"], {}),
        (["x\ny"], {}),
        ([f"{folder}/d.jsonl"], {}),
        ([f"{folder}/d.jsonl"], {"columns": "content"}),
        (["https://example.org/*.py"], {}),
        ([f"{folder}@HEAD"], {}),
        # Its name says what it is, and is another one where the link leads to.
        ([str(tmp_path / "link.txt")], {}),
    ):
        assert find_places(sources, **options) is None  # type: ignore[arg-type]


def test_parts_in_another_order_are_not_put_together(tmp_path: Path) -> None:
    told = [Described(path, 0, 0, b"0" * 16) for path in ("b", "a")]
    with pytest.raises(RetrievalError, match="order"):
        write_merged([Loaded(tuple(told), (), ())], (), tmp_path / "merged")

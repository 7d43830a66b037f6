"""A load that lists only what came and went, and tells what listing everything would."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from rlm_rag.loaders import amending, folders, memory, reading, witness
from rlm_rag.loaders.keeping import Keeping
from rlm_rag.loaders.source import load_corpus, load_sources
from rlm_rag.own_folders import CACHE_TAG
from tests.trees import made, put, run_git, seen

pytestmark = [
    pytest.mark.skipif(
        os.name != "posix" or shutil.which("git") is None,
        reason="without git, or times of folders",
    ),
    pytest.mark.usefixtures("home"),
]
DEEP = pytest.mark.deep
Change = Callable[[Path], object]


def replaced(tree: Path, path: str, text: str) -> None:
    """Write a file as editors do: another one, renamed to its place."""
    put(tree, f"{path}.new", text)
    (tree / f"{path}.new").rename(tree / path)


def moved(tree: Path, path: str, to: str) -> None:
    (tree / path).rename(tree / to)


# Each upon those before.
ALONE: dict[str, Change] = {
    "a file came": lambda tree: put(tree, "src/deep/new.py"),
    "files came at several places": lambda tree: [
        put(tree, path, path) for path in ("0.py", "src/0.py", "src/deep/z.py", "z.py")
    ],
    "in a folder that was empty": lambda tree: put(tree, "empty/new.py"),
    "in a folder that came": lambda tree: put(tree, "more/and/more/new.py"),
    "of a name that git has a meaning for": lambda tree: put(tree, ":!x.py"),
    "one that is binary": lambda tree: (tree / "src/picture").write_bytes(b"\0\1"),
    "one that may hold secrets": lambda tree: put(tree, "src/id_rsa"),
    "one of two bytes a letter": lambda tree: put(tree, "src/é.py", "é\n"),
    "one that git leaves out": lambda tree: put(tree, "src/x.pyc"),
    "a folder that git leaves out": lambda tree: put(tree, "src/build/out.txt"),
    "a folder of which git leaves out all": lambda tree: put(tree, "src/cache/x.pyc"),
    "a folder of which git leaves out some": lambda tree: [
        put(tree, f"src/some/{name}") for name in ("a.pyc", "b.py", "build/c.py", "d/e.pyc")
    ],
    "a link": lambda tree: (tree / "src/link").symlink_to("b.py"),
    "a file went": lambda tree: (tree / "src/0.py").unlink(),
    "what was left out went": lambda tree: [
        (tree / f"src/{name}").unlink() for name in ("picture", "id_rsa", "x.pyc", "link")
    ],
    "a folder that was left out went": lambda tree: shutil.rmtree(tree / "src/build"),
    "one that git tracks went": lambda tree: (tree / "a.py").unlink(),
    "and another": lambda tree: (tree / "data.bin").unlink(),
    "and came back": lambda tree: put(tree, "a.py", "x = 2\n"),
    "a file was renamed": lambda tree: moved(tree, "z.py", "y.py"),
    "and put in place of another": lambda tree: moved(tree, "y.py", "src/b.py"),
    "a folder was renamed, rules in it": lambda tree: moved(tree, "src", "lib"),
    "and moved into another": lambda tree: moved(tree, "lib", "more/lib"),
    "a folder was copied": lambda tree: shutil.copytree(tree / "more", tree / "src"),
    "a folder went": lambda tree: shutil.rmtree(tree / "more"),
    "a file became a folder": lambda tree: [(tree / "0.py").unlink(), put(tree, "0.py/1.py")],
    "a folder became a file": lambda tree: [shutil.rmtree(tree / "0.py"), put(tree, "0.py")],
    "a folder became a link": lambda tree: [
        moved(tree, "empty", "full"),
        (tree / "empty").symlink_to("full"),
    ],
    "two changed places": lambda tree: [
        moved(tree, "full", "other"),
        moved(tree, "src/and/more", "full"),
        moved(tree, "other", "src/and/more"),
    ],
    "a file was replaced": lambda tree: replaced(tree, "a.py", "x = 3\n"),
    "and edited, and others came and went": lambda tree: [
        put(tree, "a.py", "x = 4\n"),
        put(tree, "src/w.py"),
        (tree / "full/new.py").unlink(),
    ],
    "one that is taken apart": lambda tree: put(tree, "src/page.html", "<p>of a page</p>\n"),
    "what came went": lambda tree: [put(tree, "passing"), (tree / "passing").unlink()],
}


def lists_all(commands: list[tuple[str, ...]]) -> bool:
    """Tell whether git was asked for all that a folder holds."""
    return any("ls-files" in command and command[-1] == "--" for command in commands)


@pytest.mark.parametrize(
    "source", ["tree", *(pytest.param(one, marks=DEEP) for one in ("tree/**/*.py", "plain"))]
)
def test_what_came_and_went_is_listed_alone(
    source: str, tmp_path: Path, started: list[tuple[str, ...]]
) -> None:
    tree = made(tmp_path / source.partition("/")[0], work_tree=source != "plain")
    keeping = Keeping(tmp_path / "kept" / "indexes")
    put(tree, "src/always.py")
    source = f"{tmp_path}/{source}"
    seen(load_corpus(source, keeping=keeping))
    for name, change in ALONE.items():
        change(tree)
        fresh = seen(load_corpus(source))
        started.clear()
        assert seen(load_corpus(source, keeping=keeping)) == fresh, name
        assert not lists_all(started), name
    assert len([*tmp_path.glob("kept/indexes/*/*.packed")]) == 1


def test_what_may_change_without_a_trace_is_looked_at_again(
    tmp_path: Path, started: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = made(tmp_path / "tree")
    keeping = Keeping(tmp_path / "kept" / "indexes")
    seen(load_corpus(tree, keeping=keeping))
    looked_at: list[str] = []
    real = folders._list
    monkeypatch.setattr(folders, "_list", lambda one: (looked_at.append(one), real(one))[1])
    monkeypatch.setattr(memory, "_SETTLED_NS", 3_600_000_000_000)
    for path in ("src/x/one.py", "src/two.py"):
        put(tree, path)
        fresh = seen(load_corpus(tree))
        assert seen(load_corpus(tree, keeping=keeping)) == fresh
        folder = (tree / path).parent
        times = folder.stat()
        put(tree, f"src/x/beside {folder.name}.py")
        os.utime(folder, ns=(times.st_atime_ns, times.st_mtime_ns))
        fresh = seen(load_corpus(tree))
        started.clear()
        for _ in range(2):
            looked_at.clear()
            assert seen(load_corpus(tree, keeping=keeping)) == fresh
            assert str(folder) in looked_at
        assert not lists_all(started)


# Each upon those before; after the last ones nothing is listed alone any more.
WITH_ALL: dict[str, Change] = {
    "rules": lambda tree: put(tree, "src/deep/.gitignore", "*.txt\n"),
    "rules of our own": lambda tree: put(tree, "src/deep/.rlmignore", "c.md\n"),
    "rules of our own in a folder": lambda tree: put(tree, "more/.ignore", "*.py\n"),
    "what such rules leave out": lambda tree: put(tree, "src/x.log"),
    "the first that counts of a folder": lambda tree: put(tree, "cache/x.py"),
    "the last that counts of a folder": lambda tree: (tree / "src/half/a.py").unlink(),
    "a name of bytes that are no letters": lambda tree: put(tree, "src/\udcff.py"),
    "a name like that of such bytes": lambda tree: put(tree, "src/\\xff.py"),
    "a notebook that is none": lambda tree: put(tree, "src/two.ipynb", "none"),
    "a key": lambda tree: put(tree, "src/key.py", "k = 'AKIA" + "Q3EGRJDVLMNOPQ7Z" + "'\n"),
    "a Python environment": lambda tree: put(tree, "src/half/pyvenv.cfg"),
    "a tag that is of ours now": lambda tree: (tree / "tagged/CACHEDIR.TAG").write_bytes(CACHE_TAG),
}
LAST: dict[str, Change] = {
    "a pipe": lambda tree: os.mkfifo(tree / "src/pipe"),
    "a cache of ours": lambda tree: (tree / "src/deep/CACHEDIR.TAG").write_bytes(CACHE_TAG),
    "a repository": lambda tree: run_git(tree, "init", "-q", "src/deep"),
    "a repository in a folder": lambda tree: run_git(tree, "init", "-q", "more/deep"),
}


@pytest.mark.parametrize("work_tree", [True, pytest.param(False, marks=DEEP)])
def test_all_is_listed_where_what_came_or_went_decides_about_more(
    work_tree: bool, tmp_path: Path, started: list[tuple[str, ...]]
) -> None:
    for number, last in enumerate(LAST):
        tree = made(tmp_path / str(number), work_tree=work_tree)
        for path in ("src/half/a.py", "src/half/a.pyc", "tagged/CACHEDIR.TAG"):
            put(tree, path, "Signature: 8a477f597d28d172789f06886806bc55\n")
        keeping = Keeping(tmp_path / "kept" / "indexes")
        first = WITH_ALL if number == 0 else {}
        fresh = seen(load_corpus(tree, keeping=keeping))
        for name, change in [*first.items(), (last, LAST[last])]:
            started.clear()
            assert seen(load_corpus(tree, keeping=keeping)) == fresh, name
            assert started == [], name
            change(tree)
            fresh = seen(load_corpus(tree))
            started.clear()
            assert seen(load_corpus(tree, keeping=keeping)) == fresh, name
            assert lists_all(started), name


@pytest.mark.parametrize(("bound", "most"), [("_MOST_FILES", 1), ("_MOST_CHARS", 10)])
def test_all_is_listed_where_what_came_is_much(
    bound: str,
    most: int,
    tmp_path: Path,
    started: list[tuple[str, ...]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tree = made(tmp_path / "tree")
    keeping = Keeping(tmp_path / "kept" / "indexes")
    seen(load_corpus(tree, keeping=keeping))
    monkeypatch.setattr(amending, bound, most)
    for paths in (["src/little.py"], ["src/one.py", "src/two.py"]):
        for path in paths:
            put(tree, path, f"{path[:7]}\n")
        fresh = seen(load_corpus(tree))
        started.clear()
        assert seen(load_corpus(tree, keeping=keeping)) == fresh
        assert lists_all(started) == (len(paths) > 1)


def test_large_files_that_came_or_changed_are_read_as_small_ones_are(
    tmp_path: Path, started: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = made(tmp_path / "tree")
    keeping = Keeping(tmp_path / "kept" / "indexes")
    seen(load_corpus(tree, keeping=keeping))
    put(tree, "src/new.py", "größe\n")
    put(tree, "a.py", "größe\n")
    fresh = seen(load_corpus(tree))
    monkeypatch.setattr(reading, "_LARGE_BYTES", 1)
    started.clear()
    assert seen(load_corpus(tree, keeping=keeping)) == fresh
    assert not lists_all(started)


@pytest.mark.parametrize("work_tree", [True, False])
def test_all_is_listed_where_the_first_trace_of_ours_came(
    work_tree: bool,
    tmp_path: Path,
    started: list[tuple[str, ...]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tree = made(tmp_path / "tree", work_tree=work_tree)
    monkeypatch.setenv("XDG_STATE_HOME", str(tree / "state"))
    keeping = Keeping(tmp_path / "kept" / "indexes")
    seen(load_corpus(tree, keeping=keeping))
    put(tree, "state/rlm-rag/traces/a.jsonl")
    fresh = seen(load_corpus(tree))
    assert "state/rlm-rag/traces/a.jsonl" not in str(fresh)
    for listed in (True, False):
        started.clear()
        assert seen(load_corpus(tree, keeping=keeping)) == fresh
        assert lists_all(started) == listed


def test_what_comes_from_another_disk_is_listed_with_all(
    tmp_path: Path, started: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = made(tmp_path / "tree")
    keeping = Keeping(tmp_path / "kept" / "indexes")
    seen(load_corpus(tree, keeping=keeping))
    put(tree, "src/deep/new.py")
    table = tmp_path / "mounts"
    table.write_text(
        f"1 0 8:1 / / rw - ext4 d rw\n2 1 0:5 / {tree}/src/deep rw - fuse.sshfs h: rw\n"
    )
    monkeypatch.setattr(witness, "_MOUNTS", table)
    for _ in range(2):
        started.clear()
        assert seen(load_corpus(tree, keeping=keeping)) == seen(load_corpus(tree))
        assert lists_all(started[:2])


def test_several_folders_are_listed_again_only_where_names_changed(
    tmp_path: Path, started: list[tuple[str, ...]]
) -> None:
    sources = [str(made(tmp_path / name)) for name in ("one", "two")]
    for given in (sources, [f"named={tmp_path}/one"]):
        keeping = Keeping(tmp_path / "kept" / "indexes")
        seen(load_sources(given, keeping=keeping))
        for is_new in (False, True):
            replaced(tmp_path / "one", f"src/{'new' * is_new}b.py", f"of {given}\n")
            fresh = seen(load_sources(given))
            started.clear()
            assert seen(load_sources(given, keeping=keeping)) == fresh
            assert lists_all(started) == is_new
        (tmp_path / "one/src/newb.py").unlink()

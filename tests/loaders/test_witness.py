"""A load that lists nothing again: only where listing everything would come to the same."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlm_rag.errors import EmptyCorpusError
from rlm_rag.loaders import memory, witness
from rlm_rag.loaders.keeping import Keeping
from rlm_rag.loaders.source import load_corpus, load_sources
from tests.trees import FILES, made, put, run_git, seen

pytestmark = [
    pytest.mark.skipif(
        os.name != "posix" or shutil.which("git") is None,
        reason="without git, or times of folders",
    ),
    pytest.mark.usefixtures("home"),
]

CHANGES: dict[str, Callable[[Path, Path], object]] = {
    "edited": lambda tree, home: put(tree, "a.py", "x = 3\n"),
    "edited, of the same size and time": lambda tree, home: (
        put(tree, "src/b.py", "y = 3\n"),
        os.utime(tree / "src/b.py", (1, 1)),
    ),
    "added": lambda tree, home: put(tree, "src/deep/new.py"),
    "added where nothing was": lambda tree, home: put(tree, "empty/new.py"),
    "added beneath what is ignored by its files": lambda tree, home: put(tree, "cache/new.py"),
    "removed": lambda tree, home: (tree / "src/deep/c.md").unlink(),
    "renamed": lambda tree, home: (tree / "a.py").rename(tree / "z.py"),
    "a folder renamed": lambda tree, home: (tree / "src").rename(tree / "lib"),
    "a folder become a link": lambda tree, home: (
        (tree / "src").rename(tree / "lib"),
        (tree / "src").symlink_to("lib"),
    ),
    "a file become a link": lambda tree, home: (
        (tree / "a.py").unlink(),
        (tree / "a.py").symlink_to("src/b.py"),
    ),
    "a pipe": lambda tree, home: os.mkfifo(tree / "src/pipe"),
    "a rule": lambda tree, home: put(tree, ".gitignore", "*.py\n"),
    "a rule where none was": lambda tree, home: put(tree, "src/deep/.gitignore", "*.md\n"),
    "a rule gone": lambda tree, home: (tree / ".gitignore").unlink(),
    "a rule of one's own": lambda tree, home: put(tree, "src/.rlmignore", "b.py\n"),
    "another rule of one's own": lambda tree, home: put(tree, ".ignore", "*.md\n"),
    "a rule of the repository's": lambda tree, home: put(tree, ".git/info/exclude", "src/\n"),
    "a rule of the user's": lambda tree, home: put(home, ".config/git/ignore", "*.md\n"),
    "a list that a configuration names": lambda tree, home: (
        put(home, "mine", "*.md\n"),
        put(home, ".gitconfig", "[core]\n\texcludesFile = ~/mine\n"),
    ),
    "added to the index": lambda tree, home: run_git(tree, "add", "-f", "build/out.txt"),
    "removed from the index": lambda tree, home: run_git(tree, "rm", "-q", "--cached", "a.py"),
    "a repository within": lambda tree, home: run_git(tree, "init", "-q", "src"),
    "a repository without its head": lambda tree, home: (tree / ".git/HEAD").unlink(),
    "a repository without its objects": lambda tree, home: shutil.rmtree(tree / ".git/objects"),
    "a repository without its references": lambda tree, home: shutil.rmtree(tree / ".git/refs"),
    "no repository any more": lambda tree, home: shutil.rmtree(tree / ".git"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_whatever_changes_is_noticed(
    change: str, tmp_path: Path, home: Path, started: list[tuple[str, ...]]
) -> None:
    tree = made(tmp_path / "tree")
    keeping = Keeping(tmp_path / "kept" / "indexes")
    first = seen(load_corpus(tree, keeping=keeping))
    started.clear()
    assert seen(load_corpus(tree, keeping=keeping)) == first
    assert started == []
    CHANGES[change](tree, home)
    fresh = seen(load_corpus(tree))
    assert seen(load_corpus(tree, keeping=keeping)) == fresh
    assert seen(load_corpus(tree, keeping=keeping)) == fresh


@pytest.mark.parametrize(
    ("source", "work_tree"), [(".", True), ("src", True), (".", False), ("**/*.py", True)]
)
def test_folders_globs_and_several_of_them_are_listed_once(
    tmp_path: Path, started: list[tuple[str, ...]], source: str, work_tree: bool
) -> None:
    tree = made(tmp_path / "tree", work_tree=work_tree)
    made(tmp_path / "other")
    keeping = Keeping(tmp_path / "kept" / "indexes")
    for sources in ([f"{tree}/{source}"], [f"{tree}/{source}", f"{tmp_path}/other"]):
        fresh = seen(load_sources(sources))
        assert seen(load_sources(sources, keeping=keeping)) == fresh
        started.clear()
        assert seen(load_sources(sources, keeping=keeping)) == fresh
        assert started == []
    put(tree, "src/deep/more.py")
    assert seen(load_sources(sources, keeping=keeping)) == seen(load_sources(sources))


EDITS: dict[str, dict[str, str]] = {
    "one": {"a.py": "x = 33\n"},
    "several, far apart and beside each other": {"a.py": "", "src/b.py": "é\n", "z.py": "z" * 999},
    "with what it held": {"a.py": FILES["a.py"]},
    "to what is no text": {"a.py": "\0\1"},
    "to what tells of a key": {"a.py": "k = 'AKIA" + "Q3EGRJDVLMNOPQ7Z" + "'\n"},
    "what was no text": {"data.bin": "text\n", "a.py": "x\n"},
}


@pytest.mark.parametrize("settled", [True, False])
@pytest.mark.parametrize("edit", EDITS)
def test_files_that_were_edited_are_read_alone(
    edit: str,
    settled: bool,
    tmp_path: Path,
    started: list[tuple[str, ...]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tree = made(tmp_path / "tree")
    put(tree, "z.py", "z\n")
    keeping = Keeping(tmp_path / "kept" / "indexes")
    seen(load_corpus(tree, keeping=keeping))
    for path, text in EDITS[edit].items():
        put(tree, path, text)
    started.clear()
    fresh = seen(load_corpus(tree))
    asked = len(started)
    if not settled:
        before = max(path.stat().st_ctime_ns for path in tree.rglob("*.py")) - 1
        monkeypatch.setattr(memory, "_SETTLED_NS", time.time_ns() - before)
    for _ in range(2):
        assert seen(load_corpus(tree, keeping=keeping)) == fresh
    is_plain = edit.startswith(("one", "several", "with"))
    assert (len(started) == asked) == is_plain
    monkeypatch.setattr(memory, "_SETTLED_NS", 0)
    put(tree, "src/b.py", "y = 4\n")
    fresh = seen(load_corpus(tree))
    assert seen(load_corpus(tree, keeping=keeping)) == fresh
    assert len([*tmp_path.glob("kept/indexes/*/*.packed")]) == 1


def test_inodes_may_be_numbers_of_64_bits(
    tmp_path: Path, started: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.lstat

    def looked_at(path: str) -> os.stat_result:
        kind, (values, named) = real(path).__reduce__()  # type: ignore[misc]
        return kind((values[0], values[1] | 1 << 63, *values[2:]), named)  # type: ignore[operator]

    tree = made(tmp_path / "tree")
    keeping = Keeping(tmp_path / "kept" / "indexes")
    monkeypatch.setattr(os, "lstat", looked_at)
    seen(load_corpus(tree, keeping=keeping))
    put(tree, "a.py", "x = 3\n")
    fresh = seen(load_corpus(tree))
    started.clear()
    for _ in range(2):
        assert seen(load_corpus(tree, keeping=keeping)) == fresh
    assert started == []


@pytest.mark.parametrize("above", [".gitignore", ".git/HEAD"])
def test_what_lies_above_a_folder_is_noticed(tmp_path: Path, above: str) -> None:
    tree = made(tmp_path / "tree")
    keeping = Keeping(tmp_path / "kept" / "indexes")
    middle = tree / "src"
    put(middle, "deep/d.txt")
    seen(load_corpus(middle / "deep", keeping=keeping))
    text = {".gitignore": "*.md\n!keep\n", ".git/HEAD": "ref: refs/heads/main\n"}[above]
    for folder in (".git/objects", ".git/refs") if above == ".git/HEAD" else ():
        (middle / folder).mkdir(parents=True)
    put(middle, above, text)
    fresh = seen(load_corpus(middle / "deep"))
    assert seen(load_corpus(middle / "deep", keeping=keeping)) == fresh


def test_a_list_of_patterns_is_looked_for_from_the_top_of_the_work_tree(
    tmp_path: Path, home: Path
) -> None:
    tree = made(tmp_path / "tree")
    put(home, ".gitconfig", "[core]\n\texcludesFile = mine\n")
    keeping = Keeping(tmp_path / "kept" / "indexes")
    first = seen(load_corpus(tree / "src", keeping=keeping))
    put(tree, "mine", "*.md\n")
    fresh = seen(load_corpus(tree / "src"))
    assert fresh != first
    assert seen(load_corpus(tree / "src", keeping=keeping)) == fresh


def test_the_configuration_beside_a_git_of_ones_own_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = made(tmp_path / "tree")
    system = tmp_path / "local/etc/gitconfig"
    put(tmp_path, "mine", "*.md\n")
    put(
        tmp_path,
        "local/bin/git",
        f'#!/bin/sh\nGIT_CONFIG_SYSTEM="{system}" exec {shutil.which("git")} "$@"\n',
    )
    (tmp_path / "local/bin/git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/local/bin:{os.environ['PATH']}")
    keeping = Keeping(tmp_path / "kept" / "indexes")
    first = seen(load_corpus(tree, keeping=keeping))
    put(tmp_path, "local/etc/gitconfig", f"[core]\n\texcludesFile = {tmp_path}/mine\n")
    fresh = seen(load_corpus(tree))
    assert fresh != first
    assert seen(load_corpus(tree, keeping=keeping)) == fresh


def mounts(folder: Path, place: Path, kind: str) -> Path:
    escaped = str(place).replace(" ", r"\040")
    table = folder / "mounts"
    table.write_text(
        f"1 0 8:1 / / rw - ext4 /dev/sda rw\n2 1 0:5 / {escaped} rw shared:1 - {kind} rw\n"
    )
    return table


def test_names_that_another_locale_has_no_letters_for_are_listed_anew(
    tmp_path: Path, home: Path
) -> None:
    tree = made(tmp_path / "tree")
    put(tree, "é.md", "of letters\n")
    keeping = Keeping(tmp_path / "kept" / "indexes")
    with load_corpus(tree, keeping=keeping) as corpus:
        assert "é.md" in [document.path for document in corpus]
    code = (
        "import sys\nfrom pathlib import Path\n"
        "from rlm_rag.loaders.keeping import Keeping\n"
        "from rlm_rag.loaders.source import load_corpus\n"
        "with load_corpus(sys.argv[1], keeping=Keeping(Path(sys.argv[2]))) as corpus:\n"
        "    print([ascii(one.path) for one in corpus if 'letters' in one.content])\n"
    )
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(
        [sys.executable, "-c", code, str(tree), str(keeping.root)],
        env=os.environ | plain,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stderr, done.returncode) == ("", 0)
    assert ".md" in done.stdout


@pytest.mark.parametrize(
    "reason",
    [
        "unsettled",
        "repository within",
        "include",
        "patterns if they are there",
        "no whole path in HOME",
        "no whole path in XDG_CONFIG_HOME",
        "foreign",
        "foreign within",
        "foreign by a name with a space",
        "foreign on a stick",
        "foreign on a server",
        "limited",
        "followed",
    ],
)
def test_git_is_asked_each_time_where_times_do_not_tell_all(
    tmp_path: Path,
    home: Path,
    started: list[tuple[str, ...]],
    monkeypatch: pytest.MonkeyPatch,
    reason: str,
) -> None:
    tree = made(tmp_path / "tree")
    keeping = Keeping(tmp_path / "kept" / "indexes")
    options: dict[str, object] = {}
    if reason == "unsettled":
        monkeypatch.setattr(memory, "_SETTLED_NS", 3_600_000_000_000)
    elif reason == "repository within":
        run_git(tree, "init", "-q", "src")
    elif reason == "include":
        put(home, ".gitconfig", "[include]\n\tpath = more\n")
    elif reason == "patterns if they are there":
        put(home, ".gitconfig", "[core]\n\texcludesFile = :(optional)~/mine\n")
    elif reason.startswith("no whole path"):
        monkeypatch.setenv(reason.rpartition(" ")[2], "../home")
    elif reason.startswith("foreign"):
        tree = tree.rename(tmp_path / "a tree") if reason.endswith("space") else tree
        place = {"foreign": tmp_path, "foreign within": tree / "src/deep"}.get(reason, tree)
        kinds = {"stick": "vfat /dev/sdb1", "server": "nfs4 host:/export"}
        kind = kinds.get(reason.split()[-1], "fuse.sshfs host:")
        monkeypatch.setattr(witness, "_MOUNTS", mounts(tmp_path, place, kind))
    elif reason == "limited":
        options = {"max_total_bytes": 24}
    else:
        options = {"follow_symlinks": True}
    load = lambda: seen(load_corpus(tree, keeping=keeping, **options))  # type: ignore[arg-type] # noqa: E731
    first = load()
    started.clear()
    assert load() == first
    assert started != []


GIT = {"add": ("add", "-f"), "untrack": ("rm", "-q", "--cached")}
WAYS = [
    *("write", "write", "remove", "add", "untrack", "folder", "move", "link", "repository"),
    *("folder-remove", "folder-move", "folder-copy"),
]
PATHS = [
    "a",
    "d/b",
    "d/e/c",
    "d/e/f/g",
    "x/y",
    "x/y.o",
    "d/z.o",
    "e/c",
    "d/.gitignore",
    ".gitignore",
    ".ignore",
    "d/e/.ignore",
]
steps = st.lists(
    st.tuples(
        st.sampled_from(WAYS),
        st.sampled_from(PATHS),
        st.sampled_from(["1\n", "b\n", "d/\n", "*\n!a\n", "x\n/d/e\n", "*.o\n", "\0"]),
        st.sampled_from(["a", "d/b", "d/e/c", "x/y", "e/c", "e/f/g", "d/e/f/h"]),
    ),
    min_size=1,
    max_size=4,
)


def changed(tree: Path, step: tuple[str, str, str, str]) -> None:
    what, path, text, other = step
    target, to = tree / path, tree / other
    if what.startswith("folder-"):
        what, target, to = what.removeprefix("folder-"), target.parent, to.parent
    is_free = not os.path.lexists(to) and to.parent.is_dir() and target not in to.parents
    is_within = all(one.is_dir() or not os.path.lexists(one) for one in target.parents)
    if what in GIT:
        # Refused within a link, and in a repository within.
        command = ["git", "-C", str(tree), *GIT[what], path]
        subprocess.run(command, check=False, capture_output=True)
    elif what == "remove" and target != tree and os.path.lexists(target):
        shutil.rmtree(target) if target.is_dir() and not target.is_symlink() else target.unlink()
    elif what == "move" and os.path.lexists(target) and is_free:
        target.rename(to)
    elif what == "copy" and target.is_dir() and is_free:
        shutil.copytree(target, to, symlinks=True)
    elif what == "link" and is_free:
        to.symlink_to(os.path.relpath(target, to.parent))
    elif what == "repository" and text == "1\n" and target.parent.is_dir():
        run_git(target.parent, "init", "-q")
    elif what == "folder" and is_within and not os.path.lexists(target):
        target.mkdir(parents=True)
    elif what == "write" and is_within and not target.is_dir() and not target.is_symlink():
        put(tree, path, text)


def outcome(tree: Path, keeping: Keeping | None) -> object:
    try:
        return seen(load_corpus(tree, keeping=keeping))
    except EmptyCorpusError as error:
        return error.message


def holds_after(
    tmp_path_factory: pytest.TempPathFactory,
    stages: list[list[tuple[str, str, str, str]]],
    work_tree: bool,
) -> None:
    folder = tmp_path_factory.mktemp("trees")
    tree = folder / "tree"
    put(tree, "always", "here\n")
    if work_tree:
        run_git(tree, "init", "-q")
    keeping = Keeping(folder / "kept" / "indexes")
    for stage in stages:
        for step in stage:
            changed(tree, step)
        fresh = outcome(tree, None)
        for _ in range(2):
            assert outcome(tree, keeping) == fresh


@settings(max_examples=6)
@given(st.lists(steps, min_size=2, max_size=3), st.booleans())
def test_any_changes_load_as_if_nothing_had_been_kept(
    tmp_path_factory: pytest.TempPathFactory,
    stages: list[list[tuple[str, str, str, str]]],
    work_tree: bool,
) -> None:
    holds_after(tmp_path_factory, stages, work_tree)


@pytest.mark.deep
@settings(max_examples=200)
@given(st.lists(steps, min_size=2, max_size=6), st.booleans())
def test_any_of_many_changes_load_as_if_nothing_had_been_kept(
    tmp_path_factory: pytest.TempPathFactory,
    stages: list[list[tuple[str, str, str, str]]],
    work_tree: bool,
) -> None:
    holds_after(tmp_path_factory, stages, work_tree)

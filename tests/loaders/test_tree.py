"""A folder is read as its owner would expect, and never more of it."""

from __future__ import annotations

import io
import os
import shutil
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from rlm_rag.corpus import Corpus
from rlm_rag.errors import EmptyCorpusError, SourceError, UsageError
from rlm_rag.loaders.source import load_corpus

Git = Callable[..., None]
as_root = pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="needs root")
as_user = pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root reads all")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "tree"
    folder.mkdir()
    return folder


@pytest.fixture
def git(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Git:
    """Make the tree a git work tree, and return git itself."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    identity = {f"GIT_{who}_{what}": "t" for who in ("AUTHOR", "COMMITTER") for what in ("NAME",)}
    identity |= {"GIT_AUTHOR_EMAIL": "t@e", "GIT_COMMITTER_EMAIL": "t@e"}

    def run(*arguments: str) -> None:
        command = ["git", "-C", str(root), *arguments]
        subprocess.run(command, check=True, capture_output=True, env=os.environ | identity)

    run("init", "-q")
    return run


@pytest.fixture
def no_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))


def write(root: Path, files: dict[str, str]) -> None:
    for path, content in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content, encoding="utf-8", newline="")


def load(root: Path, **options: object) -> tuple[list[str], dict[str, str]]:
    with load_corpus(root, **options) as corpus:  # type: ignore[arg-type]
        return list(corpus.paths()), {one.path: one.reason for one in corpus.skipped}


def test_paths_are_relative_and_in_byte_order(root: Path) -> None:
    write(root, dict.fromkeys(("b", "a/z", "a.py", "é", "Z", "a/b/c"), "x"))
    assert load(root)[0] == ["Z", "a.py", "a/b/c", "a/z", "b", "é"]


def test_contents_keep_their_line_ends(root: Path) -> None:
    write(root, {"a": "x\r\ny\rz\n\x00"[:-1]})
    with load_corpus(str(root)) as corpus:
        assert corpus["a"].content == "x\r\ny\rz\n"
        assert corpus["a"].encoding == "utf-8"


def test_git_decides_in_a_work_tree(root: Path, git: Git) -> None:
    write(root, {".gitignore": "*.log\n!keep.log\nout/\n", "a.log": "", "keep.log": "k"})
    write(root, {"out/x": "", ".hidden/y": "h", "src/a.py": "a", "out/tracked": "t"})
    git("add", "-f", "out/tracked")
    assert load(root)[0] == [".gitignore", ".hidden/y", "keep.log", "out/tracked", "src/a.py"]


def test_part_of_a_work_tree_obeys_the_rules_above_it(root: Path, git: Git) -> None:
    write(root, {".gitignore": "skip.py\nsrc/skip2.py\n"})
    write(root, {"src/ok.py": "x", "src/skip.py": "x", "src/skip2.py": "x"})
    assert load(root / "src")[0] == ["ok.py"]


def test_an_ignored_folder_that_is_asked_for_by_name_is_read(root: Path, git: Git) -> None:
    write(root, {".gitignore": "build/\n", "build/log.txt": "x"})
    assert load(root / "build")[0] == ["log.txt"]


def test_what_git_lists_and_is_no_file_is_skipped_with_its_reason(root: Path, git: Git) -> None:
    write(root, {"here": "x", "gone": "x", "inner/b": "x"})
    git("add", "here", "gone")
    (root / "gone").unlink()
    git("init", "-q", "inner")
    paths, skipped = load(root)
    assert paths == ["here"]
    assert skipped == {"gone": "no longer there", "inner": "a git repository of its own"}


def test_nothing_that_a_repository_configures_is_run(root: Path, git: Git, tmp_path: Path) -> None:
    script = tmp_path / "hook.sh"
    script.write_text(f"#!/bin/sh\ntouch '{tmp_path}/ran'\n")
    script.chmod(0o755)
    for name in ("core.fsmonitor", "core.pager", "pager.ls-files", "core.editor", "diff.external"):
        git("config", name, str(script))
    write(root, {"a": "x"})
    assert load(root)[0] == ["a"]
    assert not (tmp_path / "ran").exists()


def test_variables_of_another_repository_change_nothing(
    root: Path, git: Git, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(root, {"a": "x"})
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    with load_corpus(root) as corpus:
        assert (list(corpus.paths()), corpus.warnings) == (["a"], ())


@as_root
def test_a_work_tree_of_another_owner_is_listed_all_the_same(root: Path, git: Git) -> None:
    write(root, {".gitignore": "b\n", "a": "x", "b": "x"})
    for path in (root, root / ".git"):
        os.chown(path, 65534, 65534)
    with load_corpus(root) as corpus:
        assert (list(corpus.paths()), corpus.warnings) == ([".gitignore", "a"], ())


def test_a_broken_repository_is_walked_and_the_failure_is_said(root: Path, git: Git) -> None:
    write(root, {".gitignore": "b\n", "a": "x", "b": "x"})
    (root / ".git" / "index").write_bytes(b"not an index")
    with load_corpus(root, hidden=True) as corpus:
        assert list(corpus.paths()) == [".gitignore", "a"]
        assert "git cannot list this tree" in corpus.warnings[0]


def test_a_tracked_folder_replaced_by_a_link_leads_nowhere(
    root: Path, git: Git, tmp_path: Path
) -> None:
    write(root, {"d/secret.txt": "mine", "ok": "x"})
    git("add", "-A")
    write(tmp_path / "outside", {"secret.txt": "not yours"})
    shutil.rmtree(root / "d")
    (root / "d").symlink_to(tmp_path / "outside")
    paths, skipped = load(root)
    assert paths == ["ok"]
    assert skipped == {"d": "symbolic link", "d/secret.txt": "beneath a symbolic link"}


def test_ignore_files_hold_without_git(root: Path, no_git: None) -> None:
    write(root, {".gitignore": "*.log\n/cfg/**\n!/cfg/keep.json\nout/\nbad[\n#c\n\\#h\n"})
    write(root, {"a.log": "", "s/b.log": "", "s/.gitignore": "!b.log\r\n/x\n", "s/x": ""})
    write(root, {"s/t/x": "", "cfg/keep.json": "", "cfg/y": "", "out/z": "", "t/out": "", "#h": ""})
    with load_corpus(root) as corpus:
        assert list(corpus.paths()) == ["cfg/keep.json", "s/b.log", "s/t/x", "t/out"]
        assert corpus.warnings == (".gitignore: cannot follow 'bad[' without git",)
        reasons = {one.path: one.reason for one in corpus.skipped}
    ignored = [path for path, reason in reasons.items() if reason == "ignored by git's rules"]
    assert sorted(ignored) == ["#h", "a.log", "cfg/y", "out", "s/x"]


def test_a_list_of_what_is_wanted_holds_without_git(root: Path, no_git: None) -> None:
    write(root, {".gitignore": "*\n!*/\n!*.py\n"})
    write(root, {"a.py": "", "a.txt": "", "p/b.py": "", "p/c.txt": "", "p/q/d.py": ""})
    assert load(root)[0] == ["a.py", "p/b.py", "p/q/d.py"]


def test_hidden_and_generated_folders_are_one_skip_each(root: Path, no_git: None) -> None:
    write(root, {"node_modules/a/b.js": "", "node_modules/c.js": "", ".github/w.yml": "w"})
    write(root, {"env/pyvenv.cfg": "", "env/lib/x.py": "", ".git/config": "", "a": "x"})
    paths, skipped = load(root)
    assert paths == ["a"]
    assert skipped == {
        ".git": "version control data",
        ".github": "hidden",
        "env": "Python virtual environment",
        "node_modules": "generated by tools",
    }
    assert load(root, hidden=True)[0] == [".github/w.yml", "a"]
    assert load(root, ignore=False)[0] == [
        "a", "env/lib/x.py", "env/pyvenv.cfg", "node_modules/a/b.js", "node_modules/c.js"
    ]  # fmt: skip


@pytest.mark.skipif(os.name != "posix", reason="special files of POSIX")
def test_links_pipes_and_sockets_are_skipped(
    root: Path, no_git: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(root, {"real/f": "x"})
    (root / "loop").symlink_to("..")
    (root / "flink").symlink_to("real/f")
    (root / "dangling").symlink_to("nowhere")
    os.mkfifo(root / "pipe")
    monkeypatch.chdir(root)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("sock")
        paths, skipped = load(root)
    assert paths == ["real/f"]
    link = "symbolic link"
    assert skipped == {
        "dangling": link, "flink": link, "loop": link, "pipe": "named pipe", "sock": "socket"
    }  # fmt: skip


@pytest.mark.skipif(os.name != "posix", reason="special files of POSIX")
def test_pipes_are_told_of_where_git_lists_and_names_none(root: Path, tmp_path: Path) -> None:
    write(root, {"a/f": "x", "b/g": "y"})
    outside = tmp_path / "outside"
    outside.mkdir()
    for folder in (root, root / "a", outside):
        os.mkfifo(folder / "pipe")
    (root / "link").symlink_to(outside)
    subprocess.run(["git", "init", "-q", root], check=True)
    assert load(root) == (
        ["a/f", "b/g"],
        {"a/pipe": "named pipe", "link": "symbolic link", "pipe": "named pipe"},
    )


@as_user
def test_what_may_not_be_read_is_skipped(root: Path) -> None:
    write(root, {"a": "x", "no": "x", "d/e": "x"})
    (root / "no").chmod(0)
    (root / "d").chmod(0)
    try:
        paths, skipped = load(root)
    finally:
        (root / "d").chmod(0o700)
    assert paths == ["a"]
    assert skipped.keys() == {"no", "d"}
    assert all(reason == "not readable: Permission denied" for reason in skipped.values())


def test_binary_and_large_files_are_skipped_unread(root: Path) -> None:
    write(root, {"a": "x" * 10})
    (root / "b.bin").write_bytes(b"\x7fELF\0\0")
    with (root / "huge").open("wb") as file:
        file.truncate(3 << 30)
    (root / "big.txt").write_bytes(b"y" * 2000)
    paths, skipped = load(root, max_file_bytes=1999)
    assert paths == ["a"]
    assert skipped == {
        "b.bin": "binary",
        "big.txt": "larger than 2 KiB (max_file_bytes)",
        "huge": "larger than 2 KiB (max_file_bytes)",
    }
    assert load(root)[1]["huge"] == "larger than 64 MiB (max_file_bytes)"


def test_secrets_stay_out_and_examples_do_not(root: Path) -> None:
    key = "-----BEGIN " + "PRIVATE KEY-----\n"
    write(root, {".env": "K=1", "app/.env.local": "K=1", "prod.env": "K=1", "id_rsa": "x"})
    write(root, {"server.pem": key, ".aws/credentials": "x", ".npmrc": "x"})
    write(root, {".env.example": "K=", "cert.pem": "CERTIFICATE", "env.py": "x", "a.key": "music"})
    paths, skipped = load(root, hidden=True)
    assert paths == [".env.example", "a.key", "cert.pem", "env.py"]
    assert set(skipped.values()) == {"may hold secrets"} and len(skipped) == 7


def test_includes_and_excludes_are_globs(root: Path) -> None:
    write(root, dict.fromkeys(("src/a.py", "src/x/b.py", "src/c.md", "tests/t.py"), "x"))
    assert load(root, include=["src/**/*.py"])[0] == ["src/a.py", "src/x/b.py"]
    assert load(root, include="*.py", exclude="tests/")[0] == ["src/a.py", "src/x/b.py"]
    assert load(root, exclude=["src", "!*.md"])[0] == ["src/c.md", "tests/t.py"]
    with pytest.raises(UsageError, match="Not a glob"):
        load(root, include=["a["])
    with pytest.raises(EmptyCorpusError) as caught:
        load(root, include=["*.rs"])
    assert "globs" in str(caught.value.hint)


@pytest.mark.parametrize("limit", ["max_file_bytes", "max_total_bytes"])
def test_where_a_limit_leaves_nothing_it_is_named(root: Path, limit: str) -> None:
    write(root, {"a.txt": "some text", "b.txt": "more of it"})
    with pytest.raises(EmptyCorpusError) as caught:
        load(root, **{limit: 5})
    assert f"--{limit.replace('_', '-')}" in str(caught.value.hint)


@pytest.mark.skipif(os.name != "posix", reason="names of bytes")
def test_names_that_are_no_utf_8_are_made_printable_and_unique(root: Path) -> None:
    write(root, {"bad\\xff.txt": "literal", "nl\nname": "n"})
    Path(os.fsdecode(os.fsencode(root) + b"/bad\xff.txt")).write_text("raw")
    with load_corpus(root) as corpus:
        found = {document.path: document.content for document in corpus}
    assert found == {"bad\\xff.txt": "literal", "bad\\xff~2.txt": "raw", "nl\nname": "n"}


def test_what_was_guessed_is_a_warning(root: Path) -> None:
    (root / "old.txt").write_bytes(b"Fran\xe7ois\n")
    with load_corpus(root) as corpus:
        assert corpus["old.txt"].content == "François\n"
        assert corpus["old.txt"].encoding == "cp1252"
        assert corpus.warnings == ("old.txt: not UTF-8; read as cp1252, which is a guess",)


def test_an_empty_folder_is_an_error(root: Path) -> None:
    with pytest.raises(EmptyCorpusError, match="no document in the folder"):
        load(root)


def test_a_folder_with_no_readable_file_says_how_many_were_skipped_and_why(root: Path) -> None:
    for name in ("a", "b"):
        (root / name).write_bytes(b"\0")
    (root / "c").symlink_to("a")
    with pytest.raises(EmptyCorpusError, match="2 binary; 1 symbolic link"):
        load(root)


def test_an_empty_file_is_a_document_without_lines(root: Path) -> None:
    write(root, {"empty": ""})
    with load_corpus(root) as corpus:
        assert isinstance(corpus, Corpus) and corpus[0].lines() == []


def test_what_git_ignores_is_listed_with_a_folder_as_one_entry(root: Path, git: Git) -> None:
    (root / ".gitignore").write_text("*.log\nbuild/\n")
    (root / "a.py").write_text("a")
    (root / "x.log").write_text("x")
    (root / "build" / "deep").mkdir(parents=True)
    (root / "build" / "deep" / "out.txt").write_text("o")
    git("init", "-q")
    paths, skipped = load(root)
    assert paths == [".gitignore", "a.py"]
    assert skipped == {"x.log": "ignored by git's rules", "build": "ignored by git's rules"}


def test_what_the_globs_leave_out_is_listed(root: Path) -> None:
    (root / "a.py").write_text("a")
    (root / "b.md").write_text("b")
    (root / "c.py").write_text("c")
    paths, skipped = load(root, include="*.py", exclude="c.py")
    assert paths == ["a.py"]
    assert set(skipped) == {"b.md", "c.py"}
    assert set(skipped.values()) == {"left out by include or exclude"}


def test_git_rules_hold_in_a_folder_that_is_no_repository(root: Path, tmp_path: Path) -> None:
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    write(
        root, {".gitignore": "[[:upper:]]*.t\nfoo**/bar\n", "A.t": "", "a.t": "", "foo/x/bar": ""}
    )
    write(
        root, {".github/w.yml": "", "node_modules/c.js": "", "env/pyvenv.cfg": "", "env/x.py": ""}
    )
    write(root, {".env": "K=1", "sub/.gitignore": "x\n", "sub/x": ""})
    paths, skipped = load(root)
    assert paths == ["a.t"]
    assert skipped == {
        ".env": "may hold secrets",
        ".github": "hidden",
        ".gitignore": "hidden",
        "A.t": "ignored by git's rules",
        "env": "Python virtual environment",
        "foo": "ignored by git's rules",
        "node_modules": "generated by tools",
        "sub": "ignored by git's rules",
    }
    assert not list(root.glob(".git/*"))


def test_repositories_in_a_folder_that_is_none_are_read(root: Path, git: Git) -> None:
    shutil.rmtree(root / ".git")
    write(root, {"a": "x", "r/.gitignore": "*.log\n", "r/b": "x", "r/c.log": "x", "r/.ci/d": "x"})
    git("init", "-q", "r")
    paths, skipped = load(root)
    assert paths == ["a", "r/.ci/d", "r/.gitignore", "r/b"]
    assert skipped == {"r/c.log": "ignored by git's rules"}


def test_own_ignore_files_leave_more_out_than_git_does(root: Path, git: Git) -> None:
    write(root, {".ignore": "*.txt\n", "d/.rlmignore": "!keep.txt\n/gen/\n", "d/keep.txt": ""})
    write(root, {"a.txt": "", "d/b.txt": "", "d/gen/x": "", "d/gen/y": "", "gen/z": "", "k": ""})
    git("add", "-A")
    paths, skipped = load(root)
    assert paths == [".ignore", "d/.rlmignore", "d/keep.txt", "gen/z", "k"]
    assert skipped.keys() == {"a.txt", "d/b.txt", "d/gen"}
    assert set(skipped.values()) == {"ignored by .ignore or .rlmignore"}
    assert "a.txt" in load(root, ignore=False)[0]


def test_links_are_followed_on_request_and_never_out_of_the_folder(
    root: Path, git: Git, tmp_path: Path
) -> None:
    write(root, {"real/f": "f", "real/g/h": "h", ".env": "K=1", ".gitignore": "out\n", "out": "o"})
    write(tmp_path / "outside", {"secret": "s"})
    for link, target in {
        "lnk": "real", "flnk": "real/f", "real/up": "..", "dangling": "no", "self": "self",
        "evil": "../outside", "evil2": "../outside/secret", "env.txt": ".env", "o.txt": "out",
    }.items():  # fmt: skip
        (root / link).symlink_to(target)
    with load_corpus(root, follow_symlinks=True) as corpus:
        found = {document.path: document.content for document in corpus}
        skipped = {one.path: one.reason for one in corpus.skipped}
    assert found.keys() == {".gitignore", "flnk", "lnk/f", "lnk/g/h", "real/f", "real/g/h"}
    assert (found["flnk"], found["lnk/g/h"]) == ("f", "h")
    away = "symbolic link out of the source, or to all of it"
    assert [skipped[name] for name in ("evil", "evil2", "real/up")] == [away] * 3
    assert {"dangling", "self", "o.txt", "env.txt"} <= skipped.keys()


def test_limits_leave_out_what_comes_last_and_say_so(root: Path) -> None:
    write(root, dict.fromkeys("abcd", "x" * 100))
    with load_corpus(root, max_files=2) as corpus:
        assert list(corpus.paths()) == ["a", "b"]
        assert [one.path for one in corpus.skipped] == ["c", "d"]
        assert "beyond the limit of 2 files" in corpus.warnings[0]
    assert load(root, max_total_bytes=300)[0] == ["a", "b", "c"]
    taken, skipped = load(root, max_total_bytes=250)
    assert taken == ["a", "b"]
    assert skipped == dict.fromkeys("cd", "beyond the limit of 250 bytes (max_total_bytes)")


def test_a_text_beyond_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"x" * 251)))
    for source, text in (("-", None), (None, "x" * 251)):
        with pytest.raises(SourceError, match="beyond the limit of 250 bytes") as caught:
            load_corpus(source, text=text, max_total_bytes=250)
        assert "--max-total-bytes" in (caught.value.hint or "")
    with load_corpus(text="x" * 250, max_total_bytes=250) as corpus:
        assert corpus.total_bytes == 250


def test_a_pattern_longer_than_any_path_is_told_at_once(root: Path, no_git: None) -> None:
    write(root, {".gitignore": "x*" * 100_000 + "\nb\n", "a": "", "b": ""})
    with load_corpus(root) as corpus:
        assert list(corpus.paths()) == ["a"]
        (warning,) = corpus.warnings
    assert warning.startswith(".gitignore: cannot follow 'x*x*") and len(warning) < 400


def test_without_git_a_work_tree_has_the_rules_of_its_own_list_and_of_its_parents(
    root: Path, git: Git, no_git: None
) -> None:
    write(root, {".git/info/exclude": "*.log\n", ".gitignore": "s/no\n/t\n", "s/no": "", "s/t": ""})
    write(root, {"s/a.log": "", "s/.hid": "", "s/in/.git/HEAD": "ref: x", "s/in/f": ""})
    assert load(root / "s") == (
        [".hid", "t"],
        {
            "a.log": "ignored by git's rules",
            "in": "a git repository of its own",
            "no": "ignored by git's rules",
        },
    )


def test_worktrees_conflicts_submodules_and_sparse_checkouts_list_what_git_does(
    root: Path, git: Git, tmp_path: Path
) -> None:
    write(root, {"in/a": "1\n", "out/b": "b\n", "f": "base\n", ".gitignore": "*.o\n"})
    write(tmp_path / "lib", {"lib.c": "int x;\n"})
    git("add", "-A")
    git("commit", "-qm", "1")
    git("-C", str(tmp_path / "lib"), "init", "-q")
    git("-C", str(tmp_path / "lib"), "add", "-A")
    git("-C", str(tmp_path / "lib"), "commit", "-qm", "1")
    local = ("-c", "protocol.file.allow=always")
    git(*local, "submodule", "add", "-q", str(tmp_path / "lib"), "third/lib")
    git("commit", "-qam", "2")
    git("checkout", "-qb", "side")
    write(root, {"f": "side\n"})
    git("commit", "-qam", "side")
    git("checkout", "-q", "-")
    write(root, {"f": "main\n"})
    git("commit", "-qam", "main")
    git("worktree", "add", "-q", str(tmp_path / "tree2"))
    write(tmp_path / "tree2", {"new": "n", "z.o": "o"})
    assert load(tmp_path / "tree2") == (
        [".gitignore", ".gitmodules", "f", "in/a", "new", "out/b"],
        {"third/lib": "a folder, not a file", "z.o": "ignored by git's rules"},
    )
    with pytest.raises(subprocess.CalledProcessError):
        git("merge", "-q", "side")
    with load_corpus(root) as corpus:
        assert list(corpus.paths()) == [".gitignore", ".gitmodules", "f", "in/a", "out/b"]
        assert "<<<<<<<" in corpus["f"].content
    git("merge", "--abort")
    git("sparse-checkout", "set", "--cone", "in")
    paths, skipped = load(root)
    assert paths == [".gitignore", ".gitmodules", "f", "in/a"]
    assert skipped["out/b"] == "no longer there"


def test_an_ignore_file_cannot_make_a_load_try_its_stars_in_every_way(tmp_path: Path) -> None:
    (tmp_path / ".rlmignore").write_text("*a" * 12 + "*b\n")
    (tmp_path / ("a" * 200)).write_text("text\n")
    with load_corpus(str(tmp_path)) as corpus:
        assert "a" * 200 in list(corpus.paths())


@pytest.mark.skipif(os.name != "posix", reason="special files of POSIX")
def test_a_tree_that_changes_while_it_is_read_costs_what_changed_alone(
    root: Path, git: Git, tmp_path: Path
) -> None:
    write(root, {name: name for name in ("a", "gone", "link", "longer", "pipe", "z")})
    write(tmp_path / "outside", {"secret": "s"})
    git("add", "-A")

    def change(number: int, _: int) -> None:
        if number > 1:
            return
        for name in ("gone", "link", "pipe"):
            (root / name).unlink()
        (root / "link").symlink_to(tmp_path / "outside" / "secret")
        os.mkfifo(root / "pipe")
        (root / "longer").write_text("longer" * 9)

    with load_corpus(root, on_progress=change) as corpus:
        found = {document.path: document.content for document in corpus}
        skipped = {one.path: one.reason for one in corpus.skipped}
    assert found == {"a": "a", "longer": "longer" * 9, "z": "z"}
    assert skipped == {"gone": "no longer there", "link": "symbolic link", "pipe": "named pipe"}

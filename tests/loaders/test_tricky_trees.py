"""Trees that trip those who list files, with git as the oracle, and bytes that trip decoders."""

from __future__ import annotations

import os
import shutil
import socket
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rlm_rag.loaders.git import printable_path
from rlm_rag.loaders.source import load_corpus

pytestmark = pytest.mark.skipif(
    shutil.which("git") is None or os.name != "posix", reason="needs git and files of POSIX"
)

IGNORED = {
    "nested negation": ["*.log", "a/.gitignore: !keep.log", "a/keep.log a/drop.log b/keep.log"],
    "nested reinclude": ["**/vendor/", "a/.gitignore: !vendor", "a/vendor/f b/vendor/f"],
    "parent excluded": ["build\n!build/keep", "build/keep src/a"],
    "contents, then keep": ["/cfg/**\n!/cfg/keep", "cfg/keep cfg/x cfg/sub/y"],
    "what is wanted": ["*\n!*/\n!*.py\n!.gitignore", "a.py a.txt p/b.py p/c.txt p/q/d.py"],
    "order": ["!**/nm/**\n/nm", "nm/leaf x/nm/leaf"],
    "folders only": ["out/", "out/x a/out b/out/y"],
    "anchored": ["/top\nd/mid", "top s/top d/mid s/d/mid"],
    "anchored within": ["", "s/.gitignore: /x\ny", "s/x s/t/x s/y s/t/y x y"],
    "no leak": ["", "a/.gitignore: secret", "a/secret b/secret secret"],
    "two stars": [
        "a/**/z\n**/m\nq/**\nfoo**/bar",
        "a/z a/b/z a/b/c/z k/m q/r/s foo/bar fooX/bar foo/x/bar",
    ],
    "escapes": [
        "\\#h\n\\!b\nsp\\ \ntr   \n#c\n\\*lit\nbad\\",
        "#h !b sp tr #c *lit xlit bad\\ bad",
    ],
    "spaces at the end": ["q\\\\ \nw  \ne\\  \nout/ ", "q\\ q w e out/x a/out"],
    "classes": [
        "[[:upper:]]*.t\n[c-a]\n[]x]\nf[!/]o\n[!a-z].u\n[\\]]q\ng[!x]h",
        "A.t a.t b c ] x fzo f/o 1.u k.u ]q \\q g/h gyh",
    ],
    "case": ["Readme", "README d/Readme"],
    "byte order mark": ["\ufeff*.log", "a.log b"],
    "line ends of DOS": ["*.log\r\nout/\r", "a.log out/x b"],
    "line ends of Unicode": ["a\u2028b\nc\x0cd", "a\u2028b a c\x0cd"],
    "names of UTF-8": ["fän*/", "fänny/x d/日本.txt e\u0301.txt é.txt"],
    "own ignore files": [
        "",
        ".ignore: i.txt",
        ".rgignore: r.txt",
        ".rlmignore: m.txt",
        "i.txt r.txt m.txt k.txt",
    ],
    "odd names": ["", '"q".txt -dash a/(p)/[x].ts A.txt a.txt .hidden .d/x con ' + "long" * 40],
}
"""Of each tree its `.gitignore`, other ignore files, and the names of its files."""
OWN_IGNORED = {"own ignore files": {"i.txt", "m.txt"}}
ODD = (b"bad\xff.txt", b"nl\nname", b"tab\tname", b" lead", b"sp ", b"tr   ", b"b c")
# What pathspec cannot follow, of which the files are read and the patterns told.
UNFOLLOWED = {
    "two stars": ["foo**/bar"],
    "escapes": ["bad\\"],
    "classes": ["[[:upper:]]*.t", "[c-a]", "f[!/]o", "[\\]]q"],
}


def run(folder: Path, *arguments: str, check: bool = True) -> bytes:
    identity = {
        f"GIT_{who}_{what}": "t@e" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    command = ["git", "-c", "protocol.file.allow=always", "-c", "core.fsmonitor=false"]
    return subprocess.run(
        [*command, "-C", str(folder), *arguments],
        check=check,
        capture_output=True,
        env=os.environ | identity,
    ).stdout


def write(root: Path, *names: str | bytes, text: str = "x\n") -> None:
    for name in names:
        target = Path(os.fsdecode(os.fsencode(root) + b"/" + os.fsencode(name)))
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8", newline="")


def write_ignored(root: Path, name: str) -> None:
    first, *others, names = IGNORED[name]
    for place, rules in [(".gitignore", first), *(one.split(": ", 1) for one in others)]:
        if rules:
            write(root, place, text=f"{rules}\n")
    write(root, *names.split(" "), *(ODD if "odd" in name or "escapes" in name else ()))


def commit(root: Path) -> None:
    run(root, "add", "-A")
    run(root, "commit", "-qm", "x")


def info_exclude(root: Path) -> None:
    write(root, ".git/info/exclude", text="*.log\n!keep.log\n")
    write(root, "a.log", "keep.log", "s/a.log", "s/keep.log", "x")


def global_excludes(root: Path) -> None:
    write(root, ".git/mine", text="*.swp\n")
    run(root, "config", "core.excludesFile", str(root / ".git" / "mine"))
    write(root, "a.swp", "s/b.swp", "x")


def latin_1(root: Path) -> None:
    write(root, b"Or\xe7amento/x", "a.log", "b")
    (root / ".gitignore").write_bytes(b"Or\xe7amento/\n*.log\n")


def tracked_but_ignored(root: Path) -> None:
    write(root, "dist/a.js")
    commit(root)
    write(root, ".gitignore", text="dist/\n")
    write(root, "dist/b.js")


def deleted(root: Path) -> None:
    write(root, "gone", "here")
    commit(root)
    (root / "gone").unlink()


def conflict(root: Path) -> None:
    write(root, "f", text="base\n")
    commit(root)
    run(root, "checkout", "-qb", "side")
    write(root, "f", text="side\n")
    commit(root)
    run(root, "checkout", "-q", "-")
    write(root, "f", text="main\n")
    commit(root)
    run(root, "merge", "-q", "side", check=False)


def nested(root: Path) -> None:
    write(root, "a", "in/ner/b", "in/c")
    run(root, "init", "-q", "in/ner")


def submodule(root: Path) -> None:
    library = root.parent / ".library"
    write(library, "lib.c")
    run(library, "init", "-q")
    commit(library)
    write(root, "a")
    run(root, "submodule", "add", "-q", str(library), "third/sub")
    commit(root)


def sparse(root: Path) -> None:
    write(root, "in/a", "out/b", "r")
    commit(root)
    run(root, "sparse-checkout", "set", "--cone", "in")


def worktree(root: Path) -> None:
    main = root.parent / "main"
    write(main, "a", "new.o")
    write(main, ".gitignore", text="*.o\n")
    commit(main)
    shutil.rmtree(root)
    run(main, "worktree", "add", "-q", str(root))
    write(root, "z.o", "n")


def links(root: Path) -> None:
    write(root, "real/f")
    pairs = {"lnk": "real", "real/up": "..", "outside": "/etc/hostname", "self": "self"}
    for name, target in (pairs | {"dangling": "nowhere", "flnk": "real/f"}).items():
        (root / name).symlink_to(target)


def linked_rules(root: Path) -> None:
    write(root, "rules", text="*.log\n")
    write(root, "a.log")
    (root / ".gitignore").symlink_to("rules")


def special(root: Path) -> None:
    write(root, "ok")
    os.mkfifo(root / "pipe")
    here = Path.cwd()
    os.chdir(root)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
    os.chdir(here)


def within(root: Path) -> None:
    write(root, ".gitignore", text="skip.py\nsrc/skip2.py\n")
    write(root, "src/ok.py", "src/skip.py", "src/skip2.py")


def revisions(root: Path) -> None:
    write(root, "a", "old")
    commit(root)
    (root / "old").unlink()
    write(root, "new")
    commit(root)


def main(root: Path) -> None:
    """What `worktree` makes a second work tree of."""


def evil(root: Path) -> None:
    script = root / ".git" / "run.sh"
    write(root, "a", ".git/run.sh", text=f"#!/bin/sh\ntouch '{root.parent}/.ran'\ncat\n")
    write(root, ".gitattributes", text="* filter=evil diff=evil\n")
    commit(root)
    script.chmod(0o755)
    hooks = ("post-index-change", "post-checkout", "pre-auto-gc", "reference-transaction")
    for hook in (*hooks, "fsmonitor-watchman", "query-watchman"):
        (root / ".git" / "hooks").mkdir(exist_ok=True)
        shutil.copy(script, root / ".git" / "hooks" / hook)
    for name in ("core.fsmonitor", "filter.evil.clean", "filter.evil.smudge", "diff.evil.textconv"):
        run(root, "config", name, str(script))
    write(root, "a", text="changed\n")


STATES: tuple[Callable[[Path], None], ...] = (
    *(info_exclude, global_excludes, latin_1, tracked_but_ignored, deleted, conflict, nested),
    *(submodule, sparse, main, worktree, links, linked_rules, special, within, revisions, evil),
)
NAMES = (*IGNORED, *(state.__name__ for state in STATES))


@pytest.fixture(scope="module")
def forest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """All trees, and the repository of none of them."""
    top = tmp_path_factory.mktemp("forest")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(top))
        patch.setenv("XDG_CONFIG_HOME", str(top / ".config"))
        for name in NAMES:
            (top / name).mkdir()
            run(top / name, "init", "-q")
        for name in IGNORED:
            write_ignored(top / name, name)
        for state in STATES:
            state(top / state.__name__)
        yield top


def listed(root: Path) -> list[str]:
    """What git lists and is a file that is no link, in byte order."""
    output = run(root, "ls-files", "-zco", "--exclude-standard", "--deduplicate")
    names = sorted(set(output.split(b"\0")) - {b""})
    files = [name for name in names if is_file(os.fsencode(root) + b"/" + name)]
    return [printable_path(os.fsdecode(name)) for name in files]


def is_file(location: bytes) -> bool:
    return os.path.lexists(location) and stat.S_ISREG(os.lstat(location).st_mode)


def load(root: Path) -> tuple[list[str], dict[str, str], tuple[str, ...]]:
    with load_corpus(root, hidden=True) as corpus:
        reasons = {one.path: one.reason for one in corpus.skipped}
        return list(corpus.paths()), reasons, corpus.warnings


@pytest.mark.parametrize("name", NAMES)
def test_a_tree_is_what_git_lists_of_it_and_is_a_file(forest: Path, name: str) -> None:
    root = forest / name / ("src" if name == "within" else "")
    paths, skipped, warnings = load(root)
    own = OWN_IGNORED.get(name, set())
    assert paths == [path for path in listed(root) if path not in own]
    assert own <= skipped.keys()
    assert all("guess" in warning for warning in warnings)
    # Whatever lies there is a document, or was skipped, alone or with its folder.
    told = {*paths, *skipped}
    for folder, folders, files in os.walk(root):
        folders[:] = [one for one in folders if one != ".git"]
        for each in set(files) - {".git"}:
            place = printable_path(str((Path(folder) / each).relative_to(root)))
            above = {place, *(str(parent) for parent in Path(place).parents)}
            assert above & told, place


def test_nothing_of_a_hostile_repository_is_run(forest: Path) -> None:
    root = forest / "evil"
    assert load(root)[0] == [".gitattributes", "a"]
    for source in (f"{root}@HEAD", f"{root}/*"):
        with load_corpus(source) as corpus:
            assert "a" in corpus.paths()
    assert not (forest / ".ran").exists()


@pytest.mark.parametrize("name", IGNORED)
def test_git_rules_serve_where_there_is_no_repository(
    forest: Path, tmp_path: Path, name: str
) -> None:
    write_ignored(tmp_path / "tree", name)
    assert load(tmp_path / "tree")[0] == load(forest / name)[0]


@pytest.mark.parametrize("name", IGNORED)
def test_without_git_a_tree_is_the_same_or_the_pattern_is_told(
    forest: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    expected = [path for path in listed(forest / name) if path not in OWN_IGNORED.get(name, ())]
    monkeypatch.setenv("PATH", str(forest / "nowhere"))
    paths, _, warnings = load(forest / name)
    told = [f".gitignore: cannot follow {one!r} without git" for one in UNFOLLOWED.get(name, ())]
    assert list(warnings) == told
    assert paths == expected or (told and set(expected) < set(paths))


def test_hard_contents_come_out_as_written(tmp_path: Path) -> None:
    texts = {
        "utf-8": "café\n", "utf-8-sig": "café\n", "utf-16": "café\r\n" * 20,
        "utf-16-le": "public class A {}\r\n" * 20, "utf-32": "café\n",
        "cp932": "データベース接続を初期化する。\n" * 20, "euc_jp": "設定を読み込みます。\n" * 20,
        "gbk": "你好世界，这是一个测试文件\n" * 10, "euc_kr": "안녕하세요 세계\n" * 10,
        "koi8-r": "Привет, мир. Это проверка кодировки.\n" * 10,
        "cp1251": "Привет, мир. Это проверка.\n" * 10, "cp1252": "smart “quotes” € 100\n",
        "cp437": "┌──┐\n│ hi │\n└──┘\n", "latin-1": "# coding: latin-1\nname = 'François'\n",
    }  # fmt: skip
    for codec, text in texts.items():
        (tmp_path / codec).write_bytes(text.encode(codec))
    exact = {
        "short.java": "// データベース接続を初期化する。\nclass A {}\n".encode("cp932"),
        "mixed": b"a\r\nb\nc\rd",
        "ends": "a\x0cb\x0bc\x85d\u2028e\u2029f\x1cg\n".encode(),
        "late nul": b"text " * 3000 + b"\0more\n",
        "has fffd": "test \ufffd\n".encode(),
        "cut": b"a" * 4095 + "é\n".encode(),
        "min.js": b"!function(){" + b"var a=1;" * 300_000 + b"}();",
        "escape": b"\x1b[31mred\x1b[0m\n",
        "zwj": "# \U0001f468\u200d\U0001f469\u200d\U0001f467\n".encode(),
        "trojan": "x = 1 # \u202e \u2066 evil\n".encode(),
        "empty": b"",
    }
    for name, data in exact.items():
        (tmp_path / name).write_bytes(data)
    binary = {
        "elf": b"\x7fELF\x02\1" + bytes(range(256)) * 20,
        "nul": b"a\0b\n",
        "pdf.txt": b"%PDF-1.4\n%\xe2\xe3\n",
        "pickle": b"\x80\4\x95\5\0\0\0]\x94.",
    }
    for name, data in binary.items():
        (tmp_path / name).write_bytes(data)
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(1 << 30)
    with load_corpus(tmp_path) as corpus:
        found = {one.path: one.content for one in corpus}
        guessed = {one.partition(": ")[0] for one in corpus.warnings if "guess" in one}
        skipped = {one.path: one.reason for one in corpus.skipped}
    expected = {name: data.decode("cp932" if name == "short.java" else "utf-8")
                for name, data in exact.items()}  # fmt: skip
    assert found == expected | texts
    old = {"cp932", "euc_jp", "gbk", "euc_kr", "koi8-r", "cp1251", "cp1252", "cp437"}
    assert guessed == old | {"short.java"}
    large = {"sparse": "larger than 64 MiB (max_file_bytes)"}
    assert skipped == dict.fromkeys(binary, "binary") | large

"""Every command takes the same sources, and the same options that say what of them is read."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path

import click
import pytest

from rlm_rag.cli.commands import LazyGroup
from rlm_rag.cli.options import Loading

from .conftest import Run

WITH_SOURCES = (
    *("ask", "chat", "search", "grep", "outline", "symbols", "read", "repo-map"),
    *("pack", "index", "map", "mcp"),
)
QUICK = {"grep": ("backoff",), "outline": (), "read": ("src/retry.py",), "pack": ()}
"""What follows the source of some commands that neither a model nor an index is needed for."""


@pytest.fixture
def archive(repo: Path, tmp_path: Path) -> Path:
    made = tmp_path / "repo.zip"
    with zipfile.ZipFile(made, "w") as file:
        for path in sorted(repo.rglob("*.*")):
            file.write(path, path.relative_to(repo))
    return made


@pytest.mark.parametrize("name", WITH_SOURCES)
def test_every_command_with_sources_has_every_option_of_a_load(name: str) -> None:
    group = LazyGroup()
    command = group.get_command(click.Context(group), name)
    assert command is not None
    assert Loading.__annotations__.keys() <= {each.name for each in command.params}


@pytest.mark.parametrize("command", QUICK)
def test_a_command_reads_an_archive_and_a_folder_as_one(
    rlm_rag: Run, archive: Path, repo: Path, command: str
) -> None:
    shown, expected = (
        rlm_rag(command, str(source), *QUICK[command], "--no-keep").stdout
        for source in (archive, repo)
    )
    assert "backoff" in shown and shown == expected


@pytest.mark.skipif(os.name != "posix", reason="links")
@pytest.mark.parametrize(
    ("options", "paths"),
    [
        ([], ["a.md", "b.csv", "src/c.py"]),
        (["--include", "*.py", "--include", "*.md"], ["a.md", "src/c.py"]),
        (["--exclude", "src/"], ["a.md", "b.csv"]),
        (["--hidden"], [".gitignore", ".hid", "a.md", "b.csv", "src/c.py"]),
        (["--no-ignore"], ["a.md", "b.csv", "out/d", "src/c.py"]),
        (["--follow-symlinks"], ["a.md", "b.csv", "lnk/c.py", "src/c.py"]),
        (["--max-file-bytes", "3"], ["a.md", "src/c.py"]),
        (["--max-files", "1"], ["a.md"]),
        (["--max-total-bytes", "9"], ["a.md"]),
    ],
)
def test_options_say_what_of_a_folder_is_read(
    rlm_rag: Run, tmp_path: Path, options: list[str], paths: list[str]
) -> None:
    root = tmp_path / "tree"
    files = {"a.md": "a\n", "b.csv": "x,y\n1,2\n", "src/c.py": "c\n", "out/d": "d\n", ".hid": "h\n"}
    for name, text in (files | {".gitignore": "out/\n"}).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("s\n")
    (root / "lnk").symlink_to("src")
    (root / "away").symlink_to(tmp_path / "outside")
    shown = json.loads(rlm_rag("pack", str(root), "--list", "--json", *options).stdout)
    assert [each["path"] for each in shown["documents"]] == paths
    left_out = {each["path"] for each in shown["skipped"]}
    assert {"away", "a.md", "b.csv", "src/c.py"} <= left_out | set(paths)


def test_columns_and_names_of_files_are_taken_from_options(rlm_rag: Run, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,text,other\nq1,first,x\nq2,second,y\n")
    options = ("--column", "text", "--path-column", "id")
    packed = rlm_rag("pack", str(tmp_path / "t.csv"), *options).stdout.splitlines()
    assert [json.loads(line) for line in packed] == [
        {"path": "q1", "content": "first"}, {"path": "q2", "content": "second"}
    ]  # fmt: skip
    (tmp_path / "odd\nname").write_text("odd\n")
    done = rlm_rag("pack", "-0", "-", stdin="t.csv\0odd\nname\0", cwd=tmp_path)
    found = {json.loads(line)["path"] for line in done.stdout.splitlines()}
    assert found == {"t.csv", "odd\nname"}

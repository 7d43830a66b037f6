"""Definitions kept in a file: found again, bounded, private, and made anew where damaged."""

from __future__ import annotations

import os
import sqlite3
import stat
import sys
from pathlib import Path

import pytest

from rlm_rag.indexes.definition_cache import DefinitionCache, Outlined
from rlm_rag.indexes.skeleton import Definition

KEY, OTHER = b"k" * 16, b"o" * 16
TASK = Outlined(
    (
        Definition(1, "class", "Task", "class Task:", end_line=3, doc="Work."),
        Definition(2, "method", "Cancel", "def Cancel(self):", ("Task",), 1, 3),
    ),
    "said",
)


def filled(path: Path) -> DefinitionCache:
    cache = DefinitionCache(path)
    cache.add([(KEY, TASK), (OTHER, Outlined(()))])
    return cache


def test_what_was_kept_is_found_by_another_process(tmp_path: Path) -> None:
    filled(tmp_path / "a").close()
    cache = DefinitionCache(tmp_path / "a")
    assert cache.known() == {KEY, OTHER}
    assert cache.get(KEY) == TASK
    cancel = Outlined(TASK.definitions[1:], "said")
    assert cache.defining("cancel") == cache.defining("CANCEL") == {KEY: cancel}
    assert cache.defining("task.cancel") == {}
    cache.close()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other permissions")
def test_the_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    filled(tmp_path / "a").close()
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o600


def test_where_there_can_be_no_file_all_is_kept_in_memory(tmp_path: Path) -> None:
    cache = filled(tmp_path / ("long" * 100))
    assert cache.get(KEY) == TASK
    cache.close()


def test_what_is_not_wanted_is_forgotten_with_its_names(tmp_path: Path) -> None:
    cache = filled(tmp_path / "a")
    cache.keep_only({OTHER})
    assert cache.known() == {OTHER}
    assert cache.get(KEY) is None
    assert cache.defining("task") == {}
    cache.close()


def test_a_file_that_is_none_of_ours_is_made_anew(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"no database" * 1000)
    cache = filled(tmp_path / "a")
    assert cache.get(KEY) == TASK
    cache.close()
    assert (tmp_path / "a").read_bytes().startswith(b"SQLite")


def test_a_file_damaged_within_is_left_for_an_empty_one(tmp_path: Path) -> None:
    cache = DefinitionCache(tmp_path / "a")
    cache.add((b"%16d" % n, TASK) for n in range(500))
    cache.close()
    data = bytearray((tmp_path / "a").read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)
    (tmp_path / "a").write_bytes(data)
    cache = DefinitionCache(tmp_path / "a")
    assert cache.known() == set()
    cache.add([(KEY, TASK)])
    assert cache.get(KEY) == TASK
    cache.close()


@pytest.mark.parametrize(
    "rows", [b"", b"not compressed", None, b"x\x9c\x8b\x8e\x05\x00\x01\x15\x00\xb9"]
)
def test_rows_that_are_no_definitions_are_as_if_not_there(
    rows: bytes | None, tmp_path: Path
) -> None:
    filled(tmp_path / "a").close()
    with sqlite3.connect(tmp_path / "a") as database:
        database.execute("UPDATE documents SET rows = ?", (rows,))
    database.close()
    cache = DefinitionCache(tmp_path / "a")
    assert cache.get(KEY) in (None, Outlined((), "said"))
    cache.close()


def test_a_name_whose_rows_are_damaged_counts_as_a_loss(tmp_path: Path) -> None:
    filled(tmp_path / "a").close()
    with sqlite3.connect(tmp_path / "a") as database:
        database.execute("UPDATE names SET rows = ?", (b"[1",))
    database.close()
    cache = DefinitionCache(tmp_path / "a")
    assert cache.losses == 0
    assert cache.defining("task") == {}
    assert cache.losses == 1
    assert cache.known() == set()
    cache.close()


def test_a_file_that_grew_too_large_is_begun_again(tmp_path: Path) -> None:
    filled(tmp_path / "a").close()
    cache = DefinitionCache(tmp_path / "a", max_bytes=100)
    assert cache.known() == set()
    cache.close()


def test_two_processes_can_keep_in_one_file(tmp_path: Path) -> None:
    first, second = DefinitionCache(tmp_path / "a"), DefinitionCache(tmp_path / "a")
    first.add([(KEY, TASK)])
    second.add([(OTHER, TASK)])
    assert first.known() == second.known() == {KEY, OTHER}
    first.close()
    second.close()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows asks for a right to make links")
@pytest.mark.parametrize("ending", ["", "-journal", "-wal"])
@pytest.mark.parametrize("is_there", [False, True])
def test_a_link_in_the_place_of_the_file_is_not_followed(
    tmp_path: Path, ending: str, is_there: bool
) -> None:
    victim = tmp_path / "victim"
    if is_there:
        victim.write_bytes(b"")
    place = tmp_path / "a"
    if ending:
        filled(place).close()
    (tmp_path / f"a{ending}").symlink_to(victim)
    cache = DefinitionCache(place)
    cache.add([(KEY, TASK)])
    assert cache.get(KEY) == TASK
    cache.close()
    assert not (tmp_path / f"a{ending}").is_symlink()
    assert place.read_bytes().startswith(b"SQLite")
    assert victim.read_bytes() == b"" if is_there else not victim.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no named pipes in folders")
def test_what_is_no_file_is_replaced_or_left_for_memory(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    filled(tmp_path / "pipe").close()
    assert (tmp_path / "pipe").is_file()
    (tmp_path / "folder").mkdir()
    cache = filled(tmp_path / "folder")
    assert cache.get(KEY) == TASK
    cache.close()
    assert (tmp_path / "folder").is_dir()

"""A page is written whole or not at all, and only its owner can read it."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from rlm_rag.pages.file import write_page


def broken() -> Iterator[str]:
    yield "half of it"
    raise OSError(28, "No space left on device")


def test_a_new_page_is_its_owners_alone(tmp_path: Path) -> None:
    file = tmp_path / "p.html"
    assert write_page(file, ["a\r\n", "é", "\ud800"]) == 11
    assert file.read_bytes() == "a\r\né\\ud800".encode()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_what_fails_half_way_leaves_the_older_page_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "p.html"
    file.write_text("older")
    with pytest.raises(OSError, match="space"):
        write_page(file, broken())
    assert [each.name for each in tmp_path.iterdir()] == ["p.html"]
    assert file.read_text() == "older"


def test_a_link_is_followed(tmp_path: Path) -> None:
    file, link = tmp_path / "p.html", tmp_path / "link"
    link.symlink_to(file)
    write_page(link, ["x"])
    assert (link.is_symlink(), file.read_text()) == (True, "x")


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    write_page(pipe, ["a", "b"])
    reader.join()
    assert read == ["ab"]
    assert pipe.is_fifo()

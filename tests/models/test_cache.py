"""Replies kept on disk: found again, bounded, private, shared by processes, mended when damaged."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_rag.models.base import Completion, Usage
from rlm_rag.models.cache import ReplyCache, default_cache_file

REPLY = Completion(
    "Ответ\ud800 \x00 \u2028",
    Usage(1, input_tokens=7, cached_tokens=2, output_tokens=3, reasoning_tokens=1, usd=0.25),
    "served/name",
    "length",
)


@contextmanager
def opened(path: Path, max_bytes: int = 1 << 24) -> Iterator[ReplyCache]:
    cache = ReplyCache(path, max_bytes=max_bytes)
    try:
        yield cache
    finally:
        cache.close()


def fetched(path: Path, key: bytes) -> Completion | None:
    with opened(path) as cache:
        return asyncio.run(cache.get(key))


def kept(path: Path, key: bytes, completion: Completion = REPLY) -> None:
    with opened(path) as cache:
        asyncio.run(cache.put(key, completion))
        assert cache.failure is None


def test_a_reply_is_found_again_as_it_was_by_another_cache(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "replies.sqlite"
    kept(path, b"k")
    assert fetched(path, b"k") == REPLY
    assert fetched(path, b"other") is None


def test_nobody_else_may_read_it(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "replies.sqlite"
    with opened(path) as cache:
        asyncio.run(cache.put(b"k", REPLY))
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert modes["replies.sqlite"] == 0o600
    assert "replies.sqlite-wal" in modes
    assert set(modes.values()) == {0o600}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    path.chmod(0o644)
    kept(path, b"k2")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("damage", [b"", b"not a database at all" * 500, "middle"])
def test_a_damaged_file_is_begun_anew(tmp_path: Path, damage: bytes | str) -> None:
    path = tmp_path / "replies.sqlite"
    with opened(path) as cache:
        for number in range(200):
            asyncio.run(cache.put(b"%d" % number, REPLY))
    if isinstance(damage, bytes):
        path.write_bytes(damage)
    else:
        data = bytearray(path.read_bytes())
        data[100:-100] = os.urandom(len(data) - 200)
        path.write_bytes(data)
    assert fetched(path, b"7") is None
    kept(path, b"k")
    assert fetched(path, b"k") == REPLY


def test_a_file_of_another_layout_is_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "replies.sqlite"
    database = sqlite3.connect(path)
    database.execute("PRAGMA user_version = 99")
    database.close()
    kept(path, b"k")
    assert fetched(path, b"k") == REPLY


def test_a_row_that_is_no_reply_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "replies.sqlite"
    kept(path, b"k")
    database = sqlite3.connect(path)
    for row in ("{", "[]", '{"text": 1, "model": "m", "finish_reason": "stop", "usage": {}}'):
        database.execute("UPDATE replies SET reply = ?", (row,))
        database.commit()
        assert fetched(path, b"k") is None
    database.close()


def test_the_oldest_replies_go_when_it_is_full_and_the_file_stays_small(tmp_path: Path) -> None:
    path, limit = tmp_path / "replies.sqlite", 400_000
    with opened(path, limit) as cache:

        async def fill() -> list[Completion | None]:
            for number in range(300):
                text = f"{number} " * 1000
                await cache.put(b"%d" % number, Completion(text, Usage(), "m"))
            return [await cache.get(b"%d" % number) for number in range(300)]

        found = asyncio.run(fill())
        assert cache.failure is None
    missing = [number for number, completion in enumerate(found) if completion is None]
    assert missing == list(range(len(missing)))
    assert 200 < len(missing) < 290
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) < 1.5 * limit


def test_a_reply_that_would_fill_the_cache_is_not_kept(tmp_path: Path) -> None:
    with opened(tmp_path / "replies.sqlite", 100_000) as cache:
        asyncio.run(cache.put(b"k", Completion("x" * 90_000, Usage(), "m")))
        assert asyncio.run(cache.get(b"k")) is None


def test_a_place_that_cannot_be_written_is_said_and_harms_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with opened(tmp_path / "file" / "replies.sqlite") as cache:
        asyncio.run(cache.put(b"k", REPLY))
        assert asyncio.run(cache.get(b"k")) is None
        assert "cannot be" in (cache.failure or "")


_WRITER = """
import asyncio, sys
from pathlib import Path
from rlm_rag.models.base import Completion, Usage
from rlm_rag.models.cache import ReplyCache

async def fill(cache, name):
    for number in range(150):
        await cache.put(b"%s-%d" % (name, number), Completion(f"{number}", Usage(calls=1), "m"))
        assert await cache.get(b"%s-%d" % (name, number)) is not None, number

cache = ReplyCache(Path(sys.argv[1]))
asyncio.run(fill(cache, sys.argv[2].encode()))
assert cache.failure is None, cache.failure
cache.close()
"""


def test_two_processes_write_to_it_at_the_same_time(tmp_path: Path) -> None:
    path = tmp_path / "replies.sqlite"
    writers = [
        subprocess.Popen([sys.executable, "-c", _WRITER, str(path), name], cwd=Path.cwd())
        for name in ("a", "b")
    ]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    for name in ("a", "b"):
        for number in (0, 149):
            found = fetched(path, b"%s-%d" % (name.encode(), number))
            assert found is not None and found.text == str(number)


def test_a_lock_of_another_process_costs_a_miss_and_not_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlm_rag.models.cache._BUSY_SECONDS", 0.05)
    path = tmp_path / "replies.sqlite"
    kept(path, b"k")
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("BEGIN EXCLUSIVE")
    with opened(path) as cache:
        asyncio.run(cache.put(b"k2", REPLY))
        database.execute("ROLLBACK")
        assert asyncio.run(cache.get(b"k2")) is None
        asyncio.run(cache.put(b"k2", REPLY))
        assert asyncio.run(cache.get(b"k2")) == REPLY
    database.close()


def test_closing_twice_is_harmless(tmp_path: Path) -> None:
    with opened(tmp_path / "replies.sqlite") as cache:
        asyncio.run(cache.put(b"k", REPLY))
        cache.close()


@given(st.dictionaries(st.sampled_from(["XDG_CACHE_HOME", "HOME"]), st.just("/some/where")))
def test_the_file_lies_in_the_users_cache_folder(environ: dict[str, str]) -> None:
    file = default_cache_file(environ)
    if not environ:
        assert file is None
    else:
        assert file is not None and file.is_absolute() and file.name == "replies.sqlite"
        assert "rlm-rag" in file.parts
    assert default_cache_file({"XDG_CACHE_HOME": "relative"}) is None

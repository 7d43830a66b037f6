"""Replies kept on disk across runs, in one SQLite file of limited size."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import os
import sqlite3
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, TypeVar

from rlm_rag.models.base import Completion, FinishReason, Usage

T = TypeVar("T")

DEFAULT_MAX_BYTES = 256 * 1024 * 1024
_FILE_NAME = "replies.sqlite"
_LAYOUT = 1
# How long one process waits for another's write; the reply is sent for again, or not kept, after.
_BUSY_SECONDS = 5.0
_BUSY_PAUSE_SECONDS = 0.005
# Eviction takes more than one row, so that a full cache does not evict at each reply.
_EVICTED_SHARE = 0.1
# A row's last use is written when it is older than this, so that most hits only read.
_USE_SECONDS = 3600.0
_FINISH_REASONS: tuple[FinishReason, ...] = ("stop", "length", "content_filter", "other")
_TABLE = """
CREATE TABLE IF NOT EXISTS replies (
    key BLOB PRIMARY KEY, reply TEXT NOT NULL, used REAL NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS replies_by_use ON replies (used);
"""


def default_cache_file(environ: Mapping[str, str] | None = None) -> Path | None:
    """The replies in the user's cache folder; None where the platform names no such folder."""
    environ = os.environ if environ is None else environ
    # The XDG specification says that a relative path is to be ignored.
    chosen = environ.get("XDG_CACHE_HOME", "")
    if chosen.startswith("/"):
        return Path(chosen) / "rlm-rag" / _FILE_NAME
    if sys.platform == "win32":
        local = environ.get("LOCALAPPDATA")
        return Path(local) / "rlm-rag" / "cache" / _FILE_NAME if local else None
    home = environ.get("HOME")
    if not home:
        return None
    below = "Library/Caches" if sys.platform == "darwin" else ".cache"
    return Path(home) / below / "rlm-rag" / _FILE_NAME


class ReplyCache:
    """Completions by key, least recently used first to go beyond `max_bytes`.

    The file is readable by its owner alone and may be shared by processes. What it cannot do
    is never an error: a reply that cannot be read is missing, one that cannot be kept is not,
    a damaged file is begun anew. `failure` says why nothing is kept any more. Its thread is its
    own, so that waiting for another process holds up no loop; `close` it.
    """

    def __init__(self, path: Path, *, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._database: sqlite3.Connection | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="rlm-rag-cache")
        self.failure: str | None = None

    async def get(self, key: bytes) -> Completion | None:
        """The completion kept under `key`, its usage as it was when it was paid for."""
        row = await self._call(lambda database: self._read(database, key))
        return None if row is None else _completion(row)

    async def put(self, key: bytes, completion: Completion) -> None:
        """Keep a completion; an earlier one of the same key is replaced."""
        row = json.dumps(asdict(completion))
        await self._call(lambda database: self._write(database, key, row))

    def close(self) -> None:
        """Close the file, after what was asked of it; idempotent."""
        with contextlib.suppress(RuntimeError):
            # RuntimeError: closed before.
            self._thread.submit(self._close)
        self._thread.shutdown(wait=True)

    async def _call(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._run, work)

    def _run(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        if self.failure is not None:
            return None
        try:
            return work(self._opened())
        except sqlite3.OperationalError as error:
            # Another process's lock, or a full disk: this reply only.
            if self._database is None and not _is_busy(error):
                self.failure = f"the cache {self._path} cannot be opened: {error}"
            return None
        except sqlite3.DatabaseError:
            return self._rebuilt(work)
        except OSError as error:
            self.failure = f"the cache {self._path} cannot be written: {error.strerror}"
            return None

    def _rebuilt(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        """Begin the damaged file anew. Who has it open still keeps writing to the old one."""
        try:
            self._close()
            for ending in ("", "-wal", "-shm"):
                self._path.with_name(self._path.name + ending).unlink(missing_ok=True)
            return work(self._opened())
        except (sqlite3.Error, OSError) as error:
            self.failure = f"the cache {self._path} is damaged and cannot be made anew: {error}"
            return None

    def _opened(self) -> sqlite3.Connection:
        """Return the open file; where others are about to make it, wait for them here.

        SQLite itself does not wait for a lock that a change of the journal mode meets.
        """
        deadline = time.monotonic() + _BUSY_SECONDS
        while self._database is None:
            try:
                self._database = self._connected()
            except sqlite3.OperationalError as error:
                if not _is_busy(error) or time.monotonic() > deadline:
                    raise
                time.sleep(_BUSY_PAUSE_SECONDS)
        return self._database

    def _connected(self) -> sqlite3.Connection:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # SQLite gives its side files the mode of the file itself.
        descriptor = os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            os.fchmod(descriptor, 0o600)
        finally:
            os.close(descriptor)
        database = sqlite3.connect(self._path, timeout=_BUSY_SECONDS, isolation_level=None)
        try:
            database.execute("PRAGMA journal_mode = WAL")
            # A reply lost in a power cut is asked for again; a sync for each would cost more.
            database.execute("PRAGMA synchronous = NORMAL")
            database.execute(f"PRAGMA journal_size_limit = {self._max_bytes // 8}")
            (layout,) = database.execute("PRAGMA user_version").fetchone()
            if layout not in (0, _LAYOUT):
                raise sqlite3.DatabaseError(f"layout {layout} is not known")
            database.executescript(_TABLE)
            database.execute(f"PRAGMA user_version = {_LAYOUT}")
        except BaseException:
            database.close()
            raise
        return database

    def _close(self) -> None:
        database, self._database = self._database, None
        if database is not None:
            database.close()

    def _read(self, database: sqlite3.Connection, key: bytes) -> str | None:
        found = database.execute("SELECT reply, used FROM replies WHERE key = ?", (key,)).fetchone()
        if found is None:
            return None
        now = time.time()
        if now - found[1] > _USE_SECONDS:
            database.execute("UPDATE replies SET used = ? WHERE key = ?", (now, key))
        return str(found[0])

    def _write(self, database: sqlite3.Connection, key: bytes, row: str) -> None:
        if 2 * len(row) > self._max_bytes * _EVICTED_SHARE:
            return
        database.execute("INSERT OR REPLACE INTO replies VALUES (?, ?, ?)", (key, row, time.time()))
        while self._used_bytes(database) > self._max_bytes:
            (count,) = database.execute("SELECT count(*) FROM replies").fetchone()
            database.execute(
                "DELETE FROM replies WHERE key IN (SELECT key FROM replies ORDER BY used LIMIT ?)",
                (math.ceil(count * _EVICTED_SHARE),),
            )
            if not count:
                return

    def _used_bytes(self, database: sqlite3.Connection) -> int:
        pages, free, size = (
            database.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_count", "freelist_count", "page_size")
        )
        return int((pages - free) * size)


def _is_busy(error: sqlite3.OperationalError) -> bool:
    return error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _completion(row: str) -> Completion | None:
    try:
        entry: Any = json.loads(row)
        usage = Usage(**{item.name: entry["usage"][item.name] for item in fields(Usage)})
        text, model, reason = entry["text"], entry["model"], entry["finish_reason"]
    except (ValueError, TypeError, KeyError):
        return None
    if not isinstance(text, str) or not isinstance(model, str) or reason not in _FINISH_REASONS:
        return None
    return Completion(text=text, usage=usage, model=model, finish_reason=reason)

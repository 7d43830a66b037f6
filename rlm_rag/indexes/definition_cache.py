"""The definitions of documents, kept by their content in a file beside the search index.

The file is no trusted input: what is damaged is made anew.
"""

from __future__ import annotations

import json
import os
import sqlite3
import stat
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from rlm_rag.indexes import landmark_bytes
from rlm_rag.indexes.landmarks import Landmarks
from rlm_rag.indexes.skeleton import Definition, from_rows, to_rows

MAX_CACHE_BYTES = 512 << 20
FILE_NAME = "definitions.sqlite"

_MAX_ROWS_BYTES = 64 << 20
_BUSY_SECONDS = 5.0
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
# Of a damaged table the error cannot be told: SQLite quotes bytes that are no text.
_DAMAGED = (sqlite3.DatabaseError, UnicodeDecodeError)
_SIDE_FILES = ("-journal", "-wal", "-shm")
_SCHEMA = """
CREATE TABLE IF NOT EXISTS documents (
  number INTEGER PRIMARY KEY, digest BLOB UNIQUE, said TEXT, rows BLOB);
CREATE TABLE IF NOT EXISTS names (
  name BLOB, document INTEGER, rows BLOB, PRIMARY KEY (name, document)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS landmarks (digest BLOB PRIMARY KEY, data BLOB) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True)
class Outlined:
    """The definitions of a document, and what must be said of them: why no parser found them."""

    definitions: tuple[Definition, ...]
    said: str | None = None

    @property
    def landmarks(self) -> Landmarks | None:
        """What a search needs of them; None where no parser found them."""
        return Landmarks.of(self.definitions) if self.said is None else None


class DefinitionCache:
    """Keeps what was found in documents under their digests; in memory where `path` is None.

    Where the file cannot be used, all is kept in memory. Several processes may share the file,
    which is made when there is something to keep.
    """

    def __init__(self, path: Path | None, *, max_bytes: int = MAX_CACHE_BYTES) -> None:
        self.losses = 0
        """How often all that was kept was lost, to damage or to another process that held it."""
        self._path = path
        self._max_bytes = max_bytes
        # In a folder that may not be looked into, `exists` fails.
        self._is_made = path is None or os.path.lexists(path)
        in_file = path if self._is_made else None
        self._database = _in_file(in_file, max_bytes) if in_file else _connected(":memory:")

    def known(self) -> set[bytes]:
        """Return the digests of all documents that are kept."""
        found: set[bytes] = set()
        with self._guarded() as database:
            found.update(row[0] for row in database.execute("SELECT digest FROM documents"))
        return found

    def get(self, digest: bytes) -> Outlined | None:
        """Return what is kept of a document, or None."""
        row = None
        with self._guarded() as database:
            row = database.execute(
                "SELECT said, rows FROM documents WHERE digest = ?", (digest,)
            ).fetchone()
        return None if row is None else _outlined(*row)

    def landmarks(self, digests: Iterable[bytes]) -> dict[bytes, Landmarks | None]:
        """Return what `Outlined.landmarks` are of those documents that are kept.

        Where they are damaged they are made of the definitions.
        """
        wanted = list(digests)
        rows: list[tuple[bytes, object]] = []
        marks = ",".join("?" * len(wanted))
        with self._guarded() as database:
            rows = database.execute(
                f"SELECT digest, data FROM landmarks WHERE digest IN ({marks})", wanted
            ).fetchall()
        found: dict[bytes, Landmarks | None] = {}
        for digest, data in rows:
            if data is None:
                found[digest] = None
            elif isinstance(data, bytes) and (decoded := landmark_bytes.decode(data)) is not None:
                found[digest] = decoded
        for digest in wanted:
            if digest not in found and (outlined := self.get(digest)) is not None:
                found[digest] = outlined.landmarks
        return found

    def defining(self, name: str) -> dict[bytes, Outlined]:
        """Return, by their digests, the documents that define a name, with these definitions alone.

        Of the name, capitals do not count. Where `losses` grew meanwhile, some may be missing.
        """
        found: list[tuple[bytes, object, object]] = []
        with self._guarded() as database:
            found = database.execute(
                "SELECT digest, said, names.rows FROM names "
                "JOIN documents ON document = number WHERE name = ?",
                (_folded(name),),
            ).fetchall()
        outlined = {digest: _outlined(said, rows) for digest, said, rows in found}
        if None in outlined.values():
            self._lose(is_damaged=True)
        return {digest: one for digest, one in outlined.items() if one is not None}

    def doubted(self) -> dict[bytes, str]:
        """Return, by their digests, what is said of how definitions were found, where it is."""
        found: list[tuple[bytes, object]] = []
        with self._guarded() as database:
            found = database.execute(
                "SELECT digest, said FROM documents WHERE said IS NOT NULL"
            ).fetchall()
        return {digest: said for digest, said in found if isinstance(said, str)}

    def add(self, documents: Iterable[tuple[bytes, Outlined]]) -> None:
        """Keep what was found in documents, in one step."""
        if self._path is not None and not self._is_made:
            self._is_made = True
            self._database.close()
            self._database = _in_file(self._path, self._max_bytes)
        with self._guarded() as database:
            for digest, outlined in documents:
                # Each row is written once, for its document and for its name.
                rows = [json.dumps(row) for row in to_rows(outlined.definitions)]
                cursor = database.execute(
                    "INSERT OR REPLACE INTO documents (digest, said, rows) VALUES (?, ?, ?)",
                    (digest, outlined.said, zlib.compress(_list_of(rows), 1)),
                )
                landmarks = outlined.landmarks
                database.execute(
                    "INSERT OR REPLACE INTO landmarks VALUES (?, ?)",
                    (digest, None if landmarks is None else landmark_bytes.encode(landmarks)),
                )
                by_name: dict[bytes, list[str]] = defaultdict(list)
                for one, row in zip(outlined.definitions, rows, strict=True):
                    by_name[_folded(one.name)].append(row)
                database.executemany(
                    "INSERT OR REPLACE INTO names VALUES (?, ?, ?)",
                    [(name, cursor.lastrowid, _list_of(same)) for name, same in by_name.items()],
                )

    def keep_only(self, digests: set[bytes]) -> None:
        """Forget the documents that are not among these."""
        gone = [(digest,) for digest in self.known() - digests]
        which = "(SELECT number FROM documents WHERE digest = ?)"
        with self._guarded() as database:
            database.executemany(f"DELETE FROM names WHERE document IN {which}", gone)
            database.executemany("DELETE FROM landmarks WHERE digest = ?", gone)
            database.executemany("DELETE FROM documents WHERE digest = ?", gone)

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    @contextmanager
    def _guarded(self) -> Iterator[sqlite3.Connection]:
        """Give the database for one transaction; where it fails, go on with an empty one.

        What is kept is only ever a copy: to forget it costs time, and nothing else.
        """
        try:
            with self._database:
                yield self._database
        except (sqlite3.Error, UnicodeDecodeError) as error:
            self._lose(is_damaged=not isinstance(error, sqlite3.OperationalError))

    def _lose(self, *, is_damaged: bool) -> None:
        self._database.close()
        if self._path is not None and is_damaged:
            self._path.unlink(missing_ok=True)
        self._database = _connected(":memory:")
        self.losses += 1


def _in_file(path: Path, max_bytes: int) -> sqlite3.Connection:
    for _ in range(2):
        try:
            _clear_away(path, max_bytes)
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | _NO_FOLLOW, 0o600))
            return _connected(str(path))
        except sqlite3.OperationalError:
            break
        except _DAMAGED:
            path.unlink(missing_ok=True)
        except OSError:
            break
    return _connected(":memory:")


def _clear_away(path: Path, max_bytes: int) -> None:
    """Remove a file that is too large, and whatever is no file but a link that SQLite would follow.

    Raises:
        OSError: it cannot be removed, as a folder cannot.
    """
    for each in (path, *(path.with_name(path.name + ending) for ending in _SIDE_FILES)):
        with suppress(FileNotFoundError):
            status = each.lstat()
            too_large = each == path and status.st_size > max_bytes
            if too_large or not stat.S_ISREG(status.st_mode):
                each.unlink()


def _connected(place: str) -> sqlite3.Connection:
    database = sqlite3.connect(place, timeout=_BUSY_SECONDS, check_same_thread=False)
    # What damage left of a note is shown as far as it can be.
    database.text_factory = lambda data: data.decode("utf-8", "replace")
    try:
        # A file that a power cut left damaged is made anew; what another put in it is not run.
        database.execute("PRAGMA synchronous = OFF")
        database.execute("PRAGMA trusted_schema = OFF")
        database.executescript(_SCHEMA)
    except BaseException:
        database.close()
        raise
    return database


def _folded(name: str) -> bytes:
    return name.casefold().encode("utf-8", "surrogatepass")


def _list_of(rows: Iterable[str]) -> bytes:
    return f"[{', '.join(rows)}]".encode()


def _outlined(said: object, rows: object) -> Outlined | None:
    """Return what was kept, compressed or not; None where it is not what was written."""
    try:
        if not isinstance(rows, bytes):
            return None
        if not rows.startswith(b"["):
            rows = zlib.decompressobj().decompress(rows, _MAX_ROWS_BYTES)
        return Outlined(from_rows(json.loads(rows)), said if isinstance(said, str) else None)
    except (ValueError, zlib.error):
        return None

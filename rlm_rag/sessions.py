"""Conversations kept in the user's state folder, each in a file of its own."""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rlm_rag.closing import Closing
from rlm_rag.engine.carried import Carried
from rlm_rag.engine.earlier import differences, states
from rlm_rag.engine.options import without_password
from rlm_rag.errors import SessionError
from rlm_rag.trace.locks import lock
from rlm_rag.trace.recorder import FILE_MODE, FOLDER_MODE
from rlm_rag.trace.store import default_state_folder

SCHEMA_VERSION = 1
# What a worker may leave with its host is 64 Mi characters; what was said is a fraction of that.
MAX_BYTES = 256 << 20
MAX_LAST = 20
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_SUFFIX = ".json"
_LAST = "last-"


@dataclass(frozen=True, slots=True)
class HeldWith:
    """The models of a conversation, and where they are asked, without a password."""

    model: str
    sub_model: str | None = None
    api_base: str | None = None

    @classmethod
    def of(cls, model: str | None, sub_model: str | None, api_base: str | None) -> HeldWith:
        """Return what these settings come to."""
        return cls(model or "offline", sub_model, without_password(api_base))

    def __str__(self) -> str:
        sub = f", sub-model {self.sub_model}" if self.sub_model else ""
        return self.model + sub + (f" at {self.api_base}" if self.api_base else "")


@dataclass(frozen=True, slots=True)
class SavedConversation:
    """`sources` are the origins of its corpora, `fingerprint` what all of them held.

    `earlier` is what it was before its last questions, the oldest first. `held_with` None: it
    was kept by a version that did not say.
    """

    sources: tuple[str, ...]
    fingerprint: str
    carried: Carried
    earlier: tuple[Carried, ...] = ()
    held_with: HeldWith | None = None


class SessionStore:
    """The conversations in one folder: by default `sessions`, in the user's state folder.

    Raises:
        TraceError: no folder is given, and this user has no home folder.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = default_state_folder() / "sessions" if folder is None else folder

    def path_of(self, name: str) -> Path:
        """Where a conversation of that name lies, or would lie.

        Raises:
            SessionError: it cannot be a name.
        """
        if not _NAME.fullmatch(name):
            raise SessionError(
                f"{name!r:.80} cannot be a session's name",
                hint="up to 64 letters, digits, dots, dashes and underscores, a letter first",
            )
        return self._folder / f"{name}{_SUFFIX}"

    def names(self) -> Sequence[str]:
        """The names that were chosen by a person, in their order."""
        found = (path.stem for path in self._folder.glob(f"*{_SUFFIX}"))
        return sorted(name for name in found if not name.startswith(_LAST))

    def hold(self, name: str) -> Hold:
        """Keep all others from saving the conversation of that name, and return what may.

        Raises:
            SessionError: somebody else has it, it cannot be a name, or the folder not written.
        """
        path = self.path_of(name)
        with _writing(path):
            self._folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
            place = path.with_name(f".{name}.lock")
            fd = os.open(place, os.O_CREAT | os.O_RDWR, FILE_MODE)
        try:
            if not lock(fd):
                holder = os.read(fd, 20).decode("ascii", "replace")
                raise SessionError(
                    f"another chat has the session {name!r} (process {holder})",
                    hint="end it first, or choose another name",
                )
            with _writing(path):
                os.ftruncate(fd, 0)
                os.write(fd, b"%d" % os.getpid())
        except BaseException:
            os.close(fd)
            raise
        return Hold(self, name, fd)

    def save(self, name: str, saved: SavedConversation) -> Path:
        """Write a conversation, in the place of one of that name; return its file.

        Raises:
            SessionError: a chat has one of that name, or it cannot be written.
        """
        with self.hold(name):
            return _write(self.path_of(name), saved)

    def load(self, name: str) -> SavedConversation | None:
        """Return a conversation, None where there is none of that name.

        Raises:
            SessionError: it cannot be read.
        """
        path = self.path_of(name)
        try:
            if path.stat().st_size > MAX_BYTES:
                raise SessionError(f"the session {path} is larger than {MAX_BYTES:,} bytes")
            value = json.loads(path.read_text("utf-8"))
            sources = tuple(map(str, value["sources"]))
            fingerprint = str(value["fingerprint"])
            carried, earlier = value["carried"], value.get("earlier", [])
            held_with = _held_with(value.get("held_with"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise SessionError(
                f"the session {path} cannot be read: {error!s:.200}", hint="begin a new one"
            ) from error
        last = Carried.from_json(carried)
        before = states(earlier, carried)
        return SavedConversation(sources, fingerprint, last, before, held_with)

    def load_kept(self, name: str) -> SavedConversation:
        """Return a conversation.

        Raises:
            SessionError: there is none of that name, or it cannot be read.
        """
        saved = self.load(name)
        if saved is None:
            raise SessionError(
                f"there is no session {name!r}",
                hint=f"there are: {', '.join(self.names()) or 'none'}",
            )
        return saved

    def save_last(self, saved: SavedConversation) -> None:
        """Keep the last conversation that began with its first source; the oldest ones go.

        Raises:
            SessionError: it cannot be written.
        """
        _write(self.path_of(_last_name(saved.sources[0])), saved)
        last = sorted(
            self._folder.glob(f"{_LAST}*{_SUFFIX}"), key=lambda path: path.stat().st_mtime_ns
        )
        for path in last[:-MAX_LAST]:
            path.unlink(missing_ok=True)

    def load_last(self, source: str) -> SavedConversation | None:
        """Return the last conversation that began with this source, None where there is none.

        Raises:
            SessionError: it cannot be read.
        """
        return self.load(_last_name(source))


class Hold(Closing):
    """A session that nobody else saves until `close()`, or the end of the process."""

    def __init__(self, store: SessionStore, name: str, fd: int) -> None:
        self._store = store
        self._name = name
        self._fd = fd

    def save(self, saved: SavedConversation) -> Path:
        """Write the conversation; return its file.

        Raises:
            SessionError: it cannot be written.
        """
        return _write(self._store.path_of(self._name), saved)

    def close(self) -> None:
        """Let others have it; once."""
        os.close(self._fd)


class HeldSessions(Closing):
    """The sessions that a chat has to itself until it is closed, from its first look at each."""

    def __init__(self) -> None:
        self._store = SessionStore()
        self._holds: dict[str, Hold] = {}

    def load(self, name: str, *, begins: bool) -> SavedConversation | None:
        """Hold the session of that name, and return it; None where there is none yet.

        Raises:
            SessionError: another chat has it, it cannot be read, or there is none and it is not
                to be begun.
        """
        self._holds[name] = self._store.hold(name)
        return self._store.load(name) if begins else self._store.load_kept(name)

    def save(self, name: str, saved: SavedConversation, *, replace: bool = False) -> Path:
        """Hold and write a session; one that this chat has not yet had only with `replace`.

        Raises:
            SessionError: another chat has it, it would be replaced, or it cannot be written.
        """
        if name not in self._holds:
            hold = self._store.hold(name)
            if self._store.path_of(name).exists() and not replace:
                hold.close()
                raise SessionError(
                    f"there is a session {name!r} already",
                    hint=f"choose another name, or replace it: /save --replace {name}",
                )
            self._holds[name] = hold
        return self._holds[name].save(saved)

    def close(self) -> None:
        """Let others have them."""
        while self._holds:
            self._holds.popitem()[1].close()


def _write(path: Path, saved: SavedConversation) -> Path:
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    text = json.dumps(
        {
            "schema_version": SCHEMA_VERSION,
            "sources": list(saved.sources),
            "fingerprint": saved.fingerprint,
            "carried": saved.carried.to_json(),
            "earlier": differences(saved.earlier, saved.carried),
            "held_with": None if saved.held_with is None else asdict(saved.held_with),
        }
    )
    try:
        with _writing(path):
            path.parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
            fd = os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, FILE_MODE)
            with os.fdopen(fd, "w", encoding="utf-8") as file:
                file.write(text)
            partial.replace(path)
    except SessionError:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        raise
    return path


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SessionError(
            f"the session {path} cannot be written: {error.strerror or error}",
            hint="free space there, or set XDG_STATE_HOME to a folder that can be written",
        ) from error


def _held_with(value: Any) -> HeldWith | None:
    if value is None:
        return None
    held = HeldWith(**value)
    if not isinstance(held.model, str) or not all(
        isinstance(each, str | None) for each in (held.sub_model, held.api_base)
    ):
        raise TypeError("its models are no names")
    return held


def _last_name(source: str) -> str:
    # A path may be of bytes that are no UTF-8.
    return _LAST + hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest()[:32]

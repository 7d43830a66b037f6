"""The folder of trace files: names for new runs, finding old ones, and keeping it small."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path

from rlm_rag.errors import TraceError
from rlm_rag.own_folders import state_folder
from rlm_rag.trace.events import Event
from rlm_rag.trace.recorder import Recorder

MAX_RUNS = 200
MAX_BYTES = 1 << 30

_SUFFIX = ".jsonl"
_RUN_ID = re.compile(r"\d{8}-\d{6}-\d{6}-[0-9a-f]{6}")


@dataclass(frozen=True, slots=True)
class RunFile:
    """One trace in the store. `started` is UTC, ISO 8601, from the run's id."""

    id: str
    path: Path
    size_bytes: int
    started: str


def default_state_folder(environ: Mapping[str, str] | None = None) -> Path:
    """The user's state folder for this program: `XDG_STATE_HOME` or the platform's own.

    Raises:
        TraceError: none is chosen, and this user has no home folder.
    """
    folder = state_folder(environ)
    if folder is None:
        raise TraceError(
            "there is no folder for traces: this user has no home folder",
            hint="set XDG_STATE_HOME to a folder that can be written",
        )
    return folder


def view_path(trace: Path) -> Path:
    """Return where the page of a trace lies unless another place was named: beside it."""
    return trace.with_suffix(".html")


def new_run_id() -> str:
    """A new id: its start in UTC, to the microsecond, then six random hex digits."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S-%f}-{secrets.token_hex(3)}"


class TraceStore:
    """The traces in one folder: by default `runs`, in the user's state folder.

    Raises:
        TraceError: no folder is given, and this user has no home folder.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = default_state_folder() / "runs" if folder is None else folder

    @property
    def folder(self) -> Path:
        return self._folder

    def create(self, run_id: str, *, listener: Callable[[Event], None] | None = None) -> Recorder:
        """Begin the trace of a new run, and make room for it by the store's limits.

        Where it cannot be written the recorder's `failure` says why.
        """
        recorder = Recorder(self.path_of(run_id), listener=listener)
        # Whether this run is recorded does not hang on what is left of older ones.
        with suppress(TraceError):
            self.prune()
        return recorder

    def path_of(self, run_id: str) -> Path:
        """Where the trace of that run lies, or would lie."""
        return self._folder / f"{run_id}{_SUFFIX}"

    def list_runs(self) -> tuple[RunFile, ...]:
        """All traces, oldest first.

        Raises:
            TraceError: the folder cannot be read.
        """
        try:
            with os.scandir(self._folder) as entries:
                names = sorted(
                    entry.name
                    for entry in entries
                    if entry.name.endswith(_SUFFIX)
                    and _RUN_ID.fullmatch(entry.name.removesuffix(_SUFFIX))
                )
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise TraceError(
                f"the folder of traces {self._folder} cannot be read: {error.strerror}",
                hint="check its permissions, or set XDG_STATE_HOME",
            ) from error
        runs = (self._run_file(name.removesuffix(_SUFFIX)) for name in names)
        return tuple(run for run in runs if run is not None)

    def find_run(self, name: str) -> Path:
        """The trace that `name` means: `last`, an id, the unique start of one, or a file.

        What ends in `.jsonl` or has a slash is a file whatever the ids are.

        Raises:
            TraceError: there is none, or there are several.
        """
        path = Path(name)
        if (path.suffix == _SUFFIX or path.name != name) and name:
            if path.is_file():
                return path
            raise TraceError(f"there is no trace at {name}", hint="see: rlm-rag trace list")
        runs = self.list_runs()
        if name == "last" and runs:
            return runs[-1].path
        matches = [run for run in runs if name and run.id.startswith(name)]
        if len(matches) == 1:
            return matches[0].path
        if not matches and path.is_file():
            return path
        if not runs:
            raise TraceError(
                f"there are no traces in {self._folder}", hint="run `rlm-rag ask` to make one"
            )
        if not matches:
            close = get_close_matches(name, [run.id for run in runs], n=3, cutoff=0.5)
            hint = f"did you mean {', '.join(close)}?" if close else "see: rlm-rag trace list"
            raise TraceError(f"no run is called {name!r}", hint=hint)
        shown = ", ".join(run.id for run in matches[-3:])
        raise TraceError(
            f"{len(matches)} runs begin with {name!r}", hint=f"give more of the id: {shown}"
        )

    def prune(self, *, max_runs: int = MAX_RUNS, max_bytes: int = MAX_BYTES) -> int:
        """Remove the oldest traces beyond either limit, never the newest; how many were.

        Raises:
            TraceError: the folder cannot be read, or a trace not removed.
        """
        kept_bytes = 0
        removed = 0
        for kept, run in enumerate(reversed(self.list_runs()), start=1):
            kept_bytes += run.size_bytes
            if kept > 1 and (kept > max_runs or kept_bytes > max_bytes):
                removed += _remove(run.path)
        return removed

    def clear(self) -> int:
        """Remove every trace; how many were removed.

        Raises:
            TraceError: one could not be removed.
        """
        return sum(_remove(run.path) for run in self.list_runs())

    def _run_file(self, run_id: str) -> RunFile | None:
        path = self.path_of(run_id)
        try:
            size = path.stat(follow_symlinks=False).st_size
        except FileNotFoundError:
            # Another process pruned it since the folder was listed.
            return None
        started = datetime.strptime(run_id.rpartition("-")[0], "%Y%m%d-%H%M%S-%f")
        return RunFile(run_id, path, size, started.replace(tzinfo=UTC).isoformat())


def _remove(path: Path) -> int:
    """Remove a trace with its page; how many traces were removed."""
    try:
        view_path(path).unlink(missing_ok=True)
        path.unlink()
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise TraceError(
            f"the trace {path} cannot be removed: {error.strerror}", hint="check its permissions"
        ) from error
    return 1

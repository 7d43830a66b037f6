"""The folder of one run of benchmarks: its configuration, its samples as they end, its traces."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from rlm_rag.errors import RunFolderError, TraceError
from rlm_rag.evals.config import RunConfig, from_file, to_file
from rlm_rag.evals.record import Key, Record, from_dict
from rlm_rag.trace.events import CallSent, ReplyReceived
from rlm_rag.trace.reader import Trace, read_trace

CONFIG = "config.toml"
SAMPLES = "samples.jsonl"
TRACES = "traces"
_NAME_CHARS = 20


class RunFolder:
    """A run's folder. `samples.jsonl` only grows, by whole lines, each on disk when written.

    The last record of a key counts, so that a sample asked again and one scored again are
    appended like any other.
    """

    def __init__(self, path: Path, config: RunConfig) -> None:
        self.path = path
        self.config = config
        self.digest = config.digest
        self._read: list[Record] = []
        self._read_bytes = 0

    @classmethod
    def create(cls, path: Path, config: RunConfig) -> RunFolder:
        """Make the folder of a new run.

        Raises:
            RunFolderError: it holds something already, or cannot be written.
        """
        if (path / CONFIG).exists():
            raise RunFolderError(
                f"{path} holds a run already",
                hint=f"go on with it: rlm-rag eval resume {path}; or choose another --out",
            )
        try:
            path.mkdir(parents=True, exist_ok=True)
            # What a kill left of the configuration is written over.
            if any(found.name != _part(path / CONFIG).name for found in path.iterdir()):
                raise RunFolderError(
                    f"{path} is not empty, and holds no run", hint="choose another --out"
                )
            _write_whole(path / CONFIG, to_file(config))
        except OSError as error:
            raise _unwritable(path, error) from error
        return cls(path, config)

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """Open the folder of a run that was begun.

        Raises:
            RunFolderError: it holds none, or its configuration is not the one it began with.
        """
        if not (path / CONFIG).is_file():
            raise RunFolderError(
                f"{path} holds no run", hint="rlm-rag eval run ... --out PATH makes one"
            )
        folder = cls(path, from_file(path / CONFIG))
        for record in folder.records().values():
            if record.config != folder.digest:
                raise RunFolderError(
                    f"{path / CONFIG} was changed since its samples were asked",
                    hint="put it back, or start a new run: samples of two do not mix",
                )
        return folder

    @property
    def samples_path(self) -> Path:
        return self.path / SAMPLES

    def records(self) -> dict[Key, Record]:
        """Return the records that count, in the order in which their keys came first.

        Raises:
            RunFolderError: a line but the last is damaged.
        """
        return {record.key: record for record in self.history()}

    def history(self) -> Iterator[Record]:
        """Return every record ever written, in order; a torn last line is left out.

        What was read before is not read again.

        Raises:
            RunFolderError: a line but the last is damaged.
        """
        for line in self._new_lines():
            if not line.endswith(b"\n"):
                break
            try:
                self._read.append(from_dict(json.loads(line)))
            except (ValueError, RecursionError) as error:
                raise RunFolderError(
                    f"{self.samples_path} is damaged at line {len(self._read) + 1}: {error}",
                    hint="remove that line: its sample is asked again by eval resume",
                ) from error
            self._read_bytes += len(line)
        return iter(tuple(self._read))

    def _new_lines(self) -> Sequence[bytes]:
        try:
            with self.samples_path.open("rb") as file:
                file.seek(self._read_bytes)
                return file.readlines()
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise RunFolderError(f"{self.samples_path} cannot be read: {error.strerror}") from error

    def trace_folder(self, key: Key) -> Path:
        """Return where the traces of one sample asked in one way lie."""
        name = hashlib.sha256("\0".join(key).encode("utf-8", "surrogatepass")).hexdigest()
        return self.path / TRACES / name[:_NAME_CHARS]

    def cut_short(self, key: Key, known: Record | None) -> Trace | None:
        """Return the last run of a sample, where it was cut short; `known` is its record, if any.

        Its process died before it came to a record, or there was no more money, or no node.
        """
        for path in sorted(self.trace_folder(key).glob("*.jsonl"), reverse=True):
            # One that is damaged is not gone on with, and what it cost is not known.
            with suppress(TraceError):
                trace = read_trace(path)
                # The judge's have no run.
                if trace.root is None:
                    continue
                if known is None or known.was_cut_short:
                    return trace
                return None if known.trace == str(path.relative_to(self.path)) else trace
        return None

    def spent_usd(self) -> float:
        """Return what the run has cost by now, what came to no record included."""
        # An answer that was scored or judged again is in several records, and cost its price once.
        spent: dict[object, float] = {}
        for record in self.history():
            judge = 0.0
            if record.judge is not None:
                judge = record.judge.usd or 0.0
                spent[record.judge.trace or record.judge] = judge
            usd = (record.usd or 0.0) - judge
            if record.trace is not None and record.was_cut_short:
                # It may have gone on since, without another record.
                usd = max(usd, usd_of(self.path / record.trace))
            spent[record.trace or (record.key, record.answer)] = usd
        lost = (
            usd_of(trace)
            for trace in sorted((self.path / TRACES).glob("*/*.jsonl"))
            if str(trace.relative_to(self.path)) not in spent
        )
        return sum(spent.values()) + sum(lost)

    @contextmanager
    def appending(self) -> Iterator[Appender]:
        """Give what appends records; a torn last line is cut off first.

        Raises:
            RunFolderError: another process appends to it, or it cannot be written.
        """
        try:
            file = self.samples_path.open("ab+")
        except OSError as error:
            raise _unwritable(self.samples_path, error) from error
        with file:
            _lock(file, self.path)
            _cut_torn(file)
            yield Appender(file, self.samples_path)


class Appender:
    """Appends records to a file that it holds alone; each is on disk when `append` returns."""

    def __init__(self, file: BinaryIO, path: Path) -> None:
        self._file = file
        self._path = path

    def append(self, record: Record) -> None:
        """Write one record.

        Raises:
            RunFolderError: the disk is full, most of the time.
        """
        line = json.dumps(record.to_dict(), separators=(",", ":")).encode() + b"\n"
        try:
            self._file.write(line)
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise _unwritable(self._path, error) from error


def _lock(file: BinaryIO, path: Path) -> None:
    try:
        import fcntl
    except ImportError:  # no such locks on this system
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise RunFolderError(
            f"another process is running {path}", hint="wait for it, or end it"
        ) from error


def _cut_torn(file: BinaryIO) -> None:
    file.seek(0)
    whole = 0
    for line in file:
        if line.endswith(b"\n"):
            whole += len(line)
    file.truncate(whole)


def _part(path: Path) -> Path:
    return path.with_name(f".{path.name}.part")


def _write_whole(path: Path, text: str) -> None:
    part = _part(path)
    with part.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
    if os.name != "posix":
        return
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _unwritable(path: Path, error: OSError) -> RunFolderError:
    return RunFolderError(
        f"{path} cannot be written: {error.strerror or error}",
        hint="check its permissions and the room on its disk",
    )


def usd_of(trace: Path) -> float:
    """Return what the calls of a run have cost: where no reply came, at most."""
    with suppress(TraceError):  # a run that was killed before its first line
        events = read_trace(trace)
        replies = {(each.run, each.call): each.usage for each in events.of_type(ReplyReceived)}
        calls = events.of_type(CallSent)
        return sum(_usd(replies.get((call.run, call.call), call.estimate)) for call in calls)
    return 0.0


def _usd(figures: Mapping[str, object]) -> float:
    usd = figures.get("usd")
    return usd if isinstance(usd, float | int) else 0.0

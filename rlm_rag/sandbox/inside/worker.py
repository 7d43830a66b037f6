"""The worker: takes blocks from the host, runs them, reports what came out.

Everything here runs among hostile code and is trusted by nobody; it only has to be correct for
code that means no harm, and not to hang or garble its frames for code that is careless.
"""

from __future__ import annotations

import os
import sys
import time
from _queue import Empty, SimpleQueue

from rlm_rag.packed import PackedCorpus
from rlm_rag.sandbox import frames
from rlm_rag.sandbox.inside import namespace as names
from rlm_rag.sandbox.inside.capture import Capture, silence_stdin
from rlm_rag.sandbox.inside.channel import Channel, private_copy
from rlm_rag.sandbox.inside.context import add_document, open_context, open_contexts
from rlm_rag.sandbox.inside.documents import Documents, fetch_by
from rlm_rag.sandbox.inside.execute import (
    Executor,
    block_name,
    describe,
    hush,
    prepare,
    remember_source,
)
from rlm_rag.sandbox.inside.interrupts import Interrupts, run_interruptible
from rlm_rag.sandbox.inside.memory import MemoryReserve
from rlm_rag.sandbox.inside.misuse import forgiving
from rlm_rag.sandbox.inside.pickling import Codec
from rlm_rag.sandbox.inside.records import Records
from rlm_rag.sandbox.inside.reply import Reply, Text
from rlm_rag.sandbox.inside.services import Services
from rlm_rag.sandbox.inside.snapshot import Snapshots

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

WORKER_FAILED = 4
MAX_OUTPUT_CHARS = 1_000_000
# Longer than a host takes that has a block at hand, or that ends its worker.
_IDLE_SECONDS = 0.1
_RECURSION_LIMIT = 1000
_SWITCH_SECONDS = 0.005


def main() -> None:
    """Speak frames on descriptors 0 and 1 until the host closes them; never returns."""
    channel = Channel(private_copy(0), private_copy(1))
    diagnostics = private_copy(2)
    silence_stdin()
    worker = Worker(channel, Capture())
    channel.send(
        {
            "t": "hello",
            "version": frames.VERSION,
            "python": sys.version.partition(" ")[0],
            "worker": source_hash(),
            "layers": {},
        }
    )
    channel.start(worker.take)
    try:
        worker.serve()
    except BaseException:
        import traceback

        os.write(diagnostics, traceback.format_exc().encode("ascii", "backslashreplace"))
        os._exit(WORKER_FAILED)


def source_hash() -> str:
    """Return the SHA-256 of the package's files that this process loaded."""
    root = __file__[: -len("rlm_rag/sandbox/inside/worker.py")]
    files = sorted(
        str(module.__file__)
        for name, module in list(sys.modules.items())
        if name.startswith("rlm_rag.") and getattr(module, "__file__", None)
    )
    data = bytearray()
    for path in files:
        with open(path, "rb") as file:  # noqa: PTH123 (pathlib is slow to import)
            name = path.removeprefix(root).replace("\\", "/")
            data += f"{name}\0".encode() + file.read() + b"\0"
    return _sha256(bytes(data))


def _sha256(data: bytes) -> str:
    # hashlib takes longer to import than the worker has; these are what it wraps.
    for name in ("_sha2", "_sha256", "hashlib"):
        try:
            digest: str = __import__(name).sha256(data).hexdigest()
        except ImportError:
            continue
        return digest
    raise ImportError("this Python has no SHA-256")


class Worker:
    """One namespace and the blocks that run in it, one after the other, in the main thread."""

    def __init__(self, channel: Channel, capture: Capture) -> None:
        self._channel = channel
        self._capture = capture
        self._interrupts = Interrupts()
        self._namespace = names.Namespace()
        self._executor = Executor(self._namespace.names)
        self._memory = MemoryReserve()
        self._messages: SimpleQueue[dict[str, Any]] = SimpleQueue()
        self._prepared = False

    def take(self, message: dict[str, Any]) -> None:
        """Accept a message of the host, in the reader thread."""
        if message["t"] == "interrupt":
            self._interrupts.ask()
        elif message["t"] == "shutdown":
            os._exit(0)
        else:
            if message["t"] == "exec":
                self._interrupts.announce(message["block"])
            self._messages.put(message)

    def serve(self) -> None:
        """Take up one message after the other; never returns."""
        hush()
        while True:
            message = self._next()
            kind = message["t"]
            if kind == "init":
                snapshots = self._set_up(message)
            elif kind == "exec":
                snapshots.before(message["code"], self._channel.block)
                self._channel.send(self._block(message))
                snapshots.after(self._channel.block)
            elif kind == "history":
                self._namespace.remember(message["said"])
            elif kind == "keep":
                snapshots.catch_up(self._channel.block)
                self._channel.send({"t": "kept"})
            elif kind == "piece":
                snapshots.receive(message)
            elif kind == "restore":
                for block, code in message["blocks"]:
                    remember_source(block_name(block), code)
                names_back = snapshots.restore(plain=message["plain"])
                self._channel.send({"t": "restored", "names": names_back})

    def _next(self) -> dict[str, Any]:
        """Wait for a message; prepare when none comes soon: most children end before that."""
        if not self._prepared:
            try:
                return self._messages.get(timeout=_IDLE_SECONDS)
            except Empty:
                self._prepared = True
                prepare()
        return self._messages.get()

    def _set_up(self, init: dict[str, Any]) -> Snapshots:
        space, channel = self._namespace, self._channel
        channel.await_seconds = init["await_seconds"]
        bound: dict[str, Any] = {}
        if init["task"] is not None:
            bound["task"] = init["task"]
        packed, documents = _opened(init)
        if packed is not None:
            fetch_by(channel.call, packed)
        if documents is not None:
            bound["context"] = bound["ctx"] = open_context(documents, init["shape"])
            if packed is not None:
                bound.update(open_contexts(packed, bound["context"], init["contexts"]))
        services = Services(
            ask=channel.call,
            note=self._capture.note,
            offered=[*init["services"], *init["tools"]],
        )
        bound.update(services.functions(init["tools"]))
        bound.update(space.functions(self._capture.note))

        def capabilities() -> Text:
            """The functions, limits and figures of this run."""
            live, wrong = services.fetch("capabilities")
            offered = {name: bound[name] for name in bound if services.offers(name)}
            return names.capabilities_text(offered, init["info"] if wrong else live)

        bound["capabilities"] = capabilities
        bound["records"] = _records(documents, self._capture.note)
        for function in _adding(services, bound.get("context"), documents):
            bound[function.__name__] = forgiving(function, services.said)
        space.bind(bound)
        names.hint_on_open(packed)
        names.refuse_input()
        space.keep_builtins()
        sys.path.append(f"{init['libraries']}/{frames.PACKAGES}")
        codec = Codec(space, f"{init['libraries']}/{frames.PRIVATE}")
        return Snapshots(space, codec, self._interrupts, channel.write)

    def _block(self, message: dict[str, Any]) -> dict[str, Any]:
        block = self._channel.block = message["block"]
        limit_chars = min(max(message["output_chars"], 1), MAX_OUTPUT_CHARS)
        self._capture.begin(limit_chars)
        started = time.perf_counter()
        self._interrupts.begin()
        self._memory.close()
        value, raised = self._executor.run(block, message["code"], limit_chars)
        self._memory.open()
        seconds = time.perf_counter() - started
        _undo_process_settings()
        error = None
        if raised is not None:
            error = describe(raised, interrupted=self._interrupts.delivered > 0)
        answer, memory = self._answer(), self._memory_in_brief()
        overwritten = self._namespace.restore()
        self._interrupts.end()
        (stdout, stdout_cut), (stderr, stderr_cut) = self._capture.end()
        return {
            "t": "done",
            "block": block,
            "stdout": stdout,
            "stderr": stderr,
            "stdout_cut": stdout_cut,
            "stderr_cut": stderr_cut,
            "value": value,
            "error": error,
            "answer": answer,
            "overwritten": overwritten,
            "variables": self._namespace.variables(),
            "memory": memory,
            "seconds": seconds,
        }

    def _answer(self) -> dict[str, Any] | None:
        try:
            answer: dict[str, Any] | None = run_interruptible(self._namespace.answer.take)
        except BaseException as error:
            self._capture.note(f"answer: Error: its text could not be made: {type(error).__name__}")
            return None
        return answer

    def _memory_in_brief(self) -> list[list[str]]:
        try:
            memory: list[list[str]] = run_interruptible(self._namespace.memory)
        except BaseException as error:
            self._capture.note(f"answers, plan: cannot be shown: {type(error).__name__}")
            return []
        return memory


def _opened(init: dict[str, Any]) -> tuple[PackedCorpus | None, Documents | None]:
    """Return the corpus, where there is one, and the documents of it that `context` has."""
    if init["corpus"] is None:
        return None, None
    packed = PackedCorpus.open(init["corpus"])
    # A text stays as it was given; what is added to it is found by search alone.
    added = () if init["shape"] == "text" else init["added"]
    return packed, Documents(packed, init["numbers"], added)


def _records(documents: Documents | None, note: Callable[[str], None]) -> Callable[..., Any]:
    """Return the function that reads the records of `documents`."""
    tables = None if documents is None else Records(documents, note)

    def records(path: str | None = None) -> list[dict[str, Any]]:
        """The rows of CSV, JSON, JSON lines and lines of name=value, as dicts."""
        if tables is None:
            raise ValueError("records: there is no corpus here")
        return tables.of(path)

    return records


def _adding(
    services: Services, context: Any, documents: Documents | None
) -> tuple[Callable[..., Any], ...]:
    """Return the functions that add documents; without `documents` `context` stays as it is."""

    def add_context(path: str, content: str) -> Text:
        """Add a text to `context` and to search, under `added:/`; returns its path."""
        added = services.text("add_context", path, content)
        if documents is not None and not isinstance(added, Reply):
            add_document(context, documents, str(added), content)
        return added

    def load_library(name: str) -> Any:
        """Add a library of the caller to `context` and to search; returns the paths."""
        added, wrong = services.fetch("load_library", name)
        if wrong is not None:
            return Reply.failed(services.said("load_library", wrong))
        for path, content in added:
            if documents is not None:
                add_document(context, documents, path, content)
        return [path for path, _ in added]

    return add_context, load_library


def _undo_process_settings() -> None:
    sys.settrace(None)
    sys.setprofile(None)
    sys.setswitchinterval(_SWITCH_SECONDS)
    sys.setrecursionlimit(_RECURSION_LIMIT)

"""A worker started bare, as a subprocess without confinement, spoken to in frames."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rlm_rag.closing import Closing
from rlm_rag.sandbox import frames
from rlm_rag.sandbox.boot import SOURCE_ROOT, WORKER_ENVIRONMENT, boot_command

PYTHON = os.path.realpath(sys.executable)
PATIENCE_SECONDS = 20.0
RETRIEVAL = ("search", "grep_context", "outline", "symbols", "read", "repo_map")
SERVICES = (*RETRIEVAL, "llm_query", "llm_query_batched")

Serve = Callable[..., Any]


class Refused(Exception):
    """Raised by a `Serve` to make the reply an error."""


class RawWorker(Closing):
    def __init__(
        self,
        folder: Path,
        *,
        corpus: Path | None = None,
        shape: str = "documents",
        services: Sequence[str] = SERVICES,
        tools: Sequence[str] = (),
        serve: Serve | None = None,
        await_seconds: float = 600,
    ) -> None:
        self.serve = serve
        self.calls: list[dict[str, Any]] = []
        self._blocks = 0
        self._assembler = frames.Assembler()
        self._buffer = b""
        self.process = subprocess.Popen(
            boot_command(str(SOURCE_ROOT), PYTHON),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**WORKER_ENVIRONMENT, "HOME": str(folder), "TMPDIR": str(folder)},
            cwd=folder,
        )
        self.hello = self.receive()
        self.send(
            {
                "t": "init",
                "corpus": None if corpus is None else str(corpus),
                "libraries": str(folder / "libraries"),
                "shape": shape,
                "services": list(services),
                "tools": list(tools),
                "info": {"turns": 30},
                "await_seconds": await_seconds,
                "numbers": None,
                "added": [],
                "task": None,
                "contexts": [],
            }
        )

    def send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(frames.encode(message))
        self.process.stdin.flush()

    def receive(self, timeout_seconds: float = PATIENCE_SECONDS) -> dict[str, Any]:
        """Return the next message, checked as the host checks it, what a host keeps apart.

        Raises:
            EOFError: the worker ended.
        """
        assert self.process.stdout is not None
        fd = self.process.stdout.fileno()
        deadline = time.monotonic() + timeout_seconds
        while True:
            while b"\n" in self._buffer:
                line, _, self._buffer = self._buffer.partition(b"\n")
                message = self._assembler.feed(line)
                if message is not None:
                    frames.check_worker_message(message)
                    if message["t"] not in ("piece", "snapshot"):
                        return message
            if not select.select([fd], [], [], max(deadline - time.monotonic(), 0))[0]:
                raise TimeoutError
            data = os.read(fd, 1 << 20)
            if not data:
                raise EOFError
            self._buffer += data

    def start(self, code: str, *, output_chars: int = 2000) -> int:
        self._blocks += 1
        self.send({"t": "exec", "block": self._blocks, "code": code, "output_chars": output_chars})
        return self._blocks

    def finish(self, timeout_seconds: float = PATIENCE_SECONDS) -> dict[str, Any]:
        """Serve calls until the block is done."""
        while True:
            message = self.receive(timeout_seconds)
            if message["t"] == "done":
                assert message["block"] == self._blocks
                return message
            self.calls.append(message)
            if self.serve is not None:
                self.reply(message)

    def run(self, code: str, *, output_chars: int = 2000) -> dict[str, Any]:
        self.start(code, output_chars=output_chars)
        return self.finish()

    def reply(self, call: dict[str, Any]) -> None:
        assert self.serve is not None
        answer: dict[str, Any] = {"t": "reply", "call": call["call"], "ok": True, "note": None}
        try:
            answer["value"] = self.serve(call["name"], *call["args"], **call["kwargs"])
        except Refused as error:
            answer |= {"ok": False, "error": {"kind": "test", "message": str(error)}}
        self.send(answer)

    def interrupt(self) -> None:
        self.send({"t": "interrupt"})

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            try:
                pipe.close()
            except BrokenPipeError:
                continue

"""Stand-ins for the SDKs of providers: their calls as this package makes them, a process beneath.

Each has the signatures that its real counterpart has (keyword-only where that is so), so that a
wrong name or argument fails here too.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from rlm_rag.sandbox.cloud.remote import ROOT

READ_BYTES = 1000


class Box:
    """A sandbox: a folder in which `ROOT` lies, and a command with streams."""

    def __init__(self, folder: Path) -> None:
        self.root = str(folder / "box")
        self.process: asyncio.subprocess.Process | None = None
        self.said: dict[str, Any] = {}
        self.deleted = 0

    def copy(self, local: str, inside: str) -> None:
        self.put(inside, Path(local).read_bytes())

    def put(self, inside: str, data: bytes) -> None:
        path = Path(inside.replace(ROOT, self.root))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    async def start(self, command: str) -> None:
        self.process = await asyncio.create_subprocess_exec(
            *("sh", "-c", command.replace(ROOT, self.root)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )

    async def write(self, data: bytes) -> None:
        assert self.process is not None
        assert self.process.stdin is not None
        self.process.stdin.write(data.replace(ROOT.encode(), self.root.encode()))
        await self.process.stdin.drain()

    async def output(self) -> AsyncIterator[bytes]:
        assert self.process is not None
        assert self.process.stdout is not None
        while data := await self.process.stdout.read(READ_BYTES):
            yield data

    def cut(self) -> None:
        """End the command and all it started, as a provider's failure would."""
        assert self.process is not None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    async def delete(self) -> None:
        self.deleted += 1
        if self.process is not None:
            self.cut()
            await self.process.wait()
            self.process._transport.close()  # type: ignore[attr-defined]
        shutil.rmtree(self.root, ignore_errors=True)


def e2b(box: Box) -> ModuleType:
    class Handle:
        def __init__(self, on_stdout: Callable[[str], Any]) -> None:
            self._following = asyncio.ensure_future(self._follow(on_stdout))

        async def _follow(self, on_stdout: Callable[[str], Any]) -> None:
            async for data in box.output():
                await on_stdout(data.decode())

        async def send_stdin(self, data: str | bytes) -> None:
            await box.write(data if isinstance(data, bytes) else data.encode())

        async def wait(self) -> None:
            await self._following

    class Commands:
        async def run(
            self,
            cmd: str,
            background: bool | None = None,
            *,
            stdin: bool | None = None,
            timeout: float | None = 60,
            on_stdout: Callable[[str], Any],
            retain_output: bool = True,
        ) -> Handle:
            box.said.update(background=background, stdin=stdin, timeout=timeout)
            await box.start(cmd)
            return Handle(on_stdout)

    class Files:
        async def write(self, path: str, data: Any) -> None:
            box.put(path, data.read())

    class AsyncSandbox:
        commands = Commands()
        files = Files()

        @classmethod
        async def create(
            cls, template: str | None = None, *, timeout: int, allow_internet_access: bool
        ) -> AsyncSandbox:
            box.said["network"] = allow_internet_access
            return cls()

        async def kill(self) -> None:
            await box.delete()

    return _module("e2b", AsyncSandbox=AsyncSandbox)


def modal(box: Box) -> ModuleType:
    async def create(*_: str, **options: Any) -> Any:
        box.said["network"] = not options.pop("block_network")
        assert set(options) == {"app", "image", "timeout", "memory"}
        return SimpleNamespace(
            filesystem=SimpleNamespace(copy_from_local=_aio(copy)),
            exec=_aio(execute),
            terminate=_aio(box.delete),
        )

    async def copy(local_path: str, remote_path: str) -> None:
        box.copy(local_path, remote_path)

    async def execute(*command: str, text: bool = True) -> Any:
        assert command[:2] == ("sh", "-c")
        assert text is False
        await box.start(command[2])
        held: list[bytes] = []

        async def drain() -> None:
            data = b"".join(held)
            held.clear()
            await box.write(data)

        stdin = SimpleNamespace(write=held.append, drain=_aio(drain))
        return SimpleNamespace(stdout=box.output(), stdin=stdin)

    async def lookup(name: str, *, create_if_missing: bool = False) -> str:
        assert create_if_missing
        return name

    return _module(
        "modal",
        App=SimpleNamespace(lookup=_aio(lookup)),
        Image=SimpleNamespace(debian_slim=lambda: "image"),
        Sandbox=SimpleNamespace(create=_aio(create)),
    )


def daytona(box: Box) -> ModuleType:
    class Process:
        async def create_session(self, session_id: str) -> None:
            box.said["session"] = session_id

        async def execute_session_command(self, session_id: str, req: Any) -> Any:
            assert session_id == box.said["session"]
            assert req.run_async
            assert req.suppress_input_echo
            await box.start(req.command)
            return SimpleNamespace(cmd_id="command")

        async def get_session_command_logs_async(
            self,
            session_id: str,
            command_id: str,
            on_stdout: Callable[[str], Any],
            on_stderr: Callable[[str], Any],
        ) -> None:
            async for data in box.output():
                await on_stdout(data.decode())

        async def send_session_command_input(
            self, session_id: str, command_id: str, data: str
        ) -> None:
            await box.write(data.encode())

    class Files:
        async def upload_file(self, src: str | bytes, dst: str) -> None:
            assert isinstance(src, str)
            box.copy(src, dst)

    class Sandbox:
        process = Process()
        fs = Files()

        async def delete(self, timeout: float | None = 60, wait: bool = False) -> None:
            assert wait
            await box.delete()

    class AsyncDaytona:
        async def create(self, params: Any) -> Sandbox:
            box.said["network"] = not params.network_block_all
            assert params.ephemeral
            return Sandbox()

        async def close(self) -> None:
            box.said["closed"] = True

    return _module(
        "daytona",
        AsyncDaytona=AsyncDaytona,
        CreateSandboxFromSnapshotParams=SimpleNamespace,
        SessionExecuteRequest=SimpleNamespace,
    )


def prime(box: Box) -> ModuleType:
    class Process:
        def __init__(self) -> None:
            self.stdout = box.output()

        async def write_stdin(self, data: bytes) -> None:
            await box.write(data)

        async def aclose(self) -> None:
            box.said["process closed"] = True

    class AsyncSandboxClient:
        async def create(self, request: Any) -> Any:
            box.said["network"] = request.network_denylist != ["0.0.0.0/0"]
            return SimpleNamespace(id="sandbox")

        async def wait_for_creation(self, sandbox_id: str) -> None:
            assert sandbox_id == "sandbox"

        async def upload_file(self, sandbox_id: str, file_path: str, local_file_path: str) -> None:
            box.copy(local_file_path, file_path)

        async def open_process(self, sandbox_id: str, command: str) -> Process:
            await box.start(command)
            return Process()

        async def delete(self, sandbox_id: str) -> None:
            await box.delete()

        async def aclose(self) -> None:
            box.said["closed"] = True

    return _module(
        "prime_sandboxes",
        AsyncSandboxClient=AsyncSandboxClient,
        CreateSandboxRequest=SimpleNamespace,
    )


def _aio(function: Callable[..., Any]) -> Any:
    """A function as Modal has them, asynchronous under `.aio`."""
    return SimpleNamespace(aio=function)


def _module(name: str, **members: Any) -> ModuleType:
    module = ModuleType(name)
    module.__dict__.update(members)
    module.__spec__ = SimpleNamespace(name=name)  # type: ignore[assignment]
    return module


SDKS: dict[str, Callable[[Box], ModuleType]] = {
    "e2b": e2b,
    "modal": modal,
    "daytona": daytona,
    "prime": prime,
}

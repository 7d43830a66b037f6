"""Sandboxes of E2B, by its SDK `e2b`; the key is in E2B_API_KEY."""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rlm_rag.sandbox.cloud.remote import Feed
from rlm_rag.sandbox.confine.view import WorkerLimits

LIFE_SECONDS = 3600


class E2bRemote:
    """A sandbox of the base template, without internet access, for an hour at most."""

    def __init__(self, limits: WorkerLimits) -> None:
        del limits  # The template has its own.
        self._sandbox: Any = None
        self._command: Any = None

    async def start(
        self, files: Mapping[str, Path], command: Sequence[str], feed: Feed
    ) -> Awaitable[object]:
        from e2b import AsyncSandbox

        self._sandbox = await AsyncSandbox.create(timeout=LIFE_SECONDS, allow_internet_access=False)
        for inside, local in files.items():
            with local.open("rb") as file:
                await self._sandbox.files.write(inside, file)

        async def take(text: str) -> None:
            await feed(text.encode("utf-8", "surrogateescape"))

        self._command = await self._sandbox.commands.run(
            f"exec {shlex.join(command)}",
            background=True,
            stdin=True,
            timeout=0,
            on_stdout=take,
            retain_output=False,
        )
        ended: Awaitable[object] = self._command.wait()
        return ended

    async def write(self, data: bytes) -> None:
        await self._command.send_stdin(data)

    async def close(self) -> None:
        if self._sandbox is not None:
            sandbox, self._sandbox = self._sandbox, None
            await sandbox.kill()

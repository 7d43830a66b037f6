"""Sandboxes of Modal, by its SDK `modal`; the token is what `modal token` stored."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rlm_rag.sandbox.cloud.remote import Feed
from rlm_rag.sandbox.confine.view import WorkerLimits

APP_NAME = "rlm-rag"
LIFE_SECONDS = 3600


class ModalRemote:
    """A sandbox of the app `rlm-rag`, its network blocked, for an hour at most."""

    def __init__(self, limits: WorkerLimits) -> None:
        self._memory_mib = (limits.memory_bytes + limits.reserved_bytes) >> 20
        self._sandbox: Any = None
        self._process: Any = None

    async def start(
        self, files: Mapping[str, Path], command: Sequence[str], feed: Feed
    ) -> Awaitable[object]:
        import modal

        app = await modal.App.lookup.aio(APP_NAME, create_if_missing=True)
        self._sandbox = await modal.Sandbox.create.aio(
            app=app,
            image=modal.Image.debian_slim(),
            block_network=True,
            timeout=LIFE_SECONDS,
            memory=(512, self._memory_mib),
        )
        for inside, local in files.items():
            await self._sandbox.filesystem.copy_from_local.aio(str(local), inside)
        self._process = await self._sandbox.exec.aio(*command, text=False)
        return self._pump(feed)

    async def _pump(self, feed: Feed) -> None:
        async for chunk in self._process.stdout:
            await feed(chunk)

    async def write(self, data: bytes) -> None:
        self._process.stdin.write(data)
        await self._process.stdin.drain.aio()

    async def close(self) -> None:
        if self._sandbox is not None:
            sandbox, self._sandbox = self._sandbox, None
            await sandbox.terminate.aio()

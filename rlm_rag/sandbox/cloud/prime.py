"""Sandboxes of Prime Intellect, by its SDK `prime-sandboxes`; the key is in PRIME_API_KEY."""

from __future__ import annotations

import secrets
import shlex
from collections.abc import Awaitable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rlm_rag.sandbox.cloud.remote import Feed
from rlm_rag.sandbox.confine.view import WorkerLimits

IMAGE = "python:3.13-slim"
LIFE_MINUTES = 60
_EVERYWHERE = ["0.0.0.0/0"]


class PrimeRemote:
    """A sandbox of a slim Python image that may reach no address, for an hour at most."""

    def __init__(self, limits: WorkerLimits) -> None:
        self._memory_gb = max(1.0, (limits.memory_bytes + limits.reserved_bytes) / (1 << 30))
        self._client: Any = None
        self._sandbox_id = ""
        self._process: Any = None

    async def start(
        self, files: Mapping[str, Path], command: Sequence[str], feed: Feed
    ) -> Awaitable[object]:
        from prime_sandboxes import AsyncSandboxClient, CreateSandboxRequest

        self._client = AsyncSandboxClient()
        created = await self._client.create(
            CreateSandboxRequest(
                name=f"rlm-rag-{secrets.token_hex(8)}",
                docker_image=IMAGE,
                memory_gb=self._memory_gb,
                timeout_minutes=LIFE_MINUTES,
                network_denylist=_EVERYWHERE,
            )
        )
        self._sandbox_id = created.id
        await self._client.wait_for_creation(created.id)
        for inside, local in files.items():
            await self._client.upload_file(created.id, inside, str(local))
        self._process = await self._client.open_process(created.id, f"exec {shlex.join(command)}")
        return self._pump(feed)

    async def _pump(self, feed: Feed) -> None:
        async for chunk in self._process.stdout:
            await feed(chunk)

    async def write(self, data: bytes) -> None:
        await self._process.write_stdin(data)

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is None:
            return
        try:
            if self._process is not None:
                await self._process.aclose()
            if self._sandbox_id:
                await client.delete(self._sandbox_id)
        finally:
            await client.aclose()

"""Sandboxes of Daytona, by its SDK `daytona`; the key is in DAYTONA_API_KEY."""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rlm_rag.sandbox.cloud.remote import Feed
from rlm_rag.sandbox.confine.view import WorkerLimits

_SESSION = "rlm-rag"


class DaytonaRemote:
    """A sandbox of the default snapshot, all its network blocked, deleted when it stops."""

    def __init__(self, limits: WorkerLimits) -> None:
        del limits  # The snapshot has its own.
        self._client: Any = None
        self._sandbox: Any = None
        self._command = ""

    async def start(
        self, files: Mapping[str, Path], command: Sequence[str], feed: Feed
    ) -> Awaitable[object]:
        from daytona import AsyncDaytona, CreateSandboxFromSnapshotParams, SessionExecuteRequest

        self._client = AsyncDaytona()
        self._sandbox = await self._client.create(
            CreateSandboxFromSnapshotParams(
                language="python", network_block_all=True, ephemeral=True
            )
        )
        for inside, local in files.items():
            await self._sandbox.fs.upload_file(str(local), inside)
        process = self._sandbox.process
        await process.create_session(_SESSION)
        started = await process.execute_session_command(
            _SESSION,
            SessionExecuteRequest(
                command=shlex.join(command), run_async=True, suppress_input_echo=True
            ),
        )
        self._command = started.cmd_id

        async def take(text: str) -> None:
            await feed(text.encode("utf-8", "surrogateescape"))

        async def drop(_: str) -> None:
            """Standard error is for the provider's own records."""

        ended: Awaitable[object] = process.get_session_command_logs_async(
            _SESSION, self._command, take, drop
        )
        return ended

    async def write(self, data: bytes) -> None:
        await self._sandbox.process.send_session_command_input(
            _SESSION, self._command, data.decode("ascii")
        )

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is None:
            return
        try:
            if self._sandbox is not None:
                await self._sandbox.delete(wait=True)
        finally:
            await client.close()

"""Starts a worker wherever the chosen isolation has it: on this machine, or at a provider."""

from __future__ import annotations

from pathlib import Path

from rlm_rag.sandbox.cloud.remote import Cloud, open_remote
from rlm_rag.sandbox.confine.view import Layer, Program, WorkerLimits
from rlm_rag.sandbox.process import open_worker
from rlm_rag.sandbox.transport import Transport

Isolation = Layer | Cloud


async def open_transport(
    isolation: Isolation,
    packed_path: Path | None,
    *,
    limits: WorkerLimits | None,
    program: Program,
) -> Transport:
    """Start a worker and return its transport.

    Raises:
        SandboxUnavailableError: it could not be started.
        UsageError: the limits name packages that it cannot be given.
    """
    if isinstance(isolation, Cloud):
        return await open_remote(isolation, packed_path, limits=limits, program=program)
    return await open_worker(isolation, packed_path, limits=limits, program=program)

"""Sessions for tests: over a host that echoes, with little patience."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from rlm_rag.sandbox.boot import boot_command
from rlm_rag.sandbox.confine.unconfined import Unconfined
from rlm_rag.sandbox.confine.view import Layer, Program, WorkerLimits
from rlm_rag.sandbox.session import (
    BlockResult,
    ServiceCall,
    ServiceReply,
    Session,
    WorkerSetup,
)

SERVICES = ("search", "read", "llm_query", "llm_query_batched", "map_files")


async def echo(call: ServiceCall) -> ServiceReply:
    """Answers a model call with its prompt, and a search with nothing."""
    if call.name == "llm_query":
        return ServiceReply(model_reply(str(call.args[0])))
    return ServiceReply([])


def model_reply(text: str) -> dict[str, Any]:
    return {
        "text": text,
        "ok": True,
        "error": None,
        "truncated": False,
        "usage": {},
        "model": "test",
    }


def make(
    serve: Callable[[ServiceCall], Awaitable[ServiceReply]] = echo,
    *,
    layer: Layer | None = None,
    packed: Path | None = None,
    shape: str = "documents",
    start: Program = boot_command,
    grace: float = 0.3,
    restarts: int = 3,
    start_seconds: float = 10,
    limits: WorkerLimits | None = None,
) -> Session:
    return Session(
        layer=layer or Unconfined(),
        packed_path=packed,
        serve=serve,
        setup=WorkerSetup(shape=shape, services=SERVICES, waiting=frozenset({"llm_query"})),
        limits=limits,
        program=start,
        start_seconds=start_seconds,
        interrupt_grace_seconds=grace,
        max_restarts=restarts,
    )


async def run(
    session: Session, code: str, *, block: int = 1, seconds: float = 10, chars: int = 20_000
) -> BlockResult:
    return await session.run(code, block=block, timeout_seconds=seconds, output_chars=chars)

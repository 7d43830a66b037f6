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


async def does_what_a_worker_does(session: Session, isolation: str) -> None:
    """Hold a started session over a corpus of one document, `alpha`, to what all workers do."""
    assert session.isolation == isolation
    first = await run(
        session, "x = context[0]['content']\ndef f(): return x * 2\nprint(llm_query('hi'))"
    )
    assert (first.stdout, first.error) == ("hi\n", None)
    big = await run(session, "len(llm_query('é' * 400_000)), print('y' * 15_000)", block=2)
    assert (big.value, len(big.stdout)) == ("(400000, None)", 15_001)
    slept = await run(session, "import time\ntime.sleep(60)", block=3, seconds=0.3)
    assert slept.error is not None
    assert (slept.error.type, slept.restarted) == ("Timeout", False)
    for block, code in enumerate(("import os\nos._exit(1)", "sum(range(1 << 60))"), 4):
        lost = await run(session, code, block=block, seconds=0.5)
        assert (lost.restarted, lost.lost) == (True, ())
    assert (await run(session, "f()", block=6)).value == "'alphaalpha'"

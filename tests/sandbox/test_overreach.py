"""What a worker that forges its frames cannot get out of the host."""

from __future__ import annotations

import asyncio
import tracemalloc
from pathlib import Path

from rlm_rag.packing import PackedWriter
from rlm_rag.sandbox.calls import uncounted
from rlm_rag.sandbox.layers import choose_layer
from rlm_rag.sandbox.session import (
    BlockResult,
    Serve,
    ServiceCall,
    ServiceError,
    ServiceReply,
    Session,
    WorkerSetup,
)

# Model code finds the private descriptors soon enough.
FORGED_DONE = """
import json, os
message = {"t": "done", "block": 1, "stdout": "A" * 3_000_000, "stderr": "B" * 3_000_000,
           "stdout_cut": 0, "stderr_cut": 0, "value": "C" * 3_000_000, "error": None,
           "answer": None, "overwritten": [], "variables": [], "memory": [], "seconds": 0.0}
text = json.dumps(message)
size = 500_000
parts = [text[i:i + size] for i in range(0, len(text), size)]
for number, part in enumerate(parts):
    frame = {"t": "part", "id": 10**6, "last": number == len(parts) - 1, "data": part}
    data = memoryview(json.dumps(frame).encode() + b"\\n")
    while data:
        data = data[os.write(FD, data):]
os._exit(0)
"""
UNREAD_REPLIES = """
import ctypes, json, os
for number in range(200):
    call = {"t": "call", "call": 10**6 + number, "block": 1, "name": "wait", "args": [],
            "kwargs": {}}
    os.write(FD, json.dumps(call).encode() + b"\\n")
library = ctypes.PyDLL(None)
library.pthread_sigmask(0, b"\\xff" * 128, None)
library.sleep(3600)
"""


async def refuse(call: ServiceCall) -> ServiceReply:
    raise ServiceError("argument", "x" * 5000)


def run(tmp_path: Path, code: str, serve: Serve = refuse) -> BlockResult:
    with PackedWriter(tmp_path / "corpus") as writer:
        writer.add("a", "text")
    code = "FD = 201\n" + code

    async def main() -> BlockResult:
        setup = WorkerSetup(services=("wait",), waiting=frozenset({"wait"}))
        session = Session(
            layer=choose_layer(),
            packed_path=tmp_path / "corpus",
            serve=serve,
            setup=setup,
            interrupt_grace_seconds=0.3,
        )
        async with session:
            return await asyncio.wait_for(
                session.run(code, block=1, timeout_seconds=1, output_chars=1000), 60
            )

    return asyncio.run(main())


def test_output_that_a_worker_forged_is_held_to_the_bound(tmp_path: Path) -> None:
    result = run(tmp_path, FORGED_DONE)
    assert len(result.stdout) <= 1200
    assert len(result.stderr) <= 1200
    assert len(result.value or "") <= 1200


def test_a_worker_that_reads_no_reply_does_not_stop_its_own_clock(tmp_path: Path) -> None:
    result = run(tmp_path, UNREAD_REPLIES)
    assert result.error is not None
    assert result.error.type == "Timeout"


def test_replies_that_a_worker_does_not_read_are_not_held_one_beside_the_other(
    tmp_path: Path,
) -> None:
    text = "x" * (2 << 20)

    async def large(call: ServiceCall) -> ServiceReply:
        return ServiceReply(text)

    tracemalloc.start()
    try:
        result = run(tmp_path, UNREAD_REPLIES, large)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert result.error is not None
    assert result.error.type == "Timeout"
    assert peak < 10 * len(text)


def test_a_block_that_computes_while_a_thread_of_it_waits_spends_its_own_time() -> None:
    code = """
import threading
threading.Thread(target=llm_query, args=("slow",), daemon=True).start()
while True:
    pass
"""

    async def slow(call: ServiceCall) -> ServiceReply:
        with uncounted():
            await asyncio.sleep(60)
        raise ServiceError("late", "too late")

    async def main() -> BlockResult:
        setup = WorkerSetup(services=("llm_query",), waiting=frozenset({"llm_query"}))
        session = Session(layer=choose_layer(), packed_path=None, serve=slow, setup=setup)
        async with session:
            return await session.run(code, block=1, timeout_seconds=0.5, output_chars=1000)

    result = asyncio.run(main())
    assert result.error is not None
    assert result.error.type == "Timeout"
    assert result.seconds < 30

"""A host outlives whatever its worker does, in time, and its next block runs."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import get_args

import pytest

from rlm_rag.sandbox.confine.view import Layer, WorkerLimits
from rlm_rag.sandbox.layers import choose_layer
from rlm_rag.sandbox.session import (
    BlockResult,
    Serve,
    ServiceCall,
    ServiceReply,
    Session,
    WorkerSetup,
)
from tests.sandbox.attacks.blocks import BLOCKS, THEFT, Harm, HostileBlock
from tests.sandbox.support import CONFINING

BLOCK_SECONDS = 0.25
GRACE_SECONDS = 0.25
PATIENCE_SECONDS = 15.0
OUTPUT_CHARS = 2000
GROWTH_BYTES = 200 << 20
LIMITS = WorkerLimits(memory_bytes=512 << 20, processes=64, open_files=256)


def each(*harms: Harm) -> pytest.MarkDecorator:
    """Run a test with every block that does one of `harms`, those that are not quick when deep."""
    return pytest.mark.parametrize(
        "block",
        [
            pytest.param(
                block,
                id=f"{block.harm}: {block.name}",
                marks=() if block.is_quick else pytest.mark.deep,
            )
            for block in BLOCKS
            if block.harm in harms
        ],
    )


EACH = each(*get_args(Harm))


async def answer(call: ServiceCall) -> ServiceReply:
    return ServiceReply([])


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


async def attacked(layer: Layer, code: str) -> tuple[BlockResult, BlockResult, float]:
    """The result of a hostile block, that of a harmless one after it, and the seconds between."""
    setup = WorkerSetup(services=("search",))
    session = Session(
        layer=layer,
        packed_path=None,
        serve=answer,
        setup=setup,
        limits=LIMITS,
        interrupt_grace_seconds=GRACE_SECONDS,
    )

    async def run(number: int, text: str, seconds: float) -> BlockResult:
        return await session.run(
            text, block=number, timeout_seconds=seconds, output_chars=OUTPUT_CHARS
        )

    async with session:
        started = time.monotonic()
        hostile = await run(1, code, BLOCK_SECONDS)
        seconds = time.monotonic() - started
        # What came late ends the worker in the midst of the next block.
        await run(2, "import time\ntime.sleep(0.2)", PATIENCE_SECONDS)
        return hostile, await run(3, "6 * 7", PATIENCE_SECONDS), seconds


def holds(layer: Layer, block: HostileBlock) -> None:
    before = resident_bytes()
    hostile, harmless, seconds = asyncio.run(attacked(layer, block.code))
    assert harmless.value == "42"
    assert seconds < PATIENCE_SECONDS
    assert resident_bytes() - before < GROWTH_BYTES
    shown = (hostile.stdout, hostile.stderr, hostile.value or "")
    assert max(map(len, shown)) < 3 * OUTPUT_CHARS


@EACH
def test_a_host_holds_against_a_hostile_block(block: HostileBlock) -> None:
    holds(choose_layer(), block)


@pytest.mark.deep
@pytest.mark.parametrize("layer", CONFINING)
@EACH
def test_a_host_holds_against_a_hostile_block_in_each_layer(
    layer: Layer, block: HostileBlock
) -> None:
    holds(layer, block)


def costs_itself_alone(layer: Layer) -> None:
    setup = WorkerSetup(services=("search",))
    session = Session(
        layer=layer,
        packed_path=None,
        serve=answer,
        setup=setup,
        limits=LIMITS,
        interrupt_grace_seconds=GRACE_SECONDS,
    )

    async def scenario() -> list[BlockResult]:
        async with session:
            codes = [THEFT, *["6 * 7"] * 20]
            return [
                await session.run(code, block=number, timeout_seconds=1, output_chars=OUTPUT_CHARS)
                for number, code in enumerate(codes, 1)
            ]

    results = asyncio.run(scenario())
    assert sum(result.restarted for result in results) == 1
    assert results[-1].value == "42"


def test_a_worker_that_steals_what_its_host_sends_costs_itself_alone() -> None:
    costs_itself_alone(choose_layer())


@pytest.mark.deep
@pytest.mark.parametrize("layer", CONFINING)
def test_a_worker_that_steals_costs_itself_alone_in_each_layer(layer: Layer) -> None:
    costs_itself_alone(layer)


@each("hangs", "dies", "floods")
def test_a_hostile_block_harms_an_interpreter_that_nobody_guards(block: HostileBlock) -> None:
    shown = block.code if "repr" not in block.name else show(block.code)
    code = f"print('began', flush=True)\n{shown}\nprint('unharmed')"
    with subprocess.Popen(
        [sys.executable, "-I", "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        preexec_fn=lambda: os.closerange(3, 256),
    ) as process:
        assert process.stdout is not None
        seen = process.stdout.readline()
        deadline = time.monotonic() + (0.2 if block.harm == "hangs" else PATIENCE_SECONDS)
        os.set_blocking(process.stdout.fileno(), False)
        while time.monotonic() < deadline and process.poll() is None:
            seen += process.stdout.read(1 << 20) or b""
            if len(seen) > 4 << 20:
                break
            time.sleep(0.005)
        ended = process.poll()
        process.kill()
    if block.harm == "hangs":
        assert ended is None
        assert seen.startswith(b"began")
        assert b"unharmed" not in seen
    elif block.harm == "dies":
        assert b"unharmed" not in seen
        assert ended is not None
    else:
        assert len(seen) > 4 << 20


def show(code: str) -> str:
    """`code` with its last expression shown, as a notebook does."""
    body, _, last = code.strip().rpartition("\n")
    return f"{body}\nprint({last})"


@each("talks")
def test_what_a_block_forges_reaches_the_host_and_ends_its_worker_alone(
    block: HostileBlock,
) -> None:
    assert any(result.restarted for result in unconfined(block, answer))


@each("asks")
def test_a_call_that_a_block_forges_reaches_the_host(block: HostileBlock) -> None:
    asked: list[str] = []

    async def listen(call: ServiceCall) -> ServiceReply:
        asked.append(call.name)
        return ServiceReply([])

    hostile, harmless = unconfined(block, listen)
    assert asked or int(hostile.value or 0) > 0
    assert not harmless.restarted


def unconfined(block: HostileBlock, serve: Serve) -> list[BlockResult]:
    """The results of a hostile block and of one after it, where nothing confines."""
    setup = WorkerSetup(services=("search",))
    session = Session(
        layer=choose_layer("none"),
        packed_path=None,
        serve=serve,
        setup=setup,
        interrupt_grace_seconds=GRACE_SECONDS,
    )

    async def scenario() -> list[BlockResult]:
        async with session:
            return [
                await session.run(
                    code, block=number, timeout_seconds=1.5, output_chars=OUTPUT_CHARS
                )
                for number, code in enumerate((block.code, "import time\ntime.sleep(0.2)"), 1)
            ]

    return asyncio.run(scenario())

"""A thousand workers leave nothing behind: no process, descriptor, mount or folder."""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path

import pytest

from rlm_rag.packing import PackedWriter
from rlm_rag.sandbox.blocks import ServiceCall, ServiceReply
from rlm_rag.sandbox.confine.view import Layer
from rlm_rag.sandbox.session import Session, WorkerSetup
from tests.sandbox.support import ALL_LAYERS

ENDINGS = (
    "1 + 1",
    "import os\nos._exit(3)",
    "while True: pass",
    "import os\nos.closerange(0, 300)",
)


def children() -> set[str]:
    pid = os.getpid()
    return set(Path(f"/proc/{pid}/task/{pid}/children").read_text().split())


def traces() -> dict[str, set[str]]:
    mounts = Path("/proc/self/mounts").read_text().splitlines()
    return {
        "processes": children(),
        "descriptors": set(os.listdir("/proc/self/fd")),  # noqa: PTH208 - it lists itself
        # Other tests, run beside these, mount what they need below their own folders.
        "mounts": {line for line in mounts if "/pytest-of-" not in line},
        "folders": {entry.name for entry in Path(tempfile.gettempdir()).iterdir()},
    }


async def nothing(call: ServiceCall) -> ServiceReply:
    return ServiceReply([])


async def one_life(layer: Layer, packed: Path, ending: str) -> None:
    session = Session(
        layer=layer,
        packed_path=packed,
        serve=nothing,
        setup=WorkerSetup(shape="text"),
        interrupt_grace_seconds=0.05,
    )
    try:
        await session.start()
        await session.run(ending, block=1, timeout_seconds=0.05, output_chars=100)
    finally:
        await session.aclose()


def live(layer: Layer, packed: Path, lives: int) -> None:
    asyncio.run(one_life(layer, packed, ENDINGS[0]))
    before = traces()

    async def scenario() -> None:
        for number in range(lives):
            await one_life(layer, packed, ENDINGS[number % len(ENDINGS)])

    asyncio.run(scenario())
    after = traces()
    for kind in before:
        assert after[kind] - before[kind] == set(), kind


@pytest.fixture
def packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A corpus, and a temporary folder that no other process uses."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    path = tmp_path / "corpus.packed"
    with PackedWriter(path, shape="text") as writer:
        writer.add("<context>", "text")
    return path


@pytest.mark.parametrize("layer", ALL_LAYERS)
def test_a_few_workers_leave_nothing(layer: Layer, packed: Path) -> None:
    live(layer, packed, 8)


@pytest.mark.deep
@pytest.mark.parametrize("layer", ALL_LAYERS)
def test_a_thousand_workers_leave_nothing(layer: Layer, packed: Path) -> None:
    live(layer, packed, 1000)

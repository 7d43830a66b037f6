"""Workers that start at the same time, on a machine that is busy with starting them."""

from __future__ import annotations

import asyncio

import pytest

from rlm_rag.sandbox.confine.view import Layer
from rlm_rag.sandbox.process import open_worker
from tests.sandbox.support import ALL_LAYERS


@pytest.mark.parametrize("layer", ALL_LAYERS)
def test_many_workers_started_at_once_all_greet(layer: Layer) -> None:
    async def greeting() -> bytes:
        transport = await open_worker(layer, None)
        try:
            return await transport.receive()
        finally:
            await transport.kill()

    async def many() -> list[bytes]:
        return await asyncio.gather(*(greeting() for _ in range(24)))

    assert all(b'"hello"' in words for words in asyncio.run(many()))

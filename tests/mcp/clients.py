"""The SDK's own client, connected to a server within this process or to the real command."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import mcp_types as types
from mcp import Client

from rlm_rag.api import load
from rlm_rag.mcp.editions import Editions
from rlm_rag.mcp.server import CorpusServer
from rlm_rag.rlm import RLM

T = TypeVar("T")


@asynccontextmanager
async def connected(
    source: Any, *, rlm: RLM | None = None, **options: Any
) -> AsyncIterator[Client]:
    """A client of a server of `source`, which is anything that `load` takes."""
    editions = Editions(lambda: load(source), **options)
    server = CorpusServer(editions, sources="the tests' corpus", rlm=rlm).protocol()
    try:
        async with Client(server) as client:
            yield client
    finally:
        await editions.aclose()


def with_client(source: Any, use: Callable[[Client], Awaitable[T]], **options: Any) -> T:
    """Return what `use` makes of such a client."""

    async def main() -> T:
        async with connected(source, **options) as client:
            return await use(client)

    return asyncio.run(main())


def text_of(result: types.CallToolResult) -> str:
    """The text of a reply, which is one."""
    (content,) = result.content
    assert isinstance(content, types.TextContent)
    return content.text

"""The SDK's own client, connected to a server within this process or to the real command."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import mcp_types as types
from mcp import Client

from rlm_rag.api import load
from rlm_rag.closing import Closing
from rlm_rag.mcp.editions import Editions
from rlm_rag.mcp.server import CorpusServer
from rlm_rag.rlm import RLM

T = TypeVar("T")


Use = Callable[[Client], Awaitable[T]]


class Served(Closing):
    """A server of `source`, which is anything that `load` takes, for one client after another."""

    def __init__(self, source: Any, *, rlm: RLM | None = None) -> None:
        self._runner = asyncio.Runner()
        self._editions = Editions(lambda: load(source))
        self._server = CorpusServer(self._editions, sources="the tests' corpus", rlm=rlm)

    def close(self) -> None:
        self._runner.run(self._editions.aclose())
        self._runner.close()

    def to(self, use: Use[T]) -> T:
        """Return what `use` makes of a client."""

        async def main() -> T:
            async with Client(self._server.protocol()) as client:
                return await use(client)

        return self._runner.run(main())

    def call(self, name: str, arguments: dict[str, Any]) -> types.CallToolResult:
        """Return what one call of a tool comes to."""
        return self.to(lambda client: client.call_tool(name, arguments))


def with_client(source: Any, use: Use[T], *, rlm: RLM | None = None) -> T:
    """Return what `use` makes of a client of such a server, which then ends."""
    with Served(source, rlm=rlm) as served:
        return served.to(use)


def text_of(result: types.CallToolResult) -> str:
    """The text of a reply, which is one."""
    (content,) = result.content
    assert isinstance(content, types.TextContent)
    return content.text

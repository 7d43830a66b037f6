"""A server from its sources to its end."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from rlm_rag.api import SearchableCorpus
from rlm_rag.loaders.addresses import lies_here
from rlm_rag.mcp.editions import Editions
from rlm_rag.mcp.ending import run_until_asked
from rlm_rag.mcp.http import serve_http
from rlm_rag.mcp.server import CorpusServer
from rlm_rag.mcp.stdio import serve_stdio
from rlm_rag.rlm import RLM
from rlm_rag.shown import printable_line


def serve(
    sources: Sequence[str],
    load: Callable[[], SearchableCorpus],
    *,
    say: Callable[[str], None],
    rlm: RLM | None = None,
    listener: socket.socket | None = None,
) -> None:
    """Serve sources over standard input and output, or over HTTP where a `listener` is given.

    `load` loads them, at first beside the first messages, since a client does not wait for long;
    sources of this machine are loaded again when they have changed. `rlm` answers questions, and
    `say` is told in a line what a client got wrong.
    Ends with its client, or by a signal, which is then raised again.

    Raises:
        RlmRagError: the sources cannot be loaded at the start.
    """
    run_until_asked(lambda: _serve(sources, load, say, rlm, listener))


async def _serve(
    sources: Sequence[str],
    load: Callable[[], SearchableCorpus],
    say: Callable[[str], None],
    rlm: RLM | None,
    listener: socket.socket | None,
) -> None:
    # An address would be fetched at each look.
    here = all(lies_here(source.partition("=")[2] or source) for source in sources)
    editions = Editions(load, looks_again=here)
    named = ", ".join(map(printable_line, sources))
    server = CorpusServer(editions, sources=named, rlm=rlm).protocol()
    serving = serve_stdio(server, say=say) if listener is None else serve_http(server, listener)
    try:
        await _with_first_look(editions, serving)
    finally:
        await editions.aclose()


async def _with_first_look(editions: Editions, serving: Coroutine[Any, Any, None]) -> None:
    """Serve, and load meanwhile; a source that cannot be loaded ends it."""
    server = asyncio.create_task(serving)
    looking = asyncio.create_task(editions.look())
    try:
        await asyncio.wait({server, looking}, return_when=asyncio.FIRST_COMPLETED)
        if looking.done():
            looking.result()
        await server
    finally:
        for task in (server, looking):
            task.cancel()
        await asyncio.gather(server, looking, return_exceptions=True)

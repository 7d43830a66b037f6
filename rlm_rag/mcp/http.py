"""Serving any number of clients of this machine over HTTP."""

from __future__ import annotations

import socket
from typing import Any

import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.transport_security import TransportSecuritySettings

from rlm_rag.errors import UsageError

HOST = "127.0.0.1"
PATH = "/mcp"

_NAMES = (HOST, "localhost")
_MOST_WAITING = 128


def listening(port: int) -> socket.socket:
    """Return a socket that listens on `HOST`, on a free port where `port` is 0.

    Raises:
        UsageError: the port cannot be had.
    """
    try:
        return socket.create_server((HOST, port), backlog=_MOST_WAITING)
    except (OSError, OverflowError) as error:
        raise UsageError(
            f"cannot listen on {HOST}:{port}: {error}",
            hint="choose another --port, or leave it out for a free one",
        ) from error


def address_of(listener: socket.socket) -> str:
    """Return the address that a client is given."""
    return f"http://{HOST}:{listener.getsockname()[1]}{PATH}"


async def serve_http(server: Server[Any], listener: socket.socket) -> None:
    """Serve until a signal asks for the end.

    A request whose `Host` or `Origin` is another than the server's own is refused, so that no
    page of the web can reach it under a name of its own (DNS rebinding).
    """
    port = listener.getsockname()[1]
    hosts = [f"{name}:{port}" for name in _NAMES]
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        transport_security=TransportSecuritySettings(
            allowed_hosts=hosts, allowed_origins=[f"http://{host}" for host in hosts]
        ),
    )
    # Its own log would print on standard output; a request under way ends with the server.
    config = uvicorn.Config(
        app, log_config=None, log_level="critical", access_log=False, timeout_graceful_shutdown=0
    )
    await uvicorn.Server(config).serve(sockets=[listener])

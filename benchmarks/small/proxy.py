"""Between a client and an OpenAI-compatible server: neighbouring messages of one role become one.

llama.cpp's server refuses lists that end with two messages of the assistant, as rlms sends them.
What the model read and wrote is summed on the way.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from rlm_rag.evals.record import Spent

_MAX_BODY_BYTES = 64 << 20


def merged(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return messages of text with those of one role in a row joined by an empty line."""
    joined: list[dict[str, Any]] = []
    for message in messages:
        if joined and joined[-1]["role"] == message["role"]:
            joined[-1]["content"] += f"\n\n{message['content']}"
        else:
            joined.append(dict(message))
    return joined


class Proxy:
    """A proxy on a free port of 127.0.0.1, for one question, to `upstream`, an API base.

    `spent` counts what passed; `close` ends it.
    """

    def __init__(self, upstream: str) -> None:
        self._upstream = urlsplit(upstream)
        self._lock = threading.Lock()
        self._connections: set[HTTPConnection] = set()
        self.spent = Spent()
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                proxy._pass_on(self)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def api_base(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def close(self) -> None:
        """End what is under way, so that the server works for nobody."""
        self._server.shutdown()
        with self._lock:
            for connection in self._connections:
                if connection.sock is not None:
                    with suppress(OSError):
                        connection.sock.shutdown(socket.SHUT_RDWR)
        self._server.server_close()
        self._thread.join()

    def _pass_on(self, client: BaseHTTPRequestHandler) -> None:
        length = min(int(client.headers.get("Content-Length", 0)), _MAX_BODY_BYTES)
        request = json.loads(client.rfile.read(length))
        request["messages"] = merged(request["messages"])
        connection = HTTPConnection(self._upstream.hostname or "", self._upstream.port)
        with self._lock:
            self._connections.add(connection)
        try:
            connection.request(
                "POST",
                self._upstream.path + client.path.removeprefix("/v1"),
                json.dumps(request),
                {"Content-Type": "application/json"},
            )
            reply = connection.getresponse()
            status, body = reply.status, reply.read()
        except (OSError, HTTPException):
            # The question's time is over, or the server is gone; the client sees the same.
            return
        finally:
            with self._lock:
                self._connections.discard(connection)
            connection.close()
        self._count(body)
        with suppress(OSError):
            client.send_response(status)
            client.send_header("Content-Type", "application/json")
            client.send_header("Content-Length", str(len(body)))
            client.end_headers()
            client.wfile.write(body)

    def _count(self, body: bytes) -> None:
        try:
            usage = json.loads(body).get("usage") or {}
        except ValueError:
            usage = {}
        with self._lock:
            self.spent = Spent(
                self.spent.calls + 1,
                self.spent.input_tokens + usage.get("prompt_tokens", 0),
                self.spent.output_tokens + usage.get("completion_tokens", 0),
            )

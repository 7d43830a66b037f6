"""An HTTP server on 127.0.0.1 that plays a provider from a script and records what it was asked.

Real sockets and real HTTP, in a thread of its own: what reaches the code under test is what a
provider, a proxy or a broken network would send.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rlm_rag.closing import Closing


@dataclass(frozen=True, slots=True)
class Step:
    """One answer of the server.

    Either `text` (a reply in the server's protocol) or `body` (bytes as they are) or an error
    in the server's protocol (`status` 400 and up, with `message`). `delay_seconds` passes before
    the first byte, and it waits until `beside` requests were ever answered at once, 20 seconds at
    most; `cut_after` ends the connection after so many bytes of the body (0: before
    the status line).
    """

    text: str | None = None
    status: int = 200
    message: str = ""
    code: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    usage: Mapping[str, Any] | None = None
    finish_reason: str | None = None
    delay_seconds: float = 0.0
    beside: int = 0
    cut_after: int | None = None


def reply(
    text: str,
    *,
    usage: Mapping[str, Any] | None = None,
    finish_reason: str | None = None,
    delay_seconds: float = 0.0,
    beside: int = 0,
) -> Step:
    """A reply, after `delay_seconds` and `beside` others; the rest in the protocol's own words."""
    return Step(
        text=text,
        usage=usage,
        finish_reason=finish_reason,
        delay_seconds=delay_seconds,
        beside=beside,
    )


def rate_limited(retry_after: str | float | None = None, message: str = "slow down") -> Step:
    """429, with a Retry-After header where one is given."""
    headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
    return Step(status=429, message=message, headers=headers)


def failed(
    status: int,
    message: str = "something broke",
    *,
    code: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Step:
    """An error in the protocol's own shape."""
    return Step(status=status, message=message, code=code, headers=headers or {})


def cut(text: str = "never seen in full", *, after_bytes: int = 10) -> Step:
    """A reply whose connection ends `after_bytes` into the body; 0: before the status line."""
    return Step(text=text, cut_after=after_bytes)


def raw(body: bytes | str, *, content_type: str = "application/json", status: int = 200) -> Step:
    """These very bytes, whatever they are."""
    data = body.encode() if isinstance(body, str) else body
    return Step(body=data, status=status, headers={"Content-Type": content_type})


@dataclass(frozen=True, slots=True)
class Received:
    """One request, as it came."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def messages(self) -> list[dict[str, Any]]:
        return list(self.json["messages"])

    @property
    def turn(self) -> int:
        """How many replies its conversation has already: 0 at a root model's first turn."""
        return sum(message["role"] == "assistant" for message in self.messages)

    @property
    def prompt(self) -> str:
        """The last message's text."""
        content = self.messages[-1]["content"]
        if isinstance(content, str):
            return content
        return "".join(part.get("text", "") for part in content)


Script = Sequence[Step | str] | Callable[[Received], Step | str]


class LoopbackServer(Closing):
    """Plays `script`: steps in order, or a function of the request; a str is a reply's text.

    Safe to reassign `script` between requests. A request beyond the script's end gets 400.
    `received` holds the requests, `most_in_flight` how many were ever answered at once. What is
    only looked up is apart: requests by GET and those to the paths of `own`, which has answers as
    JSON, are kept in `looked_up`; with None they play the script too. Use as a context manager,
    or `close` it.
    """

    def __init__(self, script: Script = ()) -> None:
        self.received: list[Received] = []
        self.own: Mapping[str, Any] | None = {}
        self.looked_up: list[Received] = []
        self.most_in_flight = 0
        self._in_flight = 0
        self._script: Script = ()
        self._played = 0
        self.script = script
        self._loop = asyncio.new_event_loop()
        self._writers: set[asyncio.StreamWriter] = set()
        self._conversations: set[asyncio.Task[None]] = set()
        self._port = 0
        started = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(started,), daemon=True)
        self._thread.start()
        if not started.wait(10):
            raise RuntimeError("the loopback server did not start")

    @property
    def script(self) -> Script:
        return self._script

    @script.setter
    def script(self, script: Script) -> None:
        self._script, self._played = script, 0

    @property
    def in_flight(self) -> int:
        """How many requests are being answered now, the one that a script is asked about too."""
        return self._in_flight

    @property
    def url(self) -> str:
        """The server's address, without a final slash."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def prompts(self) -> list[str]:
        """The last message of each request, in the order they came."""
        return [request.prompt for request in self.received]

    def close(self) -> None:
        """End every connection and the thread; may be called twice."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(10)

    def render(self, step: Step, request: Received) -> bytes:
        """The body of a reply or an error, in the server's protocol."""
        raise NotImplementedError

    def content_type(self, step: Step, request: Received) -> str:
        """What `render` returns."""
        return "application/json"

    def _run(self, started: threading.Event) -> None:
        try:
            self._loop.run_until_complete(self._serve(started))
        finally:
            self._loop.close()

    async def _serve(self, started: threading.Event) -> None:
        self._stop = asyncio.Event()
        self._arrival = asyncio.Condition()
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0, backlog=512)
        self._port = server.sockets[0].getsockname()[1]
        started.set()
        await self._stop.wait()
        # A closed server would drop what it had just accepted, unclosed: it becomes a conversation
        # first, and is ended as one.
        for listening in server.sockets:
            self._loop.remove_reader(listening)
        while (talking := asyncio.all_tasks() - {asyncio.current_task()}) or self._writers:
            for writer in self._writers:
                writer.transport.abort()
            self._writers.clear()
            for task in self._conversations:
                task.cancel()
            await asyncio.gather(*talking, return_exceptions=True)
            await asyncio.sleep(0)
        server.close()

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Noted at once: a task that is cancelled before it began would close nothing.
        self._writers.add(writer)
        task = self._loop.create_task(self._converse(reader, writer))
        self._conversations.add(task)
        task.add_done_callback(self._conversations.discard)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (request := await _read_request(reader)) is not None:
                if not await self._answer(request, writer):
                    break
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            # The client, or the test, has gone: there is nobody left to tell.
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _answer(self, request: Received, writer: asyncio.StreamWriter) -> bool:
        apart = self._apart(request)
        if apart is not None:
            self.looked_up.append(request)
            return await self._send(apart, request, writer)
        self.received.append(request)
        self._in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self._in_flight)
        async with self._arrival:
            self._arrival.notify_all()
        try:
            step = self._next_step(request)
            if step.delay_seconds:
                await asyncio.sleep(step.delay_seconds)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(20), self._arrival:
                    await self._arrival.wait_for(lambda: self.most_in_flight >= step.beside)
        finally:
            self._in_flight -= 1
        return await self._send(step, request, writer)

    def _apart(self, request: Received) -> Step | None:
        """The answer to a request that is no part of the script."""
        path = request.path.partition("?")[0]
        if self.own is None or (request.method != "GET" and path not in self.own):
            return None
        return raw(json.dumps(self.own[path])) if path in self.own else raw(b"", status=404)

    async def _send(self, step: Step, request: Received, writer: asyncio.StreamWriter) -> bool:
        body = step.body if step.body is not None else self.render(step, request)
        if step.cut_after == 0:
            writer.transport.abort()
            return False
        headers = {"Content-Type": self.content_type(step, request), **step.headers}
        lines = [f"HTTP/1.1 {step.status} Scripted"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        lines.append(f"Content-Length: {len(body)}")
        head = "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"
        writer.write(head + body[: step.cut_after])
        await writer.drain()
        return step.cut_after is None

    def _next_step(self, request: Received) -> Step:
        if callable(self._script):
            step = self._script(request)
        elif self._played < len(self._script):
            step = self._script[self._played]
            self._played += 1
        else:
            step = failed(400, f"the test's script holds {len(self._script)} steps, no more")
        return Step(text=step) if isinstance(step, str) else step


async def _read_request(reader: asyncio.StreamReader) -> Received | None:
    head = await reader.readuntil(b"\r\n\r\n") if not reader.at_eof() else b""
    if not head:
        return None
    first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    method, path, _version = first.split(" ", 2)
    headers = {
        name.strip().lower(): value.strip()
        for name, _colon, value in (line.partition(":") for line in lines)
    }
    length = int(headers.get("content-length", "0"))
    body = await reader.readexactly(length) if length else b""
    return Received(method, path, headers, body)

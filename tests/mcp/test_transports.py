"""The real command, spoken to over its standard streams and over HTTP on loopback."""

from __future__ import annotations

import asyncio
import http.client
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from rlm_rag.mcp.http import PATH
from tests.cli.processes import COMMAND, Place, adopting, last_answer
from tests.engine.play import block
from tests.mcp.clients import text_of
from tests.servers.loopback import Received, Step, reply
from tests.servers.openai_chat import OpenAiChatServer

# The SDK's client gives a server two seconds to end; a machine that does other things, more.
PATIENCE_SECONDS = 5.0
QUESTION = {"question": "Which port?"}
HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "a client", "version": "1"},
}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A user's folders, with a corpus in the one where the command is called."""
    (tmp_path / "user").mkdir()
    found = Place(tmp_path / "user")
    (found.work / "docs").mkdir()
    (found.work / "docs" / "a.md").write_text("# A\n\nThe port is 8080.\n")
    return found


def say(process: subprocess.Popen[str], method: str, number: int | None, **params: Any) -> None:
    """Send one message; one with a number wants a reply."""
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
    if number is not None:
        message["id"] = number
    assert process.stdin is not None
    process.stdin.write(json.dumps(message) + "\n")
    process.stdin.flush()


def reply_to(process: subprocess.Popen[str], number: int) -> dict[str, Any]:
    """Read the messages up to the reply of that number; nothing else is on standard output."""
    assert process.stdout is not None
    for line in process.stdout:
        message: dict[str, Any] = json.loads(line)
        assert message["jsonrpc"] == "2.0"
        if message.get("id") == number:
            return message
    raise AssertionError("the server ended before it replied")


def begin(place: Place, *arguments: str) -> subprocess.Popen[str]:
    """Start a server of the corpus, and shake hands with it."""
    process = place.start("mcp", "docs", *arguments, stdin=subprocess.PIPE)
    say(process, "initialize", 1, **HELLO)
    assert reply_to(process, 1)["result"]["serverInfo"]["name"] == "rlm-rag"
    say(process, "notifications/initialized", None)
    return process


def slow_model(server: OpenAiChatServer) -> list[str]:
    """Have every question wait for a sub-call; return what leads there."""

    def script(request: Received) -> Step:
        if request.messages[0]["role"] != "system":
            return reply("late", delay_seconds=30)
        return block("llm_query('hang')")

    server.script = script
    return ["--model", "test", "--api-base", server.api_base]


async def ask_and_leave(client: Client, server: OpenAiChatServer, calls: int) -> None:
    """Ask, and give the question up once its server has had so many calls."""
    async with anyio.create_task_group() as group:
        group.start_soon(client.call_tool, "ask", QUESTION)
        await asyncio.to_thread(wait_for_calls, server, calls)
        group.cancel_scope.cancel()


def wait_for_calls(server: OpenAiChatServer, count: int) -> None:
    deadline = time.monotonic() + 20
    while len(server.received) < count:
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.deep
def test_the_end_of_input_ends_the_server_and_a_question_under_way(
    place: Place, openai_server: OpenAiChatServer
) -> None:
    with adopting() as left:
        process = begin(place, *slow_model(openai_server))
        say(process, "tools/call", 2, name="grep", arguments={"pattern": "port"})
        assert "3: The port is 8080." in json.dumps(reply_to(process, 2))
        say(process, "tools/call", 3, name="ask", arguments=QUESTION)
        wait_for_calls(openai_server, 2)
        began = time.monotonic()
        ended = place.end(process)
        assert time.monotonic() - began < PATIENCE_SECONDS
        assert left() == {}
    assert ended.code == 0
    for line in ended.stdout.splitlines():
        assert json.loads(line)["jsonrpc"] == "2.0"
    (trace,) = place.traces()
    assert last_answer(trace).stop_reason == "interrupted"


@pytest.mark.deep
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_though_its_client_says_nothing(place: Place, number: int) -> None:
    with adopting() as left:
        process = begin(place)
        say(process, "tools/call", 2, name="search", arguments={"query": "port"})
        reply_to(process, 2)
        process.send_signal(number)
        assert process.wait(PATIENCE_SECONDS) == 128 + number
        assert left() == {}
    assert place.end(process).stderr == "interrupted\n"


@pytest.mark.deep
def test_a_client_that_no_longer_reads_is_a_client_that_left(place: Place) -> None:
    with adopting() as left:
        process = begin(place)
        assert process.stdout is not None
        process.stdout.close()
        say(process, "tools/list", 2)
        assert process.wait(PATIENCE_SECONDS) == 0
        assert left() == {}
    for stream in (process.stdin, process.stderr):
        assert stream is not None
        stream.close()


@pytest.mark.deep
def test_a_line_that_is_no_message_is_answered_with_an_error(place: Place) -> None:
    process = begin(place)
    assert process.stdin is not None
    assert process.stdout is not None
    lines = [
        '{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "grep", '
        '"arguments": {"pattern": "secret \\ud83d"}}}',
        '{"jsonrpc": "2.0", "id": "a", "method": "ping", "params": []}',
        '{"id": 9, "method": "ping"}',
        '[{"jsonrpc": "2.0", "id": 10, "method": "ping"}]',
        "{nonsense",
        "",
        "3",
    ]
    process.stdin.write("\n".join(lines) + "\n")
    process.stdin.flush()
    found = [json.loads(process.stdout.readline()) for line in lines if line]
    assert [(one["id"], one["error"]["code"]) for one in found] == [
        (7, -32600), ("a", -32600), (9, -32600), (None, -32600), (None, -32700), (None, -32600),
    ]  # fmt: skip
    assert "surrogate" in found[0]["error"]["message"]
    say(process, "ping", 11)
    assert reply_to(process, 11)["result"] == {}
    _, stderr = process.communicate(timeout=10)
    assert process.returncode == 0
    assert stderr.count("refused what the client said: ") == 6
    assert "Traceback" not in stderr


def test_what_others_print_does_not_reach_the_client(place: Place) -> None:
    code = (
        "import os, subprocess, sys, rlm_rag.mcp.editions as module\n"
        "look = module.Editions.look\n"
        "async def loud(self):\n"
        "    print('printed', flush=True)\n"
        "    os.write(1, b'written\\n')\n"
        "    subprocess.run([sys.executable, '-c', 'print(input())'])\n"
        "    await look(self)\n"
        "module.Editions.look = loud\n"
        "from rlm_rag.cli.main import main\n"
        "main()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, "mcp", "docs"],
        env=place.environment,
        cwd=place.work,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    say(process, "initialize", 1, **HELLO)
    reply_to(process, 1)
    say(process, "notifications/initialized", None)
    say(process, "tools/call", 2, name="read", arguments={"path": "a.md"})
    assert "8080" in json.dumps(reply_to(process, 2))
    stdout, stderr = process.communicate(timeout=10)
    assert (process.returncode, stdout) == (0, "")
    assert {"printed", "written"} <= set(stderr.splitlines())


@pytest.mark.deep
def test_a_source_that_is_none_ends_it_with_a_message(place: Place) -> None:
    process = place.start("mcp", "nowhere", stdin=subprocess.PIPE)
    assert process.wait(30) == 2
    ended = place.end(process)
    assert ended.stdout == ""
    assert "No such file or folder: 'nowhere'" in ended.stderr


@pytest.mark.parametrize("mode", ["auto", pytest.param("legacy", marks=pytest.mark.deep)])
def test_the_client_of_the_sdk_gives_up_a_question_and_asks_on(
    place: Place, openai_server: OpenAiChatServer, mode: str
) -> None:
    server = StdioServerParameters(
        command=COMMAND[0],
        args=[*COMMAND[1:], "mcp", "docs", *slow_model(openai_server)],
        env=place.environment,
        cwd=place.work,
    )

    async def main() -> None:
        async with Client(stdio_client(server), mode=mode) as client:
            assert "ask" in [tool.name for tool in (await client.list_tools()).tools]
            await ask_and_leave(client, openai_server, 2)
            began = time.monotonic()
            assert "8080" in text_of(await client.call_tool("read", {"path": "a.md"}))
            await asyncio.to_thread(wait_for_trace, place)
            assert time.monotonic() - began < PATIENCE_SECONDS

    with adopting() as left:
        asyncio.run(main())
        assert left() == {}
    assert len(openai_server.received) == 2


def wait_for_trace(place: Place) -> None:
    """Wait until the only run has ended, which its trace says."""
    while not any(trace.events and trace.events[-1].type == "answer" for trace in place.traces()):
        time.sleep(0.02)


@pytest.fixture
def address(place: Place, openai_server: OpenAiChatServer) -> Iterator[str]:
    """The address of a server over HTTP, which ends with nothing left of it."""
    with adopting() as left:
        process = place.start("mcp", "docs", "--http", *slow_model(openai_server))
        assert process.stderr is not None
        said = process.stderr.readline()
        found = re.search(r"serving on (http://127\.0\.0\.1:\d+/mcp);", said)
        assert found is not None, said
        yield found[1]
        process.terminate()
        assert process.wait(PATIENCE_SECONDS) == 128 + signal.SIGTERM
        assert left() == {}
    ended = place.end(process, seen=said)
    assert ended.stdout == ""
    assert ended.stderr.endswith("interrupted\n")


def test_two_clients_at_once_are_served_over_http(
    address: str, openai_server: OpenAiChatServer
) -> None:
    async def use(mode: str) -> str:
        async with Client(address, mode=mode) as client:
            await ask_and_leave(client, openai_server, 4)
            calls = [client.call_tool("read", {"path": "a.md"}) for _ in range(5)]
            (uri,) = [one.uri for one in (await client.list_resources()).resources]
            assert (await client.read_resource(uri)).contents[0].uri == uri
            return "".join(map(text_of, await asyncio.gather(*calls)))

    async def main() -> list[str]:
        return list(await asyncio.gather(use("auto"), use("legacy")))

    for shown in asyncio.run(main()):
        assert shown.count("3: The port is 8080.") == 5
    assert len(openai_server.received) == 4
    refuse_strangers(address)


def refuse_strangers(address: str) -> None:
    """Nobody is served who calls the server by another name, or comes from another page."""
    host = address.removeprefix("http://").removesuffix(PATH)
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO})
    port = host.partition(":")[2]
    for headers, status in (
        ({}, 200),
        ({"Origin": f"http://localhost:{port}"}, 200),
        ({"Host": f"attacker.example:{port}"}, 421),
        ({"Host": "127.0.0.1:1"}, 421),
        ({"Origin": "http://attacker.example"}, 403),
        ({"Origin": f"http://127.0.0.1.attacker.example:{port}"}, 403),
        ({"Origin": "null"}, 403),
        ({"Content-Type": "text/plain"}, 400),
    ):
        connection = http.client.HTTPConnection(host, timeout=10)
        accepted = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        connection.request("POST", PATH, body, accepted | headers)
        assert connection.getresponse().status == status, headers
        connection.close()


ASKING = """
import asyncio, sys
from mcp import Client

async def main():
    async with Client(sys.argv[1], mode=sys.argv[2]) as client:
        await client.call_tool("ask", {"question": "Which port?"})

asyncio.run(main())
"""


@pytest.mark.deep
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_client_over_http_has_its_answer_unless_it_is_killed(
    address: str, openai_server: OpenAiChatServer, mode: str
) -> None:
    def script(request: Received) -> Step:
        if request.messages[0]["role"] != "system":
            return reply("80", delay_seconds=1.5)
        answer = "FINAL(f'Port 80, {1 + 1} times')"
        return block("llm_query('x')" if request.turn == 0 else answer)

    async def use() -> str:
        async with Client(address, mode=mode) as client:
            return text_of(await client.call_tool("ask", QUESTION))

    openai_server.script = script
    assert asyncio.run(use()).startswith("Port 80, 2 times")
    asked = len(openai_server.received)
    openai_server.script = lambda request: (
        block("llm_query('x')")
        if request.messages[0]["role"] == "system"
        else reply("80", delay_seconds=1.5)
    )
    with subprocess.Popen([sys.executable, "-c", ASKING, address, mode]) as client:
        wait_for_calls(openai_server, asked + 2)
        client.kill()
    time.sleep(3)
    assert len(openai_server.received) == asked + 2

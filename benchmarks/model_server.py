"""A provider in a process of its own: replies to every call after a delay, until stdin ends."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from tests.servers.anthropic_messages import AnthropicMessagesServer
from tests.servers.loopback import reply
from tests.servers.openai_chat import OpenAiChatServer

_PROTOCOLS: Mapping[str, type[OpenAiChatServer | AnthropicMessagesServer]] = {
    "openai": OpenAiChatServer,
    "anthropic": AnthropicMessagesServer,
}


@contextmanager
def serving(protocol: str, delay_seconds: float, text: str = "done") -> Iterator[str]:
    """Serve `openai` or `anthropic`, always with `text`, and yield the address for `api_base`."""
    argv = [sys.executable, "-m", __name__, protocol, str(delay_seconds), text]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None and server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.stdin.close()


def main(protocol: str, delay_seconds: str, text: str) -> None:
    answer = reply(text, delay_seconds=float(delay_seconds))
    with _PROTOCOLS[protocol](lambda _: answer) as server:
        print(server.api_base, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])

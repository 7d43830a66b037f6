"""A loopback server that speaks OpenAI's chat completions protocol."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.servers.loopback import LoopbackServer, Received, Step

USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}


class OpenAiChatServer(LoopbackServer):
    """Serves `POST /v1/chat/completions`; give `api_base` to the code under test."""

    @property
    def api_base(self) -> str:
        return f"{self.url}/v1"

    def render(self, step: Step, request: Received) -> bytes:
        if step.status >= 400:
            error: dict[str, Any] = {
                "message": step.message,
                "type": "scripted_error",
                "param": None,
                "code": step.code,
            }
            return json.dumps({"error": error}).encode()
        if self._streams(step, request):
            return b"".join(_events(step, request))
        return json.dumps(
            {
                "id": "chatcmpl-1",
                "object": "chat.completion",
                "created": 1,
                "model": request.json.get("model", ""),
                "choices": [
                    {
                        "index": 0,
                        "message": {"role": "assistant", "content": step.text},
                        "finish_reason": step.finish_reason or "stop",
                    }
                ],
                "usage": USAGE if step.usage is None else dict(step.usage),
            }
        ).encode()

    def content_type(self, step: Step, request: Received) -> str:
        return "text/event-stream" if self._streams(step, request) else "application/json"

    def _streams(self, step: Step, request: Received) -> bool:
        asked = request.method == "POST" and bool(request.json.get("stream"))
        return asked and step.status < 400 and step.body is None


def _events(step: Step, request: Received) -> Iterator[bytes]:
    """Yield a reply as server-sent events: a piece for each five characters, then usage."""
    text = step.text or ""
    pieces: list[dict[str, Any]] = [
        {"index": 0, "delta": {"content": text[at : at + 5]}, "finish_reason": None}
        for at in range(0, len(text), 5)
    ]
    pieces.append({"index": 0, "delta": {}, "finish_reason": step.finish_reason or "stop"})
    shared = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": request.json.get("model", ""),
    }
    for piece in pieces:
        yield _event({**shared, "choices": [piece]})
    if request.json.get("stream_options", {}).get("include_usage"):
        usage = USAGE if step.usage is None else dict(step.usage)
        yield _event({**shared, "choices": [], "usage": usage})
    yield b"data: [DONE]\n\n"


def _event(data: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(data).encode() + b"\n\n"

"""A loopback server that speaks Anthropic's messages protocol."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.servers.loopback import LoopbackServer, Received, Step

USAGE = {"input_tokens": 11, "output_tokens": 7}
_ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


class AnthropicMessagesServer(LoopbackServer):
    """Serves `POST /v1/messages`; give `api_base` to the code under test."""

    @property
    def api_base(self) -> str:
        return self.url

    def render(self, step: Step, request: Received) -> bytes:
        if step.status >= 400:
            kind = step.code or _ERROR_TYPES.get(step.status, "api_error")
            error = {"type": kind, "message": step.message}
            return json.dumps({"type": "error", "error": error}).encode()
        if self._streams(step, request):
            return b"".join(_events(step, request))
        return json.dumps(
            {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "model": request.json.get("model", ""),
                "content": [{"type": "text", "text": step.text}],
                "stop_reason": step.finish_reason or "end_turn",
                "stop_sequence": None,
                "usage": USAGE if step.usage is None else dict(step.usage),
            }
        ).encode()

    def content_type(self, step: Step, request: Received) -> str:
        return "text/event-stream" if self._streams(step, request) else "application/json"

    def _streams(self, step: Step, request: Received) -> bool:
        return step.status < 400 and step.body is None and bool(request.json.get("stream"))


def _events(step: Step, request: Received) -> Iterator[bytes]:
    """Yield a reply as server-sent events: a piece for each five characters."""
    usage = USAGE if step.usage is None else dict(step.usage)
    output = usage.pop("output_tokens") if step.usage is not None else USAGE["output_tokens"]
    text = step.text or ""
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": request.json.get("model", ""),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {**usage, "output_tokens": 1},
    }
    yield _event({"type": "message_start", "message": message})
    block = {"type": "text", "text": ""}
    yield _event({"type": "content_block_start", "index": 0, "content_block": block})
    for at in range(0, len(text), 5):
        delta = {"type": "text_delta", "text": text[at : at + 5]}
        yield _event({"type": "content_block_delta", "index": 0, "delta": delta})
    yield _event({"type": "content_block_stop", "index": 0})
    end = {"stop_reason": step.finish_reason or "end_turn", "stop_sequence": None}
    yield _event({"type": "message_delta", "delta": end, "usage": {"output_tokens": output}})
    yield _event({"type": "message_stop"})


def _event(data: dict[str, Any]) -> bytes:
    return f"event: {data['type']}\ndata: {json.dumps(data)}\n\n".encode()

"""A loopback server that speaks Anthropic's messages protocol."""

from __future__ import annotations

import json

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

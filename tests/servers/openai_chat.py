"""A loopback server that speaks OpenAI's chat completions protocol."""

from __future__ import annotations

import json
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

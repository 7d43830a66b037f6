"""A loopback server that speaks Ollama's chat protocol."""

from __future__ import annotations

import json

from tests.servers.loopback import LoopbackServer, Received, Step


class OllamaServer(LoopbackServer):
    """Serves `POST /api/chat`, and `/api/show` with nothing; give `url` as the API base."""

    def render(self, step: Step, request: Received) -> bytes:
        if step.status >= 400:
            return json.dumps({"error": step.message}).encode()
        if request.path == "/api/show":
            return b"{}"
        return json.dumps(
            {
                "model": request.json["model"],
                "created_at": "2026-01-01T00:00:00Z",
                "message": {"role": "assistant", "content": step.text},
                "done": True,
                "done_reason": step.finish_reason or "stop",
                "prompt_eval_count": 11,
                "eval_count": 7,
            }
        ).encode()

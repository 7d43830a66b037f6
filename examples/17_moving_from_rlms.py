"""Change one import of a program that was written for the package `rlms`."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

from rlm_rag.compat import RLM  # was: from rlm import RLM

TURN = "```repl\nanswer['content'] = str(context.count('late'))\nanswer['ready'] = True\n```"


class Server(BaseHTTPRequestHandler):
    """Stands in for a server that speaks OpenAI's protocol, such as vLLM's or llama.cpp's."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        message = {"role": "assistant", "content": TURN}
        body = json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""


with HTTPServer(("127.0.0.1", 0), Server) as server:
    threading.Thread(target=server.serve_forever, daemon=True).start()
    where = f"http://127.0.0.1:{server.server_port}/v1"
    rlm = RLM(backend="openai", backend_kwargs={"model_name": "tiny", "base_url": where})
    print(rlm.completion("late, early, late, late", "How often is it late?").response)
    server.shutdown()

# Prints:
# 3

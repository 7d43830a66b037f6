"""A model of this machine: its server's life, with a stand-in for the library that serves it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rlm_rag.errors import MissingExtraError, ModelError, ModelNotFoundError
from rlm_rag.models.base import Message, ModelRequest
from rlm_rag.models.local import _SERVERS
from rlm_rag.models.prices import FREE, facts_of
from rlm_rag.models.router import close_model, open_model
from tests.models.test_gguf import head

STAND_IN = """
import http.server, json, os, threading

class _Part:
    pass

class CommonParams:
    def __init__(self):
        self.model, self.cpuparams, self.cpuparams_batch = _Part(), _Part(), _Part()

class _Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        text = f"{os.getpid()} {self.server.told} {asked['temperature']} "
        text += asked["messages"][-1]["content"]
        message = {"role": "assistant", "content": text}
        body = json.dumps({"choices": [{"message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1}}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass

class Server:
    def __init__(self, parameters):
        if parameters.model.path.endswith("damaged.gguf"):
            raise SystemExit(3)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        server.told = f"{parameters.n_ctx} {os.environ.get('OPENAI_API_KEY')}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.listening_address = f"http://127.0.0.1:{server.server_port}"
"""


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = tmp_path / "library"
    folder.mkdir()
    (folder / "xllamacpp.py").write_text(STAND_IN)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-never-to-be-told")
    yield folder
    _SERVERS.close()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "model.gguf"
    path.write_bytes(head())
    return path


def ask(name: str, *prompts: str) -> list[str]:
    async def asked() -> list[str]:
        model = open_model(name)
        try:
            requests = [ModelRequest((Message("user", prompt),)) for prompt in prompts]
            return [(await model.complete(request)).text for request in requests]
        finally:
            await close_model(model)

    return asyncio.run(asked())


@pytest.mark.usefixtures("library")
def test_a_file_is_served_by_one_process_that_gets_no_key(file: Path) -> None:
    first, second = ask(f"local:{file}", "one", "two")
    (again,) = ask(f"local:{file}", "three")
    pid, context, key, temperature, said = first.split()
    assert int(pid) != os.getpid()
    assert second.split()[0] == again.split()[0] == pid
    assert (key, temperature) == ("None", "0.0")
    assert said == "one"
    assert int(context) == 2 * (facts_of(f"local:{file}").context_window or 0)
    assert facts_of(f"local:{file}").price == FREE


@pytest.mark.usefixtures("library")
def test_a_server_that_died_is_started_again(file: Path) -> None:
    (first,) = ask(f"local:{file}", "one")
    os.kill(int(first.split()[0]), signal.SIGKILL)
    time.sleep(0.1)
    (second,) = ask(f"local:{file}", "two")
    assert second.split()[0] != first.split()[0]


def test_the_server_ends_with_the_program(library: Path, file: Path) -> None:
    script = (
        "import asyncio, os, signal, sys\n"
        "from rlm_rag.models.router import open_model\n"
        "from rlm_rag.models.base import Message, ModelRequest\n"
        "async def main():\n"
        f"    model = open_model('local:{file}')\n"
        "    reply = await model.complete(ModelRequest((Message('user', 'x'),)))\n"
        "    print(reply.text.split()[0], flush=True)\n"
        "asyncio.run(main())\n"
        "if sys.argv[1] == 'kill':\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    root = Path(__file__).resolve().parents[2]
    for how in ("exit", "kill"):
        done = subprocess.run(
            [sys.executable, "-c", script, how],
            env={"PATH": os.environ["PATH"], "PYTHONPATH": f"{library}:{root}"},
            capture_output=True,
            text=True,
            timeout=60,
        )
        pid = int(done.stdout)
        for _ in range(100):
            try:
                os.kill(pid, 0)
            except ProcessLookupError:
                break
            time.sleep(0.05)
        else:
            raise AssertionError(f"the server outlived the program's {how}")


@pytest.mark.usefixtures("library")
def test_a_server_that_does_not_start_is_told(tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.gguf"
    damaged.write_bytes(head())
    with pytest.raises(ModelError, match="did not start"):
        ask(f"local:{damaged}", "one")


def test_without_the_library_the_command_is_told(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlm_rag.models.local.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError) as refused:
        open_model(f"local:{file}")
    assert refused.value.hint == "pip install 'rlm-rag[local]'"


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFoundError):
        open_model(f"local:{tmp_path}/gone.gguf")

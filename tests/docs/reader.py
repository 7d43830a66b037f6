"""A reader of the pages, who types what they show.

Models are played by a loopback server, which the environment names as it would name a user's
gateway. What a page shows is typed as it stands, but for this: the addresses of servers are
those of the tests' own, and a benchmark asks one sample of the shortest length in place of
hundreds. `pip` and `scripts/demo` are looked at here and run by `test_apart`; `llama-server` is
somebody else's, and its place is taken by the loopback server.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tomllib
from pathlib import Path
from subprocess import CompletedProcess
from urllib.request import Request, urlopen

import pytest

from tests.cli.here import run_here
from tests.servers.loopback import Received, Step, reply
from tests.servers.openai_chat import OpenAiChatServer

from .prose import ROOT
from .shell import Call, Shell

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
SAYS = "The model says"
"""What every answer of the loopback model begins with."""
PAGE_SERVER = "http://127.0.0.1:8080/v1"
_KEY = "sk-a-readers-own-key"
_TYPED = "Where is retry backoff computed?\n/cost\n/save refactoring\n"
_SMALLEST = {"--lengths": "1k", "-n": "1"}
_REPLIES = {
    "less than three months' notice": (
        f"{SAYS}: two months, `ferry.md:3`: "
        '"Either side may end this contract with two months\' notice".'
    ),
    "Parties and notice period": json.dumps({"ferry.md": f"{SAYS} two months"}),
    "After how many days is a parcel lost": json.dumps(
        {"days": 14, "euros": 500, "cited": f"{SAYS} `docs/returns.md:8`"}
    ),
    "documented behaviour": f'{SAYS}: `CHANGES.md:1`: "The default port was changed".',
}
_ANSWER = f'{SAYS}: `parcel/retry.py:12`, "FIRST_DELAY_SECONDS * 2 ** (attempt - 1)".'
_TOOLS = """
assert weight_grams("4712") == 2500 and load_library("carrier").ok
assert "last" in ask_user_question("Which week?") and save_artifact("orders.txt", "4712").ok
"""


def play(request: Received) -> Step | str:
    """Answer as a model would: with a block where a REPL is offered, else with text or JSON."""
    said = json.dumps(request.messages, ensure_ascii=False)
    text = next((text for key, text in _REPLIES.items() if key in said), _ANSWER)
    if "llm_query" not in str(request.messages[0]["content"]):
        return text
    tools = _TOOLS if "weight_grams" in said else ""
    return reply(f"```repl\n{tools}answer['content'] = {text!r}\nanswer['ready'] = True\n```")


class Reader:
    """Types commands in `home/work`, and looks at what they print and whom they ask.

    Commands that start a server, or examine the machine, are run once for all pages: what they
    came to is in `kept`.
    """

    def __init__(
        self,
        home: Path,
        server: OpenAiChatServer,
        kept: dict[tuple[str, ...], CompletedProcess[str]],
    ) -> None:
        self._kept = kept
        self._home, self._server = home, server
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "OPENAI_API_KEY": _KEY,
            "OPENAI_BASE_URL": server.api_base,
        }
        self.places = {PAGE_SERVER: server.api_base}
        """What a page's addresses and folders are here."""
        really = self._really
        programs = dict.fromkeys(("git", "printf"), really) | {
            "rlm-rag": self._rlm_rag,
            "pip": _install,
            "llama-server": _served,
            "scripts/demo": _found,
        }
        self._programs = programs

    @property
    def work(self) -> Path:
        """Where commands are typed."""
        return self._home / "work"

    @property
    def requests(self) -> int:
        """How many the model's server has had."""
        return len(self._server.received)

    def here(self, text: str) -> str:
        """The text with the addresses and folders of this machine in place of a page's."""
        for shown, own in self.places.items():
            text = text.replace(shown, own)
        return text

    def shell(self) -> Shell:
        """A new shell, in the folder where pages begin."""
        return Shell(self.work, dict(self.environment), self._programs)

    def runs(self, text: str) -> str:
        """Run a script whose every command succeeds, and return all that it printed."""
        if killed := re.findall(r"^rlm-rag trace resume ?([\d-]*)", text, re.MULTILINE):
            self._leave_killed_runs(killed)
        ended = self.shell().run(_smaller(text))
        assert ended[-1].returncode == 0, f"{ended[-1].args}: {ended[-1].stderr}"
        return "".join(done.stdout + done.stderr for done in ended)

    def _rlm_rag(self, call: Call) -> CompletedProcess[str]:
        arguments = [self.here(word) for word in call.words[1:]]
        if arguments[0] in ("mcp", "doctor"):
            run = self._serve if arguments[0] == "mcp" else self._run
            if call.words not in self._kept:
                self._kept[call.words] = run(call, arguments)
            return self._kept[call.words]
        return self._run(call, arguments)

    def _run(self, call: Call, arguments: list[str]) -> CompletedProcess[str]:
        if arguments[0] == "eval":
            _have_runs(call.folder, [word for word in arguments if word.startswith("runs/")])
        stdin = call.stdin or (_TYPED if arguments[0] == "chat" else "")
        before = len(self._server.received)
        done = run_here(arguments, environment=call.environment, cwd=call.folder, stdin=stdin)
        if "does not work on this machine" in done.stderr:
            pytest.skip(done.stderr.strip())
        if done.returncode == 0:
            key = call.environment["OPENAI_API_KEY"]
            _check_asked(arguments, done.stdout, self._server.received[before:], key)
        return done

    def _really(self, call: Call) -> CompletedProcess[str]:
        return subprocess.run(
            call.words,
            cwd=call.folder,
            env=dict(call.environment),
            input=call.stdin,
            capture_output=True,
            text=True,
        )

    def _serve(self, call: Call, arguments: list[str]) -> CompletedProcess[str]:
        """Start a server of the Model Context Protocol, have it say hello, and end it."""
        shown = arguments[arguments.index("--port") + 1] if "--port" in arguments else ""
        port = str(_free_port())
        words = [port if shown and word == shown else word for word in arguments]
        with subprocess.Popen(
            [sys.executable, "-m", "rlm_rag", *words],
            cwd=call.folder,
            env={**call.environment, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stderr is not None
            said = ""
            if shown:
                said = process.stderr.readline()
                assert "rlm-rag" in _greet(said.partition(" on ")[2].partition(";")[0])
                process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=30)
        # 0 of one that was told to end, where the tests run with interrupts ignored, too.
        assert process.returncode in (0, 130 if shown else 0), err
        return CompletedProcess(arguments, 0, out, said.replace(port, shown))

    def _leave_killed_runs(self, starts: list[str]) -> None:
        """Leave traces of a run that was killed after a block, one beginning with each start."""
        asked = "rlm-rag ask examples/parcel 'When is it lost?' --model offline --strategy rlm"
        (done,) = self.shell().run(f"{asked} --max-usd 1 --max-seconds 300")
        assert done.returncode == 0, done.stderr
        last = max((self._home / ".local" / "state" / "rlm-rag" / "runs").glob("*.jsonl"))
        lines = last.read_text(encoding="utf-8").splitlines(keepends=True)
        last.unlink()
        first_output = next(n for n, line in enumerate(lines) if '"type": "output"' in line)
        kept = "".join(lines[: first_output + 1])
        for start in starts:
            run = start + last.stem[len(start) :]
            last.with_stem(run).write_text(kept.replace(last.stem, run), encoding="utf-8")


def _have_runs(folder: Path, named: list[str]) -> None:
    """Have those runs that are compared with the page's own, and are not on it, be like it."""
    for name in named[1:]:
        if not (folder / name).exists():
            shutil.copytree(folder / named[0], folder / name)


def _smaller(text: str) -> str:
    """The script with each run of a benchmark asking one short sample."""
    if "eval run" not in text:
        return text
    return re.sub(r"(--lengths|-n) (\S+)", lambda at: f"{at[1]} {_SMALLEST[at[1]]}", text)


def _check_asked(arguments: list[str], printed: str, received: list[Received], key: str) -> None:
    """Check that the model which is named was asked, with the user's key, and none otherwise."""
    model = arguments[arguments.index("--model") + 1] if "--model" in arguments else ""
    # A session that is gone on with has a model of its own: that of the questions before.
    if "--session" in arguments:
        model = "openai/gpt-5-mini"
    is_served = model.startswith("openai/") or "--api-base" in arguments
    if not is_served or {"--estimate", "--retrieval-only"} & set(arguments):
        assert not received, arguments
        return
    assert model.rpartition("/")[2] in {request.json["model"] for request in received}, arguments
    if model.startswith("openai/"):
        assert {request.headers["authorization"] for request in received} == {f"Bearer {key}"}
    assert SAYS in printed or "-o" in arguments or arguments[0] == "eval", printed


def _install(call: Call) -> CompletedProcess[str]:
    """Check what would be installed; that it can be is a test of its own."""
    assert call.words[1] == "install"
    for word in call.words[2:]:
        name, _, extras = word.partition("[")
        wanted = set(extras.rstrip("]").split(",")) - {""}
        assert wanted <= set(PROJECT["optional-dependencies"]), word
        # A page that does not clone is read in a clone.
        places = (call.folder / name, ROOT / name)
        assert name == PROJECT["name"] or any((p / "pyproject.toml").is_file() for p in places)
    return CompletedProcess(call.words, 0, "", "")


def _served(call: Call) -> CompletedProcess[str]:
    """A server that is there already: the loopback one."""
    assert f":{call.words[call.words.index('--port') + 1]}/" in PAGE_SERVER
    return CompletedProcess(call.words, 0, "", "")


def _found(call: Call) -> CompletedProcess[str]:
    assert os.access(call.folder / call.words[0], os.X_OK), call.words
    return CompletedProcess(call.words, 0, "", "")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def _greet(address: str) -> str:
    """The reply of a server of the protocol to a client that begins."""
    params = {"protocolVersion": "2025-06-18", "capabilities": {}}
    params["clientInfo"] = {"name": "a reader", "version": "1"}
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    }
    with urlopen(Request(address, json.dumps(hello).encode(), headers), timeout=30) as answer:
        return str(answer.read().decode())

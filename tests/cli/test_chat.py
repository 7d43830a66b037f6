"""`rlm-rag chat`, and questions that go on from earlier ones."""

from __future__ import annotations

import io
import json
import os
import pty
import select
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import rlm_rag
from rlm_rag import RLM
from rlm_rag.cli.chat_commands import completions
from rlm_rag.cli.main import main
from rlm_rag.errors import SessionError
from rlm_rag.sessions import SessionStore
from tests.engine.play import block
from tests.servers.loopback import Received, Step
from tests.servers.openai_chat import OpenAiChatServer

from .conftest import COMMAND


def by_question(request: Received) -> Step:
    """Plays by what is asked: each question counts in `n`, the last one tells it."""
    asked = request.messages[1]["content"].rpartition("# Question\n")[2].partition("\n")[0]
    if asked == "Slow?":
        return block("n = 10\nsearch('send')\nimport time\ntime.sleep(30)")
    return block(
        "n = globals().get('n', 0) + 1\n"
        "earlier = sum(name.startswith('history_') for name in globals())\n"
        f"FINAL(f'{asked} {{n}} {{earlier}} {{len(context)}}')"
    )


@pytest.fixture
def flags(openai_server: OpenAiChatServer) -> tuple[str, ...]:
    openai_server.script = by_question
    return ("--model", "test", "--api-base", openai_server.api_base)


@dataclass(frozen=True)
class Done:
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder, a working folder and a strategy for commands of this process."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("RLM_RAG_STRATEGY", "rlm")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "state" / "rlm-rag"


@pytest.fixture
def command(
    state: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Done]:
    """Run a command in this process, its standard input a pipe."""

    def run(*arguments: str, stdin: str = "") -> Done:
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        code = main(arguments)
        shown = capsys.readouterr()
        return Done(code, shown.out, shown.err)

    return run


def test_a_piped_chat_answers_line_by_line_and_obeys_commands(
    command: Callable[..., Done], repo: Path, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    (tmp_path / "more.md").write_text("more\n")
    lines = ["One?", "Two?", "/undo", "", f"/add {tmp_path / 'more.md'}", "Three?"]
    lines += ["/cost", "/sources", "/help", "/nonsense", "/save", "/quit", "Never?"]
    done = command("chat", str(repo), *flags, stdin="\n".join(lines))
    assert done.stdout.splitlines() == ["One? 1 1 3", "Two? 2 2 3", "Three? 2 2 4"]
    assert "undone, with its variables: Two?" in done.stderr
    assert "2 questions, 3 calls" in done.stderr
    assert "more.md, 1 document\n" in done.stderr
    assert "context_0: " in done.stderr
    assert "context_1: " in done.stderr
    assert "/undo" in done.stderr.partition("/sources")[2]
    assert "there is no command '/nonsense'" in done.stderr
    assert "/save needs a name" in done.stderr
    assert done.returncode == 2


def test_a_session_is_kept_and_gone_on_with(
    command: Callable[..., Done], repo: Path, state: Path, flags: tuple[str, ...]
) -> None:
    first = command("chat", str(repo), *flags, "--session", "mine", "-q", stdin="One?\n")
    assert (first.stdout, first.returncode) == ("One? 1 1 3\n", 0)
    folder = state / "sessions"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}
    again = command("chat", *flags, "--session", "mine", "--json", stdin="Two?\n")
    assert json.loads(again.stdout)["answer"] == "Two? 2 2 3"
    missing = command("chat", *flags, "--session", "other", stdin="Two?\n")
    assert missing.returncode == 2
    assert "there are: mine" in missing.stderr


def test_a_session_keeps_its_models_unless_a_flag_names_another(
    command: Callable[..., Done],
    repo: Path,
    flags: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = flags[3]
    command("chat", str(repo), *flags, "--session", "mine", "-q", stdin="One?\n")
    held = command("chat", "--session", "mine", "--json", stdin="Two?\n")
    assert json.loads(held.stdout)["answer"] == "Two? 2 2 3"
    said = f"session 'mine' goes on with test at {server}, as it was held, not with"
    assert f"{said} offline (default); --model names another" in held.stderr
    monkeypatch.setenv("RLM_RAG_MODEL", "scripted:none.json")
    kept = command("chat", "--session", "mine", stdin="Three?\n")
    assert kept.stdout == "Three? 3 3 3\n"
    assert f"{said} scripted:none.json (RLM_RAG_MODEL)" in kept.stderr
    named = ("--session", "mine", "--model", "other", "--api-base", server)
    other = command("chat", *named, stdin="Four?\n")
    assert other.stdout == "Four? 4 4 3\n"
    changed = f"warning: it was held with test at {server}, and goes on with other at {server}"
    assert changed in other.stderr
    same = command("chat", *named, stdin="Five?\n")
    assert "held" not in same.stderr


def test_a_session_whose_models_are_no_names_is_damaged(
    command: Callable[..., Done], repo: Path, state: Path, flags: tuple[str, ...]
) -> None:
    command("chat", str(repo), *flags, "--session", "mine", "-q", stdin="One?\n")
    file = state / "sessions" / "mine.json"
    value = json.loads(file.read_text())
    file.write_text(json.dumps(value | {"held_with": {"model": ["test"]}}))
    damaged = command("chat", "--session", "mine", stdin="Two?\n")
    assert "cannot be read: its models are no names" in damaged.stderr
    del value["held_with"]
    file.write_text(json.dumps(value))
    assert command("chat", *flags, "--session", "mine", "-q", stdin="Two?\n").stderr == ""


def test_a_session_is_one_chats_alone(
    command: Callable[..., Done], repo: Path, state: Path, flags: tuple[str, ...]
) -> None:
    first = command("chat", str(repo), *flags, "--session", "mine", "-q", stdin="One?\n")
    assert first.returncode == 0
    with SessionStore().hold("mine"):
        for arguments in (("--session", "mine"), (str(repo), "--session", "mine")):
            second = command("chat", *arguments, *flags, stdin="Lost?\n")
            assert second.returncode == 2
            assert f"another chat has the session 'mine' (process {os.getpid()})" in second.stderr
        saving = command("chat", str(repo), *flags, stdin="Two?\n/save --replace mine\n")
        assert "another chat has the session 'mine'" in saving.stderr
        with pytest.raises(SessionError, match="another chat"), rlm_rag.load(repo) as corpus:
            RLM(model="offline").conversation(corpus).save("mine")
    again = command("chat", *flags, "--session", "mine", "-q", stdin="Two?\n")
    assert again.stdout == "Two? 2 2 3\n"


def test_save_does_not_replace_the_session_of_another_chat_unasked(
    command: Callable[..., Done], repo: Path, state: Path, flags: tuple[str, ...]
) -> None:
    command("chat", str(repo), *flags, "--session", "mine", "-q", stdin="One?\nTwo?\n")
    file = state / "sessions" / "mine.json"
    before = file.read_bytes()
    refused = command("chat", str(repo), *flags, stdin="Anew?\n/save mine\n")
    assert "there is a session 'mine' already" in refused.stderr
    assert "/save --replace mine" in refused.stderr
    assert refused.returncode == 2
    assert file.read_bytes() == before
    lines = "Anew?\n/save --replace mine\nMore?\n/save mine\n"
    replaced = command("chat", str(repo), *flags, stdin=lines)
    assert (replaced.returncode, replaced.stderr.count("saved: ")) == (0, 2)
    own = command("chat", *flags, "--session", "mine", stdin="/save mine\nThree?\n")
    assert (own.stdout, own.returncode) == ("Three? 3 3 3\n", 0)


def test_a_session_whose_source_is_gone_says_that_another_can_be_named(
    command: Callable[..., Done], repo: Path, flags: tuple[str, ...], tmp_path: Path
) -> None:
    command("chat", str(repo), *flags, "--session", "mine", stdin="One?\n")
    moved = repo.rename(tmp_path / "moved")
    gone = command("chat", *flags, "--session", "mine", stdin="Two?\n")
    assert gone.returncode == 2
    assert "rlm-rag chat SOURCE --session NAME" in gone.stderr
    named = command("chat", str(moved), *flags, "--session", "mine", stdin="Two?\n")
    assert named.stdout.startswith("Two? ")


def test_what_is_undone_stays_undone_in_the_next_chat(
    command: Callable[..., Done], repo: Path, flags: tuple[str, ...]
) -> None:
    kept = (*flags, "--session", "mine", "-q")
    command("chat", str(repo), *kept, stdin="One?\nTwo?\n")
    undone = command("chat", *kept, stdin="/undo\n")
    assert "undone, with its variables: Two?" in undone.stderr
    assert command("chat", *kept, stdin="Three?\n").stdout == "Three? 2 2 3\n"


def test_ask_goes_on_from_the_last_question_of_the_same_sources(
    command: Callable[..., Done], repo: Path, flags: tuple[str, ...]
) -> None:
    none = command("ask", str(repo), "One?", "--continue", *flags)
    assert none.returncode == 2
    assert "no earlier question" in none.stderr
    assert command("ask", str(repo), "One?", *flags, "-q").stdout == "One? 1 1 3\n"
    assert command("ask", str(repo), "Two?", "--continue", *flags, "-q").stdout == "Two? 2 2 3\n"
    held = command("ask", str(repo), "Three?", "--continue", "-q")
    assert held.stdout == "Three? 3 3 3\n"
    assert "the last question goes on with test at http" in held.stderr
    assert command("ask", str(repo), "Anew?", *flags, "-q").stdout == "Anew? 1 1 3\n"
    chat = command("chat", str(repo), "--continue", *flags, "-q", stdin="Three?\n")
    assert chat.stdout == "Three? 2 2 3\n"


def test_what_is_typed_may_become_a_command_a_file_to_add_or_a_path_of_the_corpus(
    repo: Path, state: Path
) -> None:
    with rlm_rag.load(repo) as corpus:
        conversation = RLM(model="offline").conversation(corpus)
        for before, word, found in (
            ("", "/s", ["/sources", "/save "]),
            ("/add ", f"{repo}/s", [f"{repo}/src/"]),
            ("/add ", f"{repo}/none/", []),
            ("What is in ", "src/", ["src/client.py", "src/retry.py"]),
            ("What is in ", "", []),
            ("/save ", "src/", []),
        ):
            assert list(completions(conversation, before, word)) == found


def test_a_chat_without_a_source_says_so(command: Callable[..., Done]) -> None:
    assert "a source is missing" in command("chat").stderr
    assert "standard input" in command("chat", "-").stderr


class Terminal:
    """The command on a pseudo-terminal."""

    def __init__(self, arguments: tuple[str, ...], environment: dict[str, str]) -> None:
        self.fd, inner = pty.openpty()
        self.process = subprocess.Popen(
            [*COMMAND, *arguments],
            stdin=inner,
            stdout=inner,
            stderr=inner,
            env=environment | {"TERM": "xterm"},
            start_new_session=True,
        )
        os.close(inner)
        self.seen = ""

    def send(self, text: str) -> None:
        os.write(self.fd, text.encode())

    def wait_for(self, text: str, seconds: float = 30.0) -> None:
        until = time.monotonic() + seconds
        while text not in self.seen:
            assert select.select([self.fd], [], [], max(0, until - time.monotonic()))[0], self.seen
            self.seen += os.read(self.fd, 65536).decode(errors="replace")
        self.seen = self.seen.partition(text)[2]


@pytest.fixture
def terminal(repo: Path, environment: dict[str, str], flags: tuple[str, ...]) -> Iterator[Terminal]:
    """A chat about `repo` that shows every block."""
    opened = Terminal(("chat", str(repo), *flags, "-v"), environment)
    try:
        yield opened
    finally:
        opened.process.kill()
        opened.process.wait()
        os.close(opened.fd)


@pytest.mark.skipif(sys.platform != "linux", reason="needs a pseudo-terminal")
def test_ctrl_c_ends_the_question_and_not_the_chat(
    terminal: Terminal, environment: dict[str, str]
) -> None:
    terminal.wait_for("/help lists")
    terminal.wait_for("> ")
    terminal.send("Slow?\n")
    terminal.wait_for("search(query='send'")
    os.kill(terminal.process.pid, signal.SIGINT)
    terminal.wait_for("interrupted")
    terminal.wait_for("> ")
    terminal.send("Two?\n")
    terminal.wait_for("Two? 11 2 3")
    terminal.wait_for("> ")
    # A prompt is shown a moment before it reads, and as a person would, this waits for that.
    time.sleep(0.5)
    os.kill(terminal.process.pid, signal.SIGINT)
    terminal.wait_for("Ctrl-D ends")
    terminal.wait_for("> ")
    terminal.send("/he\t\n")
    terminal.wait_for("Drop the last question")
    terminal.wait_for("> ")
    terminal.send("Of src/re\t\n")
    terminal.wait_for("Of src/retry.py 12")
    terminal.wait_for("> ")
    terminal.send("\x04")
    assert terminal.process.wait(20) == 0
    history = Path(environment["HOME"]) / ".local/state/rlm-rag/chat_history"
    assert "Slow?" in history.read_text()
    assert stat.S_IMODE(history.stat().st_mode) == 0o600

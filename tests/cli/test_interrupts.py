"""Interrupted at any moment, the real command ends in order and leaves nothing behind."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.servers.loopback import Received, Step, reply
from tests.servers.openai_chat import OpenAiChatServer

from .processes import Ended, Place, adopting, assert_clean, last_answer

QUESTION = "How long does backoff wait?"
# What a person would wait, with room for a machine that is busy with other tests.
MOST_SECONDS = 4.0

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
def left() -> Iterator[Callable[[], dict[int, str]]]:
    """The processes that the commands of a test left behind."""
    with adopting() as left:
        yield left


@pytest.fixture
def repo(place: Place) -> Path:
    folder = place.work / "repo"
    folder.mkdir()
    (folder / "retry.py").write_text("def backoff(attempt):\n    return 2**attempt\n")
    return folder


def block(code: str) -> str:
    return f"```repl\n{code}\n```"


SO_FAR = block('answer["content"] = "so far"')


def scripted(place: Place, *replies: str) -> tuple[str, str]:
    file = place.root / "replies.json"
    file.write_text(json.dumps(replies))
    return "--model", f"scripted:{file}"


def wait_until_ready(process: subprocess.Popen[str]) -> None:
    """Wait until the command, and not only the interpreter, answers signals."""
    status = Path(f"/proc/{process.pid}/status")
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and process.poll() is None:
        caught = int(status.read_text().partition("SigCgt:")[2].split()[0], 16)
        if caught >> (signal.SIGTERM - 1) & 1:
            return
        time.sleep(0.005)
    raise AssertionError("the command did not start")


def wait_for(process: subprocess.Popen[str], words: str) -> str:
    """Read standard error up to a line that holds `words`; return what was read."""
    assert process.stderr is not None
    seen = ""
    for line in process.stderr:
        seen += line
        if words in line:
            return seen
    raise AssertionError(f"{words!r} was never said: {seen}")


def scratch_of(place: Place) -> list[Path]:
    """The packed texts that runs have open, which lie beside what is kept of their sources."""
    return list((place.home / ".cache" / "rlm-rag" / "open").glob("*/corpus.packed*"))


def wait_until(holds: Callable[[], bool]) -> None:
    """Look again and again until something holds.

    Raises:
        AssertionError: it never did.
    """
    until = time.monotonic() + 10 * MOST_SECONDS
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.01)


def press(process: subprocess.Popen[str], *, terminal: bool = True) -> None:
    """Ctrl-C: a terminal signals its whole foreground group, other senders the one process."""
    (os.killpg if terminal else os.kill)(process.pid, signal.SIGINT)


def interrupted(place: Place, process: subprocess.Popen[str], *, seen: str = "") -> Ended:
    """Read an interrupted command to its end, which comes soon and with 130."""
    since = time.monotonic()
    ended = place.end(process, seen=seen)
    assert time.monotonic() - since < MOST_SECONDS
    assert ended.code == 130, ended
    assert "interrupted" in ended.stderr + ended.stdout
    return ended


def test_while_a_folder_is_loaded(place: Place, left: Callable[[], dict[int, str]]) -> None:
    big = place.work / "big"
    big.mkdir()
    (big / "0.txt").write_text("a line of text\n" * 70_000)
    for number in range(1, 600):
        (big / f"{number}.txt").hardlink_to(big / "0.txt")
    for terminal in (True, False):
        with place.start("ask", str(big), QUESTION) as process:
            wait_until_ready(process)
            wait_until(lambda: bool(scratch_of(place)))
            press(process, terminal=terminal)
            ended = interrupted(place, process)
        assert (ended.stdout, ended.stderr) == ("", "interrupted\n")
    assert place.traces() == []
    assert left() == {}


def test_before_there_is_an_answer_json_is_an_error_object(place: Place) -> None:
    with place.start("ask", "-", QUESTION, "--json", stdin=subprocess.PIPE) as process:
        wait_until_ready(process)
        time.sleep(0.3)
        press(process)
        ended = interrupted(place, process)
    assert ended.error["kind"] == "interrupted"


def test_while_the_index_is_built(
    place: Place, repo: Path, left: Callable[[], dict[int, str]]
) -> None:
    words = random.Random(1)
    text = "\n".join(
        " ".join(f"w{words.randrange(99_999)}" for _ in range(9)) for _ in range(9_999)
    )
    for number in range(30):
        (repo / f"{number}.txt").write_text(text)
    model = scripted(place, SO_FAR + "\n" + block("hits = search('backoff')"))
    with place.start("ask", str(repo), QUESTION, *model, "-v") as process:
        seen = wait_for(process, "block 2")
        time.sleep(0.5)
        press(process)
        ended = interrupted(place, process, seen=seen)
    assert "so far" in ended.stdout
    (trace,) = place.traces()
    assert last_answer(trace).stop_reason == "interrupted"
    assert left() == {}


def test_while_the_sandbox_is_tested(
    place: Place, repo: Path, left: Callable[[], dict[int, str]]
) -> None:
    slow = place.work / "bin"
    slow.mkdir()
    started = place.root / "started"
    (slow / "bwrap").write_text(f"#!/bin/sh\ntouch {started}\nsleep 60\n")
    (slow / "bwrap").chmod(0o755)
    path = f"{slow}:{place.environment['PATH']}"
    with place.start("ask", str(repo), QUESTION, PATH=path) as process:
        wait_until_ready(process)
        while not started.exists():
            time.sleep(0.01)
        press(process)
        ended = interrupted(place, process)
    assert (ended.stdout, ended.stderr) == ("", "interrupted\n")
    assert place.traces() == []
    assert left() == {}


@pytest.mark.parametrize("terminal", [True, False])
def test_while_a_provider_is_slow(
    place: Place,
    repo: Path,
    openai_server: OpenAiChatServer,
    left: Callable[[], dict[int, str]],
    terminal: bool,
) -> None:
    openai_server.script = [reply(SO_FAR), reply("too late", delay_seconds=60)]
    model = ("--model", "q", "--api-base", openai_server.api_base)
    with place.start("ask", str(repo), QUESTION, *model, "--json") as process:
        while len(openai_server.received) < 2:
            time.sleep(0.01)
        press(process, terminal=terminal)
        ended = interrupted(place, process)
    shown = json.loads(ended.stdout)
    assert shown["answer"] == "so far"
    assert shown["stop_reason"] == "interrupted"
    assert shown["usage"]["calls"] == 2
    (trace,) = place.traces()
    assert last_answer(trace).text == "so far"
    assert left() == {}


def test_while_notes_are_taken_for_the_first_turn(
    place: Place, repo: Path, openai_server: OpenAiChatServer, left: Callable[[], dict[int, str]]
) -> None:
    (repo / "more.md").write_text("More of it.\n")
    openai_server.script = [reply("A note."), reply("too late", delay_seconds=60)]
    model = ("--model", "q", "--api-base", openai_server.api_base, "--concurrency", "1")
    arguments = ("ask", str(repo), QUESTION, *model, "--strategy", "map-reduce")
    with place.start(*arguments) as process:
        while len(openai_server.received) < 2:
            time.sleep(0.01)
        press(process)
        ended = interrupted(place, process)
    (trace,) = place.traces()
    assert last_answer(trace).iterations == 0
    assert "2 calls" in ended.stderr
    assert f"trace: {trace.path}" in ended.stderr
    assert left() == {}


def test_while_litellm_is_imported(
    place: Place, repo: Path, left: Callable[[], dict[int, str]]
) -> None:
    model = ("--model", "anthropic/claude-sonnet-4-5", "--api-base", "http://127.0.0.1:9")
    with place.start("ask", str(repo), QUESTION, *model, "-v") as process:
        seen = wait_for(process, "turn 1")
        time.sleep(0.5)
        press(process)
        interrupted(place, process, seen=seen)
    (trace,) = place.traces()
    assert last_answer(trace).stop_reason == "interrupted"
    assert left() == {}


SWALLOWING = """
while True:
    try:
        while True: pass
    except BaseException:
        pass
"""


@pytest.mark.parametrize("code", ["import time; time.sleep(99)", SWALLOWING])
def test_while_a_block_hangs(
    place: Place, repo: Path, left: Callable[[], dict[int, str]], code: str
) -> None:
    model = scripted(place, SO_FAR, block(code))
    with place.start("ask", str(repo), QUESTION, *model, "-v") as process:
        seen = wait_for(process, "block 2")
        press(process)
        ended = interrupted(place, process, seen=seen)
    assert "so far" in ended.stdout
    assert "the answer is partial" in ended.stderr
    (trace,) = place.traces()
    answer = last_answer(trace)
    assert (answer.text, answer.stop_reason) == ("so far", "interrupted")
    assert left() == {}


def test_while_a_batch_of_sub_calls_is_out(
    place: Place,
    repo: Path,
    openai_server: OpenAiChatServer,
    left: Callable[[], dict[int, str]],
) -> None:
    def script(request: Received) -> Step:
        if request.prompt.startswith("item"):
            return reply("late", delay_seconds=60)
        batch = "rs = llm_query_batched([f'item {i}' for i in range(40)])"
        return reply(SO_FAR + "\n" + block(batch))

    openai_server.script = script
    model = ("--model", "q", "--api-base", openai_server.api_base)
    with place.start("ask", str(repo), QUESTION, *model) as process:
        while openai_server.most_in_flight < 16:
            time.sleep(0.01)
        press(process)
        ended = interrupted(place, process)
    assert ended.stdout.startswith("so far")
    (trace,) = place.traces()
    assert last_answer(trace).stop_reason == "interrupted"
    assert left() == {}


def test_while_nobody_reads_the_answer(
    place: Place, repo: Path, left: Callable[[], dict[int, str]]
) -> None:
    model = scripted(place, block("answer['content'] = 'long ' * 400_000; answer['ready'] = True"))
    with place.start("ask", str(repo), QUESTION, *model) as process:
        assert process.stdout is not None
        assert process.stdout.read(4) == "long"
        press(process)
        since = time.monotonic()
        assert process.wait(MOST_SECONDS) == 130
        assert time.monotonic() - since < MOST_SECONDS
        ended = place.end(process)
    assert ended.stderr.endswith("interrupted\n")
    (trace,) = place.traces()
    assert last_answer(trace).stop_reason == "answered"
    assert left() == {}


@pytest.mark.parametrize("pause_seconds", [0.0, 0.05])
def test_pressed_again_at_once_is_pressed_once(
    place: Place, repo: Path, left: Callable[[], dict[int, str]], pause_seconds: float
) -> None:
    model = scripted(place, SO_FAR, block("while True: pass"))
    with place.start("ask", str(repo), QUESTION, *model, "-v") as process:
        seen = wait_for(process, "block 2")
        for _ in range(3):
            press(process)
            time.sleep(pause_seconds)
        ended = interrupted(place, process, seen=seen)
    assert "so far" in ended.stdout
    (trace,) = place.traces()
    assert last_answer(trace).text == "so far"
    assert left() == {}


def test_pressed_again_later_ends_at_once(
    place: Place, repo: Path, left: Callable[[], dict[int, str]]
) -> None:
    model = scripted(place, SO_FAR, block(SWALLOWING))
    with place.start("ask", str(repo), QUESTION, *model, "-v") as process:
        wait_for(process, "block 2")
        press(process)
        # A block that swallows interrupts is given two seconds.
        time.sleep(1.2)
        press(process)
        assert process.wait(1) == 130
        place.end(process)
    assert left() == {}


@pytest.fixture
def heeds_hangups() -> Iterator[None]:
    """Have what is started here end by SIGHUP, also where the tests run under `nohup`."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("heeds_hangups")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_asked_to_end_by_another_signal(
    place: Place, repo: Path, left: Callable[[], dict[int, str]], number: int, code: int
) -> None:
    model = scripted(place, SO_FAR, block("while True: pass"))
    with place.start("ask", str(repo), QUESTION, *model, "-v") as process:
        seen = wait_for(process, "block 2")
        process.send_signal(number)
        ended = place.end(process, seen=seen)
    assert ended.code == code
    assert "so far" in ended.stdout
    (trace,) = place.traces()
    assert last_answer(trace).stop_reason == "interrupted"
    assert left() == {}


def test_what_ignores_interrupts_goes_on(place: Place, repo: Path) -> None:
    prefix = ("bash", "-c", "trap '' INT HUP; exec \"$@\"", "bash")
    with place.start("ask", str(repo), QUESTION, prefix=prefix) as process:
        wait_until_ready(process)
        press(process)
        os.kill(process.pid, signal.SIGHUP)
        ended = place.end(process)
    assert ended.code == 0


def test_killed_outright_it_leaves_no_process_and_a_trace_up_to_there(
    place: Place, repo: Path, left: Callable[[], dict[int, str]]
) -> None:
    model = scripted(place, SO_FAR, block("hits = search('backoff')\nwhile True: pass"))
    with place.start("ask", str(repo), QUESTION, *model, "-v") as process:
        wait_for(process, "search(")
        process.kill()
        process.communicate()
    assert left() == {}
    (trace,) = place.traces()
    assert trace.events[0].type == "run"
    assert [event.type for event in trace.events if event.type == "block"] == ["block"] * 2
    assert scratch_of(place) != []
    # The next run sweeps.
    assert place.run("ask", str(repo), QUESTION).code == 0
    assert scratch_of(place) == []
    shown = place.run("trace", "show", trace.path.stem)
    assert "the run was cut off" in shown.stdout


AT_RANDOM = (SO_FAR + "\n" + block("hits = search('backoff'); rest = grep_context('.')"), SO_FAR)


def interrupt_at_random(place: Place, repo: Path, seeds: range) -> None:
    """Interrupt runs at moments between their start and their end, three at a time."""
    model = scripted(place, *AT_RANDOM * 3, block("while True: pass"))
    places = [Place(_made(place.root / f"user{number}")) for number in range(3)]
    for first in range(seeds.start, seeds.stop, len(places)):
        running = []
        for seed, one in zip(range(first, seeds.stop), places, strict=False):
            process = one.start("ask", str(repo), QUESTION, *model)
            running.append((one, process, random.Random(seed)))
        for one, process, chance in running:
            with process:
                wait_until_ready(process)
                time.sleep(chance.uniform(0, 1.5 / len(running)))
                press(process, terminal=chance.random() < 0.5)
                ended = interrupted(one, process)
            for trace in one.traces():
                assert last_answer(trace).stop_reason == "interrupted", ended
                trace.path.unlink()


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def test_at_random_moments(place: Place, repo: Path, left: Callable[[], dict[int, str]]) -> None:
    interrupt_at_random(place, repo, range(15))
    assert left() == {}


@pytest.mark.deep
def test_at_many_random_moments(
    place: Place, repo: Path, left: Callable[[], dict[int, str]]
) -> None:
    interrupt_at_random(place, repo, range(1000, 1300))
    assert left() == {}


@pytest.mark.deep
def test_killed_at_random_moments_it_leaves_no_process(
    place: Place, repo: Path, left: Callable[[], dict[int, str]]
) -> None:
    model = scripted(place, *AT_RANDOM * 3, block("while True: pass"))
    for seed in range(100):
        with place.start("ask", str(repo), QUESTION, *model) as process:
            time.sleep(random.Random(seed).uniform(0, 1.5))
            process.kill()
            _, stderr = process.communicate()
        assert_clean(stderr)
        assert left() == {}
    for trace in place.traces():
        assert all(event.type != "answer" for event in trace.events)
    assert place.run("search", str(repo), "backoff").code == 0

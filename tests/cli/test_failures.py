"""Whatever cannot be used is told by what, where and what to do, in the real command."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rlm_rag.cli.main import main

from .processes import COMMAND, Ended, Place, assert_clean, fill, small_disk, without_privileges

QUESTION = "How long does backoff wait?"
HUGE_BYTES = 3 << 30
# Python with click and the corpus tools takes 40 MB; a file that was read would show.
MOST_RESIDENT_BYTES = 200 << 20


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
def repo(place: Place) -> Path:
    folder = place.work / "repo"
    folder.mkdir()
    (folder / "retry.py").write_text("def backoff(attempt):\n    return 2**attempt\n")
    return folder


def empty_folder(at: Path) -> None:
    at.mkdir()


def folder_without_text(at: Path) -> None:
    at.mkdir()
    (at / "logo.png").write_bytes(b"\x89PNG\0\0\0")
    (at / "tool").write_bytes(b"\x7fELF\0\1")


def binary_file(at: Path) -> None:
    at.write_bytes(b"\x7fELF\0\1\2\3" * 100)


def huge_file(at: Path) -> None:
    with at.open("wb") as file:
        file.truncate(HUGE_BYTES)


def folder_of_huge(at: Path) -> None:
    at.mkdir()
    huge_file(at / "huge.txt")


def missing(at: Path) -> None:
    (at.parent / f"{at.name}s").mkdir()


@pytest.mark.parametrize(
    ("make", "kind", "said", "advice"),
    [
        (empty_folder, "empty_corpus", "no document in the folder source", "holds text"),
        (folder_without_text, "empty_corpus", "folder source. Skipped: 2 binary", "holds text"),
        (folder_of_huge, "empty_corpus", "Skipped: 1 larger than 64 MiB", "--max-file-bytes"),
        (binary_file, "source", "Cannot load source: binary", "Only text"),
        (huge_file, "source", "Cannot load source: larger than 64 MiB", "--max-file-bytes"),
        (missing, "source", "No such file or folder: 'source'", "Did you mean sources?"),
    ],
)
def test_a_source_that_cannot_be_used_exits_with_two_and_says_why(
    place: Place, make: Callable[[Path], None], kind: str, said: str, advice: str
) -> None:
    make(place.work / "source")
    plain = place.run("ask", "source", QUESTION)
    assert (plain.code, plain.stdout) == (2, "")
    assert said in plain.stderr
    assert advice in plain.stderr
    coded = place.run("search", "source", QUESTION, "--json")
    assert coded.code == 2
    assert coded.error["kind"] == kind
    assert said in coded.error["message"]
    assert advice in coded.error["hint"]


def test_a_missing_path_with_nothing_like_it_says_how_to_ask_of_a_text(place: Place) -> None:
    ended = place.run("ask", "nothing-like-it", QUESTION)
    assert ended.code == 2
    assert "pipe it in" in ended.stderr


# A process of its own starts the command: what a fork copies of its parent counts as its peak.
MEASURED = """
import pathlib, resource, subprocess, sys
code = subprocess.run(sys.argv[2:]).returncode
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
pathlib.Path(sys.argv[1]).write_text(str(peak))
sys.exit(code)
"""


@pytest.mark.parametrize("alone", [True, False])
def test_three_gigabytes_are_left_out_without_being_read(
    place: Place, repo: Path, alone: bool
) -> None:
    huge = repo / "huge.log"
    huge_file(huge)
    peak = place.root / "peak"
    measured = (sys.executable, "-c", MEASURED, str(peak))
    ended = place.run("ask", str(huge if alone else repo), QUESTION, prefix=measured)
    assert int(peak.read_text()) < MOST_RESIDENT_BYTES
    if alone:
        assert ended.code == 2
        assert "larger than 64 MiB" in ended.stderr
    else:
        assert ended.code == 0
        assert "retry.py:1" in ended.stdout
        assert "huge.log: larger than 64 MiB" in ended.stderr


def test_what_may_not_be_read_is_told(place: Place, repo: Path) -> None:
    secret = repo / "plan.txt"
    secret.write_text("the plan\n")
    secret.chmod(0)
    prefix = without_privileges()
    alone = place.run("ask", str(secret), QUESTION, prefix=prefix)
    assert (alone.code, alone.stdout) == (2, "")
    assert "plan.txt: not readable: Permission denied" in alone.stderr
    within = place.run("ask", str(repo), QUESTION, prefix=prefix)
    assert within.code == 0
    assert "plan.txt: not readable: Permission denied" in within.stderr
    repo.chmod(0)
    folder = place.run("ask", str(repo), QUESTION, "--json", prefix=prefix)
    assert folder.code == 2
    assert "Permission denied" in folder.error["message"]
    repo.chmod(0o700)


@pytest.mark.parametrize(
    ("arguments", "kind", "said"),
    [
        (("repo", "   "), "usage", "the question is empty"),
        (("repo", "x", "--model", "nope/none"), "model_not_found", "'nope/none'"),
        (("repo", "x", "--model", "gpt-5-mimi"), "model_not_found", "'gpt-5-mimi'"),
        (("repo", "x", "--model", "groq/llama"), "model_key", "GROQ_API_KEY is not set"),
        (("repo", "x", "--model", "q", "--api-base", "ftp://x"), "settings", "--api-base"),
    ],
)
def test_a_question_that_cannot_be_asked_is_told_before_anything_is_read(
    place: Place, repo: Path, arguments: tuple[str, ...], kind: str, said: str
) -> None:
    ended = place.run("ask", *arguments, "--json")
    assert ended.code == 2
    assert ended.error["kind"] == kind
    assert said in ended.error["message"]
    assert ended.error["hint"] or "such as" in ended.error["message"]
    assert place.traces() == []


def test_no_network_is_told_with_the_address_and_what_to_check(place: Place, repo: Path) -> None:
    def ask(address: str) -> Ended:
        options = ("--model", "q", "--api-base", address, "--json")
        return place.run("ask", str(repo), QUESTION, *options)

    addresses = ("http://127.0.0.1:9/v1", "http://no-such-host.invalid/v1")
    with ThreadPoolExecutor(2) as pool, pytest.MonkeyPatch.context() as patch:
        # Both at once, each with its own temporary folder looked at by the other.
        patch.setattr(Place, "end", _end_without_looking)
        ended = list(pool.map(ask, addresses))
    for one, address in zip(ended, addresses, strict=True):
        assert one.code == 2
        assert one.error["kind"] == "model_unreachable"
        assert address in one.error["message"]
        assert "--api-base" in one.error["hint"]
    for trace in place.traces():
        assert trace.events[-1].type == "answer"


def _end_without_looking(
    place: Place, process: subprocess.Popen[str], *, timeout_seconds: float
) -> Ended:
    stdout, stderr = process.communicate(timeout=timeout_seconds)
    assert_clean(stdout + stderr)
    return Ended(process.returncode, stdout, stderr)


def test_a_full_temporary_folder_is_told_and_nothing_is_left_in_it(place: Place) -> None:
    (place.work / "long.txt").write_text("a line of text\n" * 40_000)
    with small_disk(place.temporary, 64):
        ended = place.run("ask", "long.txt", QUESTION, "--no-keep")
        assert ended.code == 2
        assert str(place.temporary) in ended.stderr
        assert "No space left on device" in ended.stderr
        assert "TMPDIR" in ended.stderr
        coded = place.run("grep", "long.txt", "x", "--no-keep", "--json")
        assert coded.error["kind"] == "packed_corpus"


@pytest.mark.parametrize("kibibytes", [108, 112])
def test_a_temporary_folder_that_just_holds_the_corpus_is_enough_or_named(
    place: Place, kibibytes: int
) -> None:
    (place.work / "long.txt").write_text("a line of text\n" * 6_800)
    with small_disk(place.temporary, kibibytes):
        ended = place.run("ask", "long.txt", "a line of text", "--no-keep")
    if ended.code != 0:
        assert ended.code == 2
        assert str(place.temporary) in ended.stderr
        assert "No space left on device" in ended.stderr
        assert "TMPDIR" in ended.stderr
        assert "bubblewrap" not in ended.stderr


@pytest.mark.parametrize("left_bytes", [0, 4096])
def test_a_full_state_folder_costs_the_trace_and_not_the_answer(
    place: Place, repo: Path, left_bytes: int
) -> None:
    with small_disk(place.state, 64):
        fill(place.state, but_bytes=left_bytes)
        ended = place.run("ask", str(repo), QUESTION, "--json")
        assert ended.code == 0
        assert "the trace is not complete" in ended.stderr
        assert "No space left on device" in ended.stderr
        assert "XDG_STATE_HOME" in ended.stderr
        named = json.loads(ended.stdout)["trace"]
        if left_bytes:
            (trace,) = place.traces()
            assert trace.path == Path(named)
            assert trace.events[0].type == "run"
            assert not trace.torn
        else:
            assert named is None
            assert place.traces() == []


@pytest.mark.skipif(sys.platform == "win32", reason="a folder in use cannot be removed there")
@pytest.mark.parametrize("arguments", ["map REPO Which? -o out.jsonl", "eval run ruler:niah -n 1"])
def test_a_working_folder_that_is_gone_is_told_from_a_fault(
    repo: Path,
    arguments: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert main(arguments.replace("REPO", str(repo)).split()) == 2
    told = capsys.readouterr().err
    assert "The working folder is gone" in told
    assert "unexpected" not in told


def test_settings_of_another_user_are_left_alone_with_a_warning(place: Place, repo: Path) -> None:
    file = place.home / ".config" / "rlm-rag" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text('model = "nope/none"\n')
    place.home.chmod(0)
    prefix = without_privileges()
    asked = place.run("ask", str(repo), QUESTION, prefix=prefix)
    searched = place.run("search", str(repo), "backoff", prefix=prefix)
    examined = place.run("doctor", prefix=prefix)
    listed = place.run("index", prefix=prefix)
    place.home.chmod(0o700)
    assert asked.code == 0, asked.stderr
    assert "retry.py:1" in asked.stdout
    assert f"the settings file {file} is ignored: Permission denied" in asked.stderr
    assert searched.code == 0, searched.stderr
    assert f"{file} is ignored" in examined.stdout
    assert listed.code == 2
    assert "the folder of indexes" in listed.stderr


def test_settings_that_may_not_be_read_are_told(place: Place, repo: Path) -> None:
    file = place.home / ".config" / "rlm-rag" / "config.toml"
    file.parent.mkdir(parents=True)
    file.touch(mode=0)
    ended = place.run("ask", str(repo), QUESTION, "--json", prefix=without_privileges())
    assert ended.code == 2
    assert ended.error["kind"] == "settings"
    assert str(file) in ended.error["message"]


def test_a_state_folder_that_cannot_be_written_costs_the_trace_alone(
    place: Place, repo: Path
) -> None:
    place.state.chmod(0o500)
    ended = place.run("ask", str(repo), QUESTION, prefix=without_privileges())
    place.state.chmod(0o700)
    assert ended.code == 0
    assert "retry.py:1" in ended.stdout
    assert "cannot be written: Permission denied" in ended.stderr
    assert "trace: " not in ended.stderr


def test_without_a_home_the_state_folder_of_the_account_is_used_or_its_lack_told(
    place: Place, repo: Path
) -> None:
    homeless = ["unshare", "--user", "--map-user=54321", "--map-group=54321"]
    if subprocess.run([*homeless, "true"], capture_output=True).returncode != 0:
        pytest.skip("a user without an account cannot be made here")
    without = ("HOME", "XDG_STATE_HOME")
    ended = place.run("ask", str(repo), QUESTION, prefix=homeless, without=without)
    assert ended.code == 0, ended.stderr
    assert "retry.py:1" in ended.stdout
    assert "no home folder" in ended.stderr
    assert "XDG_STATE_HOME" in ended.stderr
    listed = place.run("trace", "list", prefix=homeless, without=without)
    assert listed.code == 2
    assert "no home folder" in listed.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("ask", "repo", QUESTION),
        ("ask", "repo", QUESTION, "--json"),
        ("grep", "repo", "backoff", "--json"),
        ("pack", "repo"),
        ("ask", "no-such-folder", QUESTION, "--json"),
    ],
)
def test_a_full_disk_behind_standard_output_is_told_on_standard_error(
    place: Place, repo: Path, arguments: tuple[str, ...]
) -> None:
    with Path("/dev/full").open("w") as full:
        ended = place.run(*arguments, stdout=full)
    assert ended.code == (2 if "no-such-folder" in arguments else 1)
    said = "No such file" if "no-such-folder" in arguments else "cannot write to standard output"
    assert said in ended.stderr
    assert "Errno" not in ended.stderr
    assert "TMPDIR" not in ended.stderr


def test_a_full_disk_leaves_a_packed_file_that_was_there_as_it_was(
    place: Place, repo: Path
) -> None:
    (repo / "long.txt").write_text("a line of text\n" * 20_000)
    with small_disk(place.root / "disk", 64) as disk:
        (disk / "corpus.jsonl").write_text("older\n")
        ended = place.run("pack", str(repo), "-o", str(disk / "corpus.jsonl"))
        assert ended.code == 2
        assert "No space left on device" in ended.stderr
        assert [path.name for path in disk.iterdir()] == ["corpus.jsonl"]
        assert (disk / "corpus.jsonl").read_text() == "older\n"


@pytest.mark.parametrize("command", ["grep repo backoff --json", "pack repo"])
def test_a_reader_that_leaves_early_ends_the_command_quietly(
    place: Place, repo: Path, command: str
) -> None:
    (repo / "long.txt").write_text("backoff and more of it\n" * 20_000)
    shell = f"{' '.join(COMMAND)} {command} --max-file-bytes 10000000 | head -1; echo $PIPESTATUS"
    done = subprocess.run(
        ["bash", "-c", shell],
        cwd=place.work,
        env=place.environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.splitlines()[-1] == "0"
    assert_clean(done.stderr)
    assert "rlm-rag: " not in done.stderr


@pytest.mark.parametrize("closed", [">&-", ">&- 2>&- <&-"])
def test_closed_streams_do_no_harm(place: Place, repo: Path, closed: str) -> None:
    shell = f"{' '.join(COMMAND)} ask repo '{QUESTION}' {closed}"
    done = subprocess.run(
        ["bash", "-c", shell],
        cwd=place.work,
        env=place.environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0
    assert_clean(done.stdout + done.stderr)
    assert list(place.temporary.iterdir()) == []
    (trace,) = place.traces()
    assert trace.events[-1].type == "answer"


def test_a_long_path_to_the_temporary_folder_changes_nothing(place: Place, repo: Path) -> None:
    deep = place.temporary / ("a-long-name-" * 8)
    deep.mkdir()
    process = place.start("ask", str(repo), QUESTION, TMPDIR=str(deep))
    with process:
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == 0, stderr
    assert list(deep.iterdir()) == []

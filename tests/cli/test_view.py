"""`trace view` writes one file, opens it where there is a display, and says where it is."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from rlm_rag.cli.offering import take_offering
from rlm_rag.cli.view import view
from rlm_rag.errors import RlmRagError, UsageError
from tests.trace.view.made import EVERY, recorded

from .conftest import Run
from .test_ask import ready, script

QUOTE = '`src/retry.py:6`: "return 2**attempt + random.random()"'


def index_of(page: Path) -> dict[str, object]:
    text = page.read_text("utf-8")
    start = text.index('id="index">') + len('id="index">')
    found = json.loads(text[start : text.index("</script>", start)])
    assert isinstance(found, dict)
    return found


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return recorded(tmp_path / "t.jsonl", EVERY).path


def test_the_last_run_is_written_beside_its_trace_and_goes_with_it(
    rlm_rag: Run, repo: Path, tmp_path: Path
) -> None:
    model = script(tmp_path, ready(f"It doubles, {QUOTE}."))
    asked = rlm_rag("ask", str(repo), "How does the wait grow?", "--model", model, "--json")
    trace = Path(json.loads(asked.stdout)["trace"])
    done = rlm_rag("trace", "view", "--no-open")
    page = trace.with_suffix(".html")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{page}\n", "")
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    index = index_of(page)
    assert index["question"] == "How does the wait grow?"
    [citation] = index["citations"]  # type: ignore[misc]
    assert ["return 2**attempt + random.random()", True] in citation["lines"][-1][2]
    assert {row[0] for row in index["coverage"]["documents"]} == {  # type: ignore[index]
        "README.md", "src/client.py", "src/retry.py",
    }  # fmt: skip
    assert rlm_rag("trace", "clear", "--yes").returncode == 0
    assert not page.exists()


def test_it_opens_in_the_browser_that_is_named_and_in_none_without_a_display(
    process: Run, trace: Path, tmp_path: Path
) -> None:
    browser, opened = tmp_path / "browser", tmp_path / "opened"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}\n')
    browser.chmod(0o755)
    page = tmp_path / "a page.html"
    done = process(
        "trace", "view", str(trace), "-o", str(page), "--json", env={"BROWSER": f"{browser} %s"}
    )
    told = json.loads(done.stdout)
    assert (told["path"], told["opened"]) == (str(page), True)
    assert told["bytes"] == page.stat().st_size
    assert opened.read_text().strip() == page.as_uri()
    opened.unlink()
    # One of the terminal, which would take it over.
    (tmp_path / "bin").mkdir()
    browser.rename(tmp_path / "bin" / "www-browser")
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    done = process(
        "trace", "view", str(trace), "-o", str(page), env={"PATH": path, "TERM": "xterm"}
    )
    assert not opened.exists()
    assert done.stdout == f"{page}\n"
    assert "no browser was opened" in done.stderr


def test_what_cannot_be_written_is_said_and_the_trace_stays(trace: Path, tmp_path: Path) -> None:
    before = trace.read_bytes()
    notes, page = tmp_path / "notes.md", tmp_path / "page.html"
    notes.write_text("# Notes\n")
    page.write_text("<!doctype html>\n<html><title>Another's</title></html>\n")
    for target, said in (
        (trace, "is the trace itself"),
        (tmp_path, "is a folder"),
        (Path("-"), "not to -"),
        (notes, "would be replaced"),
        (page, "would be replaced"),
        (tmp_path / "no" / "page.html", "cannot be written"),
    ):
        with pytest.raises(RlmRagError, match=said):
            view.callback(run=str(trace), output=target, no_open=True, as_json=False)
    assert trace.read_bytes() == before
    assert notes.read_text() == "# Notes\n"


@pytest.mark.skipif(os.name != "posix", reason="a working folder cannot be deleted")
def test_a_working_folder_that_is_gone_is_said(
    trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(UsageError, match="working folder is gone"):
        view.callback(run=str(trace), output=Path("x.html"), no_open=True, as_json=False)
    with pytest.raises(UsageError, match="working folder is gone"):
        take_offering({"artifacts": Path("out"), "library": ()})
    page = tmp_path / "x.html"
    assert view.callback(run=str(trace), output=page, no_open=True, as_json=False) == 0


def test_of_a_torn_trace_the_rest_is_shown_with_where_it_is_torn(rlm_rag: Run, trace: Path) -> None:
    lines = trace.read_bytes().splitlines(keepends=True)
    trace.write_bytes(b"".join(lines[:3]) + lines[3][:9])
    shown = rlm_rag("trace", "show", str(trace))
    assert shown.returncode == 1
    assert shown.stdout.splitlines()[-1].startswith("The trace is torn at line 4")
    as_json = rlm_rag("trace", "show", str(trace), "--json")
    told = json.loads(as_json.stdout)
    assert (as_json.returncode, len(told["events"]), told["torn"]) == (1, 3, True)
    viewed = rlm_rag("trace", "view", str(trace), "--no-open")
    assert viewed.returncode == 1
    assert "torn at line 4" in viewed.stderr
    assert index_of(trace.with_suffix(".html"))["torn"] is True


def test_a_page_that_was_written_before_is_replaced(trace: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.touch()
    assert view.callback is not None
    for _ in range(2):
        assert view.callback(run=str(trace), output=page, no_open=True, as_json=False) == 0
        assert index_of(page)


@pytest.mark.parametrize("name", [" ", "\t", "\u2003\n"])
def test_a_blank_name_is_no_file(rlm_rag: Run, trace: Path, tmp_path: Path, name: str) -> None:
    for command in (
        ("trace", "view", str(trace), "--no-open"),
        ("pack", str(tmp_path)),
        ("map", str(tmp_path), "What is it?"),
    ):
        done = rlm_rag(*command, "-o", name)
        assert done.returncode == 2
        assert "the name is blank" in done.stderr


def test_an_empty_name_is_no_folder(rlm_rag: Run, trace: Path) -> None:
    done = rlm_rag("trace", "view", str(trace), "-o", "", "--no-open")
    assert done.returncode == 2
    assert "the name is empty" in done.stderr

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from rlm_rag.cli.main import main
from rlm_rag.cli.retrieval import _grep_lines
from rlm_rag.indexes.requests import GrepHit

from .conftest import Run


def test_search_prints_places_with_their_best_lines(process: Run, repo: Path) -> None:
    done = process("search", str(repo), "seconds to wait before the next try")
    assert done.returncode == 0
    assert done.stdout.startswith("src/retry.py:1-6")
    assert "Seconds to wait" in done.stdout


def test_a_line_of_search_ends_where_the_documents_line_does(rlm_rag: Run, tmp_path: Path) -> None:
    folder = tmp_path / "odd"
    folder.mkdir()
    (folder / "a.txt").write_text("quokka a\u2028b\u0085c\x0cd\nsecond quokkaline\n", "utf-8")
    first, *lines = rlm_rag("search", str(folder), "quokkaline").stdout.rstrip("\n").split("\n")
    assert first.startswith("a.txt:1-2")
    assert lines == ["  1: quokka a\u2028b\u0085c\x0cd", "  2: second quokkaline"]


def test_search_as_json_is_what_the_repl_gets(rlm_rag: Run, repo: Path) -> None:
    done = rlm_rag("search", str(repo), "backoff", "--json", "-k", "1")
    (hit,) = json.loads(done.stdout)
    assert set(hit) == {"path", "line", "end_line", "score", "snippet"}


def test_search_finds_in_standard_input(process: Run) -> None:
    done = process("search", "-", "needle", stdin="hay\nneedle here\nhay\n")
    assert done.returncode == 0
    assert "needle here" in done.stdout


def test_grep_prints_path_line_and_text(process: Run, repo: Path) -> None:
    done = process("grep", str(repo), r"def \w+")
    assert done.returncode == 0
    assert set(done.stdout.splitlines()) == {
        "src/retry.py:4:def backoff(attempt):",
        "src/client.py:5:    def send(self):",
    }


def test_grep_obeys_its_options(rlm_rag: Run, repo: Path) -> None:
    done = rlm_rag("grep", str(repo), "CLIENT", "-i", "--glob", "*.md", "-A", "2")
    assert done.stdout == "README.md:1:# Client\nREADME.md-2-\nREADME.md-3-Sends things.\n"


def test_grep_as_json_counts_all(rlm_rag: Run, repo: Path) -> None:
    done = rlm_rag("grep", str(repo), "backoff", "-k", "1", "--json")
    shown = json.loads(done.stdout)
    assert shown["schema_version"] == 1
    assert len(shown["hits"]) == 1
    assert shown["total"] == 3
    assert shown["truncated"] is True
    assert "1 of 3 matching lines" in done.stderr


def test_no_match_is_no_failure_and_is_said(rlm_rag: Run, repo: Path) -> None:
    done = rlm_rag("grep", str(repo), "absent_everywhere")
    assert (done.returncode, done.stdout) == (0, "")
    assert "no match" in done.stderr


def test_a_bad_pattern_is_a_usage_error(rlm_rag: Run, repo: Path) -> None:
    done = rlm_rag("grep", str(repo), "a(b")
    assert done.returncode == 2
    assert "bad regular expression 'a(b'" in done.stderr
    assert "position 1" in done.stderr


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("(" * 9_000, "is too large"),
        ("(" * 18_000, "18,000 characters"),
        ("a" * 15_000, "15,000 characters"),
        ("(" * 9_000 + ")" * 900, "is too large"),
    ],
    ids=["nested", "nested-and-long", "long", "unbalanced"],
)
def test_a_pattern_that_is_too_large_is_a_usage_error_and_not_repeated(
    rlm_rag: Run, repo: Path, pattern: str, said: str
) -> None:
    done = rlm_rag("grep", str(repo), pattern)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert len(done.stderr) < 500


def test_outline_of_one_document_and_of_all(rlm_rag: Run, repo: Path) -> None:
    one = rlm_rag("outline", str(repo), "src/client.py")
    assert "class Client" in one.stdout
    assert "README" not in one.stdout
    every = rlm_rag("outline", str(repo))
    assert "src/retry.py (6 lines): backoff\n" in every.stdout
    assert json.loads(rlm_rag("outline", str(repo), "--json").stdout) == every.stdout.rstrip("\n")
    folder = rlm_rag("outline", str(repo), "src/")
    assert "src/client.py" in folder.stdout
    assert "README" not in folder.stdout


def test_outline_of_what_is_not_there_is_an_error(rlm_rag: Run, repo: Path) -> None:
    done = rlm_rag("outline", str(repo), "src/nothing.py")
    assert done.returncode == 2
    assert done.stdout == ""


def test_symbols_finds_definitions_and_uses(rlm_rag: Run, repo: Path) -> None:
    done = rlm_rag("symbols", str(repo), "backoff")
    assert done.stdout == "src/retry.py:4: def backoff(attempt):  [function]\n"
    used = rlm_rag("symbols", str(repo), "backoff", "--references", "--json")
    assert "src/client.py" in {symbol["path"] for symbol in json.loads(used.stdout)}


@pytest.mark.parametrize(
    ("place", "lines"),
    [
        ("src/retry.py:4", [4]),
        ("src/retry.py:4-5", [4, 5]),
        ("src/retry.py:5-", [5, 6]),
        ("src/retry.py", [1, 2, 3, 4, 5, 6]),
    ],
)
def test_read_prints_numbered_lines(rlm_rag: Run, repo: Path, place: str, lines: list[int]) -> None:
    done = rlm_rag("read", str(repo), place)
    assert done.returncode == 0
    assert [int(line.split(":")[0]) for line in done.stdout.splitlines()] == lines


def test_read_takes_a_path_that_looks_like_a_place(rlm_rag: Run, tmp_path: Path) -> None:
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "log:12").write_text("text\n")
    assert "text" in rlm_rag("read", str(tmp_path / "odd"), "log:12").stdout


def test_repo_map_shows_what_others_lean_on(rlm_rag: Run, repo: Path) -> None:
    done = rlm_rag("repo-map", str(repo))
    assert done.returncode == 0
    assert "backoff" in done.stdout


@pytest.mark.parametrize("command", ["search", "grep", "ask"])
def test_one_argument_where_two_are_needed_shows_an_example(rlm_rag: Run, command: str) -> None:
    done = rlm_rag(command, "only")
    assert done.returncode == 2
    assert f"for example: rlm-rag {command} ./repo" in done.stderr


@pytest.mark.skipif(os.name != "posix", reason="shell redirections")
@pytest.mark.parametrize("command", ["search", "read"])
def test_without_a_standard_output_nothing_is_looked_up(
    repo: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    monkeypatch.setattr("sys.stdout", None)
    assert main([command, str(repo), "README.md"]) == 2
    sys.stdout.close()
    assert "standard output is closed" in capsys.readouterr().err


def test_a_missing_source_is_an_error(rlm_rag: Run, tmp_path: Path) -> None:
    done = rlm_rag("search", str(tmp_path / "nowhere"), "x", "--json")
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["kind"] == "source"


def test_include_and_exclude_choose_documents(rlm_rag: Run, repo: Path) -> None:
    done = rlm_rag("grep", str(repo), "Client", "--include", "*.py", "--exclude", "retry.py")
    assert done.stdout == "src/client.py:4:class Client:\n"


def test_lines_around_two_hits_are_shown_once() -> None:
    hits = (
        GrepHit("a", 2, "two", before=((1, "one"),), after=((3, "three"),)),
        GrepHit("a", 3, "three", before=((2, "two"),), after=((4, "four"),)),
        GrepHit("a", 9, "nine", before=((8, "eight"),)),
    )
    assert list(_grep_lines(hits)) == [
        "a-1-one",
        "a:2:two",
        "a:3:three",
        "a-4-four",
        "--",
        "a-8-eight",
        "a:9:nine",
    ]


def test_search_explains_the_place_of_a_file(rlm_rag: Run, repo: Path) -> None:
    done = rlm_rag("search", str(repo), "backoff attempt", "--explain", "client.py")
    assert done.returncode == 0
    assert done.stdout.startswith("src/client.py:1-6")
    assert "place 2 of 2 hits" in done.stdout
    assert "first is src/retry.py:1" in done.stdout
    assert "  attempt: 0, 1, " in done.stdout
    nothing = rlm_rag("search", str(repo), "backoff", "--explain", "README.md")
    assert "no window holds a word of the query" in nothing.stdout


def test_search_explains_why_a_file_is_not_in_the_corpus(rlm_rag: Run, repo: Path) -> None:
    done = rlm_rag("search", str(repo), "backoff", "--explain", "logo.bin")
    assert done.returncode == 2
    assert "logo.bin is not in the corpus: binary" in done.stderr
    unknown = rlm_rag("search", str(repo), "backoff", "--explain", "absent.py")
    assert "no document has the path" in unknown.stderr


@pytest.mark.skipif(os.name != "posix", reason="the platform has no such file names")
def test_a_file_name_cannot_pass_for_a_line(rlm_rag: Run, repo: Path) -> None:
    forged = "a.py:1:def backoff\nsrc/retry.py:7\x1b[2K\t.py"
    (repo / forged).parent.mkdir()
    (repo / forged).write_text("def backoff_forged():\n    return 0\n")
    (repo / "bad\r\nname.bin").write_bytes(b"\0\1\2" * 100)
    shown = r"a.py:1:def backoff\x0asrc/retry.py:7\x1b[2K\x09.py"
    place = f"{shown}:1"
    pattern = "backoff_forged"
    assert rlm_rag("grep", str(repo), pattern).stdout.startswith(f"{place}:def {pattern}")
    assert f"{shown}-2-    return 0\n" in rlm_rag("grep", str(repo), pattern, "-A1").stdout
    assert rlm_rag("search", str(repo), pattern).stdout.startswith(f"{place}-2  ")
    assert rlm_rag("symbols", str(repo), pattern).stdout.startswith(f"{place}: def {pattern}")
    assert f"\n{shown} (2 lines)" in "\n" + rlm_rag("outline", str(repo)).stdout
    assert f"\n{shown}:\n  1: def" in "\n" + rlm_rag("repo-map", str(repo)).stdout
    explained = rlm_rag("search", str(repo), pattern, "--explain", forged).stdout
    assert explained.startswith(f"{place}-2  ")
    explained = rlm_rag("search", str(repo), f"{pattern} Client", "--explain", "README.md").stdout
    assert f"\nfirst is {place}" in explained
    listed = rlm_rag("pack", str(repo), "--list").stdout
    assert f"  {shown}\n" in listed
    assert r"  bad\x0d\x0aname.bin: " in listed
    found = json.loads(rlm_rag("grep", str(repo), pattern, "--json").stdout)
    assert [hit["path"] for hit in found["hits"]] == [forged]
    assert rlm_rag("read", str(repo), f"{shown}:1").stdout == f"1: def {pattern}():\n"

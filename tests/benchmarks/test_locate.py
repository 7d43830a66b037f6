"""The retrieval benchmark on trees of a few files."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import tarfile
from pathlib import Path

import pytest

from benchmarks.locate.__main__ import main
from benchmarks.locate.commits import commit_set
from benchmarks.locate.docstrings import docstring_set
from benchmarks.locate.issues import ROWS, issue_sets
from benchmarks.locate.questions import Question
from benchmarks.locate.rankers import RANKERS, Bm25, Place
from benchmarks.locate.scores import Outcome, by_file, by_window, figures, ratio_error
from benchmarks.locate.snippets import needle_set, shown
from rlm_rag.evals.locate import tar_documents

SOURCE = '''"""Reading."""


def read_header(stream):
    """Read the header block of a stream. Then stop."""
    first = stream.readline()
    rest = stream.readline()
    return first, rest


def undocumented(x):
    return x
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tree = tmp_path / "tree"
    (tree / "tests").mkdir(parents=True)
    (tree / "reading.py").write_text(SOURCE)
    (tree / "tests" / "test_reading.py").write_text(SOURCE.replace("read", "test_read"))
    for number in range(4):
        (tree / f"other{number}.py").write_text(f"value_{number} = {number}\n" * 70)
    return tree


def git(folder: Path, *arguments: str) -> None:
    name = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
    subprocess.run(["git", "-C", str(folder), *name, *arguments], check=True, capture_output=True)


@pytest.fixture
def repository(folder: Path) -> Path:
    git(folder, "init", "-q")
    for number in range(3):
        (folder / f"other{number}.py").write_text(f"value_{number} = 'changed'\n" * number)
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "-m", f"Change the value of {number} (#1{number})")
    return folder


def test_scores_are_those_of_rank_bm25() -> None:
    texts = ["a b c a", "b c d", "e a", "f f g b", "g h"]
    bm25 = Bm25([text.encode().split() for text in texts])
    # rank_bm25.BM25Okapi of version 0.2.2.
    expected = (0.70955955, 0.3167121, 0.39584969, 0.56798638, 0.39584969)
    assert bm25.scores(b"a b g b".split()) == pytest.approx(dict(enumerate(expected)), rel=1e-6)


def test_a_docstring_is_asked_for_and_is_not_in_the_source(folder: Path) -> None:
    asked = docstring_set(folder, group="tree", count=9)
    assert [question.text for question in asked.questions] == ["Read the header block of a stream"]
    question = asked.questions[0]
    text = dict(asked.documents)["reading.py"]
    assert "header block" not in text
    assert question.line is not None
    assert text.split("\n")[question.line - 1] == "def read_header(stream):"
    assert "undocumented" in text


def test_commits_are_asked_of_the_tree_before_all_of_them(repository: Path) -> None:
    asked = commit_set(repository, group="tree", count=2)
    assert [question.text for question in asked.questions] == [
        "Change the value of 2",
        "Change the value of 1",
    ]
    assert [set(question.files) for question in asked.questions] == [{"other2.py"}, {"other1.py"}]
    assert "changed" not in dict(asked.documents)["other1.py"]


def test_every_gold_file_is_in_the_release(tmp_path: Path) -> None:
    with gzip.open(ROWS, "rt", encoding="utf-8") as stream:
        rows = [json.loads(line) for line in stream]
    assert len(rows) == 102
    # Stands for the downloads: a release that holds nothing but the gold files.
    for release in {row["sdist"] for row in rows}:
        name, _, version = release.partition("==")
        with tarfile.open(tmp_path / f"{name}-{version}.tar.gz", "w:gz") as archive:
            for path in {p for row in rows if row["sdist"] == release for p in row["gold"]}:
                archive.addfile(tarfile.TarInfo(f"{name}-{version}/{path}"))
    sets = list(issue_sets(tmp_path))
    assert sum(len(one.questions) for one in sets) == 102
    for one in sets:
        present = {path for path, _ in one.documents}
        assert all(question.files <= present for question in one.questions)


def test_binary_files_of_an_archive_are_left_out() -> None:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, data in (("r/a.py", b"x"), ("r/b.bin", b"\0"), ("r/c.txt", b"\xff")):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    stream.seek(0)
    assert list(tar_documents(stream, strip_folders=1)) == [("a.py", "x")]


def test_ranks_are_of_distinct_files_and_tests_may_not_count() -> None:
    places = [Place("a.py", 1, 40), Place("tests/b.py", 1, 9), Place("a.py", 60, 99)]
    places.append(Place("c.py", 1, 9))
    asked = Question("q", "?", frozenset(("c.py", "a.py")))
    assert by_file(asked, places, tests_count=True) == Outcome("q", 1, True)
    later = Question("q", "?", frozenset(("c.py",)))
    assert by_file(later, places, tests_count=True).rank == 3
    assert by_file(later, places, tests_count=False).rank == 2
    line = Question("q", "?", frozenset(("a.py",)), line=70)
    assert by_window(line, places).rank == 3


def test_figures_of_outcomes() -> None:
    outcomes = [Outcome("a", 1, True), Outcome("b", 4, False), Outcome("c", 0, False)]
    found = figures(outcomes)
    assert (found.hit_1, found.hit_5) == pytest.approx((1 / 3, 2 / 3))
    assert found.mrr == pytest.approx(1.25 / 3)
    assert ratio_error(outcomes, outcomes) == pytest.approx(0, abs=1e-9)


def test_a_needle_is_in_its_line_and_a_snippet_that_shows_it_counts(folder: Path) -> None:
    asked = needle_set(docstring_set(folder, group="tree", count=1), count=3)
    documents = dict(asked.documents)
    places = []
    for question in asked.questions:
        (path,) = question.files
        line = question.line or 0
        assert documents[path].split("\n")[line - 1].startswith(f"# The {question.name[:4]}")
        places.append([Place(path, line, line + 39, f"{line}: The sentence")])
    assert shown(asked, places).by_snippet == 3


def test_a_run_reports_each_kind_and_compares_with_an_earlier_one(
    repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--only", "docstrings", "--only", "commits", "--folder", str(repository)]
    options += ["--git", str(repository), "--questions", "3"]
    saved = tmp_path / "ranks.json"
    assert main([*options, "--ranker", "rlm-rag", "--save", str(saved)]) == 0
    assert json.loads(saved.read_text())["docstrings, by window"]["tree"]
    capsys.readouterr()
    assert main([*options, "--compare", str(saved)]) == 0
    report = capsys.readouterr().out
    for name in (*RANKERS, "earlier run"):
        assert f"| {name} |" in report
    assert "## commits: 2 questions" in report
    earlier = next(line for line in report.split("\n") if line.startswith("| earlier run |"))
    assert "1.00 (0.00)" in earlier


def test_what_is_no_repository_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", "commits", "--git", str(tmp_path)]) == 2
    assert "error:" in capsys.readouterr().err

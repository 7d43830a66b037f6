from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from rlm_rag.cli.main import main

from .conftest import Run


def test_pack_writes_one_object_a_document(rlm_rag: Run, repo: Path) -> None:
    done = rlm_rag("pack", str(repo))
    assert done.returncode == 0
    entries = [json.loads(line) for line in done.stdout.splitlines()]
    assert [entry["path"] for entry in entries] == ["README.md", "src/client.py", "src/retry.py"]
    assert entries[2]["content"] == (repo / "src" / "retry.py").read_text()


def test_a_packed_corpus_loads_back_the_same(rlm_rag: Run, repo: Path, tmp_path: Path) -> None:
    (repo / "odd.txt").write_bytes("a\r\nb\u2028c\x00\n".encode())
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    assert rlm_rag("pack", str(repo), "-o", str(first)).returncode == 0
    assert rlm_rag("pack", str(first), "-o", str(second)).returncode == 0
    assert first.read_bytes() == second.read_bytes()
    assert first.read_bytes().isascii()


def test_list_shows_what_is_in_and_what_was_left_out(rlm_rag: Run, repo: Path) -> None:
    done = rlm_rag("pack", str(repo), "--list")
    assert done.returncode == 0
    assert "src/retry.py" in done.stdout
    assert "logo.bin: " in done.stdout.partition("skipped:")[2]
    shown = json.loads(rlm_rag("pack", str(repo), "--list", "--json").stdout)
    by_path = {document["path"]: document for document in shown["documents"]}
    assert by_path["src/retry.py"] == {
        "path": "src/retry.py",
        "lines": 6,
        "bytes": (repo / "src" / "retry.py").stat().st_size,
        "encoding": "utf-8",
        "trait": None,
    }
    assert [entry["path"] for entry in shown["skipped"]] == ["logo.bin"]


def test_list_says_what_is_unusual_of_a_document(rlm_rag: Run, repo: Path) -> None:
    (repo / "uv.lock").write_text("version = 1\n")
    (repo / "old.txt").write_bytes("Привет, мир\n".encode("koi8-r") * 9)
    done = rlm_rag("pack", str(repo), "--list")
    assert "  uv.lock  (lock file)\n" in done.stdout
    assert "  old.txt  (koi8-r)\n" in done.stdout
    assert "old.txt: not UTF-8; read as koi8-r" in done.stdout


def test_markdown_and_xml_are_for_a_chat(rlm_rag: Run, repo: Path, tmp_path: Path) -> None:
    markdown = rlm_rag("pack", str(repo), "--format", "markdown").stdout
    assert markdown.startswith("# 3 documents, ")
    assert "\nREADME.md\nsrc/\n  client.py\n  retry.py\n" in markdown
    assert "\n## src/retry.py\n\n```py\n" in markdown
    file = tmp_path / "out.xml"
    done = rlm_rag("pack", str(repo), "--format", "xml", "-o", str(file))
    assert f"{file.stat().st_size:,} bytes" in done.stderr
    assert file.read_text("utf-8").startswith('<documents summary="3 documents, ')


@pytest.mark.parametrize("layout", ["markdown", "xml"])
def test_what_is_for_a_chat_begins_with_its_tokens_and_its_tree(
    rlm_rag: Run, repo: Path, layout: str
) -> None:
    head = rlm_rag("pack", str(repo), "--format", layout).stdout[:300]
    found = re.search(r"3 documents, \d+ lines, (\d+) bytes, about (\d+) tokens", head)
    assert found is not None
    assert int(found[1]) / 6 < int(found[2]) < int(found[1]) / 2
    assert "README.md\nsrc/\n  client.py\n  retry.py" in head


def test_a_summary_as_json_goes_with_a_file(rlm_rag: Run, repo: Path, tmp_path: Path) -> None:
    file = tmp_path / "out.jsonl"
    shown = json.loads(rlm_rag("pack", str(repo), "-o", str(file), "--json").stdout)
    assert shown["documents"] == 3
    assert shown["bytes"] == file.stat().st_size


def test_a_file_that_cannot_be_written_leaves_nothing(
    rlm_rag: Run, repo: Path, tmp_path: Path
) -> None:
    done = rlm_rag("pack", str(repo), "-o", str(tmp_path / "nowhere" / "out.jsonl"))
    assert done.returncode == 2
    assert "cannot write" in done.stderr


def test_an_older_file_is_replaced_whole(rlm_rag: Run, repo: Path, tmp_path: Path) -> None:
    file = tmp_path / "out.jsonl"
    file.write_text("older")
    assert rlm_rag("pack", str(repo), "-o", str(file)).returncode == 0
    assert len(file.read_text().splitlines()) == 3
    assert [path.name for path in tmp_path.glob("out*")] == ["out.jsonl"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_device_is_written_to_and_not_replaced(rlm_rag: Run, repo: Path) -> None:
    done = rlm_rag("pack", str(repo), "-o", "/dev/full")
    assert done.returncode == 2
    assert "No space left" in done.stderr
    assert not Path("/dev/full").is_file()
    assert rlm_rag("pack", str(repo), "-o", os.devnull).returncode == 0


@pytest.mark.parametrize("arguments", [[], [".", "--json"], [".", "--list", "-o", "x"]])
def test_options_that_make_no_sense_together_are_refused(
    rlm_rag: Run, arguments: list[str]
) -> None:
    assert rlm_rag("pack", *arguments).returncode == 2


def test_an_empty_folder_is_unusable(rlm_rag: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = rlm_rag("pack", str(tmp_path / "empty"))
    assert (done.returncode, done.stdout) == (2, "")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the platform has no FIFOs")
def test_what_went_into_a_fifo_is_counted(rlm_rag: Run, repo: Path, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with subprocess.Popen(["cat", str(fifo)], stdout=subprocess.PIPE) as reader:
        done = rlm_rag("pack", str(repo), "-o", str(fifo))
        taken, _ = reader.communicate(timeout=20)
    assert len(taken.splitlines()) == 3
    assert f"3 documents, {len(taken):,} bytes in {fifo}" in done.stderr


@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="needs /dev/stdout")
def test_what_went_to_the_device_of_standard_output_is_counted(process: Run, repo: Path) -> None:
    done = process("pack", str(repo), "-o", "/dev/stdout")
    assert f"{len(done.stdout):,} bytes in /dev/stdout" in done.stderr


def test_a_source_is_not_written_over(rlm_rag: Run, tmp_path: Path) -> None:
    source = tmp_path / "notes.txt"
    source.write_text("kept\n")
    (tmp_path / "link.txt").symlink_to(source)
    for output in (source, tmp_path / "link.txt"):
        done = rlm_rag("pack", str(source), "-o", str(output))
        assert done.returncode == 2
        assert "is the source itself" in done.stderr
    assert source.read_text() == "kept\n"


@pytest.mark.parametrize(
    "sources",
    [["REPO"], ["REPO", "other"], ["mine=REPO", "other"], ["REPO/src/*.py"], ["REPO/src"]],
    ids=["folder", "one of several", "named", "glob", "folder within"],
)
def test_a_document_of_the_source_is_not_replaced(
    repo: Path,
    tmp_path: Path,
    sources: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("other").mkdir()
    Path("other/retry.py").write_text("def other(): pass\n")
    named = [source.replace("REPO", str(repo)) for source in sources]
    document = repo / "src" / "retry.py"
    before = document.read_bytes()
    assert main(["pack", *named, "-o", str(document)]) == 2
    assert "is a document of the source, and would be replaced" in capsys.readouterr().err
    assert document.read_bytes() == before
    # One of the same name elsewhere is none, nor is a file that is not there yet.
    Path("retry.py").write_text("replaced\n")
    for output in (Path("retry.py"), repo / "new.jsonl"):
        assert main(["pack", *named, "-o", str(output)]) == 0
        assert output.read_text().startswith('{"path": ')


def test_without_a_standard_output_nothing_is_packed_for_it(
    repo: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdout", None)
    assert main(["pack", str(repo)]) == 2
    sys.stdout.close()
    assert "standard output is closed" in capsys.readouterr().err

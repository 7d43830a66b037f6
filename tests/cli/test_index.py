from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from .conftest import Run


def test_an_index_is_built_listed_verified_and_cleared(process: Run, repo: Path) -> None:
    built = json.loads(process("index", str(repo), "--json").stdout)
    assert (built["documents"], built["added"], built["damaged"]) == (3, 3, 0)
    assert Path(built["folder"]).is_dir()
    again = process("index", str(repo))
    assert again.returncode == 0
    assert "0 documents indexed now" in again.stdout
    (listed,) = json.loads(process("index", "--json").stdout)["indexes"]
    assert (listed["origin"], listed["folder"]) == (str(repo.resolve()), built["folder"])
    assert str(repo.resolve()) in process("index").stdout
    (segment,) = Path(built["folder"]).glob("*.segment")
    data = bytearray(segment.read_bytes())
    data[-1] ^= 1
    segment.write_bytes(data)
    verified = json.loads(process("index", str(repo), "--verify", "--json").stdout)
    assert (verified["damaged"], verified["added"]) == (1, 3)
    assert "0 damaged segments" in process("index", str(repo), "--verify").stdout
    assert "0 indexes removed" in process("index", "--clear", str(repo / "src")).stdout
    assert "1 indexes removed" in process("index", "--clear", str(repo)).stdout
    assert "no index is stored" in process("index").stderr


@pytest.mark.deep
def test_text_that_was_kept_wrong_is_told_and_mended(process: Run, repo: Path) -> None:
    folder = Path(json.loads(process("index", str(repo), "--json").stdout)["folder"])
    # Read again what was written a moment before, and this time trust it.
    time.sleep(2.1)
    assert "rlm-rag" not in process("index", str(repo), "--verify").stderr
    (packed,) = folder.glob("*.packed")
    times, data = packed.stat(), bytearray(packed.read_bytes())
    data[data.index(b"def ")] = ord("D")
    packed.write_bytes(data)
    os.utime(packed, ns=(times.st_atime_ns, times.st_mtime_ns))
    verified = process("index", str(repo), "--verify")
    assert verified.stderr.count("what was kept of it was wrong") == 1
    assert process("index", str(repo), "--verify").stderr == ""
    assert "0 documents indexed now" in process("index", str(repo)).stdout


def test_nothing_is_kept_where_that_is_asked_for(rlm_rag: Run, repo: Path) -> None:
    assert "backoff" in rlm_rag("search", "--no-keep", str(repo), "backoff").stdout
    assert json.loads(rlm_rag("index", "--json").stdout)["indexes"] == []
    assert "as --no-keep asks" in rlm_rag("index", "--no-keep", str(repo)).stdout


def test_a_search_uses_the_index_that_is_stored(process: Run, repo: Path) -> None:
    process("search", str(repo), "backoff")
    assert "0 documents indexed now" in process("index", str(repo)).stdout


def test_standard_input_is_indexed_in_memory(process: Run) -> None:
    done = process("index", "-", stdin="one text\n")
    assert "in memory only" in done.stdout
    assert json.loads(process("index", "--json").stdout)["indexes"] == []


def test_verifying_nothing_is_said(rlm_rag: Run) -> None:
    done = rlm_rag("index", "--verify")
    assert done.returncode == 2
    assert "SOURCE" in done.stderr


@pytest.mark.deep
def test_what_is_kept_of_globs_and_revisions_is_cleared_by_their_names(
    rlm_rag: Run, repo: Path
) -> None:
    git = ["git", "-C", str(repo), "-c", "user.name=a", "-c", "user.email=a@b.c"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "one"], ["tag", "v1"]):
        subprocess.run([*git, *command], check=True)
    sources = [f"{repo}@v1", f"{repo}/**/*.py", f"file://{repo}/.git@v1"]
    for source in sources:
        assert rlm_rag("index", source).returncode == 0
    for left, source in zip((2, 1, 0), sources, strict=True):
        assert "1 indexes removed" in rlm_rag("index", "--clear", source).stdout
        assert len(json.loads(rlm_rag("index", "--json").stdout)["indexes"]) == left


def test_a_source_of_bytes_is_listed_as_its_documents_are(rlm_rag: Run, tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"src\xff")
    folder.mkdir()
    (folder / "a.md").write_text("one\n")
    assert rlm_rag("index", str(folder)).returncode == 0
    listed = rlm_rag("index").stdout
    assert r"/src\xff" in listed and "udcff" not in listed

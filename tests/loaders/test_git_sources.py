"""A repository at a revision, a range of them, or far away, is read without a checkout."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rlm_rag.errors import SourceError
from rlm_rag.loaders import clones
from rlm_rag.loaders.commit import commit_of
from rlm_rag.loaders.origins import origin_of
from rlm_rag.loaders.source import load_corpus, load_sources
from tests.servers.git_http import GitHttpServer

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
Git = Callable[..., str]


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    folder.mkdir()
    return folder


@pytest.fixture
def git(repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Git:
    """Make the repository: `v1` holds a, old and sub/x; `v2` another a, new and sub/x."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    identity = {f"GIT_{who}_{what}": "t@e" for who in ("AUTHOR", "COMMITTER")
                for what in ("NAME", "EMAIL")}  # fmt: skip

    def run(*arguments: str) -> str:
        command = ["git", "-C", str(repo), *arguments]
        done = subprocess.run(
            command, check=True, capture_output=True, text=True, env=os.environ | identity
        )
        return done.stdout.strip()

    run("init", "-q", "-b", "main")
    (repo / "sub").mkdir()
    for name, text in {"a": "one\n", "old": "old\n", "sub/x": "x\n"}.items():
        (repo / name).write_text(text)
    (repo / "link").symlink_to("a")
    run("add", "-A")
    run("commit", "-qm", "1")
    run("tag", "v1")
    (repo / "a").write_text("two\n")
    (repo / "new").write_bytes("é\r\n".encode())
    (repo / "old").unlink()
    run("add", "-A")
    run("commit", "-qm", "2")
    run("tag", "-a", "v2", "-m", "annotated")
    (repo / "a").write_text("not committed\n")
    return run


def load(source: str, **options: object) -> tuple[dict[str, str], dict[str, str]]:
    with load_corpus(source, **options) as corpus:  # type: ignore[arg-type]
        found = {one.path: one.content for one in corpus}
        return found, {one.path: one.reason for one in corpus.skipped}


def test_a_revision_is_a_tag_a_branch_or_a_commit(repo: Path, git: Git) -> None:
    first = ({"a": "one\n", "old": "old\n", "sub/x": "x\n"}, {"link": "symbolic link"})
    for name in ("v1", git("rev-parse", "v1"), git("rev-parse", "--short", "v1"), "HEAD~1"):
        assert load(f"{repo}@{name}") == first
    second = {"a": "two\n", "new": "é\r\n", "sub/x": "x\n"}
    assert load(f"{repo}@main")[0] == load(f"{repo}@v2")[0] == second
    assert load(f"{repo}/sub@v1")[0] == {"x": "x\n"}


def test_a_revision_has_the_options_of_a_folder(repo: Path, git: Git) -> None:
    assert list(load(f"{repo}@v1", include="sub/")[0]) == ["sub/x"]
    found, skipped = load(f"{repo}@v1", max_file_bytes=3)
    assert list(found) == ["sub/x"] and "larger than 3 bytes" in skipped["old"]
    with load_sources([f"{repo}@v1", f"now={repo}@v2"]) as corpus:
        assert list(corpus.paths())[:2] == ["repo/a", "repo/old"]
        assert corpus["now/a"].content == "two\n"
        assert git("rev-parse", "v1") in str(corpus.origin)


def test_a_range_is_the_changed_files_and_the_changes(repo: Path, git: Git) -> None:
    found, skipped = load(f"{repo}@v1..v2")
    assert list(found) == ["v1..v2.diff", "a", "new"]
    assert found["a"] == "two\n"
    assert "-one\n+two\n" in found["v1..v2.diff"] and "deleted file" in found["v1..v2.diff"]
    assert skipped == {"old": "deleted in v1..v2"}
    assert load(f"{repo}@v1..")[0].keys() == {"v1...diff", "a", "new"}
    git("checkout", "-q", "-f", "-b", "side", "v1")
    (repo / "b").write_text("b\n")
    git("add", "b")
    git("commit", "-qm", "3")
    assert load(f"{repo}@main...side")[0].keys() == {"main...side.diff", "b"}


def test_a_range_alone_is_of_the_working_folder(
    repo: Path, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repo)
    assert load("v1..v2")[0].keys() == load("@v1..v2")[0].keys() == {"v1..v2.diff", "a", "new"}


def test_nothing_that_a_repository_configures_is_run(repo: Path, git: Git, tmp_path: Path) -> None:
    script = tmp_path / "hook.sh"
    script.write_text(f"#!/bin/sh\ntouch '{tmp_path}/ran'\ncat\n")
    script.chmod(0o755)
    (repo / ".gitattributes").write_text("* diff=evil filter=evil\n")
    for name in (
        "diff.evil.command", "diff.evil.textconv", "filter.evil.smudge", "filter.evil.clean",
        "filter.evil.process", "core.fsmonitor", "diff.external", "core.sshCommand",
        "uploadpack.packObjectsHook", "core.alternateRefsCommand", "core.pager",
    ):  # fmt: skip
        git("config", name, str(script))
    assert load(f"{repo}@v1")[0]["a"] == "one\n"
    assert "+two" in load(f"{repo}@v1..v2")[0]["v1..v2.diff"]
    assert load(f"file://{repo}/.git@v1")[0]["a"] == "one\n"
    assert not (tmp_path / "ran").exists()


def test_a_revision_that_is_none_is_an_error(repo: Path, git: Git, tmp_path: Path) -> None:
    for name in ("no-such", "--help", "v1..no-such", ""):
        with pytest.raises(SourceError, match="has no revision"):
            load(f"{repo}@{name}")
    (tmp_path / "plain").mkdir()
    with pytest.raises(SourceError, match="has no revision"):
        load(f"{tmp_path / 'plain'}@v1")
    (tmp_path / "plain@v1").mkdir()
    (tmp_path / "plain@v1" / "f").write_text("a folder of that name")
    assert load(f"{tmp_path / 'plain@v1'}")[0].keys() == {"f"}


def test_an_object_that_is_missing_costs_its_file_alone(repo: Path, git: Git) -> None:
    digest = git("rev-parse", "v1:old")
    (repo / ".git" / "objects" / digest[:2] / digest[2:]).unlink()
    found, skipped = load(f"{repo}@v1")
    assert found.keys() == {"a", "sub/x"}
    assert "lacks its object" in skipped["old"]


def test_the_commit_of_a_source_is_known_whatever_options_it_was_loaded_with(
    repo: Path, git: Git
) -> None:
    with load_corpus(str(repo), include=["sub/"], max_file_bytes=100, hidden=True) as corpus:
        assert commit_of(corpus.origin) == git("rev-parse", "HEAD")


@pytest.mark.parametrize("name", ["{}", "{}@v1", "{}@v1..v2", "{}/s*/x", "file://{}/.git@v1"])
def test_the_origin_of_what_was_loaded_is_found_again_by_its_name(
    repo: Path, git: Git, name: str
) -> None:
    with load_corpus(name.format(repo)) as corpus:
        assert corpus.origin is not None
        (loaded,) = shlex.split(corpus.origin)
    found = origin_of(name.format(repo))
    assert loaded.startswith(found) if found.endswith("@") else loaded == found


def test_a_repository_larger_than_all_clones_may_be_is_not_fetched_to_the_end(
    repo: Path, git: Git, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clones, "MAX_CLONES_BYTES", 1 << 19)
    monkeypatch.setattr(clones, "WATCH_SECONDS", 0.01)
    (repo / "large").write_bytes(os.urandom(6 << 20))
    git("config", "core.compression", "0")
    git("add", "large")
    git("commit", "-qm", "large")
    with pytest.raises(SourceError, match="larger than 512 KiB"):
        load_corpus(f"file://{repo}/.git")
    (clone,) = (tmp_path / "cache" / "rlm-rag" / "clones").iterdir()
    assert sum(one.stat().st_size for one in clone.rglob("*")) < 1 << 16


@pytest.fixture
def served(repo: Path, git: Git) -> Iterator[str]:
    git("config", "http.receivepack", "false")
    with GitHttpServer(repo.parent) as server:
        yield f"{server.address}/repo/.git"


@pytest.mark.parametrize("place", ["file", "http"])
def test_an_address_is_cloned_and_read_at_a_revision(
    repo: Path, git: Git, served: str, tmp_path: Path, place: str
) -> None:
    url = served if place == "http" else f"file://{repo}/.git"
    assert load(url)[0] == {"a": "two\n", "new": "é\r\n", "sub/x": "x\n"}
    assert load(f"{url}@v1")[0]["a"] == "one\n"
    assert load(f"{url}@{git('rev-parse', 'v1')}")[0]["a"] == "one\n"
    assert load(f"{url}@v1..v2")[0].keys() == {"v1..v2.diff", "a", "new"}
    (clone,) = (tmp_path / "cache" / "rlm-rag" / "clones").iterdir()
    assert clone.stat().st_mode & 0o77 == 0
    assert not (clone / "hooks").exists()


def test_a_clone_has_one_commit_of_what_was_asked_for(
    git: Git, served: str, tmp_path: Path
) -> None:
    load(served)
    (clone,) = (tmp_path / "cache" / "rlm-rag" / "clones").iterdir()
    command = ("git", "-C", str(clone), "rev-list", "--all")
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout.split() == [git("rev-parse", "main")]


def test_a_clone_follows_what_it_was_made_of(repo: Path, git: Git) -> None:
    url = f"file://{repo}/.git"
    assert load(url)[0]["a"] == "two\n"
    git("commit", "-qam", "3")
    assert load(url)[0]["a"] == "not committed\n"


def test_what_was_cloned_serves_when_the_repository_is_gone(repo: Path, git: Git) -> None:
    url = f"file://{repo}/.git"
    load(url)
    shutil.rmtree(repo)
    with load_corpus(url) as corpus:
        assert corpus["a"].content == "two\n"
        assert "read as it was fetched last" in corpus.warnings[0]
    with pytest.raises(SourceError, match="cannot fetch"):
        load(f"{url}@v1")


def test_an_address_that_cannot_be_cloned_is_an_error_without_the_password(
    git: Git, tmp_path: Path
) -> None:
    for url in (
        "http://someone:hunter2@127.0.0.1:9/x.git",
        f"file://{tmp_path}/missing.git",
        "git+ssh://nobody@127.0.0.1:9/x.git",
        "http://127.0.0.1:9/x.git@--upload-pack=touch",
    ):
        with pytest.raises(SourceError) as caught:
            load(url)
        assert "hunter2" not in str(caught.value) and caught.value.hint


def test_protocols_that_run_programs_are_no_addresses(git: Git, tmp_path: Path) -> None:
    for url in (f"ext::touch {tmp_path}/ran", f"git+ext::touch {tmp_path}/ran", "fd::17/foo"):
        with pytest.raises(SourceError):
            load(url)
    assert not (tmp_path / "ran").exists()


def test_a_path_after_a_revision_is_not_taken_for_a_host(
    git: Git, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repo.parent)
    with pytest.raises(SourceError, match="has no revision 'v1:a'") as caught:
        load(f"{repo.name}@v1:a")
    assert "--include" in (caught.value.hint or "")

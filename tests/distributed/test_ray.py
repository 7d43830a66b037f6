"""A corpus on a Ray cluster: the same answers, whatever dies, and nothing left behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest

from rlm_rag import ask
from rlm_rag.api import SearchableCorpus, load, load_sources
from rlm_rag.distributed.cluster import Cluster
from rlm_rag.distributed.placement import owner_of
from rlm_rag.errors import MissingExtraError, NotHeldError, RetrievalError, SourceError, UsageError
from rlm_rag.indexes.requests import (
    GrepRequest,
    IndexRequest,
    IndexResult,
    Result,
    SearchRequest,
    SearchResult,
)

from .listening import addresses, hosts, marked, names, none_left, ray_tests, raylet

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "rlm_rag" / "indexes"
OFFLINE: Any = {"model": "offline", "trace": False}
QUESTIONS = ("where are postings counted", "def search", "STOP_WORDS", "stable hash", "windows")


def test_a_cluster_is_named_by_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    assert Cluster.of(None) is None
    assert Cluster.of("ray") == Cluster("local")
    assert Cluster.of("ray:10.0.0.5:6379", 8) == Cluster("10.0.0.5:6379", 8)
    monkeypatch.setenv("RAY_ADDRESS", "head:6379")
    assert Cluster.of("ray") == Cluster("head:6379")
    for wrong in ("dask", "ray:ray://host:10001", "ray:host", ""):
        with pytest.raises(UsageError, match="names no cluster"):
            Cluster.of(wrong)
    with pytest.raises(UsageError, match="1 or more"):
        Cluster.of("ray", 0)


def test_without_ray_the_command_that_installs_it_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from rlm_rag.distributed.joining import join

    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    with pytest.raises(MissingExtraError) as raised:
        join("local")
    assert raised.value.hint == "pip install 'rlm-rag[ray]'"


def test_where_the_temporary_folder_has_a_long_path_ray_has_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rlm_rag.distributed import joining

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "much" / "too" / "long"))
    folder = joining._temporary_folder()
    assert len(folder) <= 44
    joining.leave()
    assert not Path(folder).exists()


def test_an_address_where_nobody_listens_is_refused_at_once() -> None:
    from rlm_rag.distributed import joining

    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(OSError, match="refused"):
        joining._check_listening(address)


@pytest.mark.deep
@ray_tests
def test_a_local_cluster_answers_as_one_index_and_is_heard_by_no_other_machine(
    mark: str,
) -> None:
    with load(SOURCE, keep=False) as whole, load(SOURCE, keep=False, shards="ray") as spread:
        both = (whole, spread)
        for question in QUESTIONS:
            request = SearchRequest(question, 10)
            assert spread.retrieve(request) == whole.retrieve(request)
        assert spread.retrieve(GrepRequest("def ", 30)) == whole.retrieve(GrepRequest("def ", 30))
        assert spread.symbols("Searcher") == whole.symbols("Searcher")
        assert spread.outline("search.py") == whole.outline("search.py")
        assert spread.repo_map() == whole.repo_map()
        assert spread.read("search.py", 1, 9) == whole.read("search.py", 1, 9)
        answers = [ask(corpus, "Where are postings counted?", **OFFLINE) for corpus in both]
        assert answers[0].text == answers[1].text
        assert answers[0].citations == answers[1].citations != ()
        listened = addresses(marked(mark))
        assert listened.keys() == {"127.0.0.1"}
        # The head, the node's two services, its agent, and each of the shards.
        assert sum(listened.values()) >= 5
    assert none_left(mark)


@pytest.mark.deep
@ray_tests
def test_a_cluster_with_a_token_is_joined_and_its_nodes_keep_what_they_hold(
    mark: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", mark)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    (Path(mark) / ".ray").mkdir()
    (Path(mark) / ".ray" / "auth_token").write_text("0123456789abcdef" * 4)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = f"start --head --block --port={port} --include-dashboard=false --num-cpus=1"
    said = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_USAGE_STATS_ENABLED": "0"}
    head = subprocess.Popen(
        [Path(sys.executable).with_name("ray"), *words.split(), "--object-store-memory=80000000"],
        env=os.environ | said | {"RAY_AUTH_MODE": "token"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until = time.monotonic() + 60.0
        while not any(b"raylet" in name for name in names(mark).values()):
            assert time.monotonic() < until
            time.sleep(0.5)
        with load(SOURCE, keep=False, shards=f"ray:127.0.0.1:{port}") as corpus:
            with pytest.raises(RetrievalError, match="joined") as refused:
                corpus.search("postings")
            assert "RAY_AUTH_MODE=token" in (refused.value.hint or "")
        monkeypatch.setenv("RAY_AUTH_MODE", "token")
        options: Any = {"shards": f"ray:127.0.0.1:{port}", "shard_count": 2}
        added = []
        for _ in range(2):
            with load(SOURCE, **options) as corpus:
                built = corpus.retrieve(IndexRequest())
                assert isinstance(built, IndexResult)
                added.append(built.added)
        assert (added[0] > 0, added[1]) == (True, 0)
        assert addresses(marked(mark)).keys() == {"127.0.0.1"}
    finally:
        head.terminate()
        head.wait()
    assert none_left(mark)


@pytest.mark.deep
@ray_tests
def test_a_driver_that_is_killed_leaves_nothing_running(mark: str) -> None:
    code = (
        "import sys, time, rlm_rag\n"
        f"corpus = rlm_rag.load({str(SOURCE)!r}, keep=False, shards='ray', shard_count=2)\n"
        "print(len(corpus.search('postings')), flush=True)\n"
        "time.sleep(600)\n"
    )
    driver = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, cwd=ROOT, start_new_session=True
    )
    assert driver.stdout is not None
    assert driver.stdout.readline() == b"10\n"
    assert len(marked(mark)) > 5
    driver.kill()
    driver.wait()
    driver.stdout.close()
    assert none_left(mark)


def spread_over(nodes: Any, source: Path, count: int, **options: Any) -> SearchableCorpus:
    where = f"ray:{nodes.address}"
    return load(source, keep=False, shards=where, shard_count=count, **options)


@pytest.mark.deep
@ray_tests
def test_killed_shards_and_nodes_are_made_again_and_the_query_answered(
    mark: str, cluster: Any
) -> None:
    requests = [SearchRequest(question, 10) for question in QUESTIONS]
    with load(SOURCE, keep=False) as whole, spread_over(cluster, SOURCE, 6) as spread:
        expected: list[Result] = [whole.retrieve(request) for request in requests]
        assert [spread.retrieve(request) for request in requests] == expected
        before = hosts(mark)
        assert len(before) == 6
        os.kill(before[0], signal.SIGKILL)
        assert [spread.retrieve(request) for request in requests] == expected
        for node in cluster.others:
            on_it = hosts(mark, parent=raylet(node))
            assert on_it
            killing = threading.Thread(
                target=cluster.remove_node, args=(node,), kwargs={"allow_graceful": False}
            )
            killing.start()
            while killing.is_alive():
                assert [spread.retrieve(request) for request in requests] == expected
            killing.join()
            assert [spread.retrieve(request) for request in requests] == expected
            assert set(on_it).isdisjoint(hosts(mark))
        assert len(hosts(mark)) == 6


@pytest.mark.deep
@ray_tests
def test_a_shard_that_cannot_be_made_again_is_named(
    mark: str, cluster: Any, tmp_path: Path
) -> None:
    for letter in "abcdef":
        (tmp_path / f"{letter}.py").write_text(f"def load_{letter}(): pass\n")
    # With a limit it is loaded here, and sent.
    with spread_over(cluster, tmp_path, 3, max_files=99) as spread:
        assert len(spread.search("load", 10)) == 6
        killed = hosts(mark)
        # What its documents would be sent again from is damaged.
        text = spread.packed_path.read_bytes().replace(b"def load_", b"def lose_")
        with spread.packed_path.open("r+b") as file:
            file.write(text)
        os.kill(killed[0], signal.SIGKILL)
        result = spread.retrieve(SearchRequest("load", 10))
        assert isinstance(result, SearchResult)
        assert result.note is not None
        assert result.note.startswith("partial: without shard ")
        assert "arrived otherwise than they were sent" in result.note
        lost = int(result.note.split()[3])
        left = {f"{letter}.py" for letter in "abcdef" if owner_of(f"{letter}.py", 3) != lost}
        assert {hit.path for hit in result.hits} == left


@pytest.mark.deep
@ray_tests
def test_shards_load_their_documents_and_give_their_texts_until_the_source_has_changed(
    mark: str, cluster: Any, tmp_path: Path
) -> None:
    texts = {f"{letter}.py": f"def load_{letter}(): pass\n" for letter in "abcdefgh"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "image.png").write_bytes(b"\x89PNG\x00")
    with load(tmp_path, keep=False) as whole, spread_over(cluster, tmp_path, 3) as spread:
        assert b"def load_" not in spread.packed_path.read_bytes()
        assert spread.fingerprint == whole.fingerprint
        assert (spread.skipped, spread.warnings) == (whole.skipped, whole.warnings) != ((), ())
        assert [owner_of(name, 3) for name in ("a.py", "d.py", "h.py")] == [0, 0, 2]
        assert spread["h.py"].content == texts["h.py"]
        for host in hosts(mark):
            os.kill(host, signal.SIGKILL)
        # They are loaded again, whoever has died.
        assert spread["a.py"].content == texts["a.py"]
        answer = ask(spread, "Where is load_c?", **OFFLINE)
        assert answer.citations
        assert all(each.verified for each in answer.citations)
        (tmp_path / "a.py").write_text("def load_other(): pass\n")
        for host in hosts(mark):
            os.kill(host, signal.SIGKILL)
        result = spread.retrieve(SearchRequest("load", 10))
        assert isinstance(result, SearchResult)
        why = "it cannot be started: its documents have changed since they were loaded"
        assert result.note == f"partial: without shard 0 ({why}) of 3 shards"
        left = {name for name in texts if owner_of(name, 3) != 0}
        assert {hit.path for hit in result.hits} == left
        # What had come stays, and of the rest it is said why it does not come.
        assert spread["a.py"].content == texts["a.py"]
        with pytest.raises(NotHeldError, match="documents have changed"):
            spread["d.py"]


@pytest.mark.deep
@ray_tests
def test_files_and_archives_are_loaded_by_shards_beside_folders(
    mark: str, cluster: Any, tmp_path: Path
) -> None:
    texts = {f"{letter}.py": f"def load_{letter}(): pass\n" for letter in "abcdefgh"}
    with zipfile.ZipFile(tmp_path / "packed.zip", "w") as archive:
        for name, text in texts.items():
            archive.writestr(name, text)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "i.py").write_text("def load_i(): pass\n")
    (tmp_path / "j.py").write_text("def load_j(): pass\n")
    sources = [str(tmp_path / name) for name in ("packed.zip", "folder", "j.py")]
    shards = f"ray:{cluster.address}"
    with (
        load_sources(sources, keep=False) as whole,
        load_sources(sources, keep=False, shards=shards, shard_count=3) as spread,
    ):
        assert b"def load_" not in spread.packed_path.read_bytes()
        assert (spread.fingerprint, spread.warnings) == (whole.fingerprint, ())
        request = SearchRequest("load", 20)
        assert spread.retrieve(request) == whole.retrieve(request)
        for host in hosts(mark):
            os.kill(host, signal.SIGKILL)
        assert list(spread) == list(whole)
        # Of a file that is no text none of them says why: it is loaded in one place, which does.
        (tmp_path / "k.py").write_bytes(b"\0\1\2")
        with pytest.raises(SourceError, match=r"k\.py: binary"):
            load_sources([*sources, str(tmp_path / "k.py")], shards=shards, keep=False)

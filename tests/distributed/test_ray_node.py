"""What a node holds of a corpus, without the cluster around it."""

from __future__ import annotations

import hashlib
from array import array
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from rlm_rag.distributed.ray_node import Assignment, Failed, ShardHost, digest_of
from rlm_rag.distributed.shard import Shard
from rlm_rag.errors import RetrievalError
from rlm_rag.indexes.requests import GrepRequest, IndexResult
from rlm_rag.kept import list_kept
from rlm_rag.packed import PackedCorpus
from rlm_rag.packing import pack

from .test_part_loading import folders, packed_zip, written

TEXTS = {"a.py": "def a(): pass\n", "b.py": "def b(): pass\n", "c.py": "def c(): pass\r\n"}
TREE = {path: text.encode() for path, text in TEXTS.items()}
MINE = array("Q", [0, 2])
DOCUMENTS = [("a.py", TREE["a.py"], None), ("c.py", TREE["c.py"], "utf-8")]


@pytest.fixture
def assignment(tmp_path: Path) -> Assignment:
    pack(TEXTS.items(), tmp_path / "packed")
    with PackedCorpus.open(tmp_path / "packed") as corpus:
        digest = digest_of(corpus, MINE)
    return Assignment("here (shard 1 of 2)", str(tmp_path / "kept"), MINE, digest)


def begun(assignment: Assignment) -> ShardHost:
    host = ShardHost(assignment)
    assert not host.begin()
    assert host.add(DOCUMENTS) is None
    assert host.finish() is None
    return host


def test_a_shard_answers_by_the_numbers_of_the_whole_corpus(assignment: Assignment) -> None:
    host = begun(assignment)
    found = host.answer(partial(Shard.matching, request=GrepRequest("def"), allowed=None))
    assert dict(zip(found.result.counts, found.numbers, strict=True)) == {"a.py": 0, "c.py": 2}
    outlined = host.answer(partial(Shard.outlined, number=2))
    assert [one.name for one in outlined.definitions] == ["c"]


def test_what_a_node_keeps_is_neither_sent_nor_indexed_again(assignment: Assignment) -> None:
    first = begun(assignment).answer(partial(Shard.described, verify=False))
    host = ShardHost(assignment)
    assert host.begin()
    again = host.answer(partial(Shard.described, verify=False))
    assert isinstance(first, IndexResult)
    assert (first.added, again.added, again.documents) == (2, 0, 2)
    (kept,) = list_kept(Path(assignment.kept_root))
    assert kept.origin == assignment.origin


def test_a_shard_that_has_other_documents_by_now_is_sent_them(assignment: Assignment) -> None:
    begun(assignment)
    other = Assignment(assignment.origin, assignment.kept_root, MINE, b"of others")
    assert not ShardHost(other).begin()


def test_documents_that_arrive_otherwise_are_not_taken(assignment: Assignment) -> None:
    host = ShardHost(assignment)
    assert not host.begin()
    assert host.add([("a.py", b"something else\n", None)]) is None
    failed = host.finish()
    assert isinstance(failed, Failed)
    assert "otherwise than they were sent" in failed.message


def test_without_an_origin_or_where_nothing_can_be_kept_it_lives_as_long_as_its_process(
    assignment: Assignment, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("no folder")
    for origin, root in (("", assignment.kept_root), ("here", str(tmp_path / "file" / "below"))):
        host = begun(Assignment(origin, root, MINE, assignment.digest))
        assert host.answer(partial(Shard.described, verify=False)).documents == 2
    assert list_kept(Path(assignment.kept_root)) == []


def test_what_cannot_be_answered_comes_back_as_a_value(assignment: Assignment) -> None:
    failed = begun(assignment).answer(fails)
    assert failed == Failed("no such thing", "ask for another")


def fails(_shard: Shard) -> object:
    raise RetrievalError("no such thing", hint="ask for another")


def test_a_document_that_is_sent_twice_is_refused(assignment: Assignment) -> None:
    host = ShardHost(assignment)
    host.begin()
    failed = host.add([*DOCUMENTS, DOCUMENTS[0]])
    assert isinstance(failed, Failed)
    assert "a.py" in failed.message


@pytest.fixture
def unknown(tmp_path: Path) -> Assignment:
    source = folders([str(written(tmp_path / "source", TREE))])
    root = str(tmp_path / "cache" / "kept")
    return Assignment("here (shard 0 of 1)", root, array("Q"), b"", 0, 1, source)


def assigned(unknown: Assignment, host: ShardHost) -> Assignment:
    assert host.begin() is True
    told = host.loaded()
    assert [one.path for one in told.documents] == sorted(TEXTS)
    digest = hashlib.sha256(b"".join(one.digest for one in told.documents)).digest()
    return replace(unknown, numbers=array("Q", [3, 5, 7]), digest=digest)


def check_loads(unknown: Assignment) -> Assignment:
    host = ShardHost(unknown)
    known = assigned(unknown, host)
    assert host.assign(known) is None
    assert host.answer(partial(Shard.texts, numbers=[5])) == [TREE["b.py"]]
    assert host.answer(partial(Shard.described, verify=False)).added == 3
    # The next one that takes its place loads them by itself, and indexes nothing again.
    after = ShardHost(known)
    assert after.begin() is True
    assert after.answer(partial(Shard.described, verify=False)).added == 0
    return known


def test_a_shard_loads_its_documents_before_it_is_known_which_they_are(
    unknown: Assignment,
) -> None:
    check_loads(unknown)


def test_a_shard_whose_documents_have_changed_says_so(unknown: Assignment) -> None:
    known = assigned(unknown, ShardHost(unknown))
    assert unknown.source is not None
    place = Path(unknown.source.places[0])
    (place / "b.py").write_text("def other(): pass\n")
    host = ShardHost(known)
    assert host.begin() == Failed("its documents have changed since they were loaded", None)


def test_a_shard_loads_its_part_of_an_archive(unknown: Assignment, tmp_path: Path) -> None:
    known = check_loads(replace(unknown, source=folders([str(packed_zip(TREE, tmp_path))])))
    packed_zip({**TREE, "b.py": b"def other(): pass\n"}, tmp_path)
    changed = "its documents have changed since they were loaded"
    assert ShardHost(known).begin() == Failed(changed, None)


def test_a_shard_without_the_folder_says_so(unknown: Assignment) -> None:
    assert unknown.source is not None
    Path(unknown.source.places[0]).rename(Path(unknown.kept_root).parent.parent / "moved")
    for keeps in (unknown, replace(unknown, origin="")):
        failed = ShardHost(keeps).begin()
        assert isinstance(failed, Failed)
        assert "is not on a node" in failed.message

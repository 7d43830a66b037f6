"""A document that is counted in shares has the segment that it has when it is counted at once."""

from __future__ import annotations

import errno
import json
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlm_rag.errors import RetrievalError
from rlm_rag.indexes import joining, large, parallel, piece_helper, shares
from rlm_rag.indexes.large import large_segment
from rlm_rag.indexes.parallel import build_segments
from rlm_rag.indexes.pieces import Work
from rlm_rag.indexes.ranking import Weights
from rlm_rag.indexes.sections import SpooledSections
from rlm_rag.indexes.segment import Segment
from rlm_rag.indexes.shares import Scope, Share, shares_of
from rlm_rag.indexes.stamp import stamp_of
from rlm_rag.indexes.store import SegmentStore
from rlm_rag.indexes.terms import separated
from rlm_rag.packed import PackedCorpus

from .segments import build_segment, bytes_of

Pack = Callable[[Mapping[str, str]], PackedCorpus]
PackFile = Callable[[Mapping[str, str]], Path]

WEIGHTS = Weights()
WORDS = (
    *("retry", "getUserName", "get_user_name", "x", "42", "", "\tv1.2", "übergroß漢字", "。", "🙂"),
    *("class Load:", "  def load(x):", "def f(", "    return x", "function go() {", "}", "# Title"),
)
CODE = ("src/m.py", "web/app.js")
PATHS = (*CODE, "app.log", "docs/notes.md")
LEAST_BYTES_OF_CODE = 64
ENDS = ("\n", "\r\n", "\r", " ", "\n\n", "、")


@st.composite
def texts(draw: st.DrawFn) -> str:
    ends = draw(st.lists(st.sampled_from(ENDS), min_size=1, max_size=2))
    words = draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=200))
    chosen = random.Random(draw(st.integers()))
    return "".join(word + chosen.choice(ends) for word in words)


# How much more a process has at its peak than before it counts the second document.
MEASURED = """
import re, sys
from pathlib import Path
from rlm_rag.indexes import joining, shares
from rlm_rag.indexes.large import large_segment
from rlm_rag.indexes.pieces import Work
from rlm_rag.indexes.ranking import Weights
from rlm_rag.packed import PackedCorpus

def resident_bytes(name):
    status = Path("/proc/self/status").read_text()
    return int(re.search(name + r":\\s+([0-9]+) kB", status)[1]) * 1024

shares._LEAST_BYTES = shares._MOST_BYTES = int(sys.argv[2])
joining._HELD_KEYS, joining._HELD_VALUES = 1 << 10, 1 << 16
with PackedCorpus.open(Path(sys.argv[1])) as corpus:
    work = Work(corpus, Weights())
    with large_segment(work, 0):
        before = resident_bytes("VmRSS")
    # The peak is that of the parent else, if that has more.
    Path("/proc/self/clear_refs").write_text("5")
    with large_segment(work, 1):
        print(resident_bytes("VmHWM") - before)
"""


def open_files() -> set[int]:
    return {int(path.name) for path in Path("/proc/self/fd").iterdir()}


def shared_out(patch: pytest.MonkeyPatch, share_bytes: int) -> None:
    patch.setattr(shares, "_LEAST_BYTES", share_bytes)
    patch.setattr(shares, "_MOST_BYTES", share_bytes)


def log(size_bytes: int) -> str:
    """Lines of a log, in each of which a word is new."""
    chosen = random.Random(5)
    lines = []
    while size_bytes > 0:
        lines.append(f"12:{chosen.randint(10, 59)} request {chosen.getrandbits(48):x} took 7 ms\n")
        size_bytes -= len(lines[-1])
    return "".join(lines)


@settings(max_examples=30, deadline=None)
@given(text=texts(), path=st.sampled_from(PATHS), share_bytes=st.integers(20, 900), held=st.data())
def test_its_segment_is_the_same_bytes_in_whatever_shares_it_was_counted(
    pack: Pack, text: str, path: str, share_bytes: int, held: st.DataObject
) -> None:
    corpus = pack({"a.txt": "one\n", path: text})
    if path in CODE:
        # Where a line is cut, its beginning, in which something may be defined, is not.
        share_bytes = max(share_bytes, LEAST_BYTES_OF_CODE)
    with pytest.MonkeyPatch.context() as patch:
        shared_out(patch, share_bytes)
        patch.setattr(joining, "_HELD_KEYS", held.draw(st.integers(2, 50)))
        patch.setattr(joining, "_HELD_VALUES", held.draw(st.integers(1, 50)))
        with large_segment(Work(corpus, WEIGHTS), 1) as built:
            assert isinstance(built, SpooledSections)
            assert bytes_of(built) == build_segment(corpus, [1], weights=WEIGHTS)


@settings(max_examples=60, deadline=None)
@given(text=texts(), share_bytes=st.integers(1, 900))
def test_shares_hold_all_of_it_in_order_and_cut_no_word(
    pack: Pack, text: str, share_bytes: int
) -> None:
    corpus = pack({"a.txt": text})
    content = bytes(corpus.content_bytes(0))
    found = list(shares_of(corpus, 0, most_bytes=share_bytes))
    assert b"".join(content[one.begin : one.end] for one in found) == content
    assert sum(one.lines for one in found) == corpus.line_count(0)
    words = [separated(content[one.begin : one.end]).split() for one in found]
    assert [word for share in words for word in share] == separated(content).split()


def test_of_a_line_without_end_shares_are_no_larger_than_they_may_be(pack: Pack) -> None:
    corpus = pack({"a.txt": "retry user " * 5000})
    found = list(shares_of(corpus, 0, most_bytes=1000))
    assert max(one.end - one.begin for one in found) <= 1000
    assert [one.lines for one in found] == [1] + [0] * (len(found) - 1)


def test_other_processes_help_and_other_documents_are_there_too(
    pack_file: PackFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared_out(monkeypatch, 20_000)
    monkeypatch.setattr(parallel, "_LARGE_BYTES", 50_000)
    monkeypatch.setattr(piece_helper, "SHARED_BYTES", 1)
    path = pack_file({"a.py": "def a(): pass\n", "big.log": log(100_000), "b.py": "b = 1\n"})
    with PackedCorpus.open(path) as corpus:
        built = build_segments(corpus, [0, 1, 2], weights=WEIGHTS, packed_path=path)
        found = [bytes_of(one) for one in built]
        assert found[-1] == build_segment(corpus, [1], weights=WEIGHTS)
        digests = [one for data in found for one in Segment(data, stamp_of(WEIGHTS)).digests()]
        assert sorted(digests) == sorted(corpus.digests())


@pytest.mark.parametrize("is_kept", [True, False])
def test_a_store_keeps_it_and_opens_it(pack: Pack, tmp_path: Path, is_kept: bool) -> None:
    corpus = pack({"a.py": "def retry(): pass\n" * 100})
    store = SegmentStore(tmp_path / "kept" / "one" if is_kept else None, stamp=stamp_of(WEIGHTS))
    with large_segment(Work(corpus, WEIGHTS), 0) as built:
        segment = store.add(built)
    segment.check()
    assert segment.digests() == corpus.digests()
    assert len(store.open()) == is_kept


def test_a_store_that_cannot_write_it_anywhere_says_where(
    pack: Pack, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr(SpooledSections, "write_to", full)
    corpus = pack({"a.py": "def retry(): pass\n" * 100})
    with large_segment(Work(corpus, WEIGHTS), 0) as built:
        assert isinstance(built, SpooledSections)
        said = f"cannot be written in {built.folder.parent}: no space left"
        with pytest.raises(RetrievalError, match=re.escape(said)):
            SegmentStore(None, stamp=stamp_of(WEIGHTS)).add(built)


def test_without_a_folder_to_write_to_it_is_counted_at_once(
    pack: Pack, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(large, "ScratchFolder", full)
    corpus = pack({"a.py": "def retry(): pass\n" * 100})
    with large_segment(Work(corpus, WEIGHTS), 0) as built:
        assert bytes_of(built) == build_segment(corpus, [0], weights=WEIGHTS)


def test_where_the_disk_is_full_it_is_counted_at_once_and_no_file_stays_open(
    pack: Pack, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(joining, "_join_texts", full)
    corpus = pack({"a.py": "def retry(): pass\n" * 100})
    before = open_files()
    with large_segment(Work(corpus, WEIGHTS), 0) as built:
        assert bytes_of(built) == build_segment(corpus, [0], weights=WEIGHTS)
    assert open_files() == before


def test_there_may_be_more_shares_than_a_process_may_open_files(
    pack: Pack, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared_out(monkeypatch, 1000)
    corpus = pack({"app.log": log(200_000)})
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(open_files()) + 60, hard))
    try:
        with large_segment(Work(corpus, WEIGHTS), 0) as built:
            assert isinstance(built, SpooledSections)
            assert bytes_of(built) == build_segment(corpus, [0], weights=WEIGHTS)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_on_one_core_it_is_counted_beside_the_corpus_too(
    pack_file: PackFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    monkeypatch.setattr(parallel, "_LARGE_BYTES", 50_000)
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    path = pack_file({"big.log": log(100_000)})
    with PackedCorpus.open(path) as corpus:
        for built in build_segments(corpus, [0], weights=WEIGHTS, packed_path=path):
            assert isinstance(built, SpooledSections)
            assert bytes_of(built) == build_segment(corpus, [0], weights=WEIGHTS)


def test_one_with_too_many_windows_is_refused_before_any_is_counted(
    pack: Pack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(large, "MAX_WINDOWS", 3)
    corpus = pack({"a.py": "x\n" * 200})
    with pytest.raises(RetrievalError, match="more than"), large_segment(Work(corpus, WEIGHTS), 0):
        pass


def test_the_memory_that_it_takes_does_not_grow_with_its_words(pack_file: PackFile) -> None:
    # At once it takes some twenty times its size; 20 MB are for tables that do not grow.
    size_bytes = 4 << 20
    path = pack_file({"small.log": log(1000), "app.log": log(size_bytes)})
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, str(path), str(size_bytes // 32)],
        capture_output=True,
        check=True,
        text=True,
    )
    assert int(done.stdout) < 8 * size_bytes


def test_a_share_is_the_same_after_it_was_told_to_another_process() -> None:
    scopes = (Scope(0, b"Reader"), Scope(4, "gr\u00f6\u00dfe".encode()))
    share = Share(3, 10, 90, 2, 5, 8, b"\r\n", begins_within=True, scopes=scopes)
    assert Share.from_record(json.loads(json.dumps(share.to_record()))) == share

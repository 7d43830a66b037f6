"""The stored index: whatever was there before, whatever is damaged, answers are the same."""

from __future__ import annotations

import errno
import itertools
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlm_rag import kept
from rlm_rag.indexes.answering import Answerer
from rlm_rag.indexes.definition_cache import FILE_NAME
from rlm_rag.indexes.encoded import EncodedSegment
from rlm_rag.indexes.parsers import Parsers
from rlm_rag.indexes.ranking import Weights
from rlm_rag.indexes.requests import (
    IndexRequest,
    RepoMapRequest,
    Result,
    SearchRequest,
    SearchResult,
    SymbolsRequest,
    SymbolsResult,
)
from rlm_rag.indexes.segment import Segment, SegmentError
from rlm_rag.indexes.sources import Source
from rlm_rag.indexes.stamp import stamp_of
from rlm_rag.indexes.store import SegmentStore
from rlm_rag.indexes.tables import BytesLike
from rlm_rag.kept import clear, default_kept_folder, evict, folder_of, list_kept
from rlm_rag.packed import PackedCorpus

from .segments import build_segment

PackFile = Callable[[Mapping[str, str]], Path]
Pack = Callable[[Mapping[str, str]], PackedCorpus]

QUERIES = ("getUser", "load parser", "user", "where is the retry delay", "猫が", "a.py x")
WORDS = ["getUser", "get_user", "load", "Parser", "retry", "delay", "猫が好き", "x", "user"]
lines = st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join)
contents = st.lists(lines | st.just("def load(x):"), max_size=70).map("\n".join)
corpora = st.dictionaries(
    st.sampled_from(["a.py", "b.py", "src/c.py", "d.md", "tests/e.py"]), contents, max_size=5
)
STAMP = stamp_of(Weights())
# To start some for each answerer takes longer than all else here.
PARSERS = Parsers(1)


def needle(number: int) -> str:
    """Return a word that shares no part with the others."""
    return f"needle{chr(97 + number // 26)}{chr(97 + number % 26)}"


def answers_of(answerer: Answerer) -> list[Result]:
    requests = [SearchRequest(query, k=20) for query in QUERIES]
    return [answerer.answer(request) for request in (*requests, RepoMapRequest())]


def stored(corpus: PackedCorpus, folder: Path, parsers: Parsers | None = None) -> Answerer:
    store = SegmentStore(folder, stamp=STAMP, origin="here")
    return Answerer.of(corpus, store=store, parsers=parsers or PARSERS)


def found(answerer: Answerer, query: str) -> list[str]:
    result = answerer.answer(SearchRequest(query))
    assert isinstance(result, SearchResult)
    return [hit.path for hit in result.hits]


def note_of(answerer: Answerer) -> str:
    result = answerer.answer(SearchRequest("x"))
    assert isinstance(result, SearchResult)
    return result.note or ""


def segments_in(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.segment"))


def check_sequence(
    pack: Pack,
    parsers: Parsers,
    tmp_path_factory: pytest.TempPathFactory,
    versions: list[dict[str, str]],
) -> None:
    folder = tmp_path_factory.mktemp("stored") / "one"
    for documents in versions:
        corpus = pack(documents)
        afresh = Answerer.of(corpus, parsers=parsers)
        assert answers_of(stored(corpus, folder, parsers)) == answers_of(afresh)


test_any_sequence_of_changes_answers_as_an_index_built_afresh = settings(max_examples=5)(
    given(versions=st.lists(corpora, min_size=2, max_size=4))(check_sequence)
)
test_many_sequences_of_changes_answer_so = pytest.mark.deep(
    settings(max_examples=60)(
        given(versions=st.lists(corpora, min_size=2, max_size=5))(check_sequence)
    )
)


def test_many_small_changes_leave_few_segments(pack: Pack, tmp_path: Path) -> None:
    folder = tmp_path / "one"
    documents = {f"d{number}.py": f"{needle(number)} common\n" for number in range(30)}
    for number in range(30):
        documents[f"d{number}.py"] += "changed\n"
        corpus = pack(documents)
        assert found(stored(corpus, folder), needle(number)) == [f"d{number}.py"]
        assert len(segments_in(folder)) <= 9
    assert answers_of(stored(corpus, folder)) == answers_of(Answerer.of(corpus))


def test_only_what_changed_is_indexed_again(pack: Pack, tmp_path: Path) -> None:
    documents = {f"d{number}.py": f"{needle(number)}\n" for number in range(50)}
    stored(pack(documents), tmp_path / "one").answer(SearchRequest("x"))
    documents |= {"d3.py": "other\n", "new.py": "fresh\n"}
    del documents["d7.py"]
    documents["renamed.py"] = documents.pop("d9.py")
    answerer = stored(pack(documents), tmp_path / "one")
    assert found(answerer, needle(9)) == ["renamed.py"]
    assert answerer.answer(IndexRequest()).added == 3
    again = stored(pack(documents), tmp_path / "one")
    assert found(again, needle(7)) == found(again, needle(3)) == []
    assert again.answer(IndexRequest()).added == 0


def test_the_files_are_the_users_alone(pack: Pack, tmp_path: Path) -> None:
    folder = tmp_path / "indexes" / "one"
    stored(pack({"a.py": "x\n"}), folder).answer(SearchRequest("x"))
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    assert len(list(folder.iterdir())) == 2


@settings(max_examples=20)
@given(st.data())
def test_any_damage_is_found_and_answers_stay_right(
    pack: Pack,
    parsers: Parsers,
    tmp_path_factory: pytest.TempPathFactory,
    data: st.DataObject,
) -> None:
    folder = tmp_path_factory.mktemp("stored") / "one"
    corpus = pack({"a.py": "def load():\n  getUser\n" * 30, "b.md": "retry delay user\n" * 50})
    expected = answers_of(stored(corpus, folder, parsers))
    (path,) = segments_in(folder)
    whole = bytearray(path.read_bytes())
    at = data.draw(st.integers(0, len(whole) - 1))
    if data.draw(st.booleans()):
        del whole[at:]
    else:
        whole[at] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(whole)
    assert answers_of(stored(corpus, folder, parsers)) == expected


def test_a_page_of_postings_that_is_damaged_is_noticed_when_it_is_read(tmp_path: Path) -> None:
    from rlm_rag.indexes.postings import SegmentBuilder

    builder = SegmentBuilder()
    for number in range(20_000):
        words = [b"word"] if number else [b"word", b"first"]
        line_words = len(words).to_bytes(4, sys.byteorder)
        digest, offsets = number.to_bytes(16, "big"), bytes(8)
        builder.add_document(digest, [words, [], []], line_words, kind=0, offsets=offsets)
    data = builder.encoded(STAMP).joined()
    whole = Segment(data, STAMP)
    whole.check()
    number = whole.table("words").find(b"word")
    assert len(whole.values("words", number)) == 20_000
    place = data.rindex(bytes(whole.values("words", number)[-1:]))
    damaged = bytearray(data)
    damaged[place] ^= 1
    segment = Segment(damaged, STAMP)
    segment.values("words", segment.table("words").find(b"first"))
    with pytest.raises(SegmentError):
        segment.values("words", number)
    with pytest.raises(SegmentError):
        segment.check()


def test_a_page_of_the_words_that_is_damaged_is_built_again(pack: Pack, tmp_path: Path) -> None:
    corpus = pack({"a.py": "first line\n" * 30_000 + "retry user\n"})
    expected = answers_of(stored(corpus, tmp_path / "one"))
    (path,) = segments_in(tmp_path / "one")
    damaged = bytearray(path.read_bytes())
    # The words of the texts come last.
    damaged[-3] ^= 1
    segment = Segment(damaged, STAMP)
    pages = range(len(segment.unchecked("sequence")))
    assert len(pages) > 1
    segment.check_pages("sequence", pages[:-1])
    with pytest.raises(SegmentError, match="damaged"):
        segment.check_pages("sequence", pages)
    path.write_bytes(damaged)
    assert answers_of(stored(corpus, tmp_path / "one")) == expected


def test_a_damaged_segment_that_cannot_be_removed_is_left_aside(
    pack: Pack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = pack({"a.py": "first line\n" * 30_000 + "retry user\n"})
    expected = answers_of(stored(corpus, tmp_path / "one"))
    (path,) = segments_in(tmp_path / "one")
    damaged = bytearray(path.read_bytes())
    damaged[-3] ^= 1
    path.write_bytes(damaged)

    def read_only(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "read-only")

    monkeypatch.setattr(Path, "unlink", read_only)
    monkeypatch.setattr(kept, "write", read_only)
    answerer = stored(corpus, tmp_path / "one")
    results = answers_of(answerer)
    assert [getattr(one, "hits", one) for one in results] == [
        getattr(one, "hits", one) for one in expected
    ]
    assert "memory only" in note_of(answerer)
    assert answerer.answer(IndexRequest(verify=True)).damaged == 1


def test_a_segment_whose_words_end_before_its_windows_do_is_damaged(pack: Pack) -> None:
    data = build_segment(pack({"a.py": "retry user\n"}), [0], weights=Weights())
    spans = Segment(data, STAMP).spans()
    sections: dict[str, BytesLike] = {
        name: bytes(data[start : start + size]) for name, (start, size) in spans.items()
    }
    sections["sequence"] = b""
    short = Segment(EncodedSegment(STAMP, sections).joined(), STAMP)
    with pytest.raises(SegmentError, match="end before"):
        Source(short, np.zeros(1, np.uint32))


def test_damage_to_kept_definitions_leaves_no_answer_short(
    pack_file: PackFile, tmp_path: Path
) -> None:
    path = pack_file(
        {f"m{n:03}.py": f"def load(x{n}):\n    pass\n\ndef f{n}(): pass\n" for n in range(150)}
    )
    folder = tmp_path / "one"
    kept = folder / FILE_NAME

    def defined() -> list[str]:
        answerer = stored(PackedCorpus.open(path), folder)
        result = answerer.answer(SymbolsRequest("load"))
        answerer.close()
        assert isinstance(result, SymbolsResult)
        return [symbol.path for symbol in result.symbols]

    expected = defined()
    assert len(expected) == 150
    whole = kept.read_bytes()
    page = 4096
    damaged = [
        whole[:at] + b"\x92" * page + whole[at + page :] for at in range(0, len(whole), page)
    ]
    # SQLite's error quotes what it cannot read of its schema, which is no text.
    damaged.append(whole.replace(b"CREATE TABLE names", b"CREATE \x92\x92\x92\x92\x92 names"))
    assert len(damaged) > 10
    for data in damaged:
        kept.write_bytes(data)
        assert defined() == expected
        # And whatever was left of it is no worse.
        assert defined() == expected


def test_another_versions_index_is_built_again(pack: Pack, tmp_path: Path) -> None:
    corpus = pack({"a.py": "needle\n"})
    stored(corpus, tmp_path / "one").answer(SearchRequest("x"))
    (path,) = segments_in(tmp_path / "one")
    whole = path.read_bytes()
    path.write_bytes(whole.replace(STAMP, b"another version.", 1))
    with pytest.raises(SegmentError, match="another version"):
        Segment.open(path, STAMP)
    answerer = stored(corpus, tmp_path / "one")
    assert found(answerer, "needle") == ["a.py"]
    assert answerer.answer(IndexRequest()).added == 1
    assert len(segments_in(tmp_path / "one")) == 1


def test_a_folder_that_cannot_be_written_is_said_and_the_index_stays_in_memory(
    pack: Pack, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("in the way")
    answerer = stored(pack({"a.py": "needle x\n"}), tmp_path / "file" / "one")
    assert found(answerer, "needle") == ["a.py"]
    assert "in memory only" in note_of(answerer)
    assert note_of(stored(pack({"a.py": "needle x\n"}), tmp_path / "one")) == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_leaves_no_half_written_segment(
    pack: Pack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = pack({"a.py": "needle x\n"})
    real_open = os.open

    def full(path: str, flags: int, mode: int = 0o777) -> int:
        if ".segment." in str(path) and flags & os.O_EXCL:
            os.close(real_open(path, flags, mode))
            return real_open("/dev/full", os.O_WRONLY)
        return real_open(path, flags, mode)

    monkeypatch.setattr(os, "open", full)
    answerer = stored(corpus, tmp_path / "one")
    assert found(answerer, "needle") == ["a.py"]
    assert "No space left" in note_of(answerer)
    monkeypatch.undo()
    assert [path.name for path in (tmp_path / "one").iterdir()] == ["about.json"]


def test_two_processes_at_once_and_one_killed_leave_an_index_that_answers(
    pack_file: PackFile, pack: Pack, tmp_path: Path
) -> None:
    documents = {f"d{n}.py": f"needle{n} common text\n" * 200 for n in range(200)}
    packed = pack_file(documents)
    code = (
        "import sys; from pathlib import Path\n"
        "from rlm_rag.indexes.answering import Answerer\n"
        "from rlm_rag.indexes.requests import SearchRequest\n"
        "a = Answerer.open(Path(sys.argv[1]), index_folder=Path(sys.argv[2]))\n"
        "print(a.answer(SearchRequest('needle77')).hits[0].path, flush=True)\n"
    )
    command = [sys.executable, "-c", code, str(packed), str(tmp_path / "one")]
    root = Path(__file__).parents[2]
    running = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) for _ in range(3)
    ]
    running[0].kill()
    said = [process.communicate(timeout=60)[0].strip() for process in running]
    assert said[1:] == ["d77.py", "d77.py"]
    corpus = pack(documents)
    assert answers_of(stored(corpus, tmp_path / "one")) == answers_of(Answerer.of(corpus))


def test_segments_that_another_process_removes_stay_readable(pack: Pack, tmp_path: Path) -> None:
    corpus = pack({"a.py": "needle\n"})
    answerer = stored(corpus, tmp_path / "one")
    expected = answers_of(answerer)
    clear(list_kept(tmp_path))
    assert answers_of(answerer) == expected


def test_the_indexes_used_longest_ago_go_first(pack: Pack, tmp_path: Path) -> None:
    for number, name in enumerate(("old", "newer", "newest")):
        stored(pack({"a.py": f"needle {name}\n"}), tmp_path / name).answer(SearchRequest("x"))
        os.utime(tmp_path / name / "about.json", (number, number))
    assert [index.folder.name for index in list_kept(tmp_path)] == ["newest", "newer", "old"]
    assert [index.origin for index in list_kept(tmp_path)] == ["here"] * 3
    size = list_kept(tmp_path)[0].size_bytes
    evict(tmp_path, 2 * size + size // 2, spared=tmp_path / "old")
    assert {index.folder.name for index in list_kept(tmp_path)} == {"newest", "old"}
    clear(list_kept(tmp_path))
    assert list_kept(tmp_path) == []


def test_a_segment_left_half_written_is_removed_after_a_while(pack: Pack, tmp_path: Path) -> None:
    folder = tmp_path / "one"
    folder.mkdir()
    left, current = folder / "left.partial", folder / "current.partial"
    left.touch()
    current.touch()
    os.utime(left, (1, 1))
    stored(pack({"a.py": "x\n"}), folder).answer(SearchRequest("x"))
    assert (left.exists(), current.exists()) == (False, True)


def test_each_source_has_a_folder_of_its_own(tmp_path: Path) -> None:
    origins = ["/a", "/a --include '*.py'", "/b", "/\udc80"]
    assert len({folder_of(tmp_path, origin) for origin in origins}) == 4
    for one, other in itertools.pairwise(origins):
        assert folder_of(tmp_path, one) == folder_of(tmp_path, one) != folder_of(tmp_path, other)


def test_the_cache_folder_is_the_one_that_is_chosen(tmp_path: Path) -> None:
    chosen = default_kept_folder({"XDG_CACHE_HOME": str(tmp_path)})
    assert chosen == tmp_path / "rlm-rag" / "indexes"
    unset = default_kept_folder({"XDG_CACHE_HOME": "relative"})
    assert unset is None or unset.is_absolute()


def test_a_large_index_drives_out_no_more_than_half_of_the_others(
    pack: Pack, tmp_path: Path
) -> None:
    for number, name in enumerate(("old", "newer", "newest")):
        stored(pack({"a.py": f"needle {name}\n"}), tmp_path / name).answer(SearchRequest("x"))
        os.utime(tmp_path / name / "about.json", (number, number))
    size = list_kept(tmp_path)[0].size_bytes
    (tmp_path / "newest" / "large.packed").write_bytes(bytes(50 * size))
    evict(tmp_path, 4 * size, spared=tmp_path / "newest")
    assert {index.folder.name for index in list_kept(tmp_path)} == {"newest", "newer", "old"}
    evict(tmp_path, 2 * size, spared=tmp_path / "newest")
    assert {index.folder.name for index in list_kept(tmp_path)} == {"newest", "newer"}

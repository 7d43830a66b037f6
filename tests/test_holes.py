"""The texts of a packed corpus with holes."""

from __future__ import annotations

import errno
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_rag import holes
from rlm_rag.errors import NotHeldError, PackedCorpusError
from rlm_rag.holes import Holes, pieces_of, write_holes
from rlm_rag.packed import PackedCorpus
from rlm_rag.packing import Described, PackedWriter

ANY_TEXT = st.text(st.characters(codec=None) | st.sampled_from("\r\n\ud800"), max_size=40)
DOCUMENTS = {"a.py": "first\n", "empty": "", "b.py": "second text\nof two lines\n"}


def packed(path: Path, documents: dict[str, str]) -> PackedCorpus:
    with PackedWriter(path) as writer:
        for name, content in documents.items():
            writer.add(name, content, encoding="utf-8")
    return PackedCorpus.open(path)


def with_holes(folder: Path, documents: dict[str, str]) -> tuple[PackedCorpus, Path]:
    """A corpus that is whole, and the file of it that has holes."""
    whole = packed(folder / "whole", documents)
    write_holes(whole, folder / "holes")
    return whole, folder / "holes"


@given(documents=st.dictionaries(ANY_TEXT, ANY_TEXT, min_size=1, max_size=6), data=st.data())
def test_a_corpus_with_holes_tells_and_fetches_what_the_whole_one_has(
    tmp_path_factory: pytest.TempPathFactory, documents: dict[str, str], data: st.DataObject
) -> None:
    whole, path = with_holes(tmp_path_factory.mktemp("holes"), documents)
    numbers = range(len(documents))
    with whole, PackedCorpus.open(path) as corpus:
        filling = Holes(path)
        assert corpus.has_holes
        assert not whole.has_holes
        assert list(map(Described.of, [corpus] * len(numbers), numbers)) == [
            Described.of(whole, number) for number in numbers
        ]
        assert (corpus.fingerprint, corpus.total_bytes, corpus.total_lines, corpus.shape) == (
            whole.fingerprint,
            whole.total_bytes,
            whole.total_lines,
            whole.shape,
        )
        asked: list[int] = []

        def source(number: int, itself: bool) -> None:
            asked.append(number)
            filling.fill(number, bytes(whole.content_bytes(number)))

        corpus.source = source
        for number in data.draw(st.lists(st.sampled_from(numbers), max_size=12)):
            assert corpus.content(number) == whole.content(number)
            assert corpus.is_whole(number)
        assert len(asked) == len(set(asked))
        assert all(corpus.holds(number) for number in asked)
        assert all(corpus.index_of(name) == at for at, name in enumerate(documents))
        filling.close()


def test_a_text_that_nobody_fetches_is_said_to_be_elsewhere(tmp_path: Path) -> None:
    whole, path = with_holes(tmp_path, DOCUMENTS)
    with whole, PackedCorpus.open(path) as corpus:
        with pytest.raises(NotHeldError, match=r"a\.py is not on this machine"):
            corpus.content(0)
        assert corpus.content(1) == ""


def test_a_text_that_cannot_be_filled_in_is_given_itself(tmp_path: Path) -> None:
    whole, path = with_holes(tmp_path, DOCUMENTS)
    with whole, PackedCorpus.open(path) as corpus:
        corpus.source = lambda number, itself: (
            bytes(whole.content_bytes(number)) if itself else None
        )
        assert corpus.content(2) == whole.content(2)
        assert not corpus.holds(2)


def test_another_text_than_that_of_the_document_is_not_filled_in(tmp_path: Path) -> None:
    whole, path = with_holes(tmp_path, DOCUMENTS)
    filling = Holes(path)
    with whole, pytest.raises(PackedCorpusError, match=r"Another text came for a\.py"):
        filling.fill(0, b"other\n")
    assert not filling.corpus.holds(0)
    filling.close()
    filling.close()


def test_the_oldest_texts_are_taken_away_and_their_room_given_back(tmp_path: Path) -> None:
    text = "x" * 65536
    whole, path = with_holes(tmp_path, {f"{at}": f"{at}{text}" for at in range(8)})
    filling = Holes(path, most_bytes=3 * len(text))
    before = path.stat().st_blocks
    for number in range(8):
        filling.fill(number, bytes(whole.content_bytes(number)))
    held = [number for number in range(8) if filling.corpus.holds(number)]
    assert held == [6, 7]
    assert (path.stat().st_blocks - before) * 512 < 4 * len(text)
    for number in held:
        assert filling.corpus.is_whole(number)
    filling.close()
    # Who comes after another takes away what that one left.
    filling = Holes(path, most_bytes=2 * len(text))
    filling.fill(0, bytes(whole.content_bytes(0)))
    assert [number for number in range(8) if filling.corpus.holds(number)] == [0]
    filling.close()
    whole.close()


def test_texts_stay_where_the_system_cannot_give_their_room_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(holes, "_punch", lambda fd, place, size: False)
    whole, path = with_holes(tmp_path, DOCUMENTS)
    filling = Holes(path, most_bytes=1)
    for number in range(3):
        filling.fill(number, bytes(whole.content_bytes(number)))
    assert all(filling.corpus.is_whole(number) for number in range(3))
    filling.close()
    whole.close()


def test_a_reader_sees_a_text_whole_while_others_fill_and_take_away(tmp_path: Path) -> None:
    documents = {f"{at}": chr(97 + at) * 20_000 for at in range(4)}
    whole, path = with_holes(tmp_path, documents)
    # Two processes that have the file open do so as well.
    both = [Holes(path, most_bytes=30_000) for _ in range(2)]
    ends = threading.Event()

    def stir(filling: Holes) -> None:
        while not ends.is_set():
            for number in range(4):
                filling.fill(number, bytes(whole.content_bytes(number)))

    threads = [threading.Thread(target=stir, args=(one,)) for one in both]
    with whole, PackedCorpus.open(path) as corpus:
        corpus.source = lambda number, itself: (
            bytes(whole.content_bytes(number)) if itself else None
        )
        for thread in threads:
            thread.start()
        try:
            for turn in range(2_000):
                assert corpus.content(turn % 4) == documents[f"{turn % 4}"]
        finally:
            ends.set()
            for thread in threads:
                thread.join()
    for one in both:
        one.close()


def test_a_copy_of_a_file_with_holes_has_none_of_the_texts_in_them(tmp_path: Path) -> None:
    whole, path = with_holes(tmp_path, DOCUMENTS)
    filling = Holes(path)
    filling.fill(0, bytes(whole.content_bytes(0)))
    for source in (tmp_path / "whole", path):
        copy = tmp_path / f"copy of {source.name}"
        with copy.open("wb") as file:
            for place, data in pieces_of(source):
                file.seek(place)
                file.write(data)
        with PackedCorpus.open(copy) as corpus:
            assert corpus.fingerprint == whole.fingerprint
            assert [corpus.holds(number) for number in range(3)] == [
                source != path,
                True,
                source != path,
            ]
    filling.close()
    whole.close()


def test_a_file_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    _, path = with_holes(tmp_path, DOCUMENTS)
    path.unlink()
    with pytest.raises(PackedCorpusError):
        Holes(path)


def test_holes_are_left_only_in_a_file_that_has_them(tmp_path: Path) -> None:
    with (
        packed(tmp_path / "whole", DOCUMENTS) as whole,
        PackedWriter(tmp_path / "new") as writer,
        pytest.raises(ValueError, match="has no holes"),
    ):
        writer.leave(Described.of(whole, 0))


def test_a_file_may_have_some_texts_from_the_beginning(tmp_path: Path) -> None:
    with packed(tmp_path / "whole", DOCUMENTS) as whole:
        with PackedWriter(tmp_path / "some", holes=True) as writer:
            writer.leave(Described.of(whole, 0))
            writer.add("b.py", DOCUMENTS["b.py"])
        with PackedCorpus.open(tmp_path / "some") as corpus:
            assert [corpus.holds(number) for number in range(2)] == [False, True]
            assert corpus.content(1) == DOCUMENTS["b.py"]


def test_where_a_text_has_no_room_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, path = with_holes(tmp_path, DOCUMENTS)
    filling = Holes(path)

    def full(fd: int, data: memoryview) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(holes.os, "write", full)
    with whole, pytest.raises(PackedCorpusError, match=r"Cannot hold the text of a\.py: No space"):
        filling.fill(0, bytes(whole.content_bytes(0)))
    monkeypatch.undo()
    assert not filling.corpus.holds(0)
    filling.close()

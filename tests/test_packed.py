"""The packed corpus file."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_rag import packed
from rlm_rag.errors import PackedCorpusError, SourceError
from rlm_rag.lines import count_lines
from rlm_rag.packed import PackedCorpus
from rlm_rag.packing import PackedWriter, StoredText, pack

ANY_CHARACTER = st.characters(codec=None) | st.sampled_from("\r\n\r\n\x00\ufeff\ud800\u2028\x85")
ANY_TEXT = st.text(ANY_CHARACTER, max_size=60)


def write(path: Path, documents: dict[str, str], **options: str) -> Path:
    with PackedWriter(path, **options) as writer:
        for name, content in documents.items():
            writer.add(name, content)
    return path


@given(documents=st.dictionaries(ANY_TEXT, ANY_TEXT, max_size=8))
def test_any_text_comes_back_as_it_went_in(
    tmp_path_factory: pytest.TempPathFactory, documents: dict[str, str]
) -> None:
    path = write(tmp_path_factory.mktemp("packed") / "corpus", documents)
    with PackedCorpus.open(path) as corpus:
        assert list(corpus.paths()) == list(documents)
        assert {corpus.path(i): corpus.content(i) for i in range(len(corpus))} == documents
        for number, (name, content) in enumerate(documents.items()):
            assert corpus.index_of(name) == number
            assert corpus.line_count(number) == count_lines(content)
            assert bytes(corpus.content_bytes(number)) == content.encode("utf-8", "surrogatepass")
        assert corpus.index_of("no such path") is None
        assert corpus.total_bytes == sum(
            len(content.encode("utf-8", "surrogatepass")) for content in documents.values()
        )
        assert corpus.total_lines == sum(map(count_lines, documents.values()))


@given(
    documents=st.dictionaries(ANY_TEXT, ANY_TEXT, max_size=8),
    taken=st.lists(st.tuples(st.sampled_from("slnr"), st.integers(0, 7)), max_size=8, unique=True),
)
def test_what_is_taken_from_another_file_is_as_if_it_were_added(
    tmp_path_factory: pytest.TempPathFactory,
    documents: dict[str, str],
    taken: list[tuple[str, int]],
) -> None:
    folder = tmp_path_factory.mktemp("packed")
    names = list(documents)
    with PackedCorpus.open(write(folder / "before", documents)) as before:
        texts: dict[str, str | StoredText] = {}
        for how, at in taken or [("s", number) for number in range(len(names))]:
            name = names[at % len(names)] if names else ""
            if how == "s" and names:
                texts[name] = StoredText(before, at % len(names))
            elif how == "r" and names:
                texts[f"renamed {name}"] = StoredText(before, at % len(names))
            else:
                texts[f"new {at}"] = how
        is_new = pack(texts.items(), folder / "packed", like=before)
        assert is_new == (list(texts) != names or not all(name in documents for name in texts))
        plain = {
            name: text if isinstance(text, str) else before.content(text.number)
            for name, text in texts.items()
        }
    if is_new:
        assert (folder / "packed").read_bytes() == write(folder / "plain", plain).read_bytes()


ENCODINGS = st.sampled_from([None, "utf-8", "latin-1", "cp1251"])


@given(
    documents=st.dictionaries(ANY_TEXT, st.tuples(ANY_TEXT, ENCODINGS), max_size=8),
    first=st.dictionaries(ANY_TEXT.map("new {}".format), st.tuples(ANY_TEXT, ENCODINGS)),
    run=st.tuples(st.integers(0, 8), st.integers(0, 8)),
)
def test_rows_taken_together_are_as_if_each_document_were_added(
    tmp_path_factory: pytest.TempPathFactory,
    documents: dict[str, tuple[str, str | None]],
    first: dict[str, tuple[str, str | None]],
    run: tuple[int, int],
) -> None:
    folder = tmp_path_factory.mktemp("packed")
    pack(((name, *told) for name, told in documents.items()), folder / "before")
    numbers = range(*run)[: len(documents) - run[0]] if run[0] < len(documents) else range(0)
    with (
        PackedCorpus.open(folder / "before") as before,
        (folder / "before").open("rb", 0) as file,
        PackedWriter(folder / "together") as together,
        PackedWriter(folder / "each") as each,
    ):
        for writer in (together, each):
            for name, (content, encoding) in first.items():
                writer.add(name, content, encoding=encoding)
        together.copy_all(before, numbers, file=file)
        for name in list(documents)[numbers.start : numbers.stop]:
            content, encoding = documents[name]
            each.add(name, content, encoding=encoding)
    assert (folder / "together").read_bytes() == (folder / "each").read_bytes()


def test_a_long_stretch_is_copied_from_a_file_byte_for_byte(tmp_path: Path) -> None:
    documents = {f"{number}.py": f"{number}\n" * (300_000 + number) for number in range(4)}
    path = write(tmp_path / "before", documents)
    with PackedCorpus.open(path) as before, path.open("rb", 0) as file:
        with PackedWriter(tmp_path / "part") as writer:
            writer.add("a", "b")
            writer.copy_all(before, range(1, 4), file=file)
        documents = {"a": "b", **{name: documents[name] for name in list(documents)[1:]}}
        assert (tmp_path / "part").read_bytes() == write(tmp_path / "x", documents).read_bytes()


def test_a_file_that_is_shorter_than_it_was_is_damaged(tmp_path: Path) -> None:
    path = write(tmp_path / "before", {"a": "x" * 5_000_000})
    (tmp_path / "cut").write_bytes(path.read_bytes()[:2_000_000])
    with PackedCorpus.open(path) as before, (tmp_path / "cut").open("rb", 0) as file:
        writer = PackedWriter(tmp_path / "part")
        with pytest.raises(PackedCorpusError, match="its end is missing"):
            writer.copy_all(before, range(1), file=file)
        writer.abort()


def test_a_path_taken_twice_from_another_file_is_refused(tmp_path: Path) -> None:
    with (
        PackedCorpus.open(write(tmp_path / "before", {"a": "1", "b": "2", "c": "3"})) as before,
        pytest.raises(SourceError, match="'b'"),
        PackedWriter(tmp_path / "twice") as writer,
    ):
        writer.add("b", "2")
        writer.copy_all(before, range(3))
    assert not (tmp_path / "twice").exists()


def test_shape_and_encodings_are_kept(tmp_path: Path) -> None:
    with PackedWriter(tmp_path / "c", shape="mapping") as writer:
        writer.add("a", "x", encoding="utf-8-sig")
        writer.add("b", "y")
        writer.add("c", "z", encoding="cp1252")
    with PackedCorpus.open(tmp_path / "c") as corpus:
        assert corpus.shape == "mapping"
        assert [corpus.encoding(i) for i in range(3)] == ["utf-8-sig", None, "cp1252"]


def test_a_digest_stands_for_a_path_with_its_content(tmp_path: Path) -> None:
    with PackedCorpus.open(write(tmp_path / "a", {"a": "bc", "ab": "c", "d": ""})) as first:
        digests = [first.digest(number) for number in range(len(first))]
    with PackedCorpus.open(write(tmp_path / "b", {"d": "", "a": "bc", "ab": "d"})) as second:
        others = {second.path(number): second.digest(number) for number in range(len(second))}
    assert len(set(digests)) == 3
    assert (others["a"], others["d"]) == (digests[0], digests[2])
    assert others["ab"] != digests[1]


def test_the_fingerprint_follows_paths_and_contents_alone(tmp_path: Path) -> None:
    def fingerprint(documents: dict[str, str], **options: str) -> str:
        with PackedCorpus.open(write(tmp_path / "c", documents, **options)) as corpus:
            return corpus.fingerprint

    base = fingerprint({"a": "bc", "d": ""})
    assert base == fingerprint({"a": "bc", "d": ""}, shape="mapping")
    assert len({base, fingerprint({"ab": "c", "d": ""}), fingerprint({"d": "", "a": "bc"})}) == 3


def test_a_path_given_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="Two documents have the path 'a'"):
        write_twice(tmp_path / "c")
    assert list(tmp_path.iterdir()) == []


def write_twice(path: Path) -> None:
    with PackedWriter(path) as writer:
        writer.add("a", "1")
        writer.add("a", "2")


def test_nothing_stands_at_the_path_until_the_file_is_whole(tmp_path: Path) -> None:
    writer = PackedWriter(tmp_path / "c")
    writer.add("a", "x" * 3_000_000)
    assert not (tmp_path / "c").exists()
    writer.abort()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ValueError, match="closed"):
        writer.add("b", "y")


def test_a_writer_that_is_forgotten_leaves_nothing(tmp_path: Path) -> None:
    writer = PackedWriter(tmp_path / "c")
    writer.add("a", "x")
    del writer
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(PackedCorpusError, match="nowhere") as caught:
        PackedWriter(tmp_path / "nowhere" / "c")
    assert "TMPDIR" in str(caught.value.hint)


@pytest.fixture
def full_disk() -> Iterator[Path]:
    """A folder where at most 1 MiB can be written, by a limit on the size of files."""
    import signal
    import tempfile

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with tempfile.TemporaryDirectory() as folder:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, before[1]))
        try:
            yield Path(folder)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
            signal.signal(signal.SIGXFSZ, handler)


def test_a_full_disk_is_an_error_that_names_the_folder_and_leaves_nothing(full_disk: Path) -> None:
    with pytest.raises(PackedCorpusError) as caught:
        write(full_disk / "c", {"a": "x" * 3_000_000})
    assert str(full_disk) in caught.value.message
    assert "Free space" in str(caught.value.hint)
    assert list(full_disk.iterdir()) == []


def test_a_disk_that_fills_at_the_last_byte_leaves_nothing(full_disk: Path) -> None:
    with pytest.raises(PackedCorpusError):
        write(full_disk / "c", {"a": "x" * ((1 << 20) - 50)})
    assert list(full_disk.iterdir()) == []


def test_what_could_not_be_written_so_far_is_written_once_when_it_can_be(full_disk: Path) -> None:
    texts = {"a": "x" * 900_000, "b": "y" * 230_000, "c": "z"}
    with PackedWriter(full_disk / "c") as writer:
        writer.add("a", texts["a"])
        writer.so_far()
        writer.add("b", texts["b"])
        with pytest.raises(OSError, match="File too large"):
            writer.so_far()
        _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        writer.add("c", texts["c"])
    with PackedCorpus.open(full_disk / "c") as corpus:
        assert {path: corpus.content(number) for number, path in enumerate(corpus.paths())} == texts


def test_two_workers_share_the_pages_of_one_file(tmp_path: Path) -> None:
    path = write(tmp_path / "c", {"a": "x" * 100})
    with PackedCorpus.open(path) as first, PackedCorpus.open(path) as second:
        assert first.content(0) == second.content(0)
        if sys.platform == "linux":
            maps = Path("/proc/self/maps").read_text()
            mapped = [line.split() for line in maps.splitlines() if line.endswith(str(path))]
            assert [fields[1] for fields in mapped] == ["r--s", "r--s"]
            assert len({fields[4] for fields in mapped}) == 1


def test_a_descriptor_serves_as_well_as_a_path(tmp_path: Path) -> None:
    descriptor = os.open(write(tmp_path / "c", {"a": "x"}), os.O_RDONLY)
    corpus = PackedCorpus.from_fd(descriptor)
    os.close(descriptor)
    assert corpus.content(0) == "x"
    corpus.close()


def test_a_view_outlives_the_corpus_it_came_from(tmp_path: Path) -> None:
    corpus = PackedCorpus.open(write(tmp_path / "c", {"a": "xyz"}))
    view = corpus.content_bytes(0)
    corpus.close()
    corpus.close()
    assert bytes(view) == b"xyz"
    with pytest.raises(ValueError, match="closed"):
        corpus.content(0)


def test_numbers_out_of_range_are_index_errors(tmp_path: Path) -> None:
    with PackedCorpus.open(write(tmp_path / "c", {"a": "x"})) as corpus:
        for number in (-1, 1):
            with pytest.raises(IndexError):
                corpus.content(number)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda data: b"", "too short"),
        (lambda data: b"#!/bin/sh\n" * 50, "does not start as one"),
        (lambda data: data[:7] + b"\x09" + data[8:], "version 9"),
        (lambda data: data[:-1], "end is missing"),
        (lambda data: data[:-50], "end is missing"),
        (lambda data: data[:60] + data[70:], "do not fit together"),
    ],
)
def test_a_damaged_file_is_told_from_a_whole_one(tmp_path: Path, damage, reason) -> None:  # type: ignore[no-untyped-def]
    path = write(tmp_path / "c", {"a": "x" * 200, "b": "y"})
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(PackedCorpusError, match=reason):
        PackedCorpus.open(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(PackedCorpusError, match="nothing here"):
        PackedCorpus.open(tmp_path / "nothing here")


@given(data=st.data())
def test_no_flipped_byte_does_more_than_raise_the_error_of_this_boundary(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("packed") / "c"
    whole = bytearray(write(path, {"a": "x\n", "b": "é", "c": ""}).read_bytes())
    place = data.draw(st.integers(0, len(whole) - 1))
    whole[place] = data.draw(st.integers(0, 255))
    path.write_bytes(whole)
    try:
        with PackedCorpus.open(path) as corpus:
            for number in range(min(len(corpus), 3)):
                corpus.path(number), corpus.content(number), corpus.encoding(number)
                corpus.line_count(number)
            corpus.index_of("b")
    except PackedCorpusError:
        pass


def test_opening_and_looking_up_cost_the_same_for_one_document_and_many(tmp_path: Path) -> None:
    many = write(tmp_path / "many", {f"folder/{i:06}.py": "x" for i in range(20_000)})
    with PackedCorpus.open(many) as corpus:
        reads = 0
        original = corpus._path_bytes

        class Counting(PackedCorpus):
            __slots__ = ()

            def _path_bytes(self, number: int) -> memoryview:
                nonlocal reads
                reads += 1
                return original(number)

        with Counting.open(many) as counted:
            assert reads == 0
            assert counted.index_of("folder/012345.py") == 12345
            assert reads <= 16


def test_the_module_needs_nothing_but_the_standard_library() -> None:
    root = Path(packed.__file__).parent.parent
    code = (
        "import sys, types; package = types.ModuleType('rlm_rag');"
        f"package.__path__ = [{str(root / 'rlm_rag')!r}]; sys.modules['rlm_rag'] = package;"
        "import rlm_rag.packed; print('hashlib' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False"]


def held_bytes(path: Path) -> int:
    """Return how much of a mapped file this process holds in memory."""
    of_file = Path("/proc/self/smaps").read_text().partition(f"{path}\n")[2]
    return int(of_file.partition("Rss:")[2].split()[0]) * 1024


@pytest.mark.skipif(sys.platform != "linux", reason="what is mapped is told by Linux")
def test_what_is_given_back_takes_no_memory_until_it_is_read_again(tmp_path: Path) -> None:
    documents = {name: name * (4 << 20) for name in "abc"}
    path = write(tmp_path / "corpus", documents)
    with PackedCorpus.open(path) as corpus:
        for name, content in zip("abc", (corpus.content(n) for n in range(3)), strict=True):
            assert content == documents[name]
        assert held_bytes(path) > 12 << 20
        corpus.give_back([0, 1])
        assert held_bytes(path) < 5 << 20
        assert corpus.content(1) == documents["b"]
        corpus.give_back([])

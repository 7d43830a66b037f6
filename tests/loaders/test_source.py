"""Whatever a person calls a source becomes a corpus, or an error that says what to do."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from rlm_rag.corpus import Document
from rlm_rag.errors import EmptyCorpusError, SourceError, UsageError
from rlm_rag.loaders.files import format_bytes, read_regular
from rlm_rag.loaders.source import Source, load_corpus, load_sources


def contents(source: Source) -> tuple[str, dict[str, str]]:
    with load_corpus(source) as corpus:
        return corpus.shape, {document.path: document.content for document in corpus}


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "a.py").write_text("a")
    (folder / "README.md").write_text("read me")
    return folder


def feed(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))


def test_a_folder_or_file_is_named_by_path_or_string(repo: Path) -> None:
    expected = ("documents", {"README.md": "read me", "src/a.py": "a"})
    assert contents(repo) == contents(str(repo)) == contents(f"{repo}/") == expected
    assert contents(repo / "README.md") == ("documents", {"README.md": "read me"})


def test_a_link_that_is_named_is_followed(repo: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(repo)
    (tmp_path / "flink.md").symlink_to(repo / "README.md")
    assert contents(tmp_path / "link")[1].keys() == {"README.md", "src/a.py"}
    assert contents(tmp_path / "flink.md")[1] == {"flink.md": "read me"}


def test_values_keep_the_shape_they_came_in() -> None:
    assert contents([{"path": "a", "content": "x"}, {"content": "y", "other": 1}]) == (
        "documents", {"a": "x", "<context[1]>": "y"}
    )  # fmt: skip
    assert contents([("a", "x")]) == ("documents", {"a": "x"})
    assert contents([Document("a", "x", 1, 1)]) == ("documents", {"a": "x"})
    assert contents(["x", "y"]) == ("texts", {"<context[0]>": "x", "<context[1]>": "y"})
    assert contents({"a": "x"}) == ("mapping", {"a": "x"})
    assert contents(name for name in ("x", "y"))[0] == "texts"


@pytest.mark.parametrize(
    "source",
    [
        {"a": "x", "": "y"},
        [("a", "x"), ("", "y")],
        [{"path": "a", "content": "x"}, {"path": "", "content": "y"}],
    ],
)
def test_a_text_whose_path_is_empty_is_refused_for_that(source: object) -> None:
    with pytest.raises(SourceError, match="The path of item 1 is empty"):
        load_corpus(source)


@pytest.mark.parametrize("kind", [set, frozenset])
def test_a_set_of_texts_is_refused_since_it_has_no_order(kind: type[set[str]]) -> None:
    with pytest.raises(SourceError, match=f"Cannot load a {kind.__name__}: its order") as caught:
        load_corpus(kind(["a b", "c d"]))
    assert "sorted(" in (caught.value.hint or "")
    with load_corpus(dict.fromkeys(["a b", "c d"]).keys()) as corpus:
        assert [document.content for document in corpus] == ["a b", "c d"]


def test_a_text_is_given_by_name_or_told_by_its_lines_or_its_length(tmp_path: Path) -> None:
    with load_corpus(text="README.md") as corpus:
        assert (corpus.shape, corpus[0].path, corpus[0].content) == (
            "text",
            "<context>",
            "README.md",
        )
    for text in ("one\ntwo", "x" * 5000, "a\x00b\nc", "\ud800\n"):
        assert contents(text) == ("text", {"<context>": text})
    odd = tmp_path / "odd\nname"
    odd.write_text("a file all the same")
    assert contents(str(odd)) == ("documents", {"odd\nname": "a file all the same"})


def test_a_corpus_made_of_a_corpus_is_the_same(repo: Path) -> None:
    with load_corpus(repo) as corpus, load_corpus(corpus[:]) as again:
        assert again.fingerprint == corpus.fingerprint
        assert again[0] == corpus[0]


def test_standard_input_is_one_text(monkeypatch: pytest.MonkeyPatch) -> None:
    feed(monkeypatch, "\ufeffé\r\nx".encode())
    assert contents("-") == ("text", {"<context>": "é\r\nx"})


@pytest.mark.parametrize(
    ("data", "message"), [(b"", "is empty"), (b"\0\1", "is binary"), (b"x" * 11, "larger than")]
)
def test_standard_input_that_cannot_serve_says_why(
    monkeypatch: pytest.MonkeyPatch, data: bytes, message: str
) -> None:
    feed(monkeypatch, data)
    with pytest.raises(SourceError, match=message):
        load_corpus("-", max_file_bytes=10)


def test_standard_input_may_name_files(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other.txt").write_text("other")
    (repo / ".env").write_text("K=1")
    monkeypatch.chdir(repo)
    feed(monkeypatch, b"./src/a.py\0README.md\0src/a.py\0gone\0../other.txt\0.env\0src\0")
    with load_corpus("-", null_paths=True) as corpus:
        away = str(tmp_path / "other.txt").lstrip("/")
        assert sorted(corpus.paths()) == sorted(["README.md", "src/a.py", away])
        assert {one.path: one.reason for one in corpus.skipped} == {
            "gone": "not readable: there is no such file",
            ".env": "may hold secrets",
            "src": "a folder, not a file",
        }
        assert [text for text in corpus.warnings if "gone" in text] == [
            "gone: not readable: there is no such file, so it was left out"
        ]


def test_no_standard_input_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(SourceError, match="no standard input"):
        load_corpus("-")


def test_a_missing_path_is_named_with_names_close_to_it(repo: Path) -> None:
    with pytest.raises(SourceError, match="No such file or folder") as caught:
        load_corpus(repo / "READMEE.md")
    assert caught.value.hint == "Did you mean README.md?"
    for missing in ("no/such/place", "https://example.org/x.git", "x\x00y", "~nobody-here/x"):
        with pytest.raises(SourceError):
            load_corpus(missing)


def test_a_link_to_what_is_not_there_is_told_as_one(tmp_path: Path) -> None:
    (tmp_path / "dangling").symlink_to("nowhere")
    with pytest.raises(SourceError, match="is a link to what is not there: 'nowhere'") as caught:
        load_corpus(tmp_path / "dangling")
    assert "mean dangling" not in (caught.value.hint or "")


@pytest.mark.skipif(os.name == "nt", reason="a folder in use cannot be removed there")
@pytest.mark.parametrize("source", [".", "./a", "a*.py", Path("a.py"), ".@HEAD"])
def test_a_working_folder_that_is_gone_is_named(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str | Path
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(SourceError, match="working folder is gone") as raised:
        load_corpus(source)
    assert "whole paths" in str(raised.value.hint)
    with load_corpus(repo) as corpus:
        assert len(corpus)


@pytest.mark.skipif(os.name != "posix", reason="special files of POSIX")
def test_a_pipe_or_a_device_is_refused_with_a_way_out(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for source in (tmp_path / "pipe", Path("/dev/null")):
        with pytest.raises(SourceError, match="Not a regular file") as caught:
            load_corpus(source)
        assert "Pipe it in" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("a.bin", b"\0\1\2", "binary"),
        (".env", b"K=1", "may hold secrets"),
        ("big.txt", b"x" * 101, "larger than 100 bytes"),
        ("big.jsonl", b'{"a": 1}\n' * 20, "larger than 100 bytes"),
    ],
)
def test_a_single_file_that_is_no_text_is_an_error_with_its_reason(
    tmp_path: Path, name: str, data: bytes, reason: str
) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(SourceError, match=reason) as caught:
        load_corpus(tmp_path / name, max_file_bytes=100)
    assert caught.value.hint


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root reads all")
def test_an_unreadable_file_is_an_error_with_its_reason(tmp_path: Path) -> None:
    for name in ("a.txt", "a.jsonl"):
        (tmp_path / name).write_text("x")
        (tmp_path / name).chmod(0)
        with pytest.raises(SourceError, match="Permission denied"):
            load_corpus(tmp_path / name)


@pytest.mark.parametrize(
    "source",
    [
        42,
        object(),
        b"a/path",
        "",
        [1],
        ["x", 1],
        [{"path": "a"}],
        [{"path": 1, "content": "x"}],
        [{"path": "a", "content": "x"}] * 2,
        [("a", "b", "c")],
        {"a": 1},
        {"": "x"},
    ],
)
def test_what_is_no_source_is_an_error_that_says_what_is(source: Source) -> None:
    with pytest.raises(SourceError) as caught:
        load_corpus(source)
    assert caught.value.hint


def test_nothing_in_a_list_is_an_empty_corpus() -> None:
    for source in ([], {}, iter(())):
        with pytest.raises(EmptyCorpusError):
            load_corpus(source)


def test_misuse_is_a_usage_error() -> None:
    for arguments in (
        {},
        {"source": "a", "text": "b"},
        {"text": "a", "max_file_bytes": 0},
        {"text": "a", "max_files": 0},
        {"text": "a", "colour": "red"},
    ):
        with pytest.raises(UsageError):
            load_corpus(**arguments)  # type: ignore[arg-type]
    with pytest.raises(UsageError):
        load_sources([])


def test_one_of_several_sources_is_as_if_alone(repo: Path) -> None:
    with load_sources([str(repo)]) as corpus:
        assert list(corpus.paths()) == ["README.md", "src/a.py"]


def test_several_sources_have_their_names_before_their_paths(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other" / "repo"
    other.mkdir(parents=True)
    (other / "b.txt").write_text("b")
    (other / "c.bin").write_bytes(b"\0")
    feed(monkeypatch, b"piped")
    monkeypatch.chdir(other)
    sources = [str(repo), ".", f"docs={other}", str(repo / "README.md"), "-"]
    with load_sources(sources) as corpus:
        assert list(corpus.paths()) == [
            "repo/README.md", "repo/src/a.py", "repo~2/b.txt", "docs/b.txt", "README.md", "stdin"
        ]  # fmt: skip
        assert [one.path for one in corpus.skipped] == ["repo~2/c.bin", "docs/c.bin"]
        assert corpus["stdin"].content == "piped"


def test_a_path_that_holds_an_equals_sign_is_a_path(tmp_path: Path) -> None:
    (tmp_path / "a=b").write_text("x")
    with load_sources([str(tmp_path / "a=b")]) as corpus:
        assert list(corpus.paths()) == ["a=b"]
    with load_sources([f"name={tmp_path}"]) as corpus:
        assert list(corpus.paths()) == ["name/a=b"]


def test_a_source_with_nothing_in_it_does_not_sink_the_others(repo: Path, tmp_path: Path) -> None:
    (tmp_path / "void").mkdir()
    with load_sources([str(repo), str(tmp_path / "void")], include="*.py") as corpus:
        assert list(corpus.paths()) == ["repo/src/a.py"]
        assert corpus.warnings == ("void: no document in it",)
    with pytest.raises(EmptyCorpusError, match="void"):
        load_sources([str(tmp_path / "void"), str(tmp_path / "void")])


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_a_file_that_is_longer_than_its_size_says_is_cut_off_at_the_limit() -> None:
    assert read_regular("/proc/self/status", 10) == "larger than 10 bytes (max_file_bytes)"
    assert isinstance(read_regular("/proc/self/status", 1 << 20), bytes)


def test_sizes_are_written_as_people_read_them() -> None:
    sizes = (0, 1, 1023, 1024, 1536, 64 << 20, 3 << 30, 5 << 50)
    assert [format_bytes(size) for size in sizes] == [
        "0 bytes", "1 byte", "1023 bytes", "1 KiB", "1.5 KiB", "64 MiB", "3 GiB", "5120 TiB"
    ]  # fmt: skip


def test_files_of_one_name_keep_their_type(tmp_path: Path) -> None:
    names = [
        "g.py",
        "g.py",
        "g~2.py",
        "v1.tar.txt",
        "v1.tar.txt",
        ".conf",
        ".conf",
        "plain",
        "plain",
    ]
    files = []
    for number, name in enumerate(names):
        files.append(tmp_path / str(number) / name)
        files[-1].parent.mkdir()
        files[-1].write_text(f"{number}\n")
    with load_sources([str(file) for file in files]) as corpus:
        assert list(corpus.paths()) == [
            *("g.py", "g~3.py", "g~2.py", "v1.tar.txt", "v1.tar~2.txt"),
            *(".conf", ".conf~2", "plain", "plain~2"),
        ]
        assert [document.content for document in corpus] == [f"{n}\n" for n in range(len(names))]
    chosen = [f"mine.py={files[0]}", f"mine.py={files[1]}"]
    with load_sources(chosen) as corpus:
        assert list(corpus.paths()) == ["mine.py", "mine~2.py"]


def test_a_source_that_is_missing_is_said_to_be() -> None:
    with pytest.raises(UsageError, match="A source is missing"):
        load_corpus(None)

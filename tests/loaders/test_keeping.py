"""The kept corpus: whatever was kept, and whatever became of it, a load is as if nothing was."""

from __future__ import annotations

import itertools
import os
import re
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rlm_rag
from rlm_rag import kept
from rlm_rag.corpus import Corpus
from rlm_rag.errors import SourceError
from rlm_rag.loaders import begun, intake, keeping, memory
from rlm_rag.loaders.installed import release_of
from rlm_rag.loaders.keeping import Keeping
from rlm_rag.loaders.kept_corpus import stamp
from rlm_rag.loaders.source import load_corpus, load_sources

ROOT = Path(__file__).parents[2]
KEY = b"-----BEGIN PRIVATE KEY-----\nx\n"
NAMES = ("a.py", "b.md", "src/c.py", "key.pem", "src/d e.txt")
PER_MILLE = st.integers(0, 999)
CONTENTS = (b"x = 1\n", b"x = 2\n", b"", b"a\r\nb\r\n", b"\0\1\2", b"caf\xe9 au lait\n", KEY)
states = st.dictionaries(st.sampled_from(NAMES), st.sampled_from(CONTENTS), max_size=5)
ticks = itertools.count(1)


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files count as settled at once; whoever changes one gives it another time."""
    monkeypatch.setattr(memory, "_SETTLED_NS", 0)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    put(folder, {"a.py": b"x = 1\n", "b.md": b"# t\r\n", "c.bin": b"\0", "key.pem": KEY})
    return folder


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of the files that are read, as they are."""
    paths: list[str] = []
    real = intake.read_file

    def noted(path: str, *others: object, **options: object) -> object:
        paths.append(path)
        return real(path, *others, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(intake, "read_file", noted)
    return paths


def put(folder: Path, files: dict[str, bytes]) -> None:
    """Make the files beneath a folder these."""
    folder.mkdir(exist_ok=True)
    for path in [path for path in folder.rglob("*") if path.is_file()]:
        if path.relative_to(folder).as_posix() not in files:
            path.unlink()
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        if not path.exists() or path.read_bytes() != content:
            path.write_bytes(content)
            os.utime(path, ns=(0, next(ticks)))


def seen(corpus: Corpus) -> tuple[object, ...]:
    with corpus:
        documents = [(one.path, one.content, one.encoding, one.line_count) for one in corpus]
        whole = corpus.packed_path.read_bytes()
        return documents, corpus.skipped, corpus.warnings, corpus.fingerprint, corpus.shape, whole


def loaded(source: Path, root: Path | None, *, verify: bool = False) -> tuple[object, ...]:
    keeping = Keeping(root, verify=verify) if root is not None else None
    # Without ignore rules, which are read the same either way, and slowly.
    return seen(load_corpus(source, keeping=keeping, ignore=False))


def files_in(root: Path) -> list[Path]:
    return sorted(path for path in root.rglob("*") if path.is_file())


def packed_file(root: Path) -> Path:
    (path,) = root.glob("*/*.packed")
    return path


@pytest.mark.usefixtures("no_waiting")
@settings(max_examples=12)
@given(st.lists(states, min_size=2, max_size=5))
def test_any_sequence_of_changes_loads_as_if_nothing_had_been_kept(
    tmp_path_factory: pytest.TempPathFactory, versions: list[dict[str, bytes]]
) -> None:
    folder = tmp_path_factory.mktemp("source")
    root = folder.with_name(f"{folder.name}-kept") / "indexes"
    for files in versions:
        put(folder, {**files, "always.txt": b"here\n"})
        assert loaded(folder, root) == loaded(folder, None)


@pytest.mark.usefixtures("no_waiting")
def test_only_files_that_changed_are_opened(
    source: Path, tmp_path: Path, opened: list[str]
) -> None:
    root = tmp_path / "kept" / "indexes"
    first = loaded(source, root)
    assert sorted(opened) == ["a.py", "b.md", "c.bin", "key.pem"]
    opened.clear()
    before = files_in(root)
    assert loaded(source, root) == first
    assert (opened, files_in(root)) == ([], before)
    (source / "a.py").write_bytes(b"x = 2\n")
    (source / "new.py").write_bytes(b"")
    (source / "b.md").rename(source / "moved.md")
    loaded(source, root)
    assert sorted(opened) == ["a.py", "moved.md", "new.py"]
    packed_file(root)


def test_a_file_that_changed_a_moment_ago_is_read_again(source: Path, tmp_path: Path) -> None:
    root = tmp_path / "kept" / "indexes"
    loaded(source, root)
    times = (source / "a.py").stat()
    (source / "a.py").write_bytes(b"x = 3\n")
    os.utime(source / "a.py", ns=(times.st_atime_ns, times.st_mtime_ns))
    assert loaded(source, root)[0][0][1] == "x = 3\n"  # type: ignore[index]


@pytest.mark.usefixtures("no_waiting")
def test_a_content_put_back_with_its_old_times_is_noticed(source: Path, tmp_path: Path) -> None:
    root = tmp_path / "kept" / "indexes"
    loaded(source, root)
    times = (source / "a.py").stat()
    # A tick of the file system's clock, so that the change has another time.
    time.sleep(0.02)
    (source / "a.py").write_bytes(b"x = 3\n")
    os.utime(source / "a.py", ns=(times.st_atime_ns, times.st_mtime_ns))
    assert loaded(source, root)[0][0][1] == "x = 3\n"  # type: ignore[index]


@pytest.mark.usefixtures("no_waiting")
def test_a_file_known_by_another_name_is_judged_by_this_one(tmp_path: Path) -> None:
    root = tmp_path / "kept" / "indexes"
    (tmp_path / "plain.txt").write_bytes(KEY)
    (tmp_path / "id.pem").symlink_to("plain.txt")
    loaded(tmp_path / "plain.txt", root)
    with pytest.raises(SourceError, match="secrets"):
        loaded(tmp_path / "id.pem", root)


@pytest.mark.usefixtures("no_waiting")
def test_sources_under_prefixes_are_kept_together(
    source: Path, tmp_path: Path, opened: list[str]
) -> None:
    keeping = Keeping(tmp_path / "kept" / "indexes")
    sources = [str(source), str(source / "a.py"), f"again={source}"]
    first = seen(load_sources(sources, keeping=keeping))
    assert first == seen(load_sources(sources))
    opened.clear()
    assert seen(load_sources(sources, keeping=keeping)) == first
    assert opened == []


@pytest.mark.usefixtures("no_waiting")
@settings(max_examples=20)
@given(st.data())
def test_any_damage_to_what_is_kept_is_noticed(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("source")
    root = folder.with_name(f"{folder.name}-kept") / "indexes"
    put(folder, {"a.py": b"x = 1\n" * 9, "b.md": b"caf\xe9\n"})
    expected = loaded(folder, root)
    files = [path for path in files_in(root) if path.suffix != ".json"]
    # By shares, since names and sizes are not the same in each example.
    path = files[len(files) * data.draw(PER_MILLE) // 1000]
    whole = bytearray(path.read_bytes())
    at = len(whole) * data.draw(PER_MILLE) // 1000
    if data.draw(st.booleans()):
        del whole[at:]
    else:
        whole[at] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(whole)
    os.utime(path, ns=(0, next(ticks)))
    assert loaded(folder, root) == expected
    assert loaded(folder, root) == expected


@pytest.mark.usefixtures("no_waiting")
def test_damage_that_left_no_trace_is_found_when_it_is_looked_for(
    source: Path, tmp_path: Path
) -> None:
    root = tmp_path / "kept" / "indexes"
    expected = loaded(source, root)
    path = packed_file(root)
    times = path.stat()
    whole = bytearray(path.read_bytes())
    whole[whole.index(b"x = 1")] = ord("y")
    path.write_bytes(whole)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    found = loaded(source, root, verify=True)
    assert found[0] == expected[0]
    assert found[2] == ("a.py: what was kept of it was wrong; it was read again",)
    assert loaded(source, root, verify=True) == loaded(source, root) == expected


def test_what_is_kept_is_the_users_alone(source: Path, tmp_path: Path) -> None:
    root = tmp_path / "kept" / "indexes"
    loaded(source, root)
    paths = [root.parent, *root.parent.rglob("*")]
    modes = {(path.is_dir(), stat.S_IMODE(path.stat().st_mode)) for path in paths}
    assert modes == {(True, 0o700), (False, 0o600)}
    assert b"BEGIN PRIVATE" not in b"".join(path.read_bytes() for path in files_in(root))


def test_nothing_else_is_left_behind(source: Path, tmp_path: Path) -> None:
    root = tmp_path / "kept" / "indexes"
    for _ in range(3):
        loaded(source, root)
        (source / "a.py").write_bytes(os.urandom(8).hex().encode())
    assert [path.suffix for path in files_in(root.parent)] == [".packed", ".json", ".table"]
    assert list((root.parent / "open").iterdir()) == []


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root = kept.default_kept_folder()
    assert root is not None
    yield root


def test_nothing_is_kept_where_that_is_asked_for(source: Path, cache: Path) -> None:
    with rlm_rag.load(source, keep=False) as corpus:
        assert corpus.search("x")
    assert files_in(cache) == []


def test_a_corpus_outlives_what_is_kept_of_it(source: Path, cache: Path) -> None:
    with rlm_rag.load(source) as corpus:
        kept.clear(kept.list_kept(cache))
        assert corpus.grep("x = 1").total == 1
        assert corpus["a.py"].content == "x = 1\n"


def test_a_cache_folder_that_cannot_be_made_is_told(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with rlm_rag.load(source) as corpus:
        assert corpus.paths() and "not kept" in corpus.warnings[0]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("full", ["corpus.packed", "corpus.table"])
def test_a_full_disk_is_told_and_the_text_loaded(
    source: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, full: str
) -> None:
    real: Callable[..., int] = os.open

    def open_full(path: str, flags: int, mode: int = 0o777) -> int:
        if str(path).startswith(str(cache.parent)) and full in str(path) and flags & os.O_EXCL:
            os.close(real(path, flags, mode))
            return real("/dev/full", os.O_WRONLY)
        return real(path, flags, mode)

    monkeypatch.setattr(os, "open", open_full)
    with rlm_rag.load(source) as corpus:
        assert corpus["a.py"].content == "x = 1\n"
        assert "No space left" in corpus.warnings[0]


def test_loads_at_once_and_one_that_was_killed_leave_what_can_be_used(
    source: Path, tmp_path: Path
) -> None:
    put(source, {f"d{number}.py": b"line\n" * 500 for number in range(300)})
    root = tmp_path / "kept" / "indexes"
    code = (
        "import sys; from pathlib import Path\n"
        "from rlm_rag.loaders import keeping, memory; memory._SETTLED_NS = 0\n"
        "from rlm_rag.loaders.source import load_corpus\n"
        "class Told(keeping.ScratchFolder):\n"
        "    def __init__(self, parent): super().__init__(parent); print('begun', flush=True)\n"
        "keeping.ScratchFolder = Told\n"
        "kept = keeping.Keeping(Path(sys.argv[2]))\n"
        "print(load_corpus(sys.argv[1], keeping=kept).fingerprint)\n"
    )
    command = [sys.executable, "-c", code, str(source), str(root)]
    running = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) for _ in range(3)
    ]
    killed = running[0]
    assert killed.stdout is not None
    # Not before: what is left of one that was about to lock its folder stays for an hour.
    assert killed.stdout.readline() == "begun\n"
    time.sleep(0.03)
    killed.send_signal(signal.SIGKILL)
    said = [process.communicate(timeout=60)[0].split() for process in running]
    expected = loaded(source, None)
    assert said[1:] == [["begun", expected[3]]] * 2
    assert loaded(source, root) == expected
    assert list((root.parent / "open").iterdir()) == []


def test_what_is_kept_depends_on_the_releases_that_decide_how_it_is_read() -> None:
    assert "chardet-" in release_of("chardet") and release_of("chardet").endswith(".dist-info")
    assert "detect_secrets-" in release_of("detect_secrets")
    assert release_of("no_such_package") == ""


def test_what_is_kept_depends_on_each_module_that_decides_what_is_loaded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    digested: list[str] = []
    monkeypatch.setattr(kept, "sources_digest", digested.extend)
    stamp.__wrapped__()
    package = ROOT / "rlm_rag"
    modules = (package / "loaders").rglob("*.py")
    found = re.findall(
        r"^from rlm_rag(?:\.| import )(\w+)",
        "\n".join(one.read_text("utf-8") for one in modules),
        re.M,
    )
    used = {f"{name}.py" for name in found if (package / f"{name}.py").is_file()}
    # They say how a load ends, where its files lie and what is known of its documents.
    others = {"child.py", "closing.py", "corpus.py", "errors.py", "kept.py", "scratch.py"}
    assert used - others <= {*digested}
    assert others <= used


@pytest.mark.usefixtures("no_waiting")
@pytest.mark.parametrize(("free", "is_kept"), [(3, True), (1, False)])
def test_a_large_text_is_kept_where_the_disk_has_room_for_two(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, *, is_kept: bool
) -> None:
    def usage(folder: Path) -> SimpleNamespace:
        size = (folder / "corpus.packed").stat().st_size
        return SimpleNamespace(free=free * size)

    monkeypatch.setattr(keeping, "_ALWAYS_KEPT_BYTES", 10)
    monkeypatch.setattr(keeping.shutil, "disk_usage", usage)
    root = tmp_path / "kept" / "indexes"
    assert loaded(source, root) == loaded(source, None)
    assert [path.suffix for path in files_in(root)].count(".packed") == is_kept


class KilledError(Exception):
    """Stands for the end of a process."""


@pytest.fixture
def begun_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(begun, "INTERVAL_SECONDS", 0.0)
    monkeypatch.setattr(begun, "_TIMES_COST", 0.0)


def killed_at(source: Path, root: Path, count: int) -> None:
    """Load a source, and end when so many documents are read."""

    def watch(documents: int, _size_bytes: int) -> None:
        if documents > count:
            raise KilledError

    with pytest.raises(KilledError):
        load_corpus(source, keeping=Keeping(root), ignore=False, on_progress=watch)


@pytest.mark.usefixtures("no_waiting", "begun_often")
def test_a_load_that_was_killed_goes_on_where_it_was(tmp_path: Path, opened: list[str]) -> None:
    source, root = tmp_path / "source", tmp_path / "kept" / "indexes"
    put(source, {f"f{number}.txt": b"text %d\n" % number for number in range(9)})
    killed_at(source, root, 6)
    assert len(opened) == 7
    # Earlier than the first time: that is not lost.
    killed_at(source, root, 2)
    assert len(opened) == 7
    killed_at(source, root, 8)
    assert opened[7:] == ["f6.txt", "f7.txt", "f8.txt"]
    opened.clear()
    assert loaded(source, root) == loaded(source, None)
    assert opened[:1] == ["f8.txt"]
    assert sorted(path.name.split(".", 1)[-1] for path in files_in(root)) == [
        *("json", "packed", "table"),
    ]


@pytest.mark.usefixtures("no_waiting", "begun_often")
def test_an_update_keeps_nothing_that_no_load_would_go_on_from(
    source: Path, tmp_path: Path
) -> None:
    root = tmp_path / "kept" / "indexes"
    loaded(source, root)
    before = files_in(root)
    put(source, {f"new{number}.txt": b"new\n" for number in range(9)})
    killed_at(source, root, 8)
    assert files_in(root) == before
    assert loaded(source, root) == loaded(source, None)


@pytest.mark.usefixtures("no_waiting", "begun_often")
@pytest.mark.parametrize("is_begun", [True, False])
def test_a_corpus_that_is_open_holds_one_copy_of_its_text(
    source: Path, tmp_path: Path, *, is_begun: bool
) -> None:
    root = tmp_path / "kept" / "indexes"
    if is_begun:
        killed_at(source, root, 1)
    else:
        loaded(source, root)
    put(source, {"a.py": b"x = 1\n", "new.py": b"y = 2\n"})
    with load_corpus(source, keeping=Keeping(root), ignore=False) as corpus:
        assert corpus["new.py"].content == "y = 2\n"
        held = files_in(root.parent / "open")
        assert [path.name for path in held] == ["corpus.packed", "lock"]


@pytest.mark.usefixtures("no_waiting", "begun_often")
@settings(max_examples=8)
@given(states, st.integers(0, 5), st.sampled_from(["nothing", "table", "packed"]), states)
def test_whatever_became_of_a_begun_load_the_next_is_as_if_nothing_had_been_kept(
    tmp_path_factory: pytest.TempPathFactory,
    files: dict[str, bytes],
    count: int,
    damaged: str,
    later: dict[str, bytes],
) -> None:
    folder = tmp_path_factory.mktemp("source")
    root = folder.with_name(f"{folder.name}-kept") / "indexes"
    put(folder, {**files, **{f"z{number}.txt": b"z\n" for number in range(7)}})
    killed_at(folder, root, count)
    for path in files_in(root):
        if path.name.endswith(damaged):
            path.write_bytes(path.read_bytes()[:-9])
    put(folder, {**later, "z3.txt": b"other\n"})
    assert loaded(folder, root) == loaded(folder, None)
    assert loaded(folder, root) == loaded(folder, None)

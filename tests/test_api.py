"""The front door of the library."""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import rlm_rag
from rlm_rag.api import load_origin
from rlm_rag.errors import EmptyCorpusError, RetrievalError, SourceError, UsageError
from rlm_rag.indexes.requests import Hit
from rlm_rag.sandbox import layers
from rlm_rag.sandbox.confine.unconfined import Unconfined

DOCUMENTS = [
    {"path": "src/a.py", "content": "def backoff(attempt):\n    return 2 ** attempt\n"},
    {"path": "docs/выбор.md", "content": "# Задержка\r\nсколько ждать перед повтором\r\n"},
]


def test_every_public_name_can_be_had_and_is_listed() -> None:
    for name in rlm_rag.__all__:
        assert getattr(rlm_rag, name) is not None
        assert name in dir(rlm_rag)
    with pytest.raises(AttributeError, match="nonsense"):
        rlm_rag.nonsense  # noqa: B018


def test_the_primitives_work_without_a_model() -> None:
    with rlm_rag.load(DOCUMENTS) as corpus:
        hits = corpus.search("backoff", k=5)
        assert isinstance(hits[0], Hit)
        assert dataclasses.is_dataclass(hits[0])
        assert (hits[0].path, hits[0].line) == ("src/a.py", 1)
        assert corpus.search("повтором")[0].path == "docs/выбор.md"
        grep = corpus.grep("attempt", path_glob="src/**/*.py")
        assert (grep.total, dict(grep.counts)) == (2, {"src/a.py": 2})
        assert "def backoff" in corpus.outline("a.py")
        assert [(s.path, s.line) for s in corpus.symbols("backoff")] == [("src/a.py", 1)]
        assert corpus.read("docs/выбор.md", 2).splitlines()[0].endswith("ждать перед повтором")
        assert "backoff" in corpus.repo_map()


def test_what_was_loaded_with_options_is_loaded_again_by_its_origin(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("name,text,more\na,hello,x\nb,world,y\n")
    with rlm_rag.load(
        tmp_path / "t.csv",
        columns=["text"],
        path_column="name",
        exclude=["b"],
        ignore=False,
        max_file_bytes=1000,
    ) as first:
        assert first.origin is not None
        with load_origin(first.origin) as again:
            assert (again.origin, again.fingerprint) == (first.origin, first.fingerprint)


def test_what_cannot_be_served_is_an_error_that_says_so() -> None:
    with rlm_rag.load(DOCUMENTS) as corpus:
        with pytest.raises(RetrievalError, match=r"src/b\.py"):
            corpus.read("src/b.py")
        assert corpus.grep("(").error is not None
        with pytest.raises(RetrievalError):
            corpus.search("  ")


def test_bytes_where_a_text_belongs_are_refused_by_name() -> None:
    with rlm_rag.load(DOCUMENTS) as corpus:
        for name, call in (
            ("query", lambda: corpus.search(b"a")),  # type: ignore[arg-type]
            ("path_glob", lambda: corpus.grep("a", path_glob=bytearray(b"a"))),  # type: ignore[arg-type]
            ("path", lambda: corpus.read(Path("src/a.py"))),  # type: ignore[arg-type]
            ("name", lambda: corpus.symbols(None)),  # type: ignore[arg-type]
        ):
            with pytest.raises(UsageError, match=f"^{name} must be a str, not "):
                call()
        for number, ask in (
            ("k", lambda: corpus.grep("a", k="3")),  # type: ignore[arg-type]
            ("k", lambda: corpus.search("a", k=True)),
            ("start", lambda: corpus.read("src/a.py", "1")),  # type: ignore[arg-type]
            ("end", lambda: corpus.read("src/a.py", 1, 2.5)),  # type: ignore[arg-type]
        ):
            with pytest.raises(UsageError, match=f"^{number} must be a whole number, not "):
                ask()
        assert corpus.search("backoff", path_glob=None)
    with pytest.raises(UsageError, match="text= must be a str, not bytes") as caught:
        rlm_rag.load(text=b"x")  # type: ignore[arg-type]
    assert "Decode" in (caught.value.hint or "")


def test_a_corpus_serves_threads_and_running_loops_alike() -> None:
    with rlm_rag.load(DOCUMENTS) as corpus:
        found: list[str] = []
        threads = [
            threading.Thread(target=lambda: found.append(corpus.search("backoff")[0].path))
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        async def inside() -> str:
            return corpus.search("backoff")[0].path

        assert [*found, asyncio.run(inside())] == ["src/a.py"] * 9


def test_a_closed_corpus_says_so_and_closes_again() -> None:
    corpus = rlm_rag.load(DOCUMENTS)
    corpus.search("backoff")
    corpus.close()
    corpus.close()
    with pytest.raises(RetrievalError):
        corpus.search("backoff")


def test_a_question_can_be_asked_of_anything_that_loads(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(DOCUMENTS[0]["content"])
    answer = rlm_rag.ask(tmp_path, "What is backoff?", trace=False)
    assert answer.citations[0].path == "a.py"
    assert "No language model was used" in answer.text


def test_sources_that_cannot_be_loaded_are_named(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="nowhere"):
        rlm_rag.load(tmp_path / "nowhere")
    with pytest.raises(EmptyCorpusError):
        rlm_rag.load(tmp_path)


@pytest.mark.parametrize("question", ["", "  \n\t"])
def test_a_question_of_spaces_is_refused(question: str) -> None:
    with rlm_rag.load(DOCUMENTS) as corpus, pytest.raises(UsageError, match="question is empty"):
        rlm_rag.ask(corpus, question)


def test_an_unknown_option_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match="modle"):
        rlm_rag.ask(DOCUMENTS, "?", modle="offline")  # type: ignore[call-arg]


def test_a_script_that_closes_nothing_ends_quietly() -> None:
    script = (
        "import rlm_rag\n"
        f"corpus = rlm_rag.load({DOCUMENTS!r})\n"
        "print(corpus.search('backoff')[0].path)\n"
        "print(rlm_rag.ask(corpus, 'What is backoff?', trace=False).stop_reason)\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.stdout, done.stderr, done.returncode) == ("src/a.py\nanswered\n", "", 0)


def index_processes() -> set[str]:
    """The ids of this process's children."""
    listed = Path("/proc/self/task").glob("*/children")
    return {number for children in listed for number in children.read_text().split()}


@pytest.mark.skipif(sys.platform != "linux", reason="looks at processes in Linux's /proc")
def test_a_corpus_that_is_forgotten_ends_its_index_process() -> None:
    before = index_processes()
    for _ in range(3):
        assert rlm_rag.load(DOCUMENTS).search("backoff")
    gc.collect()
    for _ in range(100):
        if index_processes() <= before:
            break
        time.sleep(0.05)
    assert index_processes() <= before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_searches_the_corpus_of_its_parent() -> None:
    with rlm_rag.load(DOCUMENTS) as corpus:
        corpus.search("backoff")
        child = os.fork()
        if child == 0:
            found = [hit.path for hit in corpus.search("backoff")]
            corpus.close()
            os._exit(0 if found == ["src/a.py"] else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert corpus.search("backoff")[0].path == "src/a.py"


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, ValueError])
def test_what_a_listener_raises_reaches_its_caller_and_nobody_else(
    kind: type[BaseException],
) -> None:
    def listener(event: object) -> None:
        raise kind("from the listener")

    with rlm_rag.load(DOCUMENTS) as corpus:
        with pytest.raises(kind):
            rlm_rag.ask(corpus, "What is backoff?", trace=False, on_event=listener)
        assert rlm_rag.ask(corpus, "What is backoff?", trace=False).stop_reason == "answered"


def test_arguments_of_the_wrong_kind_are_named() -> None:
    with rlm_rag.load(DOCUMENTS) as corpus:
        for options in ({"model": 5}, {"limits": 5}, {"on_event": 5}):
            with pytest.raises(UsageError, match=next(iter(options))):
                rlm_rag.ask(corpus, "?", **options)  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="question is empty"):
            rlm_rag.ask(corpus, None)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="whole number"):
        rlm_rag.Limits(calls=1.5)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="corpus is closed"):
        rlm_rag.ask(corpus, "What is backoff?")


def test_a_run_in_a_weak_sandbox_says_so_in_its_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    # Stands in for the layer of Windows.
    monkeypatch.setitem(layers._BY_NAME, "job", Unconfined())
    monkeypatch.setitem(layers._verdicts, "none", "")
    corpus = [{"path": "a.txt", "content": "Alpha is the first."}]
    answer = rlm_rag.ask(corpus, "What is alpha?", sandbox="job", trace=False)
    assert any(warning.startswith("a weak sandbox") for warning in answer.warnings)


def test_a_run_without_a_sandbox_says_so_in_its_answer() -> None:
    free, confined = (
        rlm_rag.ask(
            [{"path": "a.txt", "content": "Alpha is the first."}],
            "What is alpha?",
            sandbox=name,
            trace=False,
        )
        for name in ("none", "auto")
    )
    assert any(warning.startswith("no sandbox") for warning in free.warnings)
    assert not any(warning.startswith("no sandbox") for warning in confined.warnings)

"""Ten questions that `--model offline` must answer from the right file, through the whole house.

The questions were written before the policy and its ranking were tuned. The `plain` ones hold no
name that the file which answers defines: ranking has to find it by what its text says.
"""

from __future__ import annotations

import ast
import asyncio
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import rlm_rag

REPOSITORY = Path(__file__).resolve().parent.parent
ASYNCIO = Path(asyncio.__file__).resolve().parent


@dataclass(frozen=True, slots=True)
class Asked:
    question: str
    gold: str
    plain: bool


OF_REPOSITORY = (
    Asked(
        "What does `PackedWriter` leave behind when a write is aborted?",
        "rlm_rag/packed.py",
        plain=False,
    ),
    Asked(
        "How does compile_glob treat a pattern without a slash?",
        "rlm_rag/globs.py",
        plain=False,
    ),
    Asked(
        "How is it checked that a quoted passage really stands in the document?",
        "rlm_rag/engine/citations.py",
        plain=True,
    ),
    Asked(
        "What may a hostile project's own configuration not change?",
        "rlm_rag/settings.py",
        plain=True,
    ),
    Asked(
        "How are passwords and keys taken out of a provider's words before anyone sees them?",
        "rlm_rag/models/redact.py",
        plain=True,
    ),
)
OF_ASYNCIO = (
    Asked(
        "What does StreamReader.readuntil raise when the separator is not found within the limit?",
        "streams.py",
        plain=False,
    ),
    Asked(
        "How does `run_until_complete` notice that the loop was stopped too early?",
        "base_events.py",
        plain=False,
    ),
    Asked(
        "How is a producer made to wait until there is a free slot?",
        "queues.py",
        plain=True,
    ),
    Asked(
        "Are several failures of one group combined and raised together?",
        "taskgroups.py",
        plain=True,
    ),
    Asked(
        "How can a blocking function be moved to a separate thread with its context variables?",
        "threads.py",
        plain=True,
    ),
)


def names_defined_in(source: Path) -> set[str]:
    """Return the functions, classes and module variables of a file, and its own name."""
    tree = ast.parse(source.read_text(encoding="utf-8"))
    names = {source.stem}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
    for statement in tree.body:
        for node in ast.walk(statement) if isinstance(statement, ast.Assign) else ():
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.add(node.id)
    return {name.strip("_").casefold() for name in names}


@pytest.fixture(scope="module")
def repository() -> Iterator[rlm_rag.SearchableCorpus]:
    # This file holds the questions word for word, so it would be the best match of each.
    with rlm_rag.load(REPOSITORY, exclude=["tests/test_offline_answers.py"]) as corpus:
        yield corpus


@pytest.fixture(scope="module")
def asyncio_package() -> Iterator[rlm_rag.SearchableCorpus]:
    with rlm_rag.load(ASYNCIO) as corpus:
        yield corpus


def test_at_least_half_of_the_questions_are_plain() -> None:
    assert sum(asked.plain for asked in (*OF_REPOSITORY, *OF_ASYNCIO)) >= 5


@pytest.mark.parametrize(
    ("folder", "asked"),
    [
        *((REPOSITORY, asked) for asked in OF_REPOSITORY if asked.plain),
        *((ASYNCIO, asked) for asked in OF_ASYNCIO if asked.plain),
    ],
)
def test_a_plain_question_shares_no_name_with_the_file_that_answers(
    folder: Path, asked: Asked
) -> None:
    words = {word.casefold() for word in re.findall(r"\w+", asked.question)}
    assert not words & names_defined_in(folder / asked.gold)


@pytest.mark.parametrize("asked", OF_REPOSITORY, ids=lambda asked: asked.gold)
def test_a_question_about_this_repository_is_answered_from_the_right_file(
    repository: rlm_rag.SearchableCorpus, asked: Asked
) -> None:
    assert_answered(rlm_rag.ask(repository, asked.question, model="offline", trace=False), asked)


@pytest.mark.parametrize("asked", OF_ASYNCIO, ids=lambda asked: asked.gold)
def test_a_question_about_asyncio_is_answered_from_the_right_file(
    asyncio_package: rlm_rag.SearchableCorpus, asked: Asked
) -> None:
    answer = rlm_rag.ask(asyncio_package, asked.question, model="offline", trace=False)
    assert_answered(answer, asked)


def assert_answered(answer: rlm_rag.Answer, asked: Asked) -> None:
    assert answer.stop_reason == "answered"
    assert "no language model" in answer.text.casefold()
    assert [citation.path for citation in answer.citations][:1] == [asked.gold]
    assert answer.citations[0].status == "verified"
    assert answer.citations[0].verified

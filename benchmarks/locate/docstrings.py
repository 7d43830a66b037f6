"""A docstring's first sentence -> its function, the docstring being taken out of the source."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from benchmarks.locate.questions import Question, QuestionSet
from benchmarks.locate.tests_of import is_test
from rlm_rag.evals.docstrings import Documented, documented_functions, without_docstrings
from rlm_rag.evals.locate import MAX_FILE_BYTES

_LEFT_OUT = ("site-packages", "dist-packages", "__pycache__", "idlelib", "lib2to3")


def docstring_set(folder: Path, *, group: str, count: int, seed: int = 0) -> QuestionSet:
    """Choose `count` documented functions of the Python files of a folder, tests left out."""
    sources = dict(_sources(folder))
    functions = documented_functions(item for item in sources.items() if not is_test(item[0]))
    chosen = random.Random(seed).sample(functions, min(count, len(functions)))
    of_file: dict[str, list[Documented]] = defaultdict(list)
    for function in chosen:
        of_file[function.path].append(function)
    questions: list[Question] = []
    for path, documented in of_file.items():
        for function in documented:
            line = function.def_line - sum(
                other.last_line - other.first_line + 1
                for other in documented
                if other.first_line < function.def_line
            )
            questions.append(
                Question(
                    f"{path}:{function.name}:{line}",
                    function.sentence,
                    frozenset((path,)),
                    line=line,
                    gold_line=line,
                )
            )
    documents = list(without_docstrings(sources.items(), chosen))
    return QuestionSet("docstrings", group, documents, questions)


def _sources(folder: Path) -> Iterator[tuple[str, str]]:
    for file in sorted(folder.rglob("*.py")):
        path = file.relative_to(folder)
        if any(part in _LEFT_OUT for part in path.parts) or file.stat().st_size > MAX_FILE_BYTES:
            continue
        try:
            yield path.as_posix(), file.read_text("utf-8")
        except UnicodeDecodeError:
            continue

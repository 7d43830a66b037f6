"""RepoQA-style needle functions: repeat the function that a description fits.

With data they are RepoQA's own, of ten repositories a language; with a corpus they are the
documented functions of any repository, whose documentation is taken out and describes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import PurePosixPath
from typing import Any

from rlm_rag.api import load
from rlm_rag.errors import BenchmarkDataError, UsageError
from rlm_rag.evals.base import Haystack, Response, Sample, Score, Scorer, TaskOptions
from rlm_rag.evals.data import Row, asked_for, read_json, required_data
from rlm_rag.evals.docstrings import Documented, documented_functions, without_docstrings
from rlm_rag.evals.generated import rng_of
from rlm_rag.evals.scorers.functions import needle
from rlm_rag.evals.scorers.rankings import RankingScorer
from rlm_rag.indexes.kinds import Kind, kind_of
from rlm_rag.loaders.source import Source
from rlm_rag.models.tokens import count_tokens

FORM = (
    "RepoQA: repoqa-2024-06-23.json or .json.gz, an object of languages, each a list of "
    'repositories with "repo", "content" ({path: text}) and "needles" ("name", "path", '
    '"start_line", "end_line", "description"). Or --corpus SOURCE: any repository.'
)
# An answer is compared with so many functions of its repository, as in RepoQA.
NEEDLES = 10
DEFAULT_COUNT = 20
_SUFFIXES = {
    "python": ".py",
    "java": ".java",
    "typescript": ".ts",
    "rust": ".rs",
    "cpp": ".cpp",
    "go": ".go",
}
_MRR = RankingScorer("mrr")


def path_of_needle(response: Response, sample: Sample) -> Score:
    """Score ranked paths by the MRR of the file that holds the function."""
    gold = [sample.gold["path"]]
    return _MRR(response, Sample(id=sample.id, question="", haystack=sample.haystack, gold=gold))


@dataclass(frozen=True, slots=True)
class RepoQaTask:
    """Descriptions of functions, scored as RepoQA does with its threshold of 0.8."""

    name: str = "repoqa"
    scorer: Scorer = needle
    ranking: Scorer | None = path_of_needle

    def samples(self, options: TaskOptions) -> Iterator[Sample]:
        """Yield RepoQA's samples, or by default 20 of the corpus.

        Raises:
            UsageError: neither data nor a corpus was given, or the corpus has no such function.
            BenchmarkDataError: the data is not in the published format.
        """
        if options.data is None and options.corpus is not None:
            yield from _of_corpus(options.corpus, options)
            return
        yield from asked_for(_published(options), options)


def _question(description: str) -> str:
    return (
        "One function of this code is described like this:\n\n"
        f"{description.strip()}\n\n"
        "Find it, and repeat the whole function exactly as it stands in the code, in one fenced "
        "code block (```), without its name being changed and without comment."
    )


def _published(options: TaskOptions) -> Iterator[Sample]:
    path = required_data(options, FORM)
    languages = read_json(path, FORM)
    if not isinstance(languages, Mapping):
        raise BenchmarkDataError(f"{path} is no object of languages", hint=FORM)
    row = Row(languages, str(path), FORM)
    for language in languages:
        for repository in row.rows(language):
            yield from _of_repository(language, repository)


def _of_repository(language: str, row: Row) -> Iterator[Sample]:
    if language not in _SUFFIXES:
        row.refuse(f"{language!r} is none of {', '.join(_SUFFIXES)}")
    name, content = row.text("repo"), row.values.get("content")
    if not isinstance(content, Mapping):
        row.refuse("'content' is no object of paths and texts")
    needles = row.rows("needles")
    functions = [[one.text("name"), _code(one, content)] for one in needles]
    length = sum(count_tokens(text) for text in content.values())
    haystack = Haystack(f"repoqa/{language}/{name}", partial(_contents, content))
    for one in needles:
        yield Sample(
            id=f"{language}/{name}/{one.text('path')}:{one.text('name')}",
            question=_question(one.text("description")),
            query=one.text("description"),
            haystack=haystack,
            gold=_gold(one.text("name"), one.text("path"), _SUFFIXES[language], functions),
            length_tokens=length,
            cluster=name,
            meta={"language": language},
        )


def _code(row: Row, content: Mapping[str, Any]) -> str:
    text = content.get(row.text("path"))
    if not isinstance(text, str):
        row.refuse(f"'content' has no text of {row.text('path')!r}")
    # As RepoQA cuts it out: lines from 0, the last one not included.
    return "\n".join(text.split("\n")[row.integer("start_line") : row.integer("end_line")])


def _gold(name: str, path: str, suffix: str, functions: Sequence[Sequence[str]]) -> dict[str, Any]:
    return {"name": name, "path": path, "suffix": suffix, "functions": functions}


def _contents(content: Mapping[str, str]) -> Source:
    return list(content.items())


def _of_corpus(corpus: str, options: TaskOptions) -> Iterator[Sample]:
    documents = _documents(corpus)
    count = DEFAULT_COUNT if options.count is None else options.count
    chosen = _chosen(documents, rng_key=f"repoqa/{corpus}/{options.seed}", count=count)
    if not chosen:
        raise UsageError(f"{corpus} has no function that is documented by a sentence", hint=FORM)
    stripped = dict(without_docstrings(documents, chosen))
    key = f"repoqa/{corpus}/{options.seed}/{count}"
    haystack = Haystack(key, partial(_stripped, corpus, chosen))
    length = sum(count_tokens(text) for text in stripped.values())
    for first in range(0, len(chosen), NEEDLES):
        group = chosen[first : first + NEEDLES]
        functions = [[one.label, one.code] for one in group]
        for one in group:
            yield Sample(
                id=one.label,
                question=_question(one.sentence),
                query=one.sentence,
                haystack=haystack,
                gold=_gold(one.label, one.path, PurePosixPath(one.path).suffix, functions),
                length_tokens=length,
                cluster=one.path,
            )


def _chosen(documents: Sequence[tuple[str, str]], *, rng_key: str, count: int) -> list[Documented]:
    functions = documented_functions(
        (path, text) for path, text in documents if kind_of(path) is not Kind.TEST
    )
    rng = rng_of(rng_key, "functions")
    return rng.sample(functions, min(count, len(functions)))


def _documents(corpus: str) -> list[tuple[str, str]]:
    with load(corpus) as loaded:
        return [(document.path, document.content) for document in loaded]


def _stripped(corpus: str, chosen: Sequence[Documented]) -> Source:
    return without_docstrings(_documents(corpus), chosen)

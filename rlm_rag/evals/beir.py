"""BEIR's folders: a corpus, queries, and which documents are relevant to each."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from urllib.parse import quote

from rlm_rag.errors import BenchmarkDataError
from rlm_rag.evals.base import Haystack, Sample, Scorer, TaskOptions
from rlm_rag.evals.data import one_of, read_rows, read_text, required_data
from rlm_rag.evals.scorers.rankings import RankingScorer
from rlm_rag.loaders.source import Source

FORM = (
    'BEIR: a folder of corpus.jsonl ("_id", "title", "text"), queries.jsonl ("_id", "text") and '
    "qrels/test.tsv (a header, then query-id, corpus-id and score, with tabs)."
)
_SPLITS = ("test", "dev", "train")
_NUMBER = re.compile(r"\s*-?[0-9]+\s*")
ASK_FOR_DOCUMENTS = (
    " Which documents answer this? List their paths, the best first, ten at most, one a line."
)


def document_path(name: str) -> str:
    """Return the path of a document of an id, which may hold any character.

    The path has no blank: one in a list is a path by that.
    """
    return f"{quote(name, safe='()+,;=@')}.txt"


def _is_query_itself(path: str, sample: Sample) -> bool:
    # As BEIR's `EvaluateRetrieval.evaluate` has it: ArguAna's queries are documents of its corpus.
    return path == document_path(sample.id)


_NDCG = RankingScorer("ndcg@10", _is_query_itself)


@dataclass(frozen=True, slots=True)
class BeirTask:
    """Queries with relevant documents, scored by NDCG@10, in the order of the queries' file.

    A document whose id is the query's is passed over, as BEIR does.
    """

    name: str = "beir"
    scorer: Scorer = _NDCG
    ranking: Scorer | None = _NDCG

    def samples(self, options: TaskOptions) -> Iterator[Sample]:
        """Yield a sample for each query of the test split (dev or train where there is no test).

        Raises:
            UsageError: no data was given.
            BenchmarkDataError: it is not in BEIR's format.
        """
        folder = required_data(options, FORM)
        relevant = _relevant(folder)
        corpus = one_of(folder, ("corpus.jsonl", "corpus.jsonl.gz"), FORM)
        haystack = Haystack(f"beir/{folder.resolve()}", partial(_documents, corpus))
        yield from islice(_samples(folder, relevant, haystack), options.count)


def _samples(
    folder: Path, relevant: Mapping[str, Mapping[str, int]], haystack: Haystack
) -> Iterator[Sample]:
    queries = one_of(folder, ("queries.jsonl", "queries.jsonl.gz"), FORM)
    for row in read_rows(queries, FORM):
        name = row.text("_id")
        if name not in relevant:
            continue
        text = row.text("text")
        yield Sample(
            id=name,
            question=text + ASK_FOR_DOCUMENTS,
            query=text,
            haystack=haystack,
            gold={document_path(found): score for found, score in relevant[name].items()},
        )


def _relevant(folder: Path) -> dict[str, dict[str, int]]:
    path = one_of(folder / "qrels", tuple(f"{split}.tsv" for split in _SPLITS), FORM)
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for number, line in enumerate(read_text(path, FORM).split("\n"), 1):
        row = line.rstrip("\r").split("\t")
        is_judged = len(row) == 3 and _NUMBER.fullmatch(row[2]) is not None
        if is_judged:
            found[row[0]][row[1]] = int(row[2])
        elif line.strip() and (number > 1 or len(row) != 3):
            raise BenchmarkDataError(f"{path}, line {number}: {row!r}", hint=FORM)
    return found


def _documents(path: Path) -> Source:
    return _each(path)


def _each(path: Path) -> Iterator[tuple[str, str]]:
    for row in read_rows(path, FORM):
        title = row.text("title", "")
        text = row.text("text")
        yield document_path(row.text("_id")), f"{title}\n\n{text}" if title else text

"""BrowseComp-Plus: hard questions over a fixed corpus of web pages, with labelled evidence."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

from rlm_rag.errors import BenchmarkDataError
from rlm_rag.evals.base import Haystack, Response, Sample, Score, Scorer, TaskOptions
from rlm_rag.evals.beir import document_path
from rlm_rag.evals.data import Row, one_of, read_rows, required_data
from rlm_rag.evals.scorers.judge import NEAR_NUMBERS
from rlm_rag.evals.scorers.rankings import figures
from rlm_rag.evals.scorers.texts import stands_in
from rlm_rag.loaders.source import Source

FORM = (
    'BrowseComp-Plus: a folder of browsecomp_plus_decrypted.jsonl ("query_id", "query", "answer", '
    '"gold_docs", "evidence_docs", "negative_docs", each of "docid" and "text") as its script '
    'decrypt_dataset.py writes it; its corpus as corpus.jsonl or corpus*.parquet ("docid", '
    '"text"), without which the documents of the rows are taken.'
)
_ROWS = ("browsecomp_plus_decrypted.jsonl", "*decrypted*.jsonl")
_CORPUS = ("corpus.jsonl", "corpus.jsonl.gz", "corpus*.parquet")
_DOCUMENTS = ("gold_docs", "evidence_docs", "negative_docs")


def contains_answer(response: Response, sample: Sample) -> Score:
    """1.0 if the right answer stands in the answer, without case, punctuation and articles.

    The benchmark's own rule is a model as judge, which takes other words for it too: with a
    judge, this is what its verdict stands beside.
    """
    value = float(stands_in(sample.gold["answer"], response.text))
    return Score(value=value, parsed=response.text, parse_ok=bool(response.text.strip()))


def evidence(response: Response, sample: Sample) -> Score:
    """Score ranked documents by NDCG@10 of the evidence; `detail` has that of the gold ones too."""
    ranked = tuple(dict.fromkeys(response.ranked or response.cited))
    of_evidence = figures(ranked, dict.fromkeys(sample.gold["evidence"], 1.0))
    of_gold = figures(ranked, dict.fromkeys(sample.gold["gold"], 1.0))
    detail = of_evidence | {f"gold_{name}": value for name, value in of_gold.items()}
    return Score(
        value=of_evidence["ndcg@10"],
        parsed=list(ranked[:10]),
        parse_ok=bool(ranked),
        detail=detail,
    )


@dataclass(frozen=True, slots=True)
class BrowseCompTask:
    """Its questions, all asked of one corpus."""

    name: str = "browsecomp-plus"
    scorer: Scorer = contains_answer
    ranking: Scorer | None = evidence

    def samples(self, options: TaskOptions) -> Iterator[Sample]:
        """Yield a sample for each question.

        Raises:
            UsageError: no data was given.
            BenchmarkDataError: it is not in the form that its script writes.
        """
        folder = required_data(options, FORM)
        rows = one_of(folder, _ROWS, FORM)
        haystack = Haystack(f"browsecomp-plus/{folder.resolve()}", partial(_documents, folder))
        for row in islice(read_rows(rows, FORM), options.count):
            yield _sample(row, haystack)


def _sample(row: Row, haystack: Haystack) -> Sample:
    query = row.text("query")
    gold, found = _paths(row, "gold_docs"), _paths(row, "evidence_docs")
    return Sample(
        id=row.text("query_id"),
        question=f"{query} Give the exact answer, and cite the documents that show it.",
        query=query,
        haystack=haystack,
        gold={"answer": row.text("answer"), "gold": gold, "evidence": found},
        meta={NEAR_NUMBERS: True},
    )


def _paths(row: Row, name: str) -> list[str]:
    return [document_path(one.text("docid")) for one in row.rows(name)]


def _documents(folder: Path) -> Source:
    corpus = _corpus(folder)
    return _from_rows(one_of(folder, _ROWS, FORM)) if corpus is None else _each(corpus)


def _corpus(folder: Path) -> list[Path] | None:
    if folder.is_dir():
        for name in _CORPUS:
            if found := sorted(folder.glob(name)):
                return found
    return None


def _each(paths: list[Path]) -> Iterator[tuple[str, str]]:
    for path in paths:
        for row in read_rows(path, FORM):
            yield document_path(row.text("docid")), row.text("text")


def _from_rows(path: Path) -> Iterator[tuple[str, str]]:
    known: dict[str, int] = defaultdict(int)
    for row in read_rows(path, FORM):
        for kind in _DOCUMENTS:
            for one in row.rows(kind):
                name, text = document_path(one.text("docid")), one.text("text")
                known[name] += 1
                if known[name] == 1:
                    yield name, text
    if not known:
        raise BenchmarkDataError(f"{path} holds no documents", hint=FORM)

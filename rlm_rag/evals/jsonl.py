"""Questions of one's own: JSON lines of a question, and its answer or the paths that are right."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from string import ascii_uppercase

from rlm_rag.api import load
from rlm_rag.errors import UsageError
from rlm_rag.evals.base import Haystack, Response, Sample, Score, TaskOptions
from rlm_rag.evals.data import Row, read_rows
from rlm_rag.evals.scorers.choices import choice_accuracy
from rlm_rag.evals.scorers.rankings import RankingScorer
from rlm_rag.evals.scorers.texts import exact_match, rouge_l, stands_in, token_f1
from rlm_rag.globs import without_part
from rlm_rag.loaders.source import Source

FORM = (
    'One object a line: "question", and "answer" (a text, or several that are right), or "gold" '
    '(paths of the corpus); also "id", "choices" (then "answer" is a letter), "corpus", "cluster".'
)
_ASK_FOR_PATHS = " List the paths of the files that are right, the best first, one a line."


def own_answer(response: Response, sample: Sample) -> Score:
    """Score an answer to a question of one's own by what its gold is.

    `{"paths": [...]}`: MRR of the paths that it lists. `{"letter": "B"}`: 1.0 for the letter.
    `{"answers": [...]}`: 1.0 if one of them `stands_in` the answer, without case, punctuation
    and articles; `detail` has exact match, token F1 and ROUGE-L.
    """
    if "paths" in sample.gold:
        return own_ranking(response, sample)
    if "letter" in sample.gold:
        return choice_accuracy(response, _with_gold(sample, sample.gold["letter"]))
    answers = sample.gold["answers"]
    detail = {
        "exact": exact_match(response.text, answers),
        "f1": token_f1(response.text, answers),
        "rouge_l": rouge_l(response.text, answers),
    }
    return Score(
        value=float(any(stands_in(answer, response.text) for answer in answers)),
        parsed=response.text,
        parse_ok=bool(response.text.strip()),
        detail=detail,
    )


def own_ranking(response: Response, sample: Sample) -> Score:
    """Score ranked paths by MRR.

    Raises:
        UsageError: the question has no gold paths, so that it needs a model.
    """
    if "paths" not in sample.gold:
        raise UsageError(
            f"question {sample.id} has no gold paths", hint="ask it of a model, by any strategy"
        )
    return RankingScorer("mrr")(response, _with_gold(sample, sample.gold["paths"]))


def _with_gold(sample: Sample, gold: object) -> Sample:
    return Sample(id=sample.id, question=sample.question, haystack=sample.haystack, gold=gold)


@dataclass(frozen=True, slots=True)
class OwnQuestions:
    """The questions of a file, asked of `TaskOptions.corpus`, or of the row's own `corpus`.

    `ranking` is there for files whose rows all have gold paths.
    """

    path: Path

    @property
    def name(self) -> str:
        return str(self.path)

    scorer = staticmethod(own_answer)
    ranking = staticmethod(own_ranking)

    def samples(self, options: TaskOptions) -> Iterator[Sample]:
        """Yield a sample for each row, those of one corpus after one another as the file has them.

        The corpus of the run, and each whose paths are gold, is loaded once for that, so that
        nothing is missing.

        Raises:
            UsageError: no corpus was given, neither to the run nor in the row.
            BenchmarkDataError: a row has no question, no answer and no gold paths, or one that
                the corpus does not hold; an id comes twice.
            SourceError: the corpus cannot be loaded.
        """
        known: set[str] = set()
        paths: dict[str, frozenset[str]] = {}
        rows = islice(read_rows(self.path, FORM), options.count)
        for number, row in enumerate(rows, 1):
            sample = _sample(row, number, options.corpus)
            if sample.id in known:
                row.refuse(f"the id {sample.id!r} comes twice")
            known.add(sample.id)
            corpus, gold = sample.haystack.key, sample.gold.get("paths", ())
            if corpus not in paths and (gold or corpus == options.corpus):
                paths[corpus] = _paths(corpus)
            for path in gold:
                if path not in paths[corpus]:
                    row.refuse(f"'gold' names {path!r}, which is not in {corpus}")
            yield sample


def _paths(corpus: str) -> frozenset[str]:
    with load(corpus) as loaded:
        found = loaded.paths()
        return frozenset(found).union(map(without_part, found))


def _sample(row: Row, number: int, corpus: str | None) -> Sample:
    corpus = row.text("corpus") if "corpus" in row.values else corpus
    if corpus is None:
        raise UsageError(
            f"{row.where}: nothing says what the question is asked of", hint="--corpus SOURCE"
        )
    question = row.text("question")
    if not question.strip():
        row.refuse("the question is empty")
    gold: dict[str, object]
    if "gold" in row.values:
        gold = {"paths": row.texts("gold")}
        question += _ASK_FOR_PATHS
    elif "choices" in row.values:
        gold = {"letter": row.text("answer")}
        question += _choices(row)
    elif "answer" in row.values:
        answers = row.texts("answer")
        if not all(map(str.strip, answers)):
            row.refuse("an answer is empty")
        gold = {"answers": answers}
    else:
        row.refuse("there is neither an 'answer' nor a 'gold'")
    return Sample(
        id=row.text("id", str(number)),
        question=question,
        haystack=Haystack(corpus, partial(_source, corpus)),
        gold=gold,
        cluster=row.text("cluster") if "cluster" in row.values else None,
    )


def _choices(row: Row) -> str:
    choices = row.texts("choices")
    letters = ascii_uppercase[: len(choices)]
    if row.text("answer") not in tuple(letters):
        row.refuse(f"the answer is none of the letters {', '.join(letters)}")
    lines = [f"({letter}) {text}" for letter, text in zip(letters, choices, strict=False)]
    return "\n" + "\n".join(lines) + "\nEnd with: The correct answer is (<letter>)"


def _source(corpus: str) -> Source:
    return corpus

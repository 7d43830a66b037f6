"""LongBench v2: four choices about a long text, in the benchmark's `data.json`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rlm_rag.evals.base import Haystack, Sample, Scorer, TaskOptions
from rlm_rag.evals.data import Row, asked_for, held, read_all, required_data
from rlm_rag.evals.generated import PATH
from rlm_rag.evals.scorers.choices import longbench
from rlm_rag.models.tokens import count_tokens

FORM = (
    'LongBench v2: data.json (or Parquet), a list of objects with "_id", "question", "choice_A" to '
    '"choice_D", "answer" (a letter), "context", "domain", "sub_domain", "difficulty", "length".'
)
LETTERS = ("A", "B", "C", "D")
_ABOUT = ("domain", "sub_domain", "difficulty", "length")


@dataclass(frozen=True, slots=True)
class LongBenchTask:
    """Its samples, which are right or wrong; `length` is in `meta` as the benchmark names it."""

    name: str = "longbench-v2"
    scorer: Scorer = longbench
    ranking: Scorer | None = None

    def samples(self, options: TaskOptions) -> Iterator[Sample]:
        """Yield those that are no longer than the longest length.

        Raises:
            UsageError: no data was given.
            BenchmarkDataError: it is not in the published format.
        """
        names = ("data.json", "*.jsonl", "*.parquet")
        rows = read_all(required_data(options, FORM), names, FORM)
        found = (_sample(row) for row in rows)
        yield from asked_for(found, options)


def _sample(row: Row) -> Sample:
    answer, context, name = row.text("answer"), row.text("context"), row.text("_id")
    if answer not in LETTERS:
        row.refuse(f"'answer' is {answer!r}, none of {', '.join(LETTERS)}")
    choices = "\n".join(f"({letter}) {row.text(f'choice_{letter}').strip()}" for letter in LETTERS)
    return Sample(
        id=name,
        question=(
            f"{row.text('question').strip()}\n{choices}\n"
            'Choose one, and end with a line of this form: "The correct answer is (<letter>)"'
        ),
        haystack=Haystack(f"longbench-v2/{name}", held(PATH, context)),
        gold=answer,
        length_tokens=count_tokens(context),
        meta={about: row.text(about) for about in _ABOUT},
    )

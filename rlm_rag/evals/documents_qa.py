"""RULER's questions over given documents: those of the question, and others to fill the length."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from rlm_rag.errors import BenchmarkDataError
from rlm_rag.evals.base import Haystack, Sample, Scorer, TaskOptions, length_label
from rlm_rag.evals.data import Row, read_json, read_rows, required_data
from rlm_rag.evals.generated import DEFAULT_COUNT, checked_lengths, rng_of
from rlm_rag.evals.lengths import fitted
from rlm_rag.evals.scorers.texts import ruler_any
from rlm_rag.loaders.source import Source
from rlm_rag.models.tokens import count_tokens

FORM = (
    'One of: SQuAD\'s JSON ("data", "paragraphs", "qas"); HotpotQA\'s (a list of "question", '
    '"answer", "context": [[title, [sentence, ...]], ...]); JSON lines of "question", "answers" '
    'and "documents" (texts that answer it).'
)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question, its right answers, and the numbers of its own documents; `near` fill up first."""

    question: str
    answers: tuple[str, ...]
    own: tuple[int, ...]
    near: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class _Data:
    documents: tuple[str, ...]
    asked: tuple[_Asked, ...]


@dataclass(frozen=True, slots=True)
class DocumentsQaTask:
    """Questions in the order of the data, each over its documents and a draw of the others.

    An answer is right if it holds one of the right ones, whatever their case: RULER's rule.
    """

    name: str = "ruler:qa"
    scorer: Scorer = ruler_any
    ranking: Scorer | None = None

    def samples(self, options: TaskOptions) -> Iterator[Sample]:
        """Yield `count` samples of each length, by default 20 of 8k tokens.

        Raises:
            UsageError: no data was given, or a length is below 1k or above 10M tokens.
            BenchmarkDataError: it is in none of the formats, or has fewer tokens than a length.
        """
        path = required_data(options, FORM)
        data = _read(path)
        count = DEFAULT_COUNT if options.count is None else options.count
        total = sum(count_tokens(text) for text in data.documents)
        for tokens in checked_lengths(options):
            if total < tokens:
                # RULER repeats documents; a document twice would be a right one counted twice.
                raise BenchmarkDataError(
                    f"{path} has {total:,} tokens of documents, fewer than {length_label(tokens)}",
                    hint="ask for shorter haystacks: --lengths",
                )
            for number, asked in enumerate(data.asked[:count]):
                yield _sample(self.name, data.documents, asked, number, tokens, options.seed)


def _sample(
    name: str, documents: Sequence[str], asked: _Asked, number: int, tokens: int, seed: int
) -> Sample:
    label = length_label(tokens)
    key = f"{name}/{label}/{seed}/{number}"
    return Sample(
        id=f"{label}/{seed}/{number}",
        question=(
            f"{asked.question} Answer from the documents, with the answer alone, in as few words "
            "as it takes."
        ),
        haystack=Haystack(key, partial(_chosen, documents, asked, key, tokens)),
        gold=list(asked.answers),
        length_tokens=tokens,
    )


def _chosen(documents: Sequence[str], asked: _Asked, key: str, tokens: int) -> Source:
    rng = rng_of(key, "documents")
    own = [documents[number] for number in asked.own]
    room = tokens - count_tokens("\n\n".join(own))
    others = fitted(_others(documents, asked, rng), room, separator="\n\n")
    chosen = own + others
    rng.shuffle(chosen)
    width = len(str(len(chosen)))
    return [(f"{at:0{width}}.txt", text) for at, text in enumerate(chosen, 1)]


def _others(documents: Sequence[str], asked: _Asked, rng: Random) -> Iterator[str]:
    near = [number for number in asked.near if number not in asked.own]
    taken = {*near, *asked.own}
    rest = [number for number in range(len(documents)) if number not in taken]
    rng.shuffle(near)
    rng.shuffle(rest)
    yield from (documents[number] for number in [*near, *rest])


def _read(path: Path) -> _Data:
    if not path.name.removesuffix(".gz").endswith(".json"):
        found = _of_lines(path)
    else:
        value = read_json(path, FORM)
        found = _squad(path, value) if isinstance(value, Mapping) else _hotpot(path, value)
    data = _numbered(found)
    if not data.asked:
        raise BenchmarkDataError(f"{path} holds no question that has an answer", hint=FORM)
    return data


# A question with its answers, its own documents, and those near them.
_Found = tuple[str, list[str], list[str], list[str]]


def _numbered(found: Iterator[_Found]) -> _Data:
    numbers: dict[str, int] = {}
    asked: list[_Asked] = []
    for question, answers, own, near in found:
        of_own, of_near = (
            tuple(dict.fromkeys(numbers.setdefault(text, len(numbers)) for text in texts))
            for texts in (own, near)
        )
        if answers:
            asked.append(_Asked(question, tuple(answers), of_own, of_near))
    return _Data(tuple(numbers), tuple(asked))


def _of_lines(path: Path) -> Iterator[_Found]:
    for row in read_rows(path, FORM):
        yield row.text("question"), row.texts("answers"), row.texts("documents"), []


def _squad(path: Path, value: Mapping[str, Any]) -> Iterator[_Found]:
    for article in Row(value, str(path), FORM).rows("data"):
        paragraphs = article.rows("paragraphs")
        near = [paragraph.text("context") for paragraph in paragraphs]
        for paragraph in paragraphs:
            for one in paragraph.rows("qas"):
                answerable = not one.values.get("is_impossible", False)
                answers = [answer.text("text") for answer in one.rows("answers")]
                yield (
                    one.text("question"),
                    answers if answerable else [],
                    [paragraph.text("context")],
                    near,
                )


def _hotpot(path: Path, value: Any) -> Iterator[_Found]:
    for row in Row({"rows": value}, str(path), FORM).rows("rows"):
        context = row.values.get("context")
        try:
            own = [f"{title}\n{''.join(sentences)}" for title, sentences in context or ()]
        except (TypeError, ValueError):
            row.refuse("'context' is no list of titles with their sentences")
        if not own:
            row.refuse("'context' is missing or empty")
        yield row.text("question"), row.texts("answer"), own, []

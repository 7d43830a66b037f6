"""What a benchmark is made of: samples, what they are asked of, and how an answer is scored."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from rlm_rag.loaders.source import Source


@dataclass(frozen=True, slots=True)
class Haystack:
    """What a sample is asked of; samples whose `key` is equal share it, and it is loaded once.

    `source` returns what `rlm_rag.load` takes: a path, or `(path, content)` pairs. It may take
    seconds and hundreds of megabytes (10M tokens are 42 MB), so it is called when the first
    sample of the key is asked, not before; calls return equal documents. Samples that share a
    haystack come one after another.
    """

    key: str
    source: Callable[[], Source] = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A question whose right answer is known.

    `id` is unique within its task and options. `question` says which form the answer should
    have; `query` is what is searched for without a model, by default the question. `gold` is
    what the task's scorers take, in values of JSON. `length_tokens` is how long the haystack is:
    as asked for where it is generated, else as `count_tokens` estimates it; None where that is
    not known before it is loaded. `cluster` names what makes samples depend on each other (a
    repository, a book, a haystack), for intervals; by default the sample is
    alone. Samples of one `joint` count once, with the least of their values: the pairs of claims
    of NoCha. `meta` has values of JSON for whoever reads the record.
    """

    id: str
    question: str
    haystack: Haystack
    gold: Any
    length_tokens: int | None = None
    cluster: str | None = None
    joint: str | None = None
    query: str | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """What came back: the text of an answer, or paths from the best on, without a model.

    `ranked` is None where nothing but the answer was asked for. `cited` are the paths of the
    answer's checked citations, in their order. `day` is when it came, None where nobody knows.
    """

    text: str = ""
    ranked: tuple[str, ...] | None = None
    cited: tuple[str, ...] = ()
    day: date | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """What a response is worth.

    `value` lies between 0 and 1. `parsed` is what the scorer took for the answer, in values of
    JSON; `parse_ok` is false where it found none in the form that was asked for (the value is
    then the one that the benchmark's rule gives). `detail` has further figures by name.
    """

    value: float
    parsed: Any = None
    parse_ok: bool = True
    detail: Mapping[str, float] = field(default_factory=dict)


class Scorer(Protocol):
    """A pure function: the same response and sample have the same score, always."""

    def __call__(self, response: Response, sample: Sample) -> Score: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOptions:
    """What a task is asked for.

    `lengths` are tokens of a generated haystack, the samples of each; a task whose haystacks
    have a length of their own leaves out those that are longer than the longest. Empty: the
    task's default, or no bound. `count` is how many samples (of each length): None, all, or the
    default of a task that generates them. `data` is the benchmark's own file or folder,
    `corpus` what one's own questions are asked of. Equal options with a `seed` give equal
    samples.
    """

    lengths: tuple[int, ...] = ()
    count: int | None = None
    seed: int = 0
    data: Path | None = None
    corpus: str | None = None


@runtime_checkable
class Task(Protocol):
    """A benchmark: a name of samples, and the rule that scores them.

    `scorer` scores the text of an answer. `ranking` scores ranked paths without a model; None
    where no path is right or wrong.
    """

    @property
    def name(self) -> str: ...

    @property
    def scorer(self) -> Scorer: ...

    @property
    def ranking(self) -> Scorer | None: ...

    def samples(self, options: TaskOptions) -> Iterator[Sample]:
        """Yield the samples lazily, equal ones for equal options.

        Raises:
            UsageError: an option is missing or cannot be used.
            BenchmarkDataError: the data is not in the benchmark's published format.
        """
        ...


_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20}


def length_label(tokens: int) -> str:
    """Return `8k` for 8,192 tokens and `1m` for 1,048,576, as benchmarks name their lengths."""
    for unit in ("m", "k"):
        if tokens >= _UNITS[unit] and tokens % _UNITS[unit] == 0:
            return f"{tokens // _UNITS[unit]}{unit}"
    return str(tokens)


def length_bucket(tokens: int | None) -> str:
    """Return the label of the least power of two that holds so many tokens; `?` for None."""
    if tokens is None:
        return "?"
    return length_label(1 << max(0, math.ceil(math.log2(max(1, tokens)))))


def parse_length(text: str) -> int | None:
    """Return the tokens of `8k`, `1m` or `5000`; None where it is no such length."""
    number, unit = text.strip().lower(), ""
    if number[-1:] in ("k", "m"):
        number, unit = number[:-1], number[-1]
    if not number.isdecimal() or not int(number):
        return None
    return int(number) * _UNITS[unit]

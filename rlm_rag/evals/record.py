"""What is kept of one sample asked in one way: a line of `samples.jsonl`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import datetime
from typing import Any, NamedTuple

from rlm_rag.errors import ClusterError
from rlm_rag.evals.base import Haystack, Response, Sample, Score
from rlm_rag.models.base import Usage

SCHEMA_VERSION = 1
BYTES_A_TOKEN = 4
"""Of source code or prose (rlm_rag.models.tokens)."""
SCORER = "scorer"
"""The error of a sample whose answer is there, and whose scorer failed on it."""
JUDGE = "judge"
"""The error of a sample whose answer is there, and whose judge could not be asked."""
SYSTEM = "system"
"""The error of a sample at which somebody else's system failed."""
BUDGET = "budget_usd"
"""The error of a sample that the money for the whole run did not last for."""


class Key(NamedTuple):
    """What a record is of; the last of a key counts."""

    task: str
    id: str
    strategy: str


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a sample has no score: an error's kind and its message."""

    kind: str
    message: str


@dataclass(frozen=True, slots=True)
class Spent:
    """Requests and tokens of the root models, or of the leaf calls, of one sample."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    @classmethod
    def of(cls, usage: Usage) -> Spent:
        return cls(usage.calls, usage.input_tokens, usage.output_tokens)

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What a judge was asked of an answer, and what it replied."""

    model: str
    prompt: str
    reply: str
    usd: float | None
    trace: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A sample, how it was asked, what came back, and what that is worth.

    `score` is None where `error` says why. `usd` is None where the price is not known.
    `calls` are those with a reply; `usd` has also what others may have cost at most, whose
    replies died with the process or node that they were for.
    `retrieved` are spans of the haystack that the host returned, as path, first and last line;
    `depth` is that of the deepest child. `documents` and `total_bytes` are the haystack's,
    `fingerprint` tells it from others. `trace` is a path below the run's folder. `at` is when
    it ended, in ISO UTC; `config` is the digest of the run's configuration.
    """

    config: str
    task: str
    id: str
    strategy: str
    question: str
    gold: Any
    haystack: str
    at: str
    query: str | None = None
    model: str | None = None
    length_tokens: int | None = None
    cluster: str | None = None
    joint: str | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)
    documents: int = 0
    total_bytes: int = 0
    fingerprint: str = ""
    answer: str = ""
    ranked: tuple[str, ...] | None = None
    cited: tuple[str, ...] = ()
    parsed: Any = None
    score: float | None = None
    parse_ok: bool | None = None
    detail: Mapping[str, float] = field(default_factory=dict)
    error: Failure | None = None
    stop_reason: str | None = None
    usd: float | None = 0.0
    calls: int = 0
    cached_calls: int = 0
    root: Spent = field(default_factory=Spent)
    sub: Spent = field(default_factory=Spent)
    iterations: int = 0
    depth: int = 0
    seconds: float = 0.0
    retrieved: tuple[tuple[str, int, int], ...] = ()
    trace: str | None = None
    judge: Judgement | None = None

    @property
    def key(self) -> Key:
        return Key(self.task, self.id, self.strategy)

    @property
    def haystack_tokens(self) -> int | None:
        """How long its haystack is: as the task says, else by its bytes; None: never loaded."""
        if self.length_tokens is not None:
            return self.length_tokens
        return self.total_bytes // BYTES_A_TOKEN or None

    @property
    def is_answered(self) -> bool:
        """Whether it need not be asked again, also where its scorer failed on the answer."""
        return self.error is None or self.error.kind == SCORER

    @property
    def was_cut_short(self) -> bool:
        """Whether its run could not go on for want of money or of nodes, of which more may come."""
        return self.error is not None and self.error.kind in (BUDGET, ClusterError.kind)

    @property
    def wants_judge(self) -> bool:
        """Whether all that it lacks is a judge's reply."""
        return self.error is not None and self.error.kind == JUDGE

    @property
    def sample(self) -> Sample:
        """The sample as a scorer needs it; its haystack cannot be loaded."""
        return Sample(
            id=self.id,
            question=self.question,
            query=self.query,
            haystack=Haystack(self.haystack, _gone),
            gold=self.gold,
            length_tokens=self.length_tokens,
            cluster=self.cluster,
            joint=self.joint,
            meta=self.meta,
        )

    @property
    def response(self) -> Response:
        """What came back, as a scorer needs it."""
        return Response(
            text=self.answer,
            ranked=self.ranked,
            cited=self.cited,
            day=datetime.fromisoformat(self.at).date(),
        )

    def scored(self, score: Score) -> Record:
        """Return the record with a score in place of the one it had."""
        return replace(
            self,
            score=score.value,
            parsed=score.parsed,
            parse_ok=score.parse_ok,
            detail=dict(score.detail),
            error=None,
        )

    def failed(self, kind: str, message: str) -> Record:
        """Return the record without a score, and why."""
        return replace(
            self,
            score=None,
            parsed=None,
            parse_ok=None,
            detail={},
            error=Failure(kind, message),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return it in values of JSON."""
        return {"schema_version": SCHEMA_VERSION, **asdict(self)}


_FIELDS = frozenset(item.name for item in fields(Record))


def _gone() -> Any:
    raise ValueError("a record does not hold its haystack")


def from_dict(values: Any) -> Record:
    """Read what `to_dict` wrote.

    Raises:
        ValueError: it is no record, or one of another version.
    """
    if not isinstance(values, dict) or values.get("schema_version") != SCHEMA_VERSION:
        raise ValueError("it is no record of this version")
    values = {name: value for name, value in values.items() if name != "schema_version"}
    if not values.keys() <= _FIELDS:
        raise ValueError(f"it has the unknown field {sorted(values.keys() - _FIELDS)[0]!r}")
    try:
        error = values.get("error")
        judge = values.get("judge")
        ranked = values.get("ranked")
        values |= {
            "error": None if error is None else Failure(**error),
            "judge": None if judge is None else Judgement(**judge),
            "ranked": None if ranked is None else tuple(ranked),
            "cited": tuple(values.get("cited", ())),
            "root": Spent(**values.get("root", {})),
            "sub": Spent(**values.get("sub", {})),
            "retrieved": tuple((p, a, b) for p, a, b in values.get("retrieved", ())),
        }
        return Record(**values)
    except (TypeError, AttributeError) as error:
        raise ValueError(f"it is no record: {error}") from error

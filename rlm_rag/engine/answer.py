"""The answer of a run, and what stands behind it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from rlm_rag.engine.citations import Citation
from rlm_rag.engine.coverage import CoverageSummary
from rlm_rag.models.base import Usage

SCHEMA_VERSION = 1

StopReason = Literal[
    "answered",
    "budget_usd",
    "budget_tokens",
    "budget_calls",
    "timeout",
    "iterations",
    "errors",
    "interrupted",
]


_DENIAL = re.compile(
    r"\W*not (?:found )?in the corpus\b|.{0,80}\bnothing was found in the corpus\b", re.IGNORECASE
)
# How the built-in policy says that its searches failed (`models/offline_answer.UNFINISHED`), in
# words that begin no other model's answer.
_UNFINISHED = re.compile(
    r"\s*No language model was used, and the search did not come to its end, so that nothing can "
)


def denies(text: str) -> bool:
    """Whether an answer says that the corpus does not hold what was asked for."""
    return _DENIAL.match(text) is not None


def is_unfinished(text: str) -> bool:
    """Whether an answer says that nothing is known, since the search for it failed."""
    return _UNFINISHED.match(text) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a run came to.

    `text` may be empty where a limit or an interruption came first. `trace` is the path of the
    trace file, None where none was kept. `limit_detail` says in words which limit ended the
    run; `warnings` are sentences for people. `by_role` parts the usage into `root`, the calls
    of root models at any depth, and `sub`, the leaf calls. `found` is false where the answer is
    that the corpus does not hold it, and where there is none; `coverage` has what was looked at.
    `fingerprint` is the corpus's, `commit` that of the repository that it was loaded from.
    Where a `schema` was given, `fits` says whether the text has its form, and `data` is what it
    holds then: JSON data, or the pydantic model. `artifacts` are the paths of the files that
    blocks left for the caller.
    """

    text: str
    stop_reason: StopReason
    model: str
    citations: tuple[Citation, ...] = ()
    iterations: int = 0
    usage: Usage = field(default_factory=Usage)
    by_model: Mapping[str, Usage] = field(default_factory=dict)
    by_role: Mapping[str, Usage] = field(default_factory=dict)
    coverage: CoverageSummary = field(default_factory=lambda: CoverageSummary(0, 0, 0, 0))
    found: bool = False
    fingerprint: str = ""
    commit: str | None = None
    trace: str | None = None
    limit_detail: str | None = None
    warnings: tuple[str, ...] = ()
    data: Any = None
    fits: bool | None = None
    artifacts: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The object that `ask --json` prints: docs/design.md section 4.4."""
        by_model = {name: usage_dict(usage) for name, usage in self.by_model.items()}
        by_role = {name: usage_dict(usage) for name, usage in self.by_role.items()}
        return {
            "schema_version": SCHEMA_VERSION,
            "answer": self.text,
            "data": _plain(self.data),
            "fits": self.fits,
            "artifacts": list(self.artifacts),
            "citations": [citation.to_dict() for citation in self.citations],
            "found": self.found,
            "stop_reason": self.stop_reason,
            "iterations": self.iterations,
            "usage": {**usage_dict(self.usage), "by_model": by_model, "by_role": by_role},
            "coverage": self.coverage.to_dict(),
            "corpus": {"fingerprint": self.fingerprint, "commit": self.commit},
            "warnings": list(self.warnings),
            "trace": self.trace,
        }


def _plain(data: Any) -> Any:
    return data.model_dump(mode="json") if hasattr(data, "model_dump") else data


def usage_dict(usage: Usage) -> dict[str, Any]:
    """The figures of a `usage` object, without `by_model`; `usd` None where not known."""
    return {
        "calls": usage.calls,
        "input_tokens": usage.input_tokens,
        "cached_tokens": usage.cached_tokens,
        "output_tokens": usage.output_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "usd": usage.usd,
        "cached_calls": usage.cached_calls,
        "saved_usd": usage.saved_usd,
    }

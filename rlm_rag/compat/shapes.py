"""What `rlms` returns and logs: the same attributes, the same `to_dict`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rlm_rag.models.base import Usage


@dataclass(frozen=True, slots=True)
class ModelUsageSummary:
    """What the calls of one model came to; `total_cost` in dollars, None where not known."""

    total_calls: int
    total_input_tokens: int
    total_output_tokens: int
    total_cost: float | None = None

    def to_dict(self) -> dict[str, Any]:
        return {
            "total_calls": self.total_calls,
            "total_input_tokens": self.total_input_tokens,
            "total_output_tokens": self.total_output_tokens,
            **({} if self.total_cost is None else {"total_cost": self.total_cost}),
        }


@dataclass(frozen=True, slots=True)
class UsageSummary:
    """What a completion came to, by the name of the model; sub-calls and children included."""

    model_usage_summaries: Mapping[str, ModelUsageSummary]

    @property
    def total_cost(self) -> float | None:
        costs = [each.total_cost for each in self.model_usage_summaries.values()]
        known = [cost for cost in costs if cost is not None]
        return sum(known) if known else None

    @property
    def total_input_tokens(self) -> int:
        return sum(each.total_input_tokens for each in self.model_usage_summaries.values())

    @property
    def total_output_tokens(self) -> int:
        return sum(each.total_output_tokens for each in self.model_usage_summaries.values())

    def to_dict(self) -> dict[str, Any]:
        by_model = {name: each.to_dict() for name, each in self.model_usage_summaries.items()}
        cost = {} if self.total_cost is None else {"total_cost": self.total_cost}
        return {"model_usage_summaries": by_model, **cost}


def usage_summary(by_model: Mapping[str, Usage], names: Mapping[str, str]) -> UsageSummary:
    """Return what models came to; `names` has what their caller calls them."""
    return UsageSummary(
        {
            names.get(name, name): ModelUsageSummary(
                usage.calls, usage.input_tokens, usage.output_tokens, usage.usd
            )
            for name, usage in by_model.items()
        }
    )


@dataclass(frozen=True, slots=True)
class RLMChatCompletion:
    """The answer to a prompt; `metadata` is the trajectory where a logger was given."""

    root_model: str
    prompt: Any
    response: str
    usage_summary: UsageSummary
    execution_time: float
    metadata: dict[str, Any] | None = None
    error: str | None = None

    def to_dict(self) -> dict[str, Any]:
        more = {"metadata": self.metadata, "error": self.error}
        return {
            "root_model": self.root_model,
            "prompt": self.prompt,
            "response": self.response,
            "usage_summary": self.usage_summary.to_dict(),
            "execution_time": self.execution_time,
            **{name: value for name, value in more.items() if value is not None},
        }


@dataclass(slots=True)
class REPLResult:
    """What a block printed; its variables stay in the sandbox, so `locals` has none."""

    stdout: str
    stderr: str
    execution_time: float
    locals: dict[str, Any] = field(default_factory=dict)
    rlm_calls: list[RLMChatCompletion] = field(default_factory=list)
    final_answer: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return {
            "stdout": self.stdout,
            "stderr": self.stderr,
            "locals": self.locals,
            "execution_time": self.execution_time,
            "rlm_calls": [call.to_dict() for call in self.rlm_calls],
            "final_answer": self.final_answer,
        }


@dataclass(slots=True)
class CodeBlock:
    code: str
    result: REPLResult

    def to_dict(self) -> dict[str, Any]:
        return {"code": self.code, "result": self.result.to_dict()}


@dataclass(slots=True)
class RLMIteration:
    """A turn of the root model: what it was told, what it replied, what its blocks did."""

    prompt: list[dict[str, str]]
    response: str
    code_blocks: list[CodeBlock]
    final_answer: str | None = None
    iteration_time: float | None = None

    def to_dict(self) -> dict[str, Any]:
        return {
            "prompt": self.prompt,
            "response": self.response,
            "code_blocks": [block.to_dict() for block in self.code_blocks],
            "final_answer": self.final_answer,
            "iteration_time": self.iteration_time,
        }


@dataclass(frozen=True, slots=True)
class RLMMetadata:
    """How an `RLM` was made, without keys."""

    root_model: str
    max_depth: int
    max_iterations: int
    backend: str
    backend_kwargs: Mapping[str, Any]
    environment_type: str
    environment_kwargs: Mapping[str, Any]
    other_backends: Sequence[str] | None = None

    def to_dict(self) -> dict[str, Any]:
        return {
            "root_model": self.root_model,
            "max_depth": self.max_depth,
            "max_iterations": self.max_iterations,
            "backend": self.backend,
            "backend_kwargs": {k: _plain(v) for k, v in self.backend_kwargs.items()},
            "environment_type": self.environment_type,
            "environment_kwargs": {k: _plain(v) for k, v in self.environment_kwargs.items()},
            "other_backends": None if self.other_backends is None else list(self.other_backends),
        }


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    return repr(value)

"""Limits that were reached, raised as `rlms` raises them: same names, same attributes."""

from __future__ import annotations

from rlm_rag.errors import RlmRagError


class BudgetExceededError(RlmRagError):
    """`max_budget` was reached: `spent` and `budget` in dollars."""

    kind = "budget_usd"

    def __init__(self, spent: float, budget: float, message: str | None = None) -> None:
        super().__init__(message or f"spent ${spent:.6f} of ${budget:.6f}")
        self.spent = spent
        self.budget = budget


class TimeoutExceededError(RlmRagError):
    """`max_timeout` was reached: `elapsed` and `timeout` in seconds."""

    kind = "timeout"

    def __init__(
        self,
        elapsed: float,
        timeout: float,
        partial_answer: str | None = None,
        message: str | None = None,
    ) -> None:
        super().__init__(message or f"{elapsed:.1f} s of {timeout:.1f} s")
        self.elapsed = elapsed
        self.timeout = timeout
        self.partial_answer = partial_answer


class TokenLimitExceededError(RlmRagError):
    """`max_tokens` was reached."""

    kind = "budget_tokens"

    def __init__(
        self,
        tokens_used: int,
        token_limit: int,
        partial_answer: str | None = None,
        message: str | None = None,
    ) -> None:
        super().__init__(message or f"{tokens_used:,} of {token_limit:,} tokens")
        self.tokens_used = tokens_used
        self.token_limit = token_limit
        self.partial_answer = partial_answer


class ErrorThresholdExceededError(RlmRagError):
    """`max_errors` turns in a row failed."""

    kind = "errors"

    def __init__(
        self,
        error_count: int,
        threshold: int,
        last_error: str | None = None,
        partial_answer: str | None = None,
        message: str | None = None,
    ) -> None:
        super().__init__(message or f"{error_count} errors in a row, of at most {threshold}")
        self.error_count = error_count
        self.threshold = threshold
        self.last_error = last_error
        self.partial_answer = partial_answer


class CancellationError(RlmRagError):
    """The run was interrupted."""

    kind = "interrupted"

    def __init__(self, partial_answer: str | None = None, message: str | None = None) -> None:
        super().__init__(message or "interrupted")
        self.partial_answer = partial_answer

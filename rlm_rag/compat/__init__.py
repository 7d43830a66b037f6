"""The interface of the package `rlms`, so that its users change one import."""

from rlm_rag.compat.errors import (
    BudgetExceededError,
    CancellationError,
    ErrorThresholdExceededError,
    TimeoutExceededError,
    TokenLimitExceededError,
)
from rlm_rag.compat.logger import RLMLogger
from rlm_rag.compat.rlm import RLM
from rlm_rag.compat.shapes import ModelUsageSummary, RLMChatCompletion, UsageSummary

__all__ = [
    "RLM",
    "BudgetExceededError",
    "CancellationError",
    "ErrorThresholdExceededError",
    "ModelUsageSummary",
    "RLMChatCompletion",
    "RLMLogger",
    "TimeoutExceededError",
    "TokenLimitExceededError",
    "UsageSummary",
]

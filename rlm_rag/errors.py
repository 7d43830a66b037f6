"""The exceptions that rlm-rag raises, in one tree, named by the boundary that failed.

Every error carries a `kind` (stable, for `--json`), a message that says what failed and
where, and a `hint` that says what to do. Constructors only store. No error ever holds a key.
"""

from __future__ import annotations

# `typing` would be a sixth of the time that a sandboxed worker takes to start.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar


class RlmRagError(Exception):
    """Base of every error that this package raises on purpose."""

    kind: ClassVar[str] = "error"

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(RlmRagError):
    """An argument, option or question that cannot be used as given."""

    kind = "usage"


class MissingExtraError(UsageError):
    """An optional dependency is not installed; the hint is the exact `pip install` command."""

    kind = "missing_extra"


class SettingsError(UsageError):
    """A setting (flag, environment, pyproject, user file) that cannot be used."""

    kind = "settings"


class SourceError(RlmRagError):
    """A source that cannot be loaded: missing, unreadable, or of no known kind."""

    kind = "source"


class EmptyCorpusError(SourceError):
    """A source that exists but holds no readable document."""

    kind = "empty_corpus"


class DocumentError(SourceError):
    """A document that its parser cannot read; the message is the reason why it is skipped."""

    kind = "document"


class BenchmarkDataError(SourceError):
    """A file of a benchmark that is not in its published format; the hint says what is."""

    kind = "benchmark_data"


class PackedCorpusError(RlmRagError):
    """A packed corpus file that is not one, is damaged, or could not be written."""

    kind = "packed_corpus"


class NotHeldError(PackedCorpusError):
    """The text of a document that lies elsewhere, and was not or cannot be fetched."""

    kind = "not_held"


class RetrievalError(RlmRagError):
    """A retrieval request that cannot be served: bad pattern, unknown path, dead index."""

    kind = "retrieval"


class ClusterError(RlmRagError):
    """Work cannot be done on the nodes of a cluster: they, or what they all need, are lost."""

    kind = "cluster"


class SessionError(RlmRagError):
    """A conversation that was kept cannot be read or written."""

    kind = "session"


class SandboxError(RlmRagError):
    """The sandbox could not do what was asked."""

    kind = "sandbox"


class SandboxUnavailableError(SandboxError):
    """No isolation layer of this machine passed its self-test."""

    kind = "sandbox_unavailable"


class WorkerLostError(SandboxError):
    """The worker process ended, or was ended, before it answered."""

    kind = "worker_lost"


class ProtocolError(SandboxError):
    """A frame that is malformed, oversized, or not expected now."""

    kind = "protocol"


class ModelError(RlmRagError):
    """A language model's provider could not serve a request.

    `provider_message` is what the provider said, with keys removed; `retryable` says
    whether the same request may succeed later, `may_be_billed` whether it was sent and may have
    been answered, unseen; `retry_after_seconds` is the provider's own wish, where it gave one.
    """

    kind = "model"
    retryable: ClassVar[bool] = False
    may_be_billed: ClassVar[bool] = False

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        provider_message: str | None = None,
        retry_after_seconds: float | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.provider_message = provider_message
        self.retry_after_seconds = retry_after_seconds


class ModelNotFoundError(ModelError):
    """The provider, or this package, knows no model of that name."""

    kind = "model_not_found"


class ModelKeyError(ModelError):
    """The key is missing, or the provider refused it."""

    kind = "model_key"


class ModelRequestError(ModelError):
    """The provider refused the request itself (bad parameter, prompt too long)."""

    kind = "model_request"


class ContextWindowError(ModelRequestError):
    """The prompt is longer than the model's context window."""

    kind = "context_window"


class ContentRefusedError(ModelError):
    """The provider's content policy refused the prompt or the reply."""

    kind = "content_refused"


class RateLimitError(ModelError):
    """The provider asked to slow down (429)."""

    kind = "rate_limit"
    retryable = True


class ProviderServerError(ModelError):
    """The provider failed (5xx), or its reply could not be read."""

    kind = "provider_server"
    retryable = True


class ModelUnreachableError(ModelError):
    """No connection to the provider, or it was cut."""

    kind = "model_unreachable"
    retryable = True


class ReplyLostError(ModelUnreachableError):
    """The connection was cut once the request was sent, before its reply was whole."""

    may_be_billed = True


class ModelTimeoutError(ModelError):
    """The provider did not answer in time."""

    kind = "model_timeout"
    retryable = True
    may_be_billed = True


class RunFolderError(RlmRagError):
    """The folder of an evaluation that cannot be read, written, or gone on with as it is."""

    kind = "run_folder"


class AnswerFileError(RlmRagError):
    """A file of a map's answers that cannot be read, written, or gone on with as it is."""

    kind = "answer_file"


class TraceError(RlmRagError):
    """A trace that cannot be found, read or written."""

    kind = "trace"


class DivergedError(TraceError):
    """A run that is taken up again, or replayed, does not do what its trace says it did."""

    kind = "diverged"


class RunInterrupted(KeyboardInterrupt):
    """Ctrl-C ended a run; `answer` is its partial `Answer`, the trace is closed."""

    def __init__(self, answer: Any) -> None:
        super().__init__("the run was interrupted")
        self.answer = answer

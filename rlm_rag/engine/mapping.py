"""One prompt asked of every document for itself, by sub-models and without a root model."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from rlm_rag import __version__
from rlm_rag.corpus import Corpus
from rlm_rag.engine.answer import StopReason, usage_dict
from rlm_rag.engine.budget import Budget
from rlm_rag.engine.citations import content_digest
from rlm_rag.engine.map_reading import MapOrder, Reading, read_documents
from rlm_rag.engine.options import RunOptions
from rlm_rag.engine.subcalls import LeafReply
from rlm_rag.errors import UsageError
from rlm_rag.globs import without_part
from rlm_rag.indexes.requests import Retriever
from rlm_rag.models.base import Usage
from rlm_rag.models.tokens import count_tokens
from rlm_rag.trace.events import MAP_STRATEGY, RunStarted
from rlm_rag.trace.recorder import Recorder
from rlm_rag.trace.store import new_run_id


@dataclass(frozen=True, slots=True, kw_only=True)
class FileAnswer:
    """What a sub-model made of one document.

    Of one in several parts `text` has an answer under the lines of each. Where it is not `ok`,
    `error` says why, and `text` has what the other parts came to. `digest` is that of the text
    that was read.
    """

    path: str
    text: str
    ok: bool
    error: str | None
    truncated: bool
    model: str
    usage: Usage
    digest: str

    def to_dict(self) -> dict[str, Any]:
        """The object of a line of `rlm-rag map`, but for what the whole file shares."""
        return {
            "path": self.path,
            "ok": self.ok,
            "answer": self.text,
            "error": self.error,
            "truncated": self.truncated,
            "model": self.model,
            "usage": usage_dict(self.usage),
            "digest": self.digest,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class MapPlan:
    """The documents that a map reads: `digests` by path, `tokens` of each in the same order.

    `empty` ones have nothing to read, `known` ones were answered before, `own` ones are where
    the answers go.
    """

    digests: Mapping[str, str]
    tokens: tuple[int, ...]
    empty: tuple[str, ...]
    known: tuple[str, ...]
    own: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MapFailure:
    """Why so many documents have no answer; `error` is what was said of the first of them."""

    error: str
    documents: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MapSummary:
    """How a map ended: `stop_reason` is `answered` where every document has an answer.

    `unsent` counts the documents that a limit, named in `stop_reason` and `limit_detail`, left
    no call for; `failed` those whose answer is not ok for another reason: `failures` has these
    reasons, the most frequent first. `partial` counts those of which the limit let a part be read:
    their answers are not ok, and have what came. `truncated` counts the answers that an output
    limit cut.
    """

    stop_reason: StopReason
    limit_detail: str | None = None
    answered: int = 0
    failed: int = 0
    unsent: int = 0
    partial: int = 0
    truncated: int = 0
    failures: tuple[MapFailure, ...] = ()
    usage: Usage = field(default_factory=Usage)
    by_model: Mapping[str, Usage] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def plan_map(
    corpus: Corpus, is_known: Callable[[str, str], bool], *, own: Collection[str] = ()
) -> MapPlan:
    """Return what there is to read, given what tells the path and digest of what was answered.

    Nothing that lies at the paths of `own` is read.
    """
    digests: dict[str, str] = {}
    tokens: list[int] = []
    empty: list[str] = []
    known: list[str] = []
    left_out: dict[str, None] = {}
    for document in corpus:
        path = without_part(document.path)
        if path in own:
            left_out[path] = None
            continue
        digest = content_digest(document.content)
        if not document.content.strip():
            empty.append(document.path)
        elif is_known(document.path, digest):
            known.append(document.path)
        else:
            digests[document.path] = digest
            tokens.append(count_tokens(document.content))
    return MapPlan(
        digests=digests,
        tokens=tuple(tokens),
        empty=tuple(empty),
        known=tuple(known),
        own=tuple(left_out),
    )


class Mapper:
    """One map; used once, on the library's loop. `tell` is given each answer as it comes.

    `read` has the documents read elsewhere than here. Where `keeps_replies`, those that came about
    parts of a document are there when the map goes on, and are not told without the others.
    """

    def __init__(
        self,
        *,
        corpus: Corpus,
        retriever: Retriever,
        prompt: str,
        plan: MapPlan,
        options: RunOptions,
        tell: Callable[[FileAnswer], None],
        read: Reading | None = None,
        keeps_replies: bool = False,
    ) -> None:
        if not isinstance(prompt, str) or not prompt.strip():
            raise UsageError("the prompt is empty", hint='for example: rlm-rag map . "Sum it up."')
        self._corpus = corpus
        self._retriever = retriever
        self._prompt = prompt
        self._plan = plan
        self._options = options
        self._tell = tell
        self._read = read or read_documents
        self._keeps_replies = keeps_replies
        self._run_id = new_run_id()
        self._answered = 0
        self._partial = 0
        self._failures: dict[str, list[str]] = {}
        self._truncated = 0
        self._stopped: tuple[StopReason, str | None] | None = None

    async def execute(self) -> MapSummary:
        """Ask about every document of the plan, within the limits.

        Raises:
            UsageError: an option cannot be used.
            ModelError: a model's name or key cannot be used. Where only the provider knew, at
                the first request that it refuses for it: after what is under way, none is sent.
        """
        if not self._plan.digests:
            return MapSummary(stop_reason="answered")
        options = self._options
        recorder = Recorder(None, listener=options.on_event)
        budget = Budget(options.limits, share=options.share, keeps_final=False)
        self._record_start(recorder)
        order = MapOrder(
            corpus=self._corpus,
            retriever=self._retriever,
            paths=tuple(self._plan.digests),
            prompt=self._prompt,
            options=options,
            run_id=self._run_id,
        )
        warnings = await self._read(order, budget, recorder, self._take)
        return self._summary(budget, warnings)

    def _take(self, path: str, reply: LeafReply) -> None:
        if reply.limit is not None:
            cut = f"what it leaves cut the reply about {path}"
            detail = cut if reply.error is None else reply.error.removeprefix("not sent: ")
            self._stopped = self._stopped or (reply.limit, detail)
            if reply.has_parts and not self._keeps_replies:
                self._partial += 1
                self._tell_of(path, replace(reply, error=reply.error or f"a limit: {cut}"))
            return
        self._answered += reply.ok
        self._truncated += reply.ok and reply.truncated
        error = reply.error
        if error is not None:
            told = error if reply.cause is None else reply.cause.message
            kind = error if reply.cause is None else reply.cause.kind
            self._failures.setdefault(kind, []).append(told)
        self._tell_of(path, reply)

    def _tell_of(self, path: str, reply: LeafReply) -> None:
        error = reply.error
        text = reply.text if error is None else reply.text.removeprefix(f"Error: {error}").lstrip()
        self._tell(
            FileAnswer(
                path=path,
                text=text,
                ok=reply.ok,
                error=error,
                truncated=reply.truncated,
                model=reply.model,
                usage=reply.usage,
                digest=self._plan.digests[path],
            )
        )

    def _summary(self, budget: Budget, warnings: tuple[str, ...]) -> MapSummary:
        failures = sorted(self._failures.values(), key=len, reverse=True)
        failed = sum(map(len, failures))
        unsent = len(self._plan.digests) - self._answered - failed - self._partial
        reason, detail = self._stopped or ("errors" if failed else "answered", None)
        if unsent and self._stopped is None:
            seconds = self._options.limits.seconds
            reason, detail = "timeout", f"the limit of {seconds:g} seconds was reached"
        return MapSummary(
            stop_reason=reason,
            limit_detail=detail,
            answered=self._answered,
            failed=failed,
            unsent=unsent,
            partial=self._partial,
            truncated=self._truncated,
            failures=tuple(MapFailure(error=told[0], documents=len(told)) for told in failures),
            usage=budget.usage,
            by_model=budget.by_model,
            warnings=warnings,
        )

    def _record_start(self, recorder: Recorder) -> None:
        model = self._options.names.sub
        documents = len(self._plan.digests)
        corpus = {"fingerprint": self._corpus.fingerprint, "documents": documents}
        recorder.record(
            RunStarted(
                run=self._run_id,
                question=self._prompt,
                corpus=corpus,
                model=model,
                sub_model=model,
                strategy=MAP_STRATEGY,
                limits=asdict(self._options.limits),
                sandbox="unused",
                version=__version__,
                prompts="",
                worker="",
            )
        )

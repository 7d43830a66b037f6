"""One question asked of one corpus, from its first check to a checked answer and a closed trace."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

from rlm_rag import __version__
from rlm_rag.corpus import Corpus
from rlm_rag.engine.answer import Answer
from rlm_rag.engine.budget import Budget
from rlm_rag.engine.calls import ModelCalls, PricedModel
from rlm_rag.engine.citations import check_citations
from rlm_rag.engine.coverage import Coverage
from rlm_rag.engine.figures import describe
from rlm_rag.engine.history import History
from rlm_rag.engine.limits import Limits
from rlm_rag.engine.loop import Ending, Loop, status_line
from rlm_rag.engine.prompts.texts import load_profile
from rlm_rag.engine.services import SERVICE_NAMES, Services
from rlm_rag.engine.subcalls import SubCalls
from rlm_rag.errors import UsageError
from rlm_rag.indexes.requests import Retriever
from rlm_rag.models.limiter import Limiter
from rlm_rag.models.prices import Price, facts_of, parse_price
from rlm_rag.models.router import close_model, open_model, provider_name
from rlm_rag.sandbox.layers import choose_layer
from rlm_rag.sandbox.session import Session, WorkerSetup
from rlm_rag.trace import events
from rlm_rag.trace.recorder import Recorder
from rlm_rag.trace.store import TraceStore

STRATEGIES = ("auto", "rlm")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How a question is to be answered; `RLM` documents each."""

    model: str
    sub_model: str | None
    api_base: str | None
    limits: Limits
    sandbox: str
    strategy: str
    headers: Mapping[str, str]
    price: str | None
    trace: bool | Path
    on_event: Callable[[events.Event], None] | None


class Run:
    """One run; used once. `execute` on the library's loop, `interrupt` from that loop too."""

    def __init__(
        self, *, corpus: Corpus, retriever: Retriever, question: str, options: RunOptions
    ) -> None:
        self._corpus = corpus
        self._retriever = retriever
        self._question = question
        self._options = options
        self._interrupted = False
        self._driving: asyncio.Task[Answer] | None = None

    def interrupt(self) -> None:
        """End the run now; `execute` then returns what there is, as `interrupted`."""
        self._interrupted = True
        if self._driving is not None:
            self._driving.cancel()

    async def execute(self) -> Answer:
        """Answer the question.

        Raises:
            UsageError: the question or an option cannot be used.
            ModelError: no answer because of the key, the model's name or the network.
            SandboxError: no worker could be started.
        """
        self._check()
        async with AsyncExitStack() as stack:
            ...
        raise NotImplementedError

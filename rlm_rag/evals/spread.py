"""Samples answered on the nodes of a Ray cluster, each by a piece of work; traces stay here."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rlm_rag.api import SearchableCorpus
from rlm_rag.distributed.desk import Terms
from rlm_rag.distributed.remote import RemoteAccount
from rlm_rag.distributed.spool import run_on, trace_of
from rlm_rag.distributed.spreading import fan_out
from rlm_rag.distributed.work import Account, Copied, Copy, Listener, Node, Opening
from rlm_rag.engine.limits import Limits
from rlm_rag.errors import ClusterError, DivergedError
from rlm_rag.evals.answering import Answering, below
from rlm_rag.evals.config import Models
from rlm_rag.evals.record import Record
from rlm_rag.evals.run_folder import usd_of
from rlm_rag.trace.events import Event
from rlm_rag.trace.reader import Trace
from rlm_rag.trace.recorder import Recorder
from rlm_rag.trace.store import TraceStore

if TYPE_CHECKING:
    from rlm_rag.distributed.fan_out import FanOut


@dataclass(frozen=True, slots=True)
class SampleWork:
    """Answers one sample on a node; tells the events of its run, but what was `told` before."""

    record: Record
    copied: Copied
    models: Models
    limits: Limits
    headers: Mapping[str, str]
    account: Account
    told: bytes

    async def __call__(self, node: Node) -> Record:
        opening = Opening(SearchableCorpus, self.copied)
        corpus = node.corpora.opened(self.copied.fingerprint, opening)
        answering = Answering(
            self.models,
            self.limits,
            share=node.account(self.account).share,
            headers=self.headers,
            tell=node.tell,
        )
        return await answering(self.record, corpus, None, before=trace_of(self.told))


class Traces:
    """Writes the events of a sample's runs, as they come, into the folder of its traces."""

    def __init__(self, folder: Path | None, before: Trace | None) -> None:
        """Begin with the file of what was told `before`, if anything was.

        Raises:
            TraceError: it cannot be written, or another process writes to it.
        """
        self._store = None if folder is None else TraceStore(folder)
        self._recorder: Recorder | None = None
        self._run = ""
        if before is not None and before.root is not None:
            self._run = before.root.run
            self._recorder = Recorder(before.path, after=len(before.records))

    def take(self, event: Event) -> None:
        """Write an event; one of another root begins another file."""
        root = event.run.partition(".")[0]
        if self._store is not None and root != self._run:
            self.close()
            self._run, self._recorder = root, self._store.create(root)
        if self._recorder is not None:
            self._recorder.record(event)

    @property
    def path(self) -> Path | None:
        """The last file, None where nothing is in it."""
        return None if self._recorder is None else self._recorder.path

    def close(self) -> None:
        """Close the file; idempotent."""
        if self._recorder is not None:
            self._recorder.close()


class SpreadAnswers:
    """Has samples answered on the nodes of a cluster, within one account."""

    def __init__(
        self,
        fan: FanOut,
        account: Account,
        models: Models,
        limits: Limits,
        headers: Mapping[str, str] | None,
    ) -> None:
        self._fan = fan
        self._account = account
        self._models = models
        self._limits = limits
        self._headers = headers or {}

    async def __call__(
        self,
        record: Record,
        corpus: SearchableCorpus,
        traces: Path | None,
        *,
        before: Trace | None = None,
    ) -> Record:
        """Return the record of a sample with its answer, or with what its run failed with.

        Raises:
            RlmRagError: what keeps every sample from being answered.
        """
        copied, written = Copied.of(corpus), Traces(traces, before)

        def made(told: bytes) -> SampleWork:
            return SampleWork(
                record,
                copied,
                self._models,
                self._limits,
                self._headers,
                self._account,
                told,
            )

        try:
            answered: Record = await run_on(
                self._fan, made, Listener(written.take), copy=Copy.of(corpus), before=before
            )
        except (ClusterError, DivergedError) as error:
            answered = record.failed(error.kind, error.message)
            if written.path is not None:
                answered = replace(answered, usd=usd_of(written.path))
        finally:
            written.close()
        path = written.path
        trace = None if path is None or traces is None else below(path, traces)
        return replace(answered, trace=trace)


@asynccontextmanager
async def spread(
    address: str,
    models: Models,
    limits: Limits,
    *,
    usd: float | None,
    spent_usd: float,
    headers: Mapping[str, str] | None,
) -> AsyncIterator[tuple[SpreadAnswers, RemoteAccount]]:
    """Give what has samples answered on the cluster at `address`, and what they may spend.

    Raises:
        MissingExtraError: Ray is not installed.
        ClusterError: there is no cluster there that can be joined.
    """
    fan = await fan_out(address)
    terms = Terms(usd=usd, spent_usd=spent_usd, concurrency=limits.concurrency)
    account = await fan.opened(terms)
    try:
        yield SpreadAnswers(fan, account, models, limits, headers), fan.account(account)
    finally:
        fan.close(account)

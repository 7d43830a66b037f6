"""A map over the documents of a corpus, as the caller of `RLM.map` has it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Sequence
from concurrent.futures import Future, wait
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Self

from rlm_rag.answer_file import AnswerFile
from rlm_rag.api import SearchableCorpus, open_source
from rlm_rag.closing import Closing
from rlm_rag.corpus import Corpus
from rlm_rag.engine.blocking import INTERRUPT_SECONDS
from rlm_rag.engine.estimate import Estimate, estimate_map
from rlm_rag.engine.loop_thread import loop_thread
from rlm_rag.engine.map_reading import Reading
from rlm_rag.engine.mapping import FileAnswer, Mapper, MapPlan, MapSummary, plan_map
from rlm_rag.engine.options import RunOptions
from rlm_rag.engine.windows import with_served_windows
from rlm_rag.engine.workload import parts_of
from rlm_rag.errors import AnswerFileError, UsageError
from rlm_rag.loaders.located import paths_of
from rlm_rag.loaders.source import Source
from rlm_rag.models.prices import ModelFacts

_GLANCE_SECONDS = 0.2


class Map(Closing):
    """The answers about the documents of a corpus, as they come, by `for`.

    Nothing is sent before the first is taken; then the map goes on by itself, however slowly
    its answers are. What it raises, the iteration raises; a limit reached is told by `summary`
    at the end. `close` (or `with`) ends it. `plan` says what there is to read, `estimate` what
    that may cost. With `ray`, the nodes of the cluster of that address read.
    """

    def __init__(
        self,
        corpus: Corpus | Source,
        prompt: str,
        options: RunOptions,
        *,
        out: Path | None,
        ray: str | None = None,
    ) -> None:
        self._prompt = prompt
        self._options = options
        self._facts = options.asking.facts(options.names.sub)
        self._asked = asked_digest(prompt, options)
        self._file = None if out is None else AnswerFile(out, asked=self._asked)
        self._owned = ExitStack()
        found = open_source(corpus)
        if found is not corpus:
            self._owned.enter_context(found)
        self._answers: SimpleQueue[FileAnswer] = SimpleQueue()
        self._ended: Future[MapSummary] | None = None
        self._answered = 0
        self._unwritten: list[FileAnswer] = []
        try:
            self.plan: MapPlan = plan_map(found, self._is_known, own=self._own_paths(found.origin))
            self._parts = parts_of(self.plan.tokens, prompt, self._facts)
            self._mapper = self._made(found, prompt, options, ray)
        except BaseException:
            self._owned.close()
            raise

    @property
    def facts(self) -> ModelFacts:
        """What is known of the sub-model before its server is asked."""
        return self._facts

    @cached_property
    def estimate(self) -> Estimate:
        """What its documents may cost; no model is asked, a server of one's own for its window.

        It is asked once, when this is first read.
        """
        names = self._options.names
        return estimate_map(
            self.plan.tokens,
            self._prompt,
            names=names,
            settings=loop_thread().run(with_served_windows(self._options.asking, (names.sub,))),
            limits=self._options.limits,
        )

    @property
    def parts(self) -> int:
        """In about how many calls its documents are asked about, where no limit ends it."""
        return self._parts

    @property
    def asked(self) -> str:
        """The digest of the prompt and of the model, which each line of a file has."""
        return self._asked

    @property
    def answered(self) -> int:
        """How many documents have got an answer so far."""
        return self._answered

    @property
    def unwritten(self) -> Sequence[FileAnswer]:
        """The answers that came and could not be written, most often since the disk is full."""
        return tuple(self._unwritten)

    @property
    def summary(self) -> MapSummary:
        """How it ended.

        Raises:
            UsageError: it has not ended.
        """
        if self._ended is None or not self._ended.done():
            raise UsageError("the map has not ended", hint="take all of its answers first")
        return self._ended.result()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> FileAnswer:
        if self._ended is None:
            self._ended = loop_thread().submit(self._work())
        while True:
            is_over = self._ended.done()
            try:
                # A short wait, so that a signal is heard soon.
                return self._answers.get(timeout=0 if is_over else _GLANCE_SECONDS)
            except Empty:
                if is_over:
                    self._ended.result()
                    raise StopIteration from None

    def close(self) -> None:
        """End the map, if it has not ended, and what was opened for it; idempotent."""
        if self._ended is not None:
            self._ended.cancel()
            wait([self._ended], INTERRUPT_SECONDS)
        self._owned.close()

    def _own_paths(self, origin: str | None) -> Collection[str]:
        files = () if self._file is None else self._file.files
        return {path for file in files for path in paths_of(file, origin)}

    def _is_known(self, path: str, digest: str) -> bool:
        return self._file is not None and self._file.knows(path, digest)

    def _made(
        self, corpus: SearchableCorpus, prompt: str, options: RunOptions, ray: str | None
    ) -> Mapper:
        has_parts = self._parts > len(self.plan.digests)
        if self._file is not None and has_parts and not options.cache:
            # Parts of a document whose answer a limit kept from coming are not paid for again.
            options = replace(options, cache=self._file.replies)
        return Mapper(
            corpus=corpus,
            retriever=corpus.ready_retriever(),
            prompt=prompt,
            plan=self.plan,
            options=options,
            tell=self._take,
            read=None if ray is None else _on_cluster(ray),
            # Nodes keep replies in their own user's cache alone.
            keeps_replies=bool(options.cache) if ray is None else options.cache is True,
        )

    def _take(self, answer: FileAnswer) -> None:
        self._answered += answer.ok
        try:
            # First to the disk: what was paid for outlives whoever takes it.
            if self._file is not None:
                self._file.append(answer)
        except AnswerFileError:
            self._unwritten.append(answer)
            raise
        finally:
            self._answers.put(answer)

    async def _work(self) -> MapSummary:
        # What a killed run left torn goes, whether or not there is anything to ask.
        if self._file is None or (self._file.is_whole and not self.plan.digests):
            return await self._mapper.execute()
        with self._file:
            summary = await self._mapper.execute()
            if summary.stop_reason == "answered":
                self._file.drop_replies()
            return summary


def _on_cluster(address: str) -> Reading:
    # Not before: whatever asks a question imports this module.
    from rlm_rag.distributed.map_work import SpreadReading

    return SpreadReading(address)


def map_options(options: RunOptions, *, bounds_calls: bool) -> RunOptions:
    """Return the options of a map: as many calls as it needs, unless a number was chosen."""
    if bounds_calls:
        return options
    return replace(options, limits=replace(options.limits, calls=None))


def asked_digest(prompt: str, options: RunOptions) -> str:
    """Return a digest of a prompt, and of what its replies depend on besides the text."""
    names, asking = options.names, options.asking
    asked = [prompt, names.sub, asking.temperature, dict(asking.extra)]
    text = json.dumps(asked, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]

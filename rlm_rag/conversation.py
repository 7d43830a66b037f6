"""Questions one after another, with what the ones before left: answers, variables, sources."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from rlm_rag.api import SearchableCorpus, load_origin, open_source, opened
from rlm_rag.closing import Closing
from rlm_rag.corpus import Corpus
from rlm_rag.engine.answer import Answer
from rlm_rag.engine.blocking import answer_of
from rlm_rag.engine.carried import Carried, Exchange
from rlm_rag.engine.form import Schema, form_of
from rlm_rag.engine.loop_thread import loop_thread
from rlm_rag.engine.options import RunOptions
from rlm_rag.engine.recorded import usage_of
from rlm_rag.engine.run import Run
from rlm_rag.errors import SessionError, UsageError
from rlm_rag.loaders.source import Source
from rlm_rag.models.base import Usage
from rlm_rag.packed import PackedCorpus
from rlm_rag.packing import StoredText
from rlm_rag.sessions import HeldWith, SavedConversation, SessionStore


class Conversation(Closing):
    """A corpus and the questions asked of it so far; made by `RLM.conversation`.

    Each question finds the REPL's variables as the one before left them, the messages of question
    N as `history_N` and of all as `history`, and the last answers in its prompt. Its corpora are
    `context_0`, `context_1`, ..., and search spans all of them. Each question has the limits of
    the RLM anew, and a trace of its own. One question at a time. `close()` (or `with`) closes what
    it loaded itself.
    """

    def __init__(
        self,
        corpus: Corpus | Source,
        options: RunOptions,
        *,
        saved: SavedConversation | None = None,
        owned: bool = False,
    ) -> None:
        self._options = options
        self._corpus = open_source(corpus)
        self._owned = owned or self._corpus is not corpus
        self._sources: list[str | None] = [self._corpus.origin]
        self._contexts: tuple[tuple[int, str], ...] = ((len(self._corpus), self._corpus.shape),)
        self._states = [Carried()]
        self._busy = False
        self._undone = Usage()
        self.warnings: tuple[str, ...] = ()
        if saved is not None:
            self._take(saved)

    def ask(
        self,
        question: str,
        *,
        images: Sequence[str | Path] = (),
        schema: Schema | None = None,
    ) -> Answer:
        """Answer the next question; parameters are those of `RLM.ask`.

        Where it is interrupted, or ends at a limit, it counts as asked, with what it had.

        Raises:
            RlmRagError, RunInterrupted: as `RLM.ask`; the conversation is then as it was before,
                but for an interruption.
        """
        with self._run(question, images, schema) as run:
            return answer_of(run)

    async def ask_async(
        self,
        question: str,
        *,
        images: Sequence[str | Path] = (),
        schema: Schema | None = None,
    ) -> Answer:
        """The same, awaitable in any event loop; cancelling it ends the question."""
        with self._run(question, images, schema) as run:
            return await loop_thread().awaited(run.execute())

    def undo(self) -> str | None:
        """Drop the last question, its variables with it; return it, None where there is none.

        Of a session that was kept, the last 20 questions can be dropped, fewer where their
        variables were large.
        """
        if len(self._states) < 2:
            return None
        dropped = self._states.pop().exchanges[-1]
        self._undone += usage_of(dropped.usage)
        return dropped.question

    def add(self, source: Corpus | Source) -> str:
        """Add a corpus as the next `context_N`; its paths are under that name. Return the name.

        Raises:
            SourceError, EmptyCorpusError: as `load`.
        """
        with opened(source) as added:
            name = _free_name(f"context_{len(self._contexts)}", self._corpus)
            joined = SearchableCorpus.adopt(_joined(self._corpus, added, name))
            if self._corpus.cluster is not None:
                joined.spread(self._corpus.cluster)
            self._sources.append(added.origin)
            self._contexts = (*self._contexts, (len(added), added.shape))
        if self._owned:
            self._corpus.close()
        self._corpus, self._owned = joined, True
        return name

    @property
    def corpus(self) -> SearchableCorpus:
        """All its documents."""
        return self._corpus

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        """The questions so far, with their answers."""
        return self._states[-1].exchanges

    @property
    def sources(self) -> tuple[tuple[str, str | None, int], ...]:
        """Name in the REPL, origin (None for values) and number of documents of each corpus."""
        return tuple(
            (f"context_{number}", origin, count)
            for number, (origin, (count, _)) in enumerate(
                zip(self._sources, self._contexts, strict=True)
            )
        )

    @property
    def usage(self) -> Usage:
        """What all its questions cost, those that were undone here too.

        `usd` is None where one's price is not known.
        """
        return sum((usage_of(each.usage) for each in self.exchanges), self._undone)

    def saved(self) -> SavedConversation:
        """Return it as it is kept.

        Raises:
            SessionError: a source of it cannot be loaded again.
        """
        sources = [origin for origin in self._sources if origin is not None]
        if len(sources) < len(self._sources):
            raise SessionError(
                "the conversation has a source that cannot be loaded again: text, values or -",
                hint="ask of files or folders",
            )
        *earlier, last = self._states
        return SavedConversation(
            tuple(sources),
            self._corpus.fingerprint,
            last,
            earlier=tuple(earlier),
            held_with=self._held_with,
        )

    def save(self, name: str) -> Path:
        """Keep it as a session of that name in the user's state folder; return the file.

        Raises:
            SessionError: a source cannot be loaded again, a chat has that session, or the file
                cannot be written.
        """
        return SessionStore().save(name, self.saved())

    def close(self) -> None:
        """Close what it loaded itself; idempotent."""
        if self._owned:
            self._corpus.close()

    @property
    def _held_with(self) -> HeldWith:
        names = self._options.names
        return HeldWith.of(names.model, names.sub_model, self._options.asking.api_base)

    def _take(self, saved: SavedConversation) -> None:
        for origin in saved.sources[1:]:
            with load_origin(origin) as added:
                self.add(added)
        self._states = [*saved.earlier, saved.carried]
        if saved.fingerprint != self._corpus.fingerprint:
            # Variables refer to documents by number.
            self._states = [replace(each, variables=None, names=()) for each in self._states]
            self.warnings = ("the sources have changed since: variables are not kept",)
        if saved.held_with not in (None, self._held_with):
            said = f"it was held with {saved.held_with}, and goes on with {self._held_with}"
            self.warnings = (*self.warnings, said)

    @contextmanager
    def _run(
        self, question: str, images: Sequence[str | Path], schema: Schema | None
    ) -> Iterator[Run]:
        if not self._corpus.is_open:
            raise UsageError("the corpus is closed", hint="load it again")
        if self._busy:
            raise UsageError(
                "another question of the conversation is being answered",
                hint="wait for its answer, or begin another conversation",
            )
        run = Run(
            corpus=self._corpus,
            retriever=self._corpus.ready_retriever(),
            question=question,
            options=self._options,
            images=images,
            form=form_of(schema),
            carried=replace(self._states[-1], contexts=self._contexts),
        )
        self._busy = True
        try:
            yield run
        finally:
            self._busy = False
            if run.carried_on is not None:
                self._states.append(run.carried_on)


def _free_name(wanted: str, corpus: Corpus) -> str:
    name, number = wanted, 2
    while any(path.startswith(f"{name}/") for path in corpus.paths()):
        name, number = f"{wanted}~{number}", number + 1
    return name


def _joined(first: Corpus, second: Corpus, name: str) -> Corpus:
    """Return a corpus of the documents of both, those of `second` under `name`."""
    packed = [each.view() for each in (first, second)]
    try:
        return Corpus.from_documents(
            chain(_documents(packed[0], ""), _documents(packed[1], f"{name}/")),
            skipped=[*first.skipped, *second.skipped],
            warnings=first.warnings,
        )
    finally:
        for each in packed:
            each.close()


def _documents(packed: PackedCorpus, prefix: str) -> Iterator[tuple[Any, ...]]:
    for number in range(len(packed)):
        yield prefix + packed.path(number), StoredText(packed, number)

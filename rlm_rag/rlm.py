"""Questions asked of a corpus: a model with its limits and its sandbox."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypedDict, Unpack

from rlm_rag.api import SearchableCorpus, load_origin, open_source, opened
from rlm_rag.argument_types import check_arguments
from rlm_rag.conversation import Conversation
from rlm_rag.corpus import Corpus
from rlm_rag.distributed.cluster import Cluster
from rlm_rag.engine.answer import Answer
from rlm_rag.engine.blocking import answer_of
from rlm_rag.engine.estimate import Estimate, estimate
from rlm_rag.engine.form import Schema, form_of
from rlm_rag.engine.limits import Limits
from rlm_rag.engine.lineup import ModelNames, ModelSettings
from rlm_rag.engine.live import ReplyText
from rlm_rag.engine.loop_thread import loop_thread
from rlm_rag.engine.offers import AskUser, Tool, offers_of
from rlm_rag.engine.options import RunOptions
from rlm_rag.engine.pool import Share
from rlm_rag.engine.run import Run
from rlm_rag.engine.tree import Spreading
from rlm_rag.engine.windows import with_served_windows
from rlm_rag.errors import SourceError, UsageError
from rlm_rag.loaders.source import Source
from rlm_rag.mapping import Map, map_options
from rlm_rag.sandbox.confine.libraries import library_files
from rlm_rag.sandbox.confine.view import LEAST_MEMORY_BYTES, WorkerLimits
from rlm_rag.sandbox.docker import DEFAULT_IMAGE
from rlm_rag.sessions import SavedConversation, SessionStore
from rlm_rag.streaming import Stream
from rlm_rag.trace.events import Event


class RlmOptions(TypedDict, total=False):
    """What `RLM` and `ask` may be told; `RLM` documents each."""

    model: str | None
    sub_model: str | None
    api_base: str | None
    limits: Limits | None
    sandbox: str
    sandbox_image: str | None
    sandbox_packages: Sequence[str]
    sandbox_memory_bytes: int | None
    strategy: str
    profile: str
    system_prompt: str | None
    headers: Mapping[str, str] | None
    price: str | None
    context_window: int | None
    sub_context_window: int | None
    models_at_depth: Mapping[int, str] | None
    fallback_models: Sequence[str]
    allow_models: Sequence[str]
    temperature: float | None
    model_options: Mapping[str, Any] | None
    cache: bool | Path
    trace: bool | Path
    on_event: Callable[[Event], None] | None
    on_text: Callable[[ReplyText], None] | None
    tools: Sequence[Callable[..., Any] | Tool]
    child_tools: Sequence[str] | None
    libraries: Mapping[str, Source] | None
    artifacts: str | Path | None
    ask_user: AskUser | None
    share: Share | None
    ray: str | None


class _Asked(TypedDict):
    question: str
    prompt: str
    images: Sequence[str | Path]


class RLM:
    """A model with its limits and sandbox, to ask questions with; safe to share by threads.

    `model` and `sub_model` are named as litellm spells them; `offline` (the default) needs no
    model and no network. `models_at_depth` names the root model of child RLMs from a depth on
    (1: a child of the root), where it is not their parent's; `fallback_models` take the place,
    in order, of a model whose provider cannot be reached, fails or limits its rate for long;
    `allow_models` may be named by the code of a block besides `sub_model`. `headers`,
    `temperature` and `model_options` (such as `{"top_p": 0.9}`) go with every request; `price`
    is `INPUT/OUTPUT` in dollars a million tokens. `context_window` is how many tokens, prompt and
    reply, each of the models takes, `sub_context_window` how many the sub-model; where neither
    says it, it is known by the model's name or asked of the server. `cache` True keeps replies in
    the user's cache folder, or in a file given as a path, and answers identical calls of later
    runs from there; identical calls under way are sent once in any case
    (`rlm_rag.models.sharing` says what is identical). `trace` is True for the user's state folder,
    False for none, or a folder. `sandbox_image` is the image of the sandbox `docker`;
    `sandbox_packages` names installed packages that code in the sandbox may import,
    `sandbox_memory_bytes` is what a worker may use. `on_event` is called with each trace event, on
    the library's own thread; so is `on_text` with the pieces of root models' replies
    (`engine.live.ReplyText`) while they come, which asks providers to stream.

    Blocks may call `tools`, functions of the caller with JSON arguments and results: their names,
    signatures and first lines of documentation are told to the model. Async ones run on the
    library's event loop, others in threads; an exception becomes an error in the block. Child
    RLMs have them too, or those that `child_tools` names. `libraries` are sources by name that a
    block may add with `load_library`, `artifacts` is the folder that `save_artifact` writes to,
    `ask_user` is given each `Question` of `ask_user_question` and returns the answer.

    RLMs with a `share` of one `Pool` keep its sum of money and its number of requests in flight
    together, beside the limits of each.

    With `ray`, the address of a Ray cluster (`HOST:PORT`, or `local` for one of this machine
    alone), its nodes read the documents of `map` and run the children of `rlm_query_batched`,
    within the same limits; it cannot be combined with a `share`.
    """

    def __init__(
        self,
        model: str | None = None,
        *,
        sub_model: str | None = None,
        api_base: str | None = None,
        limits: Limits | None = None,
        sandbox: str = "auto",
        sandbox_image: str | None = None,
        sandbox_packages: Sequence[str] = (),
        sandbox_memory_bytes: int | None = None,
        strategy: str = "auto",
        profile: str = "auto",
        system_prompt: str | None = None,
        headers: Mapping[str, str] | None = None,
        price: str | None = None,
        context_window: int | None = None,
        sub_context_window: int | None = None,
        models_at_depth: Mapping[int, str] | None = None,
        fallback_models: Sequence[str] = (),
        allow_models: Sequence[str] = (),
        temperature: float | None = None,
        model_options: Mapping[str, Any] | None = None,
        cache: bool | Path = False,
        trace: bool | Path = True,
        on_event: Callable[[Event], None] | None = None,
        on_text: Callable[[ReplyText], None] | None = None,
        tools: Sequence[Callable[..., Any] | Tool] = (),
        child_tools: Sequence[str] | None = None,
        libraries: Mapping[str, Source] | None = None,
        artifacts: str | Path | None = None,
        ask_user: AskUser | None = None,
        share: Share | None = None,
        ray: str | None = None,
    ) -> None:
        # What a window is has its own check, which says how one is written.
        given = {name: value for name, value in locals().items() if not name.endswith("_window")}
        check_arguments(given, RlmOptions, of="rlm_rag.RLM")
        self._has_limits = limits is not None
        self._ray = _ray(ray, share)
        names = _names(model, sub_model, models_at_depth, fallback_models, allow_models)
        self._options = RunOptions(
            names=names,
            asking=ModelSettings(
                api_base=api_base,
                headers=headers or {},
                price=price,
                temperature=temperature,
                extra=model_options or {},
                context_window=context_window,
                windows=names.windows(sub_context_window),
            ),
            limits=limits or Limits(),
            sandbox=sandbox,
            sandbox_image=sandbox_image or DEFAULT_IMAGE,
            worker_limits=_worker_limits(sandbox_packages, sandbox_memory_bytes),
            strategy=strategy,
            profile=profile,
            system_prompt=system_prompt,
            trace=trace,
            cache=cache,
            on_event=on_event,
            offers=offers_of(
                tools=tools,
                child_tools=child_tools,
                libraries=libraries,
                artifacts=artifacts,
                ask_user=ask_user,
            ),
            share=share,
            on_text=on_text,
            spreading=None if self._ray is None else _on_cluster(self._ray),
        )

    @property
    def options(self) -> RunOptions:
        """What it was told."""
        return self._options

    def ask(
        self,
        corpus: Corpus | Source,
        question: str,
        *,
        images: Sequence[str | Path] = (),
        schema: Schema | None = None,
    ) -> Answer:
        """Answer a question of a corpus (or of anything that `load` takes).

        `images` are files that the root model is shown with the question. `schema`, a JSON
        schema or a pydantic model class, is what the answer must be: one that does not fit is
        given back to the model twice; `Answer.data` holds what it says, `Answer.fits` whether it
        does. A limit reached is a result, named in `stop_reason`, not an error.

        Raises:
            UsageError: the question or an option cannot be used.
            ModelError: no answer because of the key, the model's name or the network.
            SandboxError: no worker could be started.
            RunInterrupted: Ctrl-C; a KeyboardInterrupt with the partial answer.
        """
        with opened(corpus) as found:
            return answer_of(self._run(found, question, images, schema))

    def conversation(
        self, corpus: Corpus | Source | None = None, *, session: str | None = None
    ) -> Conversation:
        """Begin a conversation about a corpus, or go on with the one kept as `session`.

        Without a `corpus`, the session's own sources are loaded.

        Raises:
            SessionError: there is no such session, or it cannot be read.
            SourceError, EmptyCorpusError: as `load`.
        """
        saved = None if session is None else SessionStore().load_kept(session)
        return self.converse(corpus, saved)

    def converse(
        self, corpus: Corpus | Source | None, saved: SavedConversation | None
    ) -> Conversation:
        """Go on with a conversation, or begin one; its sources are loaded without a `corpus`.

        Raises:
            SourceError, EmptyCorpusError: as `load`.
        """
        if corpus is not None:
            return Conversation(corpus, self._options, saved=saved)
        if saved is None:
            raise UsageError("a conversation needs a corpus or a session")
        try:
            loaded = load_origin(saved.sources[0])
        except SourceError as error:
            raise type(error)(
                f"the source of the session: {error.message}",
                hint="where it lies elsewhere now, name that: rlm-rag chat SOURCE --session NAME",
            ) from error
        return Conversation(loaded, self._options, saved=saved, owned=True)

    def estimate(
        self, corpus: Corpus | Source, question: str, *, images: Sequence[str | Path] = ()
    ) -> Estimate:
        """Return what a question may cost by the strategy that is set, or that `auto` would take.

        Low, likely and high; no model is asked, no key is needed. A server of one's own is asked
        for a window that nobody has told.

        Raises:
            SourceError, EmptyCorpusError, UsageError: as `load` and `ask`.
        """
        self._options.check()
        asked = {"question": question, "images": images}
        check_arguments(asked, _Asked, of="rlm_rag.RLM.estimate")
        names = self._options.names
        asking = loop_thread().run(
            with_served_windows(self._options.asking, (names.model, names.sub))
        )
        with opened(corpus) as found:
            return estimate(
                found,
                question,
                names=names,
                settings=asking,
                limits=self._options.limits,
                strategy=self._options.strategy,
                profile=self._options.profile,
                images=images,
            )

    def map(self, corpus: Corpus | Source, prompt: str, *, out: str | Path | None = None) -> Map:
        """Ask `prompt` of every document for itself; iterate over the answers as they come.

        Sub-models read (`sub_model`, or `model`), as `map_files` has them read: large documents
        in parts. Without `limits` there may be as many calls as there are parts. `out` is a file
        that gets each answer as a line of JSON; one that holds some already is gone on with:
        what has an answer to this prompt by this model, and has not changed, is not asked again.

        Raises:
            UsageError: the prompt or an option cannot be used.
            AnswerFileError: `out` cannot be made, or holds something else, or answers to
                something else. The iteration raises it where `out` cannot be written: before
                anything is sent where its disk is full, later with the answers in
                `Map.unwritten`.
            SourceError, EmptyCorpusError: as `load`.
        """
        check_arguments({"prompt": prompt}, _Asked, of="rlm_rag.RLM.map")
        options = map_options(self._options, bounds_calls=self._has_limits)
        out = None if out is None else Path(out)
        return Map(corpus, prompt, options, out=out, ray=self._ray)

    async def ask_async(
        self,
        corpus: Corpus | Source,
        question: str,
        *,
        images: Sequence[str | Path] = (),
        schema: Schema | None = None,
    ) -> Answer:
        """The same, awaitable in any event loop; cancelling it ends the run and its worker."""
        async with _opened_in_thread(corpus) as found:
            run = self._run(found, question, images, schema)
            return await loop_thread().awaited(run.execute())

    def stream(
        self,
        corpus: Corpus | Source,
        question: str,
        *,
        images: Sequence[str | Path] = (),
        schema: Schema | None = None,
    ) -> Stream:
        """Answer a question as `ask` does; iterate over its trace events and the `Answer` at last.

        The question is asked at once, and its errors are raised by the iteration. Leaving the
        loop ends the run.
        """

        async def work(tell: Callable[[Event], None], took: Callable[[Run], None]) -> Answer:
            async with _opened_in_thread(corpus) as found:
                run = self._run(found, question, images, schema, also=tell)
                took(run)
                return await run.execute()

        return Stream(work)

    def stream_async(
        self,
        corpus: Corpus | Source,
        question: str,
        *,
        images: Sequence[str | Path] = (),
        schema: Schema | None = None,
    ) -> Stream:
        """The same, for `async for` in any event loop."""
        return self.stream(corpus, question, images=images, schema=schema)

    def _run(
        self,
        corpus: SearchableCorpus,
        question: str,
        images: Sequence[str | Path],
        schema: Schema | None,
        also: Callable[[Event], None] | None = None,
    ) -> Run:
        if not corpus.is_open:
            raise UsageError("the corpus is closed", hint="load it again")
        check_arguments({"images": images}, _Asked, of="rlm_rag.RLM.ask")
        return Run(
            corpus=corpus,
            retriever=corpus.ready_retriever(),
            question=question,
            options=replace(self._options, on_event=_both(self._options.on_event, also)),
            images=images,
            form=form_of(schema),
        )


@asynccontextmanager
async def _opened_in_thread(corpus: Corpus | Source) -> AsyncIterator[SearchableCorpus]:
    found = await asyncio.to_thread(open_source, corpus)
    try:
        yield found
    finally:
        if found is not corpus:
            await asyncio.to_thread(found.close)


def _both(
    first: Callable[[Event], None] | None, second: Callable[[Event], None] | None
) -> Callable[[Event], None] | None:
    if first is None or second is None:
        return first or second

    def tell(event: Event) -> None:
        first(event)
        second(event)

    return tell


def _names(
    model: str | None,
    sub_model: str | None,
    at_depth: Mapping[int, str] | None,
    fallbacks: Sequence[str],
    allowed: Sequence[str],
) -> ModelNames:
    return ModelNames(
        model=model or "offline",
        sub_model=sub_model,
        at_depth=at_depth or {},
        fallbacks=tuple(fallbacks),
        allowed=tuple(allowed),
    )


def _ray(address: str | None, share: Share | None) -> str | None:
    if address is not None and share is not None:
        raise UsageError(
            "a share of a pool cannot be kept on the nodes of a cluster",
            hint="leave out share or ray",
        )
    cluster = None if address is None else Cluster.of(f"ray:{address}")
    return None if cluster is None else cluster.address


def _on_cluster(address: str) -> Spreading:
    # Not before: whatever asks a question imports this module.
    from rlm_rag.distributed.child_work import SpreadChildren

    return SpreadChildren(address)


def _worker_limits(packages: Sequence[str], memory_bytes: int | None) -> WorkerLimits:
    """Return the limits of every worker of a run.

    Raises:
        UsageError: a package is not installed, or the memory is too little for a worker.
    """
    limits = WorkerLimits(packages=tuple(packages))
    # Before any source is read, so that a missing one is told at once.
    if packages:
        library_files(limits.packages)
    if memory_bytes is None:
        return limits
    if memory_bytes < LEAST_MEMORY_BYTES:
        raise UsageError(
            f"{memory_bytes:,} bytes are too little memory for a sandbox",
            hint=f"at least {LEAST_MEMORY_BYTES >> 20}M",
        )
    return replace(limits, memory_bytes=memory_bytes)


def ask(
    corpus: Corpus | Source,
    question: str,
    *,
    images: Sequence[str | Path] = (),
    schema: Schema | None = None,
    **options: Unpack[RlmOptions],
) -> Answer:
    """Answer one question; `options` are those of `RLM`, `corpus` is anything `load` takes.

    Raises:
        RlmRagError, RunInterrupted: as `load` and `RLM.ask`.
    """
    return RLM(**options).ask(corpus, question, images=images, schema=schema)

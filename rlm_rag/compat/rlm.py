"""`RLM` with the constructor and the calls of `rlms`, on this package's engine."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import rlm_rag.rlm
from rlm_rag.api import SearchableCorpus, load
from rlm_rag.closing import Closing
from rlm_rag.compat.backends import BackendModel, backend_model
from rlm_rag.compat.errors import (
    BudgetExceededError,
    CancellationError,
    ErrorThresholdExceededError,
    TimeoutExceededError,
    TokenLimitExceededError,
)
from rlm_rag.compat.logger import Logger
from rlm_rag.compat.shapes import (
    RLMChatCompletion,
    RLMIteration,
    RLMMetadata,
    usage_summary,
)
from rlm_rag.compat.trajectory import Trajectory
from rlm_rag.conversation import Conversation
from rlm_rag.engine.answer import Answer
from rlm_rag.engine.limits import Limits
from rlm_rag.engine.offers import Tool, signature_of
from rlm_rag.errors import RunInterrupted, UsageError

MAX_QUESTION_CHARS = 4_000
IN_CONTEXT = "What is asked for stands in `context` itself: find it there, and answer it."
_ENVIRONMENTS: Mapping[str, str] = {
    **dict.fromkeys(("local", "ipython"), "auto"),
    **{name: name for name in ("docker", "modal", "prime", "daytona", "e2b")},
}
_log = logging.getLogger("rlm_rag.compat")


class RLM(Closing):
    """Takes what `rlms.RLM` takes, and answers with what it answers with.

    `max_depth=n` is a depth of n-1 here: at 1, `rlm_query` is a leaf call. Blocks run confined,
    in `local` too, so that `custom_tools` are called with JSON; data among them cannot be given.
    Limits that are reached raise as there; where turns run out, the last answer is returned.
    `sampling_args`, `max_concurrent_subcalls` and `max_errors` work; other arguments of `rlms`
    that have no counterpart are named in a warning. `verbose` logs to `rlm_rag.compat`.

    Raises:
        UsageError: a backend, an environment or a tool that cannot be had here.
    """

    def __init__(
        self,
        backend: str = "openai",
        backend_kwargs: dict[str, Any] | None = None,
        environment: str = "local",
        environment_kwargs: dict[str, Any] | None = None,
        depth: int = 0,
        max_depth: int = 1,
        max_iterations: int = 30,
        max_budget: float | None = None,
        max_timeout: float | None = None,
        max_tokens: int | None = None,
        max_errors: int | None = None,
        custom_system_prompt: str | None = None,
        other_backends: list[str] | None = None,
        other_backend_kwargs: list[dict[str, Any]] | None = None,
        logger: Logger | None = None,
        verbose: bool = False,
        persistent: bool = False,
        custom_tools: dict[str, Any] | None = None,
        custom_sub_tools: dict[str, Any] | None = None,
        sampling_args: dict[str, Any] | None = None,
        max_concurrent_subcalls: int = 4,
        **without_counterpart: Any,
    ) -> None:
        _check_environment(environment)
        unused = {f"environment_kwargs[{n!r}]" for n in (environment_kwargs or {}) if n != "image"}
        _warn_of((*without_counterpart, *sorted(unused)))
        self._root = backend_model(backend, backend_kwargs)
        self._sub = _sub_model(self._root, other_backends, other_backend_kwargs)
        self.max_depth, self.max_iterations = max_depth, max_iterations
        self.max_budget, self.max_timeout = max_budget, max_timeout
        self.max_tokens, self.max_errors = max_tokens, max_errors
        self.logger, self.verbose, self.persistent = logger, verbose, persistent
        self._sampling = {**self._root.sampling, **(sampling_args or {})}
        self._environment, self._environment_kwargs = environment, environment_kwargs or {}
        self._system_prompt = custom_system_prompt
        self._tools = [_tool(name, entry) for name, entry in (custom_tools or {}).items()]
        self._child_tools = None if custom_sub_tools is None else list(custom_sub_tools)
        self._limits = self._limits_at(depth, max_concurrent_subcalls)
        self._made(None)
        self._conversation: Conversation | None = None
        self._turns: Trajectory | None = None
        if logger is not None:
            logger.log_metadata(self._metadata(backend, other_backends))

    def completion(self, prompt: Any, root_prompt: str | None = None) -> RLMChatCompletion:
        """Answer `root_prompt` about `prompt`, a text, a list of texts or a dict.

        Without a `root_prompt`, what is asked stands in the prompt itself.

        Raises:
            BudgetExceededError, TimeoutExceededError, TokenLimitExceededError,
            ErrorThresholdExceededError: a limit that was set was reached.
            CancellationError: Ctrl-C.
            RlmRagError: as `rlm_rag.RLM.ask`.
        """
        question, corpus = self._opened(prompt, root_prompt)
        began = time.perf_counter()
        try:
            if self.persistent:
                conversation, turns = self._persistent(corpus)
                answer = conversation.ask(question)
            else:
                turns = Trajectory(self._log_iteration)
                with corpus:
                    answer = self._made(turns).ask(corpus, question)
        except RunInterrupted as interruption:
            raise CancellationError(interruption.answer.text or None) from interruption
        return self._completed(prompt, answer, turns, time.perf_counter() - began)

    async def acompletion(self, prompt: Any, root_prompt: str | None = None) -> RLMChatCompletion:
        """The same, awaitable in any event loop; cancelling it ends the run."""
        question, corpus = await asyncio.to_thread(self._opened, prompt, root_prompt)
        began = time.perf_counter()
        if self.persistent:
            conversation, turns = await asyncio.to_thread(self._persistent, corpus)
            answer = await conversation.ask_async(question)
        else:
            turns = Trajectory(self._log_iteration)
            try:
                answer = await self._made(turns).ask_async(corpus, question)
            finally:
                await asyncio.to_thread(corpus.close)
        return self._completed(prompt, answer, turns, time.perf_counter() - began)

    def close(self) -> None:
        """End what `persistent` keeps; idempotent."""
        if self._conversation is not None:
            self._conversation.close()
            self._conversation = None

    def _limits_at(self, depth: int, concurrent: int) -> Limits:
        if self.max_depth - depth < 1:
            raise UsageError("max_depth must be above depth", hint="max_depth=1 has no children")
        return Limits(
            iterations=self.max_iterations,
            depth=self.max_depth - depth - 1,
            calls=None,
            tokens=self.max_tokens,
            usd=self.max_budget,
            seconds=self.max_timeout,
            errors=self.max_errors or self.max_iterations,
            live_children=max(concurrent, self.max_depth - depth),
        )

    def _made(self, turns: Trajectory | None) -> rlm_rag.rlm.RLM:
        options = {k: v for k, v in self._sampling.items() if k != "temperature"}
        return rlm_rag.rlm.RLM(
            self._root.name,
            sub_model=self._sub.name,
            api_base=self._root.api_base,
            headers=self._root.headers,
            temperature=self._sampling.get("temperature"),
            model_options=options,
            limits=self._limits,
            sandbox=_ENVIRONMENTS[self._environment],
            sandbox_image=self._environment_kwargs.get("image"),
            strategy="rlm",
            system_prompt=self._system_prompt,
            tools=self._tools,
            child_tools=self._child_tools,
            on_event=turns,
        )

    def _opened(self, prompt: Any, root_prompt: str | None) -> tuple[str, SearchableCorpus]:
        if self.logger is not None:
            self.logger.clear_iterations()
        question = root_prompt
        if not question and isinstance(prompt, str) and len(prompt) <= MAX_QUESTION_CHARS:
            question = prompt
        return question or IN_CONTEXT, _corpus_of(prompt)

    def _persistent(self, corpus: SearchableCorpus) -> tuple[Conversation, Trajectory]:
        if self._conversation is None or self._turns is None:
            self._turns = Trajectory(self._log_iteration)
            options = self._made(self._turns).options
            self._conversation = Conversation(corpus, options, owned=True)
        else:
            with corpus:
                self._conversation.add(corpus)
        return self._conversation, self._turns

    def _completed(
        self, prompt: Any, answer: Answer, turns: Trajectory, seconds: float
    ) -> RLMChatCompletion:
        turns.end(answer.text)
        self._raise_for(answer, seconds)
        names = {self._root.name: self._root.called, self._sub.name: self._sub.called}
        return RLMChatCompletion(
            root_model=self._root.called,
            prompt=prompt,
            response=answer.text,
            usage_summary=usage_summary(answer.by_model, names),
            execution_time=seconds,
            metadata=None if self.logger is None else self.logger.get_trajectory(),
        )

    def _raise_for(self, answer: Answer, seconds: float) -> None:
        text, detail, usage = answer.text or None, answer.limit_detail, answer.usage
        if answer.stop_reason == "budget_usd" and self.max_budget is not None:
            raise BudgetExceededError(usage.usd or 0.0, self.max_budget, detail)
        if answer.stop_reason == "timeout" and self.max_timeout is not None:
            raise TimeoutExceededError(seconds, self.max_timeout, text, detail)
        if answer.stop_reason == "budget_tokens" and self.max_tokens is not None:
            tokens = usage.input_tokens + usage.output_tokens
            raise TokenLimitExceededError(tokens, self.max_tokens, text, detail)
        if answer.stop_reason == "errors" and self.max_errors is not None:
            count = self.max_errors
            raise ErrorThresholdExceededError(count, count, detail, text, detail)

    def _log_iteration(self, iteration: RLMIteration) -> None:
        if self.logger is not None:
            self.logger.log(iteration)
        if self.verbose:
            _log.info("%s", iteration.response)
            for block in iteration.code_blocks:
                _log.info("%s%s", block.result.stdout, block.result.stderr)

    def _metadata(self, backend: str, other_backends: Sequence[str] | None) -> RLMMetadata:
        return RLMMetadata(
            root_model=self._root.called,
            max_depth=self.max_depth,
            max_iterations=self.max_iterations,
            backend=backend,
            backend_kwargs={"model_name": self._root.called, "base_url": self._root.api_base},
            environment_type=self._environment,
            environment_kwargs=self._environment_kwargs,
            other_backends=other_backends,
        )


def _check_environment(environment: str) -> None:
    if environment not in _ENVIRONMENTS:
        raise UsageError(
            f"there is no environment {environment!r}", hint=f"one of {', '.join(_ENVIRONMENTS)}"
        )


def _warn_of(names: Iterable[str]) -> None:
    for name in names:
        warnings.warn(f"{name} has no counterpart in rlm-rag and does nothing", stacklevel=3)


def _sub_model(
    root: BackendModel,
    backends: Sequence[str] | None,
    kwargs: Sequence[Mapping[str, Any]] | None,
) -> BackendModel:
    if not backends:
        return root
    if len(backends) != 1 or len(kwargs or ()) != 1:
        raise UsageError("one other backend is taken, with its keyword arguments")
    sub = backend_model(backends[0], (kwargs or ())[0])
    if (sub.api_base, sub.headers) != (root.api_base, root.headers):
        raise UsageError(
            "the other backend has another address or other headers than the first",
            hint="one server serves all models of an RLM; a gateway can serve several providers",
        )
    return sub


def _tool(name: str, entry: Any) -> Tool:
    described = isinstance(entry, dict) and "tool" in entry
    function: Callable[..., Any] = entry["tool"] if described else entry
    if not callable(function):
        raise UsageError(
            f"the custom tool {name!r} is data, not a function",
            hint="put data into the prompt, or give a function that returns it",
        )
    summary = entry.get("description") if described else inspect.getdoc(function)
    first = (summary or "").strip().splitlines()[:1]
    return Tool(name, function, signature_of(function), first[0] if first else "")


def _corpus_of(prompt: Any) -> SearchableCorpus:
    """Load a prompt; what is no text in it becomes JSON."""
    if isinstance(prompt, str):
        return load(text=prompt)
    if isinstance(prompt, Mapping):
        return load({str(name): _text(value) for name, value in prompt.items()})
    if isinstance(prompt, list | tuple):
        return load([_text(value) for value in prompt])
    raise UsageError(f"a prompt is a text, a list or a dict, not {type(prompt).__name__}")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)

"""Leaf calls from a block: `llm_query` and `llm_query_batched`, each answer a reply in JSON.

A prompt that cannot be sent costs nothing, and a failed one never sinks its batch: its place in
the list holds an error reply whose text starts with `Error: `.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rlm_rag.engine.admission import LimitReached
from rlm_rag.engine.answer import StopReason, usage_dict
from rlm_rag.engine.caller import Caller, Refused
from rlm_rag.engine.calls import ModelCalls, PricedModel, told
from rlm_rag.engine.citations import Citation
from rlm_rag.engine.lineup import Lineup
from rlm_rag.engine.meter import metered
from rlm_rag.errors import ContextWindowError, ModelError
from rlm_rag.models.base import Completion, Message, Usage
from rlm_rag.models.tokens import count_message_tokens

ROLES = ("system", "user", "assistant")
# A cap that was ours is raised so far, once, where a reply did not fit in it.
CAP_GROWTH = 4
# Wider than any --concurrency that a provider bears; a call under way takes some 10 KB.
MOST_AT_ONCE = 1024
_IN_PARTS = "llm_query_chunked(text, prompt) or map_files(paths, prompt) sends it in parts"


@dataclass(frozen=True, slots=True)
class LeafReply:
    """What a sub-model or a child came to; `too_long` says that its prompt passed the window.

    `citations` are those of a child's answer, as they were checked. `limit` names the limit that
    kept it from being sent, or from a longer reply than the one that is `truncated`; `cause` is
    what the provider failed with. `has_parts` says that it is of a text in several parts, of which
    some were answered.
    """

    text: str
    error: str | None = None
    truncated: bool = False
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    too_long: bool = False
    citations: tuple[Citation, ...] = ()
    limit: StopReason | None = None
    cause: ModelError | None = None
    has_parts: bool = False

    @property
    def ok(self) -> bool:
        return self.error is None

    def to_json(self) -> dict[str, Any]:
        """The reply as a block gets it, without what is as it is in a `Reply` that says nothing."""
        shown = {"text": self.text, "ok": self.ok, "error": self.error}
        usage = {name: value for name, value in usage_dict(self.usage).items() if value != 0}
        rest = {
            "truncated": self.truncated,
            "usage": usage,
            "model": self.model,
            "citations": [citation.to_dict() for citation in self.citations],
        }
        return shown | {name: value for name, value in rest.items() if value}


def failed(message: str, *, too_long: bool = False, limit: StopReason | None = None) -> LeafReply:
    """Return the reply of a call that failed, or was not made."""
    return LeafReply(f"Error: {message}", error=message, too_long=too_long, limit=limit)


class SubCalls:
    """Sends the leaf calls of one RLM to its sub-model."""

    def __init__(self, *, calls: ModelCalls, lineup: Lineup) -> None:
        self._calls = calls
        self._lineup = lineup

    async def query(
        self,
        prompt: Any,
        model: str | None = None,
        max_tokens: int | None = None,
        system: str | None = None,
        *,
        caller: Caller,
    ) -> dict[str, Any]:
        """Return one reply as JSON: text, ok, error, truncated, usage, model."""
        (reply,) = await gather_within(
            [self._query(prompt, model, max_tokens, system, caller)], caller.seconds
        )
        return reply.to_json()

    async def query_batched(
        self, prompts: Any, model: str | None = None, *, caller: Caller
    ) -> list[dict[str, Any]]:
        """Return replies aligned with `prompts`, which run at the same time."""
        if not isinstance(prompts, list):
            wrong = f"prompts must be a list of str, not {type(prompts).__name__}"
            return [failed(wrong).to_json()]
        replies = await gather_within(
            (
                self._query(prompt, model, None, None, caller.at(place))
                for place, prompt in enumerate(prompts)
            ),
            caller.seconds,
        )
        return [reply.to_json() for reply in replies]

    async def _query(
        self,
        prompt: Any,
        model: str | None,
        max_tokens: int | None,
        system: str | None,
        caller: Caller,
    ) -> LeafReply:
        try:
            chosen = self.chosen(model)
            messages = _messages(prompt, system)
            if max_tokens is not None and max_tokens < 1:
                raise Refused(f"max_tokens must be at least 1, not {max_tokens}")
        except Refused as refused:
            return failed(str(refused))
        return await self.ask(chosen, messages, caller=caller, max_tokens=max_tokens)

    def chosen(self, model: str | None) -> PricedModel:
        """Return the sub-model that a call names, or the one there is.

        Raises:
            Refused: it is not offered.
        """
        if model is None:
            return self._lineup.sub
        leaves = self._lineup.leaves
        if model not in leaves:
            raise Refused(f"model {model!r} is not offered; there are {', '.join(leaves)}")
        return leaves[model]

    def reply_tokens(self, model: PricedModel) -> int | None:
        """How long a reply may get, in tokens, None where only the provider knows."""
        return self._calls.output_cap(model.facts, None)

    async def ask(
        self,
        model: PricedModel,
        messages: Sequence[Message],
        *,
        caller: Caller,
        max_tokens: int | None = None,
    ) -> LeafReply:
        """Send one leaf call; again with a larger output limit where that cut its reply.

        One that failed says what its requests cost all the same.
        """
        with metered() as spent:
            reply = await self._asked(model, messages, caller, max_tokens)
        return reply if reply.ok else replace(reply, usage=spent.usage)

    async def _asked(
        self,
        model: PricedModel,
        messages: Sequence[Message],
        caller: Caller,
        max_tokens: int | None,
    ) -> LeafReply:
        try:
            completion = await self._send(model, messages, caller, max_tokens)
        except LimitReached as reached:
            return failed(f"not sent: {reached.detail}", limit=reached.name)
        except ContextWindowError as error:
            return failed(_too_long(error, messages), too_long=True)
        except ModelError as error:
            return replace(failed(told(error)), cause=error)
        reply = _reply(completion)
        if not reply.truncated or max_tokens is not None:
            return reply
        prompt_tokens = count_message_tokens(messages)
        larger = self._larger_cap(model, prompt_tokens, completion)
        if larger is None:
            sent = self.reply_tokens(model)
            limit = None if sent is None else self._calls.limit_on(model, prompt_tokens, sent)
            return replace(reply, limit=limit)
        try:
            whole = _reply(await self._send(model, messages, caller, larger))
        except (LimitReached, ModelError):
            # The cut reply was paid for and says that it is cut; the limits allow no other.
            return reply
        return replace(whole, usage=reply.usage + whole.usage)

    async def _send(
        self,
        model: PricedModel,
        messages: Sequence[Message],
        caller: Caller,
        max_tokens: int | None,
    ) -> Completion:
        return await self._calls.complete(
            model,
            messages,
            role="sub",
            caller=caller,
            max_output_tokens=max_tokens,
        )

    def _larger_cap(self, model: PricedModel, prompt_tokens: int, cut: Completion) -> int | None:
        """Return an output limit beyond the one that cut a reply, None where there is none."""
        sent, most = self.reply_tokens(model), model.facts.max_output_tokens
        # Where none was sent, the provider's default cut it: less than the model can do, maybe.
        larger = (most or 0) if sent is None else min(CAP_GROWTH * sent, most or CAP_GROWTH * sent)
        if model.facts.context_window is not None:
            larger = min(larger, model.facts.context_window - prompt_tokens)
        if sent is not None:
            larger = self._calls.longest_reply(model, prompt_tokens, larger)
        return larger if larger > max(sent or 0, cut.usage.output_tokens) else None


async def gather_within(
    waiting: Iterable[Coroutine[Any, Any, LeafReply]], seconds: float | None
) -> list[LeafReply]:
    """Return the replies in their order; those not there in time are cancelled and say so.

    None of the calls is left behind, however this ends. `MOST_AT_ONCE` are begun at a time, so
    that what a batch holds of the memory does not grow with its size.
    """
    coroutines = iter(waiting)
    replies: list[LeafReply | None] = []

    async def work() -> None:
        for coroutine in coroutines:
            place = len(replies)
            replies.append(None)
            replies[place] = await coroutine
            # A call that is refused at once lets nothing else run: no deadline, no Ctrl-C.
            await asyncio.sleep(0)

    first = list(itertools.islice(coroutines, MOST_AT_ONCE))
    coroutines = itertools.chain(first, coroutines)
    workers = [asyncio.ensure_future(work()) for _ in first]
    if not workers:
        return []
    try:
        await asyncio.wait(workers, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        for coroutine in coroutines:
            coroutine.close()
            replies.append(None)
    for worker in workers:
        if not worker.cancelled():
            worker.result()
    return [_late(seconds) if reply is None else reply for reply in replies]


def _late(seconds: float | None) -> LeafReply:
    return failed(
        f"no reply within {seconds or 0:g} s, so it was stopped; spawn(function, ...) lets a call "
        "go on while other blocks run"
    )


def _too_long(error: ContextWindowError, messages: Sequence[Message]) -> str:
    """Tell a block how long its prompt was, also where only the provider knew the window."""
    said = f"{error.message}. {_IN_PARTS}"
    if error.provider_message is None:
        return said
    return f"the prompt of about {count_message_tokens(messages):,} tokens: {said}"


def _reply(completion: Completion) -> LeafReply:
    return LeafReply(
        completion.text,
        truncated=completion.finish_reason == "length",
        usage=completion.usage,
        model=completion.model,
    )


def _messages(prompt: Any, system: str | None) -> tuple[Message, ...]:
    """Return the messages of a prompt.

    Raises:
        Refused: it is none; the text says why.
    """
    first = () if system is None else (Message("system", system),)
    if isinstance(prompt, str):
        if not prompt.strip():
            raise Refused("the prompt is empty; nothing was sent")
        return (*first, Message("user", prompt))
    if not isinstance(prompt, Sequence) or not prompt:
        raise Refused(f"a prompt is a str or a list of messages, not {type(prompt).__name__}")
    messages = [_message(item) for item in prompt]
    if not any(message.content.strip() for message in messages):
        raise Refused("the prompt is empty; nothing was sent")
    return (*first, *messages)


def _message(item: Any) -> Message:
    if (
        not isinstance(item, Mapping)
        or item.get("role") not in ROLES
        or not isinstance(item.get("content"), str)
    ):
        raise Refused('a message is {"role": "system"|"user"|"assistant", "content": str}')
    return Message(item["role"], item["content"])

"""A model that gives the replies of an earlier run's trace, and none where the run differs."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from rlm_rag.errors import ModelNotFoundError, ModelRequestError, TraceError
from rlm_rag.models.base import Completion, FinishReason, Message, ModelRequest, Usage
from rlm_rag.models.files import check_model_file
from rlm_rag.models.messages import alternate
from rlm_rag.models.sharing import without_figures
from rlm_rag.trace.events import CallSent, ReplyReceived, TurnStarted
from rlm_rag.trace.reader import Trace, read_trace

_FINISH_REASONS: tuple[FinishReason, ...] = ("stop", "length", "content_filter", "other")
_SHOWN_CHARS = 120

Prompt = tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class _Recorded:
    """One call of the trace and how it ended."""

    prompt: Prompt
    sent: CallSent
    reply: ReplyReceived


class ReplayModel:
    """Answers each prompt of a recorded run as it was answered then; costs nothing.

    Calls that were under way together may come in any order; the same prompt gets its replies
    in the order in which they were recorded.
    """

    def __init__(self, name: str, calls: Sequence[_Recorded]) -> None:
        self._name = name
        self._left: dict[Prompt, deque[ReplyReceived]] = {}
        for call in calls:
            self._left.setdefault(call.prompt, deque()).append(call.reply)

    @property
    def name(self) -> str:
        """The model's name as the user spelled it."""
        return self._name

    async def complete(self, request: ModelRequest) -> Completion:
        """The recorded reply to this prompt, with its recorded tokens.

        Raises:
            ModelRequestError: no such prompt is left in the trace, or the recorded call failed.
        """
        prompt = _comparable(request.messages)
        replies = self._left.get(prompt)
        if not replies:
            raise self._diverged(prompt)
        reply = replies.popleft()
        if reply.error is not None:
            raise ModelRequestError(reply.error)
        return Completion(reply.text, _usage(reply.usage), reply.model, _reason(reply))

    def _diverged(self, prompt: Prompt) -> ModelRequestError:
        if prompt in self._left:
            where = "it was asked more often than the trace has replies for it"
        else:
            where = _difference(prompt, [left for left, calls in self._left.items() if calls])
        return ModelRequestError(
            f"the run differs from the trace {self._name!r}: {where}",
            hint="a replay needs the same corpus, question, options and version",
        )


def open_replay(path: Path, *, name: str) -> ReplayModel:
    """The model that replies from the trace at `path`.

    Raises:
        ModelNotFoundError: no such regular file of at most 64 MiB, or one that is no trace or
            holds no reply.
    """
    try:
        check_model_file(path)
        calls = _recorded(read_trace(path))
    except (TraceError, OSError, ValueError) as error:
        reason = error.message if isinstance(error, TraceError) else error
        raise ModelNotFoundError(
            f"the trace of model {name!r} cannot be used: {reason}",
            hint="replay:FILE names the trace of an earlier run",
        ) from error
    if not calls:
        raise ModelNotFoundError(
            f"the trace of model {name!r} holds no reply", hint="see it: rlm-rag trace show FILE"
        )
    return ReplayModel(name, calls)


def _recorded(trace: Trace) -> list[_Recorded]:
    """The calls that ended, in order; a root's prompts are put together from its turns."""
    told: dict[str, list[Message]] = {}
    sent: dict[tuple[str, int], tuple[Prompt, CallSent]] = {}
    calls: list[_Recorded] = []
    for event in trace.events:
        match event:
            case TurnStarted():
                told.setdefault(event.run, []).extend(_messages(event.messages))
            case CallSent():
                root = event.role == "root"
                said = told.get(event.run, []) if root else _messages(event.messages)
                sent[event.run, event.call] = _comparable(said), event
            case ReplyReceived() if (event.run, event.call) in sent:
                prompt, call = sent[event.run, event.call]
                if calls and _fell_back(calls[-1], prompt, call):
                    calls.pop()
                calls.append(_Recorded(prompt, call, event))
    return calls


def _fell_back(before: _Recorded, prompt: Prompt, call: CallSent) -> bool:
    """Whether `call` asked another model what the one `before` could not answer."""
    earlier = before.sent
    same = (earlier.run, earlier.role, earlier.block, earlier.seq, before.prompt) == (
        *(call.run, call.role, call.block, call.seq),
        prompt,
    )
    return same and before.reply.error is not None and earlier.model != call.model


def _messages(told: Iterable[Mapping[str, Any]]) -> list[Message]:
    return [Message(item["role"], item["content"]) for item in told]


def _comparable(messages: Iterable[Message]) -> Prompt:
    return tuple(Message(m.role, m.content) for m in without_figures(alternate(messages)))


def _difference(prompt: Prompt, recorded: Sequence[Prompt]) -> str:
    """Where the prompt leaves the recorded one that it shares most with."""
    if not recorded:
        return "the trace has no reply left"
    texts = [_text(left) for left in recorded]
    asked = _text(prompt)
    shared = max((_shared(asked, text), -number) for number, text in enumerate(texts))
    at, nearest = shared[0], texts[-shared[1]]
    return (
        f"the prompt goes on with {asked[at : at + _SHOWN_CHARS]!r}, "
        f"the recorded one with {nearest[at : at + _SHOWN_CHARS]!r}"
    )


def _text(prompt: Prompt) -> str:
    return "\n\n".join(f"{message.role}: {message.content}" for message in prompt)


def _shared(one: str, other: str) -> int:
    differing = (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    return next(differing, min(len(one), len(other)))


def _usage(recorded: Mapping[str, Any]) -> Usage:
    names = {item.name for item in fields(Usage)} - {"usd", "calls", "cached_calls", "saved_usd"}
    counts = {name: recorded[name] for name in names if isinstance(recorded.get(name), int)}
    return Usage(calls=1, usd=0.0, **counts)


def _reason(reply: ReplyReceived) -> FinishReason:
    return next((known for known in _FINISH_REASONS if known == reply.finish_reason), "other")

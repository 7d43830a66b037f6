"""Every request to a provider goes through here: admitted by the budget, retried, recorded."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeGuard

from rlm_rag.engine import meter
from rlm_rag.engine.admission import CallEstimate, LimitReached, Reservation
from rlm_rag.engine.answer import StopReason, usage_dict
from rlm_rag.engine.asking import Asking, Role
from rlm_rag.engine.attempts import Attempts
from rlm_rag.engine.budget import Budget
from rlm_rag.engine.caller import Caller
from rlm_rag.engine.counting import Counting
from rlm_rag.engine.fallbacks import Fallbacks
from rlm_rag.engine.limits import Limits
from rlm_rag.engine.live import LiveReply, ReplyText
from rlm_rag.engine.past import Past
from rlm_rag.engine.recorded import Call
from rlm_rag.engine.refusals import Batch, Refusals
from rlm_rag.engine.weighing import Weighing, call_estimate
from rlm_rag.errors import ContextWindowError, ModelError, RlmRagError
from rlm_rag.models.base import Completion, LanguageModel, Message, ModelRequest, Usage
from rlm_rag.models.failures import WINDOW_HINT
from rlm_rag.models.limiter import Turns
from rlm_rag.models.messages import alternate
from rlm_rag.models.prices import ModelFacts
from rlm_rag.models.retry import Patience, complete_with_retries
from rlm_rag.models.schemas import Schemas, may_refuse_schema
from rlm_rag.models.sharing import SharedReplies, saved
from rlm_rag.models.tokens import count_message_tokens
from rlm_rag.sandbox.calls import uncounted
from rlm_rag.trace import events
from rlm_rag.trace.recorder import Recorder

# Sent as the output cap where a limit on tokens or money needs one and the model's own is larger:
# replies of root models and leaves stay well below it.
CAP_TOKENS = 4096
# Where less is left, the cap shrinks to it, so long as a short block or a cited answer fits.
LEAST_REPLY_TOKENS = 256
# Of a window, at most this part is kept free for the reply.
REPLY_SHARE = 0.25
# A call that was admitted in the last moment still gets this long.
LEAST_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class PricedModel:
    """A model with what is known of it and how it is asked.

    Models of one provider share the `limiter`. `temperature` and `extra` go with each request.
    `shared` joins identical calls, None where each has to be sent; `fallbacks` may take the
    model's place; `refusals` are what its provider refused for good, `counting` is how it counts,
    `schemas` whether it holds replies to a schema.
    """

    model: LanguageModel
    facts: ModelFacts
    limiter: Turns
    api_base: str | None = None
    temperature: float | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    shared: SharedReplies | None = None
    fallbacks: Fallbacks[PricedModel] = field(default_factory=Fallbacks)
    refusals: Refusals = field(default_factory=Refusals)
    counting: Counting = field(default_factory=Counting)
    schemas: Schemas = field(default_factory=Schemas)

    @property
    def name(self) -> str:
        return self.model.name


class ModelCalls:
    """Sends the calls of one RLM; `keeps_final` is the root's, which may take the last call.

    What `past` has a reply to is not sent, and costs what it has cost then. `on_text` is told
    the replies of root models as they come. Once somebody sets a `refusal` nothing more is sent:
    what waits fails with it. Root calls of a child belong to the `batch` that started it, leaf
    calls to their block's: of a batch nothing more goes to a model that is refused for good.
    """

    def __init__(
        self,
        *,
        run_id: str,
        budget: Budget,
        limits: Limits,
        recorder: Recorder,
        past: Past,
        keeps_final: bool = True,
        on_text: Callable[[ReplyText], None] | None = None,
        batch: Batch | None = None,
    ) -> None:
        self._batch = batch
        self.refusal: ModelError | LimitReached | None = None
        self._on_text = on_text
        self._past = past
        self._keeps_final = keeps_final
        self._run_id = run_id
        self._budget = budget
        self._limits = limits
        self._recorder = recorder
        self._sent = past.calls_of(run_id)

    async def complete(
        self,
        model: PricedModel,
        messages: Sequence[Message],
        *,
        role: Role,
        caller: Caller | None = None,
        turn: int | None = None,
        max_output_tokens: int | None = None,
        final: bool = False,
        summary: bool = False,
        stop: tuple[str, ...] = (),
        schema: Mapping[str, Any] | None = None,
    ) -> Completion:
        """Send one call, retries included; `final` draws on what was reserved for the last one.

        Where only calls in flight keep it from fitting the limits, it waits for them. A root
        call is known by its `turn`, one for a `summary` of older turns apart; a leaf call by the
        place of its `caller`. A model that can is held to the `schema` of a reply that is all JSON.

        Raises:
            LimitReached: the call does not fit what is left; nothing was sent.
            ModelError: the provider could not serve it.
        """
        ordered = alternate(messages)
        tokens = count_message_tokens(ordered)
        asking = Asking(
            ordered, tokens, role, caller, turn, max_output_tokens, final, summary, stop, schema
        )
        recorded = self._recorded(asking)
        if recorded is not None and recorded.completion is not None:
            meter.count(recorded.cost, recorded.sent.model)
            self._expect_final(self._weighing(model, asking.to(model)), asking)
            return recorded.completion
        self._past.check_goes_on(self._run_id)
        return await self._by_any(model, asking)

    def _check_not_refused(self, model: PricedModel, asking: Asking) -> None:
        if self.refusal is not None:
            raise self.refusal
        model.refusals.check(self._batch_of(asking), model.name)

    def _batch_of(self, asking: Asking) -> Batch | None:
        if asking.caller is None:
            return self._batch
        return Batch(self._run_id, asking.caller.block)

    async def _by_any(self, model: PricedModel, asking: Asking) -> Completion:
        """Have the model serve a call, or, where it cannot just now, one that stands in for it."""
        failure: ModelError | None = None
        for candidate in model.fallbacks.for_call(model):
            try:
                completion = await self._complete(candidate, asking.to(candidate))
            except (ModelError, LimitReached) as error:
                if failure is not None and not _is_passing(error):
                    # What the model that was asked for said tells more.
                    raise failure from error
                if not _is_passing(error):
                    raise
                failure = failure or error
                model.fallbacks.failed(candidate)
            else:
                model.fallbacks.answered(candidate)
                return completion
        assert failure is not None
        raise failure

    def _recorded(self, asking: Asking) -> Call | None:
        """Return the call that was answered before in the place of this one."""
        past, run = self._past, self._run_id
        if asking.final:
            return past.last_reply(run, asking.turn, asking.messages)
        if asking.turn is not None and asking.summary:
            return past.summary_reply(run, asking.turn)
        if asking.turn is not None:
            return past.root_reply(run, asking.turn)
        return past.leaf_reply(run, *asking.place, asking.messages)

    def _twin(self, asking: Asking) -> Completion | None:
        if asking.role == "root":
            return None
        return self._past.twin(self._run_id, *asking.place, asking.messages)

    def _expect_final(self, weighing: Weighing, asking: Asking) -> None:
        """The last root call has the same history before it, so it costs about as much."""
        if asking.role == "root" and self._keeps_final and not asking.final:
            self._budget.expect_final(weighing.estimate(), counted=weighing.careful)

    async def _complete(self, model: PricedModel, asking: Asking) -> Completion:
        """Have one model serve a call, or one like it that is under way or was kept."""
        self._check_not_refused(model, asking)
        _check_window(model, asking.prompt_tokens)
        request = ModelRequest(
            messages=asking.messages,
            max_output_tokens=self.output_cap(model.facts, asking.max_output_tokens),
            temperature=model.temperature,
            stop=asking.stop,
            timeout_seconds=self._timeout(asking.final),
            extra=model.extra,
            schema=asking.schema,
        )
        sending = _Sending(request.max_output_tokens)
        if model.shared is None:
            with uncounted():
                return await self._send_in_form(model, asking, request, sending)
        started = time.monotonic()
        key = model.shared.key(model.name, model.api_base, request)
        twin = None if request.temperature else self._twin(asking)
        if twin is not None:
            completion, sent = saved(twin), False
        else:
            with uncounted():
                completion, sent = await model.shared.complete(
                    key,
                    lambda: self._send_in_form(model, asking, request, sending),
                    keeps=lambda reply: not sending.was_cut(reply),
                )
        if not sent:
            self._budget.count_cached(
                saved_usd=completion.usage.saved_usd, model=model.name, role=asking.role
            )
            call = self._record_call(model, asking)
            self._record_reply(call, completion.model, completion, started)
        return completion

    async def _send_in_form(
        self, model: PricedModel, asking: Asking, request: ModelRequest, sending: _Sending
    ) -> Completion:
        """Send a call with its schema, and without it where it is refused for that."""
        if asking.schema is not None and self._may_constrain(model, asking):
            try:
                completion = await self._send(model, asking, request, sending)
            except ModelError as error:
                if not may_refuse_schema(error):
                    raise
                model.schemas.refused = True
            except LimitReached:
                # It may fit without; what is over is told by the call that follows.
                pass
            else:
                model.schemas.taken = True
                return completion
        plain = replace(asking, schema=None)
        return await self._send(model, plain, replace(request, schema=None), sending)

    def _may_constrain(self, model: PricedModel, asking: Asking) -> bool:
        """Whether a refusal, where one is to be thought of, would leave a call to answer with."""
        is_last = asking.final and self._budget.calls_left() == 0
        return not model.schemas.refused and (model.schemas.taken or not is_last)

    async def _send(
        self, model: PricedModel, asking: Asking, request: ModelRequest, sending: _Sending
    ) -> Completion:
        weighing, reservation = await self._reserve(model, asking)
        request = sending.capped(request, reservation.estimate.output_tokens)
        call = self._record_call(model, asking, reservation.estimate)
        started = time.monotonic()
        check = partial(self._check_not_refused, model, asking)
        attempts = Attempts(self._budget, reservation, check, weighing)
        live = self._live(asking, call, attempts)
        if live is not None:
            request = replace(request, on_text=live.piece)
        try:
            completion = await complete_with_retries(
                model.model,
                request,
                limiter=model.limiter,
                owner=self._run_id,
                before_attempt=attempts.begin,
                before_repeat=attempts.again,
                after_loss=attempts.lose,
                patience=self._patience(asking.final),
            )
        except (ModelError, LimitReached) as error:
            model.refusals.note(self._batch_of(asking), model.name, error)
            self._record_failure(call, model.name, attempts.failed(), started, _said(error))
            raise
        except BaseException:
            spent = attempts.unknown()
            self._record_failure(call, model.name, spent, started, "the call was cancelled")
            raise
        billed = completion.usage.input_tokens
        model.counting.learn(asking.billed_tokens, billed, asking.billed)
        usage = attempts.answered(_priced(completion.usage, model.facts))
        completion = replace(completion, usage=usage)
        if live is not None:
            live.whole(completion.text)
        self._record_reply(call, completion.model, completion, started)
        return completion

    def _live(self, asking: Asking, call: int, attempts: Attempts) -> LiveReply | None:
        """Return what tells a root model's reply as it comes, where somebody listens."""
        if self._on_text is None or asking.role != "root" or asking.summary:
            return None
        return LiveReply(self._on_text, run=self._run_id, call=call, attempt=lambda: attempts.begun)

    async def _reserve(self, model: PricedModel, asking: Asking) -> tuple[Weighing, Reservation]:
        """Admit a call, counted with care where the limits might not have room for its prompt."""
        weighing = self._weighing(model, asking)
        self._expect_final(weighing, asking)
        is_last = asking.final and self._keeps_final
        while True:
            estimate = weighing.estimate()
            if is_last:
                reserved = await self._budget.admit_final(estimate, model=model.name)
            else:
                reserved = await self._budget.admit(estimate, model=model.name, role=asking.role)
            try:
                grew = reserved.is_doubtful and await self._counted(weighing)
            except BaseException:
                self._budget.release(reserved)
                raise
            # The reply to another may have told meanwhile that the provider counts more.
            if not grew and weighing.tokens == estimate.input_tokens:
                return weighing, reserved
            self._budget.release(reserved)

    async def _counted(self, weighing: Weighing) -> bool:
        """Count a call with care, and the run's last; return whether that one is more."""
        await weighing.careful()
        return await self._budget.count_final()

    def output_cap(self, facts: ModelFacts, asked: int | None) -> int | None:
        """The output cap that is sent for `asked` tokens; None leaves it to the provider."""
        if asked is not None:
            return asked
        if not self._budget.bounds_replies:
            return None
        return min(CAP_TOKENS, facts.max_output_tokens or CAP_TOKENS)

    def longest_reply(self, model: PricedModel, prompt_tokens: int, wanted: int) -> int:
        """The output cap that a leaf call for `wanted` tokens would get of what is left."""
        estimate = call_estimate(model.facts, prompt_tokens, wanted, shortest=1)
        return self._budget.fitted(estimate).output_tokens

    def limit_on(self, model: PricedModel, prompt_tokens: int, wanted: int) -> StopReason | None:
        """Which limit leaves less than `wanted` tokens for a leaf call's reply, None for none."""
        return self._budget.limit_of(
            call_estimate(model.facts, prompt_tokens, wanted, shortest=None)
        )

    def _weighing(self, model: PricedModel, asking: Asking) -> Weighing:
        return Weighing(
            model,
            asking.billed,
            asking.billed_tokens,
            cap=self.output_cap(model.facts, asking.max_output_tokens),
            # A summary that is cut is worth less than none.
            shortest=None if asking.summary else LEAST_REPLY_TOKENS,
            is_bounded=self._budget.bounds_replies,
        )

    def _timeout(self, final: bool) -> float:
        left = self._budget.seconds_left(final=final)
        if left is None:
            return self._limits.call_seconds
        return min(self._limits.call_seconds, max(left, LEAST_SECONDS))

    def _patience(self, final: bool) -> Patience:
        return Patience(
            seconds=self._timeout(final), queue_seconds=self._budget.seconds_left(final=final)
        )

    def _record_call(
        self, model: PricedModel, asking: Asking, estimate: CallEstimate | None = None
    ) -> int:
        self._sent += 1
        messages = () if asking.role == "root" else asking.messages
        block, seq, item = asking.place
        self._recorder.record(
            events.CallSent(
                run=self._run_id,
                call=self._sent,
                role=asking.role,
                model=model.name,
                block=block,
                seq=seq,
                messages=[{"role": m.role, "content": m.content} for m in messages],
                item=item,
                estimate={} if estimate is None else estimate.to_dict(),
                summary=asking.summary,
                constrained=asking.schema is not None,
            )
        )
        return self._sent

    def _record_failure(
        self, call: int, model: str, spent: Usage, started: float, error: str
    ) -> None:
        self._record_reply(call, model, Completion("", spent, model, "other"), started, error)

    def _record_reply(
        self,
        call: int,
        model: str,
        completion: Completion,
        started: float,
        error: str | None = None,
    ) -> None:
        self._recorder.record(
            events.ReplyReceived(
                run=self._run_id,
                call=call,
                text=completion.text,
                model=model,
                finish_reason=completion.finish_reason,
                usage=usage_dict(completion.usage),
                seconds=round(time.monotonic() - started, 6),
                error=error,
            )
        )


@dataclass(slots=True)
class _Sending:
    """A call on its way: the output cap it is sent with, which the limits may have shrunk."""

    wanted: int | None
    cap: int | None = None

    def capped(self, request: ModelRequest, tokens: int) -> ModelRequest:
        """Return the request with the output cap that was admitted, if it is sent with one."""
        if self.wanted is None:
            return request
        self.cap = tokens
        return replace(request, max_output_tokens=tokens)

    def was_cut(self, reply: Completion) -> bool:
        """Whether a reply ends where the limits ended it, so that with others it were longer."""
        return reply.finish_reason == "length" and self.cap != self.wanted


def told(error: RlmRagError) -> str:
    """What a failed call, or child, says to the code that made it, and to the trace."""
    return f"{error.message}. {error.hint}" if error.hint else error.message


def _said(error: ModelError | LimitReached) -> str:
    return f"not sent: {error.detail}" if isinstance(error, LimitReached) else told(error)


def _is_passing(error: ModelError | LimitReached) -> TypeGuard[ModelError]:
    """Whether another provider may serve what this one could not, just now."""
    return isinstance(error, ModelError) and error.retryable


def _check_window(model: PricedModel, prompt_tokens: int) -> None:
    window = model.facts.context_window
    if window is not None and prompt_tokens > window:
        raise ContextWindowError(
            f"the prompt has about {prompt_tokens:,} tokens, the window of {model.name} "
            f"{window:,}; nothing was sent",
            hint=WINDOW_HINT,
        )


def _priced(usage: Usage, facts: ModelFacts) -> Usage:
    """Return the usage with its cost, by the price given or known."""
    if facts.price is None:
        return replace(usage, usd=usage.usd or None)
    return replace(
        usage,
        usd=facts.price.usd(
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cached_tokens=usage.cached_tokens,
            reasoning_tokens=usage.reasoning_tokens,
        ),
    )

"""Calls are admitted before they are sent, and no interleaving overshoots a limit."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from rlm_rag.engine.admission import CallEstimate, LimitReached
from rlm_rag.engine.budget import Budget
from rlm_rag.engine.limits import Limits
from rlm_rag.engine.meter import metered
from rlm_rag.models.base import Usage

FREE = CallEstimate(0, 0, 0.0)


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def reserve(budget, estimate, **of):
    """Admit a call, which has to fit now."""
    return asyncio.run(budget.admit(estimate, waits=False, **of))


def reserve_final(budget, estimate, **of):
    return asyncio.run(budget.admit_final(estimate, **of))


def retry(budget, reservation):
    asyncio.run(budget.admit_retry(reservation))


def spent(usage):
    return usage.input_tokens + usage.output_tokens


def test_calls_are_admitted_until_one_is_left_for_the_final_answer():
    budget = Budget(Limits(calls=3))
    held = [reserve(budget, FREE), reserve(budget, FREE)]
    with pytest.raises(LimitReached) as refusal:
        reserve(budget, FREE)
    assert refusal.value.name == "budget_calls"
    assert refusal.value.may_fit_later
    for reservation in held:
        budget.settle(reservation, Usage(calls=1))
    with pytest.raises(LimitReached) as refusal:
        reserve(budget, FREE)
    assert not refusal.value.may_fit_later
    final = reserve_final(budget, FREE, model="root")
    budget.settle(final, Usage(calls=1))
    assert budget.usage.calls == 3
    with pytest.raises(LimitReached):
        reserve_final(budget, FREE)


def test_tokens_in_flight_count_as_spent_until_they_settle():
    budget = Budget(Limits(tokens=1000))
    first = reserve(budget, CallEstimate(400, 300))
    with pytest.raises(LimitReached) as refusal:
        reserve(budget, CallEstimate(200, 200))
    assert (refusal.value.name, refusal.value.may_fit_later) == ("budget_tokens", True)
    budget.settle(first, Usage(calls=1, input_tokens=400, output_tokens=10))
    reserve(budget, CallEstimate(200, 200))
    assert budget.tokens_left() == 190


def test_money_is_kept_for_the_final_answer_and_only_it_may_use_it():
    budget = Budget(Limits(usd=1.0), final=CallEstimate(10, 10, 0.2))
    budget.settle(reserve(budget, CallEstimate(1, 1, 0.8)), Usage(calls=1, usd=0.8))
    with pytest.raises(LimitReached) as refusal:
        reserve(budget, CallEstimate(1, 1, 0.1))
    assert refusal.value.name == "budget_usd"
    budget.settle(reserve_final(budget, CallEstimate(1, 1, 0.2)), Usage(calls=1, usd=0.2))
    assert budget.usage.usd == pytest.approx(1.0)


def test_what_is_kept_for_the_final_answer_grows_with_its_estimate_to_a_quarter():
    budget = Budget(Limits(tokens=1000))
    assert budget.tokens_left() == 1000
    budget.expect_final(CallEstimate(100, 50))
    assert budget.tokens_left() == 850
    budget.expect_final(CallEstimate(10_000, 50))
    assert budget.tokens_left() == 750


def test_a_call_of_unknown_price_is_refused_under_a_limit_in_money_only():
    with pytest.raises(LimitReached, match="price"):
        reserve(Budget(Limits(usd=1.0)), CallEstimate(1, 1, None))
    reserve(Budget(Limits()), CallEstimate(1, 1, None))


def test_time_runs_out_for_ordinary_calls_before_the_final_one():
    clock = Clock()
    budget = Budget(Limits(seconds=40), clock=clock)
    assert budget.seconds_left() == 30
    assert budget.seconds_left(final=True) == 40
    clock.now += 30
    with pytest.raises(LimitReached) as refusal:
        reserve(budget, FREE)
    assert refusal.value.name == "timeout"
    final = reserve_final(budget, FREE)
    assert budget.seconds_left() == 10
    budget.settle(final, Usage(calls=1))
    clock.now += 10
    with pytest.raises(LimitReached):
        reserve_final(budget, FREE)
    assert budget.elapsed_seconds() == 40


def admitted(budget: Budget, estimates: list[CallEstimate]) -> list[bool]:
    outcomes = []
    for estimate in estimates:
        try:
            reserve(budget, estimate)
        except LimitReached:
            outcomes.append(False)
        else:
            outcomes.append(True)
    return outcomes


def test_the_part_of_a_batch_that_fits_is_admitted():
    budget = Budget(Limits(calls=51))
    assert admitted(budget, [FREE] * 60) == [True] * 50 + [False] * 10
    assert budget.calls_left() == 0


def test_a_batch_goes_on_after_a_call_that_is_too_large():
    budget = Budget(Limits(tokens=100))
    sizes = [CallEstimate(50, 0), CallEstimate(80, 0), CallEstimate(50, 0)]
    assert admitted(budget, sizes) == [True, False, True]


def test_a_call_that_was_not_sent_costs_nothing():
    budget = Budget(Limits(calls=2))
    reservation = reserve(budget, FREE)
    budget.release(reservation)
    budget.release(reservation)
    assert budget.usage == Usage()
    reserve(budget, FREE)


def test_a_final_call_that_was_not_sent_is_kept_again():
    budget = Budget(Limits(calls=1))
    budget.release(reserve_final(budget, FREE))
    assert budget.calls_left() == 0
    reserve_final(budget, FREE)


def test_retries_count_as_calls_and_are_admitted_one_by_one():
    budget = Budget(Limits(calls=3))
    reservation = reserve(budget, FREE)
    retry(budget, reservation)
    with pytest.raises(LimitReached):
        retry(budget, reservation)
    budget.settle(reservation, Usage(calls=2))
    assert budget.usage.calls == 2
    with pytest.raises(ValueError, match="settled"):
        retry(budget, reservation)


def test_a_call_whose_cost_nobody_knows_counts_its_whole_estimate():
    budget = Budget(Limits())
    reservation = reserve(budget, CallEstimate(10, 20, 0.5))
    retry(budget, reservation)
    budget.settle(reservation, None)
    assert budget.usage == Usage(calls=2, input_tokens=10, output_tokens=20, usd=0.5)


def test_settling_twice_is_an_error():
    budget = Budget(Limits())
    reservation = reserve(budget, FREE)
    budget.settle(reservation, Usage(calls=1))
    with pytest.raises(ValueError, match="settled"):
        budget.settle(reservation, Usage(calls=1))


def test_usage_is_kept_by_model_and_by_role():
    budget = Budget(Limits())
    budget.settle(reserve(budget, FREE, model="big", role="root"), Usage(calls=1, input_tokens=5))
    for _ in range(2):
        budget.settle(reserve(budget, FREE, model="small"), Usage(calls=1, output_tokens=3))
    budget.count_cached(model="small")
    assert budget.by_model == {
        "big": Usage(calls=1, input_tokens=5),
        "small": Usage(calls=2, output_tokens=6, cached_calls=1),
    }
    assert budget.by_role["sub"].calls == 2
    assert budget.usage.cached_calls == 1


def test_an_unknown_cost_makes_the_total_unknown_but_not_the_limit_void():
    budget = Budget(Limits(usd=1.0))
    budget.settle(reserve(budget, CallEstimate(1, 1, 0.4)), Usage(calls=1, usd=None))
    assert budget.usage.usd is None
    assert budget.usd_left() == pytest.approx(0.6)


def test_without_limits_nothing_is_counted_down():
    budget = Budget(Limits(calls=None))
    left = (budget.calls_left(), budget.tokens_left(), budget.usd_left(), budget.seconds_left())
    assert left == (None, None, None, None)


class Interleavings(RuleBasedStateMachine):
    """Any order of reserving, retrying, settling and releasing stays within every limit."""

    held = Bundle("held")

    def __init__(self):
        super().__init__()
        self.clock = Clock()
        self.limits = Limits(calls=8, tokens=500, usd=1.0, seconds=60)
        self.budget = Budget(self.limits, clock=self.clock, final=CallEstimate(20, 20, 0.05))
        self.requests = {}
        self.final = False

    def admitted(self, reservation):
        self.requests[reservation.id] = 1
        return reservation

    @rule(
        target=held, tokens=st.integers(0, 200), cap=st.integers(0, 100), cents=st.integers(0, 60)
    )
    def reserve(self, tokens, cap, cents):
        before = (self.budget.calls_left(), self.budget.tokens_left(), self.budget.usd_left())
        estimate = CallEstimate(tokens, cap, cents / 100)
        try:
            reservation = reserve(self.budget, estimate)
        except LimitReached:
            fits = before[0] >= 1 and before[1] >= tokens + cap and before[2] >= cents / 100
            assert not fits or self.budget.seconds_left() == 0
            return None
        return self.admitted(reservation)

    @rule(reservation=held)
    def retry(self, reservation):
        if reservation is None or reservation.id not in self.requests:
            return
        try:
            retry(self.budget, reservation)
        except LimitReached:
            return
        self.requests[reservation.id] += 1

    @rule(reservation=consumes(held), share=st.floats(0, 1))
    def settle(self, reservation, share):
        if reservation is None:
            return
        estimate = reservation.estimate
        self.budget.settle(
            reservation,
            Usage(
                calls=self.requests.pop(reservation.id),
                input_tokens=estimate.input_tokens,
                output_tokens=int(estimate.output_tokens * share),
                usd=estimate.usd * share,
            ),
        )

    @rule(reservation=consumes(held))
    def release(self, reservation):
        if reservation is not None:
            self.budget.release(reservation)
            self.requests.pop(reservation.id)

    @rule(seconds=st.floats(0, 20))
    def wait(self, seconds):
        self.clock.now += seconds

    @rule()
    def the_final_call_always_fits_in_what_was_kept(self):
        if self.final or self.budget.seconds_left(final=True) == 0:
            return
        self.final = True
        reservation = reserve_final(self.budget, CallEstimate(20, 20, 0.05))
        self.budget.settle(reservation, Usage(calls=1, input_tokens=20, output_tokens=20, usd=0.05))

    @invariant()
    def no_limit_is_overshot(self):
        usage = self.budget.usage
        assert usage.calls + sum(self.requests.values()) <= self.limits.calls
        assert spent(usage) <= self.limits.tokens
        assert usage.usd <= self.limits.usd + 1e-6


TestInterleavings = Interleavings.TestCase
TestInterleavings.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


async def spend(budget, estimate, usage, log, name, seconds=0.0):
    try:
        reservation = await budget.admit(estimate, model=name)
    except LimitReached as refusal:
        log.append((name, refusal.name))
        return
    await asyncio.sleep(seconds)
    budget.settle(reservation, usage)
    log.append((name, "ran"))


def test_a_call_that_calls_in_flight_keep_out_waits_for_them_to_settle():
    async def batch():
        budget, log = Budget(Limits(tokens=1000, calls=None)), []
        estimate, usage = CallEstimate(100, 500), Usage(calls=1, input_tokens=100, output_tokens=50)
        await asyncio.gather(*(spend(budget, estimate, usage, log, str(n)) for n in range(8)))
        return log

    # 150 tokens each of 1,000, of which a call may need 600: the first three run, no more fits.
    assert asyncio.run(batch()) == [
        ("0", "ran"),
        ("1", "ran"),
        ("2", "ran"),
        *((str(n), "budget_tokens") for n in range(3, 8)),
    ]


def test_a_waiting_call_that_is_cancelled_hands_its_turn_on():
    async def batch():
        budget, log = Budget(Limits(tokens=1000, calls=None)), []
        estimate, usage = CallEstimate(100, 700), Usage(calls=1, input_tokens=10)
        tasks = [
            asyncio.create_task(spend(budget, estimate, usage, log, str(n), 0.01)) for n in range(4)
        ]
        await asyncio.sleep(0)
        tasks[1].cancel()
        await asyncio.wait(tasks)
        return log

    assert asyncio.run(batch()) == [("0", "ran"), ("2", "ran"), ("3", "ran")]


@given(
    st.lists(st.tuples(st.integers(0, 300), st.integers(0, 300), st.floats(0, 1)), max_size=12),
    st.integers(200, 2000),
)
def test_no_order_of_waiting_calls_stalls_or_overshoots(calls, limit):
    async def batch():
        budget, log = Budget(Limits(tokens=limit, calls=None)), []
        async with asyncio.timeout(5):
            await asyncio.gather(
                *(
                    spend(
                        budget,
                        CallEstimate(prompt, cap),
                        Usage(calls=1, input_tokens=prompt, output_tokens=int(cap * share)),
                        log,
                        n,
                    )
                    for n, (prompt, cap, share) in enumerate(calls)
                )
            )
        return budget, log

    budget, log = asyncio.run(batch())
    assert spent(budget.usage) <= limit
    assert len(log) == len(calls)
    left = budget.tokens_left()
    refused = {n for n, outcome in log if outcome != "ran"}
    # What was refused did not fit when it was its turn, and so does not fit at the end.
    assert all(sum(calls[n][:2]) > left for n in refused)


def test_a_meter_counts_what_is_spent_inside_it_and_below():
    budget = Budget(Limits())
    with metered() as outer:
        budget.settle(reserve(budget, FREE, model="a"), Usage(calls=1, input_tokens=1))
        with metered() as inner:
            budget.settle(reserve(budget, FREE, model="b"), Usage(calls=1, input_tokens=2))
    budget.settle(reserve(budget, FREE, model="a"), Usage(calls=1, input_tokens=4))
    assert (inner.usage.input_tokens, outer.usage.input_tokens) == (2, 3)
    assert outer.by_model == {
        "a": Usage(calls=1, input_tokens=1),
        "b": Usage(calls=1, input_tokens=2),
    }
    assert budget.usage.input_tokens == 7

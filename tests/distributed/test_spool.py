"""What work has told is given to the next node as a trace, as far as there was room for it."""

from __future__ import annotations

import pytest

from rlm_rag.distributed.spool import Spool, trace_of
from rlm_rag.trace.events import CallSent, Event, ReplyReceived, TurnStarted

EVENTS: list[Event] = [
    TurnStarted(run="r", turn=1, messages=({"role": "user", "content": "é\u2028\n"},)),
    CallSent(run="r", call=1, role="root", model="m", messages=[], estimate={"usd": 0.5}),
    ReplyReceived(
        run="r",
        call=1,
        text="said",
        model="m",
        finish_reason="stop",
        usage={"calls": 1},
        seconds=0.5,
    ),
]


def test_what_was_kept_is_a_trace_at_any_time() -> None:
    spool = Spool()
    assert trace_of(spool.told()).records == ()
    for number, event in enumerate(EVENTS, start=1):
        spool.keep(event)
        trace = trace_of(spool.told())
        assert [record.line for record in trace.records] == list(range(1, number + 1))
    # As a trace that was read from a file: what was a tuple is a list.
    assert trace.events[0] == TurnStarted(
        run="r", turn=1, messages=[{"role": "user", "content": "é\u2028\n"}]
    )
    assert list(trace.events[1:]) == EVENTS[1:]


def test_what_has_no_room_is_left_out_with_all_after_it() -> None:
    spool = Spool(most_bytes=3)
    # Enough for something of it to have left the compressor.
    large = TurnStarted(
        run="r", turn=1, messages=[{"role": "user", "content": f"{n * n * n}"} for n in range(9999)]
    )
    for event in (EVENTS[1], large, EVENTS[2]):
        spool.keep(event)
    assert list(trace_of(spool.told()).events) == [EVENTS[1], large]


def test_what_is_forgotten_is_begun_anew() -> None:
    spool = Spool(most_bytes=3)
    for event in EVENTS:
        spool.keep(event)
    spool.forget()
    assert trace_of(spool.told()).events == ()
    spool.keep(EVENTS[2])
    assert [(each.line, each.event) for each in trace_of(spool.told()).records] == [(1, EVENTS[2])]


def test_what_cannot_stand_in_a_trace_is_refused() -> None:
    with pytest.raises(TypeError):
        Spool().keep(CallSent(run="r", call=1, role="root", model="m", estimate={"a": object()}))

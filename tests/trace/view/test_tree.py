"""Events become a tree in which nothing is lost, and sums are those of what lies beneath."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rlm_rag.trace.events import Answered, BlockStarted, Event, Resumed, RunStarted
from rlm_rag.trace.reader import Record
from rlm_rag.trace.view.clock import Clock
from rlm_rag.trace.view.nodes import Node, Spent, spent_of
from rlm_rag.trace.view.tree import Tree
from tests.trace.test_show import retrieval, start
from tests.trace.view.made import EVERY, answered, asked, output, reply, sent, turn


def tree_of(events: list[Event]) -> list[Node]:
    tree = Tree()
    for second, event in enumerate(events):
        tree.add(event, float(second))
    return tree.nodes()


def outline(nodes: list[Node]) -> list[str]:
    """Each node by its depth, kind and title, in the order of a walk."""
    lines: list[str] = []

    def walk(parent: int, depth: int) -> None:
        for number, node in enumerate(nodes):
            if node.parent == parent:
                lines.append(f"{'  ' * depth}{node.kind} {node.title}")
                walk(number, depth + 1)

    walk(-1, 0)
    return lines


def test_children_calls_and_tasks_stand_below_what_asked_for_them() -> None:
    assert outline(tree_of(EVERY)) == [
        "run Where is it?",
        "  stage Before the first turn",
        "    retrieval repo_map() → 7 characters",
        "  turn Turn 1",
        "    prompt Prompt",
        "    reply Reply of m",
        "    block Block 1",
        "      retrieval search('it') → 1 hit",
        "      service llm_query_batched",
        "        call s: first item",
        "        call s: second item",
        "      service rlm_query",
        "        run A child's task",
        "          turn Turn 1",
        "            prompt Prompt",
        "            reply Reply of m",
        "          answer Answer (answered)",
        "      task Task later: llm_query",
        "        call s: in the background",
        "        note Told",
        "  turn Turn 2",
        "    prompt Prompt",
        "    note 3 older messages summed up",
        "    reply Reply of m",
        "    note Limit budget_usd",
        "  answer Answer (answered)",
    ]


def test_every_node_has_the_sum_of_what_is_beneath_it() -> None:
    nodes = tree_of(EVERY)
    by_title = {node.title: node.spent for node in nodes}
    assert by_title["Where is it?"].calls == 6
    assert by_title["Where is it?"].usd == 1.5
    assert by_title["llm_query_batched"].input_tokens == 200
    assert by_title["A child's task"].output_tokens == 10
    assert by_title["Block 1"].calls == 4


def test_a_price_that_is_not_known_is_not_taken_for_nothing() -> None:
    nodes = tree_of([start(), turn(1), sent(1), reply(1, "x", usage={"calls": 1, "usd": None})])
    assert nodes[0].spent.usd is None
    for usd in (math.inf, math.nan, 10**400, "much", None):
        assert spent_of({"usd": usd}).usd is None
    assert spent_of({"calls": "many", "input_tokens": True, "usd": 0}) == Spent()
    assert spent_of({"calls": 10**400, "usd": 0.5}) == Spent(usd=0.5)


def test_a_result_that_is_nested_without_end_is_not_shown_and_breaks_nothing() -> None:
    deep: Any = []
    for _ in range(5000):
        deep = [deep]
    nodes = tree_of([start(), retrieval("outline", {"deep": deep}, {"deep": deep})])
    assert [part.value for part in nodes[-1].parts] == [
        [["deep", "(nested too deeply to be shown)"]], "(nested too deeply to be shown)",
    ]  # fmt: skip


def test_what_failed_and_what_did_not_end_is_told() -> None:
    states = {node.title: node.state for node in tree_of(EVERY)}
    assert states["s: second item"] == "error"
    assert states["Block 1"] == "error"
    assert states["Limit budget_usd"] == "error"
    assert states["Where is it?"] == "ok"
    cut = tree_of(EVERY[:9])
    assert {node.title for node in cut if node.state == "open"} == {
        "Where is it?", "Block 1", "Sub-calls", "s: first item", "s: second item",
    }  # fmt: skip
    assert all(node.end is None for node in cut if node.title.startswith("s: "))


def test_a_turn_lasts_as_long_as_what_happens_in_it() -> None:
    nodes = tree_of([start(), turn(1), sent(1), reply(1, "x"), turn(2), sent(2)])
    first, second = (node for node in nodes if node.kind == "turn")
    assert (first.start, first.end) == (1.0, 4.0)
    assert (second.start, second.end) == (4.0, 5.0)


def test_a_look_up_began_as_long_before_as_it_took() -> None:
    block = BlockStarted(run="r1", turn=1, block=1, code="read('x')")
    look_up = retrieval("read", {}, "x", seconds=2.5)
    nodes = tree_of([start(), turn(1), block, *[turn(1)] * 3, look_up])
    found = nodes[-1]
    assert (found.end or 0) - found.start == 2.5
    nodes = tree_of([start(), retrieval("read", {}, "x", seconds=1e9)])
    assert nodes[-1].start == 1.0  # not before the block that asked


def test_what_a_cut_trace_lacks_costs_nothing_but_its_place() -> None:
    alone = [event for event in EVERY if not isinstance(event, RunStarted)]
    for event in alone:
        assert tree_of([event])[0].kind == "run"
    whole = tree_of(alone)
    assert {node.parent for node in whole if node.kind == "run"} == {-1}


@given(st.permutations(EVERY))
def test_events_in_any_order_make_a_tree_of_parents_before_children(events: list[Event]) -> None:
    nodes = tree_of(events)
    assert all(node.parent < number for number, node in enumerate(nodes))
    assert sum(node.parent == -1 for node in nodes) >= 1


def test_a_resumed_run_goes_on_in_its_turn_and_its_pause_is_cut_from_the_axis() -> None:
    again = Resumed(run="r1", limits={"usd": 2}, version="0.1.0")
    events = [start(), turn(1), sent(1), answered(stop_reason="interrupted"), again, output(1)]
    hours = (0, 0, 1, 1, 9, 10)
    clock = Clock()
    places = [
        clock.seconds(Record(n, f"2026-01-01T{hour:02}:00:00+00:00", event))
        for n, (hour, event) in enumerate(zip(hours, events, strict=True))
    ]
    assert places == [0, 0, 3600, 3600, 3600, 7200]
    assert clock.axis().pauses == ((3600.0, 8 * 3600.0),)
    nodes = tree_of(events)
    assert nodes[0].state == "open"
    assert [node.title for node in nodes if node.kind == "note"] == ["Resumed"]


def test_times_that_are_none_or_go_back_do_not_move_the_clock_back() -> None:
    clock = Clock()
    times = ["2026-01-01T00:00:00", "2026-01-01T00:00:05Z", "nonsense", "2025-01-01T00:00:00Z"]
    records = [Record(n, time, answered()) for n, time in enumerate(times)]
    assert [clock.seconds(record) for record in records] == [0, 5, 5, 5]
    assert isinstance(records[0].event, Answered)


def test_the_parts_of_a_call_without_a_reply_say_what_it_may_cost() -> None:
    call = asked(1, "what?", 1)
    nodes = tree_of([start(), call])
    assert [part.label for part in nodes[-1].parts] == ["Prompt, user"]
    nodes = tree_of([start(), sent(1, role="sub", estimate={"usd": 0.5})])
    assert nodes[-1].parts[-1].value == [["usd", "0.5"]]
    nodes = tree_of([start(), sent(1, role="sub", estimate={"usd": 0.5}), reply(1, "x")])
    assert "Estimate" not in {part.label for part in nodes[-1].parts}

"""A run's events under another name, with those of all below it."""

from __future__ import annotations

from rlm_rag.trace.events import Answered
from rlm_rag.trace.names import is_within, moved
from tests.trace.test_show import start


def test_a_child_is_moved_with_its_own_children_and_nothing_else() -> None:
    assert moved(start("r.1", parent="r"), "r.1", "r.7") == start("r.7", parent="r")
    assert moved(start("r.1.2", parent="r.1"), "r.1", "r.7") == start("r.7.2", parent="r.7")
    for run in ("r", "r.10", "r.2.1"):
        other = Answered(run=run, text="", stop_reason="answered")
        assert moved(other, "r.1", "r.7") is other


def test_what_is_below_a_run_has_its_name_and_a_dot() -> None:
    assert [is_within(each, "r.1") for each in ("r.1", "r.1.3", "r.10", "r", "r.2.1")] == [
        *(True, True),
        *(False, False, False),
    ]

"""A run from code that waits for it."""

from __future__ import annotations

from rlm_rag.engine.answer import Answer
from rlm_rag.engine.loop_thread import loop_thread, outcome
from rlm_rag.engine.run import Run
from rlm_rag.errors import RlmRagError, RunInterrupted

# How long an interrupted run may take to close its trace and end its worker.
INTERRUPT_SECONDS = 10.0


def answer_of(run: Run) -> Answer:
    """Run to the end on the library's loop.

    Raises:
        RlmRagError: as `Run.execute`.
        RunInterrupted: Ctrl-C; it has the partial answer.
    """
    try:
        return outcome(loop_thread().submit(run.execute()))
    except KeyboardInterrupt:
        raise RunInterrupted(_interrupted(run)) from None


def _interrupted(run: Run) -> Answer:
    try:
        return loop_thread().submit(run.interrupted()).result(INTERRUPT_SECONDS)
    except RlmRagError:
        # It had failed by itself when the interrupt came, which is what is told.
        return run.no_answer()
    except TimeoutError:
        raise KeyboardInterrupt from None

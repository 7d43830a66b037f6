"""What hands reading to sub-models, put together for one RLM or strategy."""

from __future__ import annotations

from dataclasses import dataclass

from rlm_rag.engine.calls import ModelCalls
from rlm_rag.engine.coverage import Coverage
from rlm_rag.engine.delegate import Delegate
from rlm_rag.engine.lineup import Lineup
from rlm_rag.engine.material import Reader
from rlm_rag.engine.subcalls import SubCalls
from rlm_rag.engine.view import View
from rlm_rag.trace.recorder import Recorder


@dataclass(frozen=True, slots=True)
class Delegation:
    """Leaf calls, reading material by them, and maps and reductions over it."""

    subcalls: SubCalls
    reader: Reader
    delegate: Delegate


def delegation_of(
    calls: ModelCalls,
    *,
    run_id: str,
    lineup: Lineup,
    view: View,
    coverage: Coverage,
    recorder: Recorder,
    concurrency: int,
) -> Delegation:
    """Return what delegates the documents of `view`, by the calls of that run."""
    subcalls = SubCalls(calls=calls, lineup=lineup)
    reader = Reader(
        run_id=run_id, subcalls=subcalls, view=view, coverage=coverage, recorder=recorder
    )
    delegate = Delegate(subcalls=subcalls, view=view, reader=reader, concurrency=concurrency)
    return Delegation(subcalls, reader, delegate)

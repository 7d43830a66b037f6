"""The strategies by name, each opened as the driver of one question."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace

from rlm_rag.engine.answer import denies
from rlm_rag.engine.calls import ModelCalls
from rlm_rag.engine.carried import before
from rlm_rag.engine.ending import Driver, Ending
from rlm_rag.engine.guidance import Guide
from rlm_rag.engine.prompts.texts import Profile, load_prompt, profile_name
from rlm_rag.engine.rlm import delegating, doubts_of, model_calls, open_rlm, record_start
from rlm_rag.engine.services import Services
from rlm_rag.engine.strategies.answering import Answering, Prepare, Search
from rlm_rag.engine.strategies.direct import whole_corpus
from rlm_rag.engine.strategies.map_reduce import notes_of_all
from rlm_rag.engine.strategies.retrieve import MOST_TOKENS, SMALL_TOKENS, Retrieve
from rlm_rag.engine.tree import Assignment, Parent, Tree
from rlm_rag.engine.view import View

NO_SANDBOX = "unused"
"""What a trace names as the sandbox of a strategy that runs no code."""


@dataclass(frozen=True, slots=True)
class _Steps:
    """The prompts of a strategy: its system prompt, the first, and one for a search it asks for."""

    system: Profile
    prepare: Prepare
    search: Search | None = None


def _direct(tree: Tree, assignment: Assignment, view: View, _: ModelCalls) -> _Steps:
    return _Steps(
        load_prompt("direct"),
        lambda: whole_corpus(
            view, tree.coverage, question=assignment.question, root=assignment.root
        ),
    )


def _retrieve(tree: Tree, assignment: Assignment, view: View, _: ModelCalls) -> _Steps:
    services = Services(
        run_id=assignment.run_id,
        view=view,
        handlers={},
        recorder=tree.recorder,
        coverage=tree.coverage,
        past=tree.past,
        again={},
        await_seconds=tree.limits.await_seconds,
    )
    is_small = profile_name(tree.profile, assignment.root.name) == "small"
    found = Retrieve(
        question=assignment.question,
        view=view,
        services=services,
        coverage=tree.coverage,
        root=assignment.root,
        most_tokens=SMALL_TOKENS if is_small else MOST_TOKENS,
    )
    prompt = load_prompt("retrieve_small" if is_small else "retrieve")
    return _Steps(prompt, found.first, found.again)


def _map_reduce(tree: Tree, assignment: Assignment, view: View, calls: ModelCalls) -> _Steps:
    delegate = delegating(tree, assignment.run_id, view, calls).delegate
    return _Steps(
        load_prompt("direct"),
        lambda: notes_of_all(view, delegate, question=assignment.question, root=assignment.root),
    )


_STEPS: Mapping[str, Callable[[Tree, Assignment, View, ModelCalls], _Steps]] = {
    "direct": _direct,
    "retrieve": _retrieve,
    "map-reduce": _map_reduce,
}


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with all that its answering needs, and the strategy for it."""

    strategy: str
    tree: Tree
    assignment: Assignment
    view: View


def open_driver(asked: Asked) -> AbstractAsyncContextManager[Driver]:
    """Open what brings a question to its ending by its strategy, and record that it started.

    Raises:
        SandboxUnavailableError: `rlm` needs a worker, and none started.
    """
    if asked.strategy == "rlm":
        return open_rlm(asked.tree, asked.assignment, asked.view)
    return _open_answering(asked.strategy, asked.tree, asked.assignment, asked.view)


def needs_evidence(strategy: str, ending: Ending) -> bool:
    """Whether a root model did not come to an answer by itself, for all that it could do."""
    stuck = ending.stop_reason in ("errors", "iterations")
    has_none = not ending.is_answer or ending.is_blind or denies(ending.text)
    return strategy == "rlm" and stuck and has_none


def in_place_of(assignment: Assignment) -> Assignment:
    """Return the assignment of a strategy that takes over from another in the same run."""
    parent = Parent(assignment.run_id, 0, 0, None, assignment.question)
    return replace(assignment, run_id=f"{assignment.run_id}.retrieve", parent=parent)


def _with_form(system: str, assignment: Assignment) -> str:
    form = assignment.form
    return system if form is None else f"{system.rstrip()}\n\n{form.instruction}\n"


@asynccontextmanager
async def _open_answering(
    strategy: str, tree: Tree, assignment: Assignment, view: View
) -> AsyncIterator[Driver]:
    calls = model_calls(tree, assignment)
    steps = _STEPS[strategy](tree, assignment, view, calls)
    record_start(
        tree,
        assignment,
        view,
        strategy=strategy,
        sandbox=NO_SANDBOX,
        worker="",
        prompts=steps.system.version,
    )
    yield Answering(
        run_id=assignment.run_id,
        system=_with_form(steps.system.system, assignment),
        prepare=steps.prepare,
        search=steps.search,
        calls=calls,
        root=assignment.root,
        budget=tree.budget,
        limits=tree.limits,
        recorder=tree.recorder,
        doubts=doubts_of(tree, assignment, view, guide=Guide(assignment.question, is_on=False)),
        images=assignment.images,
        before=before(assignment.carried),
        takes_over=assignment.parent is not None,
    )

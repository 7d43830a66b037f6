"""One RLM put together: its REPL, the services of its blocks, and the loop that drives it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from typing import Any

from rlm_rag import __version__
from rlm_rag.engine.caller import Caller, Refused
from rlm_rag.engine.calls import ModelCalls
from rlm_rag.engine.carried import before, described, variables
from rlm_rag.engine.children import Children
from rlm_rag.engine.compaction import Compaction
from rlm_rag.engine.delegation import Delegation, delegation_of
from rlm_rag.engine.doubts import Doubts
from rlm_rag.engine.first_look import first_look
from rlm_rag.engine.first_map import first_map
from rlm_rag.engine.guidance import MOST_OUTPUT_CHARS, Guide
from rlm_rag.engine.hints import Hints
from rlm_rag.engine.history import History, status_line
from rlm_rag.engine.hosted import Hosted
from rlm_rag.engine.identifiers import looking_up
from rlm_rag.engine.loop import Loop
from rlm_rag.engine.prompts.texts import Profile, load_profile, profile_name, versioned
from rlm_rag.engine.question import kind_of
from rlm_rag.engine.reasons import why_false
from rlm_rag.engine.refusals import Batch
from rlm_rag.engine.services import WAITING, Handler, Services
from rlm_rag.engine.tasks import Tasks
from rlm_rag.engine.tree import Assignment, Parent, Tree
from rlm_rag.engine.view import View
from rlm_rag.engine.workbench import Workbench
from rlm_rag.errors import WorkerLostError
from rlm_rag.sandbox.calls import uncounted
from rlm_rag.sandbox.session import ServiceError, Session, WorkerSetup
from rlm_rag.sandbox.snapshots import KeptVariables
from rlm_rag.trace import events

LONG_TASK_CHARS = 4_000
PARENT_QUESTION_CHARS = 1_000
SETUP_SECONDS = 30.0
"""Reading 20 MB of records takes half a second of one core (`benchmarks.small`)."""


@dataclass(frozen=True, slots=True)
class Repl:
    """The REPL of one RLM, and what serves it; `leaves` where its `rlm_query` is a leaf call."""

    session: Session
    services: Services
    calls: ModelCalls
    tasks: Tasks
    hosted: Hosted
    leaves: bool


@asynccontextmanager
async def open_repl(tree: Tree, assignment: Assignment, view: View) -> AsyncIterator[Repl]:
    """Start a REPL over the documents of `view`; its worker and tasks end with the body.

    Raises:
        SandboxUnavailableError: no worker started.
    """
    run_id, calls = assignment.run_id, model_calls(tree, assignment)
    delegation = delegating(tree, run_id, view, calls)
    children = Children(
        tree=tree,
        parent=assignment,
        view=view,
        subcalls=delegation.subcalls,
        reader=delegation.reader,
        open_rlm=open_rlm,
    )
    functions = _functions(delegation, children)
    tasks = Tasks(run_id=run_id, functions=functions, recorder=tree.recorder, past=tree.past)
    hosted = Hosted(tree.host, view)
    handlers = {
        **functions,
        **tasks.handlers(),
        **hosted.handlers(),
        **_own(tree, assignment, view),
    }
    again = {"add_context": handlers["add_context"], **tasks.again(), **hosted.again()}
    services = _services(tree, assignment, view, handlers, again)
    async with _session(tree, assignment, view, services) as session:
        try:
            yield Repl(session, services, calls, tasks, hosted, leaves=children.are_leaves)
        finally:
            await tasks.close()


@asynccontextmanager
async def open_rlm(tree: Tree, assignment: Assignment, view: View) -> AsyncIterator[Loop]:
    """Start an RLM over the documents of `view`, and record that; its worker ends with the body.

    Raises:
        SandboxUnavailableError: no worker started.
    """
    async with open_repl(tree, assignment, view) as repl:
        session = repl.session
        profile = profile_in(tree, assignment)
        record_start(
            tree,
            assignment,
            view,
            strategy="rlm",
            sandbox=session.isolation,
            worker=session.worker_hash,
            prompts=profile.version,
        )
        guide = Guide(assignment.question, is_on=profile.name == "small", shape=view.shape)
        told = _helpers(tree, repl, assignment) + await _shown_first(repl, assignment, view, guide)
        history = _history(tree, assignment, view, profile, guide, told, session.restored)
        yield Loop(
            tree,
            assignment,
            guide=guide,
            history=history,
            bench=Workbench(
                tree,
                assignment,
                session=session,
                services=repl.services,
                history=history,
                guide=guide,
            ),
            calls=repl.calls,
            compaction=Compaction(tree, assignment, history=history, calls=repl.calls),
            tasks=repl.tasks,
            doubts=doubts_of(tree, assignment, view, guide=guide),
            hints=Hints(shape=view.shape),
            simpler=_simpler(tree, profile),
        )


def doubts_of(tree: Tree, assignment: Assignment, view: View, *, guide: Guide) -> Doubts:
    """Return what questions the answers to an assignment, by the documents of its corpus."""
    doubts = Doubts(
        question=assignment.question,
        check=tree.citations,
        why_false=lambda citation: why_false(citation, view.corpus),
        guide=guide,
        hold=view.hold_cited,
        form=assignment.form,
        seconds_left=tree.budget.seconds_left,
    )
    doubts.shown(before(assignment.carried))
    return doubts


def model_calls(tree: Tree, assignment: Assignment) -> ModelCalls:
    """Return what sends the calls of one RLM, within the limits of its tree."""
    return ModelCalls(
        run_id=assignment.run_id,
        budget=tree.budget,
        limits=tree.limits,
        recorder=tree.recorder,
        past=tree.past,
        keeps_final=assignment.depth == 0,
        on_text=tree.on_text,
        batch=_batch(assignment.parent),
    )


def _batch(parent: Parent | None) -> Batch | None:
    return None if parent is None else Batch(parent.run_id, parent.block)


def delegating(tree: Tree, run_id: str, view: View, calls: ModelCalls) -> Delegation:
    """Return what hands the documents of `view` to sub-models, for one run of a tree."""
    return delegation_of(
        calls,
        run_id=run_id,
        lineup=tree.lineup,
        view=view,
        coverage=tree.coverage,
        recorder=tree.recorder,
        concurrency=tree.limits.concurrency,
    )


def _services(
    tree: Tree,
    assignment: Assignment,
    view: View,
    handlers: Mapping[str, Handler],
    again: Mapping[str, Handler],
) -> Services:
    tools = tree.host.offers.tools_at(assignment.depth)
    return Services(
        run_id=assignment.run_id,
        view=view,
        handlers=handlers,
        recorder=tree.recorder,
        coverage=tree.coverage,
        past=tree.past,
        again=again,
        tools=tree.host.tool_calls.handlers(tools),
        await_seconds=tree.limits.await_seconds,
    )


def _session(tree: Tree, assignment: Assignment, view: View, services: Services) -> Session:
    assert tree.layer is not None
    return Session(
        layer=tree.layer,
        packed_path=view.corpus.packed_path,
        serve=services.serve,
        limits=tree.worker_limits,
        setup=_setup(tree, assignment, view, services),
        start_seconds=tree.limits.start_seconds,
        kept=_kept(assignment),
    )


def _kept(assignment: Assignment) -> KeptVariables | None:
    carried = assignment.carried
    if carried is None or carried.variables is None:
        return None
    return KeptVariables.of(carried.variables)


def _functions(delegation: Delegation, children: Children) -> dict[str, Handler]:
    subcalls, delegate = delegation.subcalls, delegation.delegate
    return {
        "llm_query": subcalls.query,
        "llm_query_batched": subcalls.query_batched,
        "llm_query_chunked": delegate.chunked,
        "map_files": delegate.map_files,
        "llm_map_reduce": delegate.map_reduce,
        "rlm_query": children.query,
        "rlm_query_batched": children.query_batched,
    }


def _own(tree: Tree, assignment: Assignment, view: View) -> dict[str, Handler]:
    async def add_context(path: str, content: str, *, caller: Caller) -> str:
        try:
            return view.added.add(path, content)
        except Refused as refused:
            raise ServiceError("argument", str(refused)) from refused

    async def capabilities(*, caller: Caller) -> dict[str, Any]:
        budget = tree.budget
        return {
            "limits": asdict(tree.limits),
            "left": {
                "calls": budget.calls_left(),
                "tokens": budget.tokens_left(),
                "usd": budget.usd_left(),
                "seconds": budget.seconds_left(),
            },
            "depth": assignment.depth,
            "root_model": assignment.root.name,
            "sub_model": tree.lineup.sub.name,
            "models of llm_query": list(tree.lineup.leaves),
            "models of rlm_query": list(tree.lineup.roots),
            "tools": [tool.described for tool in tree.host.offers.tools_at(assignment.depth)],
        }

    return {"add_context": add_context, "capabilities": capabilities}


def _setup(tree: Tree, assignment: Assignment, view: View, services: Services) -> WorkerSetup:
    return WorkerSetup(
        shape=view.shape,
        services=services.names,
        tools=tuple(tool.name for tool in tree.host.offers.tools_at(assignment.depth)),
        waiting=WAITING,
        info={"limits": asdict(tree.limits), "sub_model": tree.lineup.sub.name},
        await_seconds=tree.limits.await_seconds,
        numbers=view.numbers,
        added=view.added.documents,
        task=assignment.question if assignment.parent is not None else None,
        contexts=() if assignment.carried is None else assignment.carried.contexts,
    )


def profile_in(tree: Tree, assignment: Assignment) -> Profile:
    """Return the prompts of an RLM: the caller's own, those asked for, or its model's."""
    if tree.system_prompt is not None:
        return versioned("custom", tree.system_prompt)
    return load_profile(profile_name(tree.profile, assignment.root.name))


def _simpler(tree: Tree, profile: Profile) -> Profile | None:
    """Return the prompts to step down to where a model cannot follow its own."""
    if tree.profile != "auto" or profile.name not in ("frontier", "standard"):
        return None
    return load_profile("small")


def _history(
    tree: Tree,
    assignment: Assignment,
    view: View,
    profile: Profile,
    guide: Guide,
    helpers: str,
    restored: Collection[str],
) -> History:
    figures = [view.figures]
    if view.added.documents:
        figures.append(f"added: {len(view.added.documents):,} documents under added:/")
    figures.append(helpers)
    carried = assignment.carried
    said = before(carried)
    if carried is not None:
        figures += filter(None, [described(carried.contexts)])
        said += f"\n\n{variables(carried, restored)}" if said else ""
    return History(
        system=profile.system,
        question=_question(assignment),
        figures="\n".join(figures),
        status=guide.ended(status_line(1, tree.limits, tree.budget)),
        images=assignment.images,
        before=said,
    )


def _helpers(tree: Tree, repl: Repl, assignment: Assignment) -> str:
    facts = tree.lineup.sub.facts
    size = f"{facts.assumed_window:,} tokens"
    size = f"window {size}" if facts.context_window else f"window not known, taken as {size}"
    child = (
        "rlm_query is one leaf call here: the depth limit is reached"
        if repl.leaves
        else f"rlm_query starts a child, up to {tree.limits.live_children} at the same time"
    )
    models = (
        f"\nSub-model: {size}, up to {tree.limits.concurrency} calls at the same time. {child}."
    )
    tools = [tool.described for tool in tree.host.offers.tools_at(assignment.depth)]
    own = [f"- {line}" for line in (*repl.hosted.described(), *tools)]
    return "\n".join([models, "\nMore functions of this run:", *own]) if own else models


async def _shown_first(repl: Repl, assignment: Assignment, view: View, guide: Guide) -> str:
    """Return what a root sees of the documents before its first turn, for what it can make of it.

    A map of definitions, or, for a small one, how the files that it is asked about look: those that
    the question names, or, where it is to count, else those that are found.
    """
    if assignment.root.name == "offline":
        return ""
    if guide.is_on:
        return await _looked_first(repl, assignment, view, guide)
    shown = "" if assignment.depth else await first_map(repl.services, view)
    return f"\n\nWhat the rest leans on most:\n{shown}" if shown else ""


async def _looked_first(repl: Repl, assignment: Assignment, view: View, guide: Guide) -> str:
    """Return what a small root sees of the files; the records to count it then has in `rows`.

    Told to begin so, the 1.5B took the code for run already, and counted what was not bound.
    """
    question = assignment.question
    counts = kind_of(question) == "aggregate"
    if not counts and not assignment.is_followed:
        guide.offer_look(looking_up(question))
    look = await first_look(repl.services, view, question, counts=counts)
    begin = "\n".join(filter(None, [look.setup, look.begin]))
    ran = ""
    if look.setup and await _has_run(repl.session, look.setup):
        # In a fence, the 1.5B goes on from it without opening one of its own.
        ran = f"\nThis has run already: {look.setup}"
        begin = look.begin
    if look.begin and look.answers:
        guide.offer(begin)
    guide.names(look.named, setup=look.setup)
    so = f"\nBegin so:\n```repl\n{begin}\n```" if begin else ""
    return f"\n\n{look.shown}{ran}{so}" if look.shown else ""


async def _has_run(session: Session, code: str) -> bool:
    try:
        # As a child's blocks, it is no time of the parent's block.
        with uncounted():
            ran = await session.run(
                code, block=0, timeout_seconds=SETUP_SECONDS, output_chars=MOST_OUTPUT_CHARS
            )
    except WorkerLostError:
        return False  # The first block of the model meets it, where a lost worker is a result.
    return ran.error is None


def _question(assignment: Assignment) -> str:
    question = assignment.question
    if assignment.form is not None:
        question += f"\n\n{assignment.form.instruction}"
    if assignment.parent is None:
        return question
    if len(question) > LONG_TASK_CHARS:
        part = LONG_TASK_CHARS // 2
        question = (
            f"{question[:part]}\n[...]\n{question[-part:]}\n\n(Its middle is left out here; all "
            f"{len(question):,} characters are in the REPL as `task`.)"
        )
    asked = assignment.parent.question[:PARENT_QUESTION_CHARS]
    return (
        f"{question}\n\n(Another RLM asks you this, and gets your answer alone. The question that "
        f"it works on itself, for orientation only: {asked})"
    )


def record_start(
    tree: Tree,
    assignment: Assignment,
    view: View,
    *,
    strategy: str,
    sandbox: str,
    worker: str,
    prompts: str,
) -> None:
    """Write that a run starts; `worker` is the hash of what runs its blocks, empty for none."""
    corpus, parent = view.corpus, assignment.parent
    tree.recorder.record(
        events.RunStarted(
            run=assignment.run_id,
            question=assignment.question,
            corpus={
                "fingerprint": corpus.fingerprint,
                "documents": len(view),
                "bytes": view.total_bytes,
                "lines": view.line_count,
            },
            model=assignment.root.name,
            sub_model=tree.lineup.sub.name,
            strategy=strategy,
            limits=asdict(tree.limits),
            sandbox=sandbox,
            version=__version__,
            prompts=prompts,
            worker=worker,
            parent=None if parent is None else parent.run_id,
            parent_block=None if parent is None else parent.block,
            parent_call=None if parent is None else parent.seq,
            parent_item=None if parent is None else parent.item,
            options={} if parent is not None else tree.options,
            depth=assignment.depth,
            commit=tree.commit,
        )
    )

"""One child RLM, from its start to what its parent gets of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace

from rlm_rag.engine.answer import usage_dict
from rlm_rag.engine.caller import Told
from rlm_rag.engine.calls import told
from rlm_rag.engine.ending import Ending
from rlm_rag.engine.loop import Loop
from rlm_rag.engine.meter import Meter, metered
from rlm_rag.engine.subcalls import LeafReply, failed
from rlm_rag.engine.tree import Assignment, Tree
from rlm_rag.engine.view import View
from rlm_rag.errors import ModelError, RlmRagError, SandboxError
from rlm_rag.models.base import Usage
from rlm_rag.trace import events

OpenRlm = Callable[[Tree, Assignment, View], AbstractAsyncContextManager[Loop]]


async def run_child(
    tree: Tree,
    assignment: Assignment,
    view: View,
    open_rlm: OpenRlm,
    on_child: Callable[[Told], None] | None = None,
) -> LeafReply:
    """Run a child over the documents of `view`, and record it.

    `on_child` is told it once it runs. What it fails with is in the reply.
    """
    with metered() as meter:
        try:
            async with open_rlm(tree, assignment, view) as loop:
                if on_child is not None:
                    on_child(loop)
                ending = await _driven(loop, tree, assignment, meter)
        except (ModelError, SandboxError) as error:
            return lost(error, meter.usage)
    if not ending.is_answer:
        return replace(failed(ending.text), usage=meter.usage, model=assignment.root.name)
    await view.hold_cited(ending.text)
    # What a limit left unfinished is an answer in part, as a cut reply is.
    return LeafReply(
        ending.text,
        truncated=ending.is_cut or ending.stop_reason != "answered",
        usage=meter.usage,
        model=assignment.root.name,
        citations=tree.citations(ending.text),
    )


def lost(error: RlmRagError, usage: Usage | None = None) -> LeafReply:
    """Return the reply of a child that failed, with what it had cost until then."""
    return replace(
        failed(f"the child failed: {told(error)}"),
        usage=usage or Usage(),
        cause=error if isinstance(error, ModelError) else None,
    )


async def _driven(loop: Loop, tree: Tree, assignment: Assignment, meter: Meter) -> Ending:
    """Run a child to its end, and record it, whatever ended it."""
    ending = loop.interrupted()
    try:
        ending = await loop.run()
        return ending
    except ModelError as error:
        ending = Ending("", "errors", error.message, is_answer=False)
        raise
    except asyncio.CancelledError:
        ending = loop.interrupted()
        raise
    finally:
        by_model = {name: usage_dict(usage) for name, usage in meter.by_model.items()}
        tree.recorder.record(
            events.Answered(
                run=assignment.run_id,
                text=ending.text,
                stop_reason=ending.stop_reason,
                usage={**usage_dict(meter.usage), "by_model": by_model},
                iterations=loop.iterations,
                seconds=round(loop.elapsed_seconds(), 3),
            )
        )

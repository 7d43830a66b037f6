"""Child RLMs: `rlm_query` and `rlm_query_batched`, each with a REPL of its own."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from rlm_rag.engine.caller import Caller, Refused
from rlm_rag.engine.calls import PricedModel
from rlm_rag.engine.child_run import OpenRlm, lost, run_child
from rlm_rag.engine.material import Reader
from rlm_rag.engine.refusals import Batch
from rlm_rag.engine.subcalls import LeafReply, SubCalls, failed, gather_within
from rlm_rag.engine.tree import Assignment, Parent, Tree
from rlm_rag.engine.view import View
from rlm_rag.errors import ModelError, RetrievalError
from rlm_rag.models.base import Message
from rlm_rag.models.tokens import count_tokens

_SHOWN_UNKNOWN = 10


class Children:
    """Starts the children of one RLM, over its documents or some of them.

    At the depth limit a child is a leaf call, with the text of `paths` in its prompt.
    """

    def __init__(
        self,
        *,
        tree: Tree,
        parent: Assignment,
        view: View,
        subcalls: SubCalls,
        reader: Reader,
        open_rlm: OpenRlm,
    ) -> None:
        self._tree = tree
        self._parent = parent
        self._view = view
        self._subcalls = subcalls
        self._reader = reader
        self._open_rlm = open_rlm
        self._numbers = itertools.count(tree.past.children_of(parent.run_id) + 1)

    @property
    def are_leaves(self) -> bool:
        """Whether the depth limit is reached here."""
        return self._parent.depth >= self._tree.slots.deepest

    async def query(
        self, prompt: Any, model: str | None = None, paths: Any = None, *, caller: Caller
    ) -> dict[str, Any]:
        """Return a child's answer as a reply in JSON."""
        (reply,) = await gather_within([self._query(prompt, model, paths, caller)], caller.seconds)
        return reply.to_json()

    async def query_batched(
        self, prompts: Any, model: str | None = None, paths: Any = None, *, caller: Caller
    ) -> list[dict[str, Any]]:
        """Return the answers of children that run side by side, aligned with `prompts`.

        `paths` is for all of them, or a list of lists, one for each.
        """
        if not isinstance(prompts, list):
            wrong = f"prompts must be a list of str, not {type(prompts).__name__}"
            return [failed(wrong).to_json()]
        aligned = isinstance(paths, list) and any(isinstance(each, list) for each in paths)
        if aligned and len(paths) != len(prompts):
            wrong = f"paths has {len(paths)} lists for {len(prompts)} prompts"
            return [failed(wrong).to_json() for _ in prompts]
        each = paths if aligned else itertools.repeat(paths)
        replies = await gather_within(
            (
                self._query(prompt, model, own, caller.at(place))
                for place, (prompt, own) in enumerate(zip(prompts, each, strict=False))
            ),
            caller.seconds,
        )
        return [reply.to_json() for reply in replies]

    async def _query(self, prompt: Any, model: str | None, paths: Any, caller: Caller) -> LeafReply:
        try:
            if not isinstance(prompt, str):
                raise Refused(f"a child's prompt is a str, not {type(prompt).__name__}")
            if not prompt.strip():
                raise Refused("the prompt is empty; nothing was sent")
            selected = None if paths is None else await self._selected(paths)
            if self.are_leaves:
                return await self._leaf(prompt, model, selected, caller)
            root = self._root(model)
        except (Refused, RetrievalError) as error:
            return failed(str(error))
        view = self._view.shared() if selected is None else self._view.narrowed(selected)
        try:
            async with self._tree.slots.place(self._parent.depth + 1):
                return await self._child(prompt, root, view, caller)
        finally:
            await view.aclose()

    def _root(self, model: str | None) -> PricedModel:
        if model is None:
            return self._tree.lineup.root_at(self._parent.depth + 1) or self._parent.root
        roots = self._tree.lineup.roots
        if model not in roots:
            raise Refused(f"model {model!r} is not offered; there are {', '.join(roots)}")
        return roots[model]

    async def _selected(self, paths: Any) -> Sequence[str]:
        names = [paths] if isinstance(paths, str) else paths
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise Refused("paths must be a list of paths and globs")
        selection = await self._view.select(names)
        if selection.unknown:
            shown = ", ".join(map(repr, selection.unknown[:_SHOWN_UNKNOWN]))
            raise Refused(f"no document has the path, or matches the glob: {shown}")
        if not selection.paths:
            raise Refused("paths is empty; leave it out for all documents")
        return selection.paths

    async def _child(self, prompt: str, root: PricedModel, view: View, caller: Caller) -> LeafReply:
        batch = Batch(self._parent.run_id, caller.block)
        try:
            root.refusals.check(batch, root.name)
        except ModelError as error:
            return lost(error)
        reply = await self._answered(prompt, root, view, caller)
        if reply.cause is not None:
            # One that ran elsewhere has told only its own models.
            root.refusals.note(batch, root.name, reply.cause)
        return reply

    async def _answered(
        self, prompt: str, root: PricedModel, view: View, caller: Caller
    ) -> LeafReply:
        elsewhere = self._tree.elsewhere

        def made() -> Assignment:
            return self._assignment(prompt, root, caller)

        # Only those of a batch: nobody can reach them while they run.
        if elsewhere is None or caller.item is None or caller.on_child is not None:
            return await run_child(self._tree, made(), view, self._open_rlm, caller.on_child)
        return await elsewhere.run(made, self._tree, view)

    def _assignment(self, prompt: str, root: PricedModel, caller: Caller) -> Assignment:
        parent = self._parent
        return Assignment(
            run_id=self._run_id(prompt, caller),
            question=prompt,
            root=root,
            depth=parent.depth + 1,
            parent=Parent(parent.run_id, caller.block, caller.seq, caller.item, parent.question),
        )

    def _run_id(self, prompt: str, caller: Caller) -> str:
        """Return the id of the child that this call had started already, or a new one."""
        parent = self._parent.run_id
        started = self._tree.past.child(parent, caller.block, caller.seq, caller.item, prompt)
        return started or f"{parent}.{next(self._numbers)}"

    async def _leaf(
        self, prompt: str, model: str | None, paths: Sequence[str] | None, caller: Caller
    ) -> LeafReply:
        """Ask the sub-model itself; it sees the prompt and, where they fit, the documents."""
        chosen = self._subcalls.chosen(model)
        if paths is None:
            return await self._subcalls.ask(chosen, [Message("user", prompt)], caller=caller)
        room = self._reader.room_tokens(chosen, prompt)
        await self._view.hold(paths)
        texts = [f"Document {path}:\n{self._view.text(path)}" for path in paths]
        if sum(map(count_tokens, texts)) > room:
            raise Refused(
                f"at this depth rlm_query is one call, and its {len(paths)} documents do not fit "
                f"the window of {chosen.name}; use map_files(paths, prompt)"
            )
        reply = await self._subcalls.ask(
            chosen, [Message("user", "\n\n".join([*texts, prompt]))], caller=caller
        )
        if reply.ok:
            self._reader.sent_whole(paths)
        return reply

"""Reading that a block hands to sub-models: a long text, files, or a map and its reduction."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlm_rag.engine.caller import Caller, Refused
from rlm_rag.engine.calls import PricedModel
from rlm_rag.engine.chunks import Chunk, split
from rlm_rag.engine.material import Material, Part, Reader, joined, said
from rlm_rag.engine.subcalls import LeafReply, SubCalls, failed, gather_within
from rlm_rag.engine.view import View
from rlm_rag.errors import RetrievalError
from rlm_rag.models.base import Message, Usage
from rlm_rag.models.tokens import count_tokens

# Texts held decoded at a time are twice the requests in flight, and at least so many.
LEAST_OPEN_MATERIALS = 64
MAX_ITEMS = 100_000
# A partial answer longer than this share of a reduction's room is cut, so that each level has
# at most half as many partial answers as the one before.
PARTIAL_SHARE = 0.4


@dataclass(frozen=True, slots=True)
class Fitting:
    """Partial answers that fit one prompt; of the others `left_out`, `bad` is a reduction that
    failed, None where none of them fits beside another."""

    partials: Sequence[tuple[str, str]]
    left_out: int = 0
    bad: LeafReply | None = None


class Delegate:
    """Serves `llm_query_chunked`, `map_files` and `llm_map_reduce` of one RLM."""

    def __init__(self, *, subcalls: SubCalls, view: View, reader: Reader, concurrency: int) -> None:
        self._subcalls = subcalls
        self._view = view
        self._reader = reader
        self._open = asyncio.Semaphore(max(LEAST_OPEN_MATERIALS, 2 * concurrency))

    async def chunked(
        self, text: Any, prompt: Any, model: str | None = None, *, caller: Caller
    ) -> list[dict[str, Any]]:
        """Return one reply a chunk of a text, an entry or a path, in order."""
        try:
            chosen = self._subcalls.chosen(model)
            asked = _checked_prompt(prompt)
            material = await self._material(text, "text")
        except (Refused, RetrievalError) as error:
            return [failed(str(error)).to_json()]
        parts: list[Part] = []

        async def whole() -> LeafReply:
            parts.extend(await self._reader.ask(material, asked, chosen, caller))
            return joined(material.path, parts)

        (reply,) = await gather_within([whole()], caller.seconds)
        return [part.reply.to_json() for part in parts] or [reply.to_json()]

    async def map_files(
        self,
        files: Any,
        prompt: Any,
        model: str | None = None,
        *,
        caller: Caller,
        tell: Callable[[str, LeafReply], None] | None = None,
    ) -> dict[str, dict[str, Any]]:
        """Return a reply for each document that paths, globs and entries mean, by path.

        An empty one is an error.
        `tell` is given each as it comes; what it raises ends the map.
        """
        try:
            chosen = self._subcalls.chosen(model)
            asked = _checked_prompt(prompt)
            found = await self._found(files)
        except (Refused, RetrievalError) as error:
            return {"": failed(str(error)).to_json()}

        async def read(place: int, path: str, one: Material | str) -> LeafReply:
            name, parts = await self._read(one, asked, chosen, caller.at(place))
            reply = joined(name, [said(part) for part in parts])
            if tell is not None:
                tell(path, reply)
            return reply

        replies = await gather_within(
            (read(place, path, one) for place, (path, one) in enumerate(found.items())),
            caller.seconds,
        )
        return {path: reply.to_json() for path, reply in zip(found, replies, strict=True)}

    async def map_reduce(
        self,
        items: Any,
        map_prompt: Any,
        reduce_prompt: Any,
        model: str | None = None,
        *,
        caller: Caller,
    ) -> dict[str, Any]:
        """Return one reply made of the replies to `map_prompt` about each item."""
        try:
            chosen = self._subcalls.chosen(model)
            asked = _checked_prompt(map_prompt)
            reduction = _checked_prompt(reduce_prompt)
            found = await self._items(items)
        except (Refused, RetrievalError) as error:
            return failed(str(error)).to_json()
        (reply,) = await gather_within(
            [self._map_reduce(found, asked, reduction, chosen, caller)], caller.seconds
        )
        return reply.to_json()

    async def fitted(
        self,
        partials: Sequence[tuple[str, str]],
        prompt: str,
        model: PricedModel,
        *,
        caller: Caller,
    ) -> Fitting:
        """Return partial answers, with their labels, that fit one prompt of `model` together.

        Where they do not, groups of them are reduced by `prompt` until they do, or until a
        reduction fails: then as many as fit.
        """
        try:
            room = self._reader.room_tokens(model, prompt)
        except Refused as refused:
            return Fitting((), len(partials), failed(str(refused)))
        while True:
            groups, _ = _grouped(partials, room)
            if len(groups) < 2:
                return Fitting(groups[0])
            replies = await self._each_reduced(groups, prompt, model, caller)
            bad = next((reply for reply in replies if not reply.ok), None)
            if bad is not None or len(groups) == len(partials):
                return Fitting(groups[0], len(partials) - len(groups[0]), bad)
            partials = _as_partials(replies)

    async def _read(
        self, source: Material | str, prompt: str, model: PricedModel, caller: Caller
    ) -> tuple[str, list[Part]]:
        """Ask about a material, or the document of a path; as text only while it is asked about.

        Returns its path, and what became of its parts.
        """
        async with self._open:
            if isinstance(source, str):
                try:
                    text = await self._view.fetched(source)
                except RetrievalError as error:
                    return source, [Part(Chunk(1, 1, ""), failed(str(error)))]
                if text is None:
                    unknown = failed(
                        f"no document has the path {source!r}, and no glob matches it; paths are "
                        'those of context: [e["path"] for e in context]'
                    )
                    return source, [Part(Chunk(1, 1, ""), unknown)]
                material = Material(source, text, known=source not in self._view.added.documents)
            else:
                material = source
            return material.path, await self._reader.ask(material, prompt, model, caller)

    async def _about(
        self, item: Material, prompt: str, model: PricedModel, caller: Caller
    ) -> LeafReply:
        return joined(*await self._read(item, prompt, model, caller))

    async def _found(self, files: Any) -> dict[str, Material | str]:
        """Return what to read by path: a path alone where the view has its text."""
        if isinstance(files, str | Mapping):
            files = [files]
        if not isinstance(files, list) or not files:
            raise Refused("files must be a list of paths, globs or entries of context, not empty")
        if len(files) > MAX_ITEMS:
            raise Refused(f"files has {len(files):,} items, of at most {MAX_ITEMS:,}")
        selection = await self._view.select([one for one in files if isinstance(one, str)])
        found: dict[str, Material | str] = {path: path for path in selection.paths}
        found.update({name: name for name in selection.unknown})
        for entry in files:
            if not isinstance(entry, str):
                material = await self._material(entry, "")
                found[material.path] = material.path if material.known else material
        return found

    async def _material(self, value: Any, name: str) -> Material:
        if isinstance(value, str):
            held = await self._view.fetched(value) if "\n" not in value else None
            if held is not None:
                return Material(value, held, known=value not in self._view.added.documents)
            return Material(name, value)
        if (
            not isinstance(value, Mapping)
            or not isinstance(value.get("path"), str)
            or not isinstance(value.get("content"), str)
        ):
            raise Refused('a text is a str, a path, or an entry {"path": str, "content": str}')
        path, content = value["path"], value["content"]
        known = path not in self._view.added.documents and await self._view.fetched(path) == content
        return Material(path, content, known=known)

    async def _items(self, items: Any) -> list[Material]:
        if isinstance(items, Mapping) and not isinstance(items.get("content"), str):
            items = [{"path": str(key), "content": text} for key, text in items.items()]
        if not isinstance(items, list) or not items:
            raise Refused("items must be a list of texts or entries, or a dict of texts, not empty")
        if len(items) > MAX_ITEMS:
            raise Refused(f"items has {len(items):,} texts, of at most {MAX_ITEMS:,}")
        return [await self._material(item, f"item {n}") for n, item in enumerate(items)]

    async def _map_reduce(
        self,
        items: Sequence[Material],
        map_prompt: str,
        reduce_prompt: str,
        model: PricedModel,
        caller: Caller,
    ) -> LeafReply:
        mapped = await _gathered(
            self._about(item, map_prompt, model, caller.at(place))
            for place, item in enumerate(items)
        )
        good = [
            (item.path, reply.text)
            for item, reply in zip(items, mapped, strict=True)
            if reply.ok and reply.text.strip()
        ]
        bad = [
            f"{item.path}: {reply.error}"
            for item, reply in zip(items, mapped, strict=True)
            if not reply.ok
        ]
        usage = sum((reply.usage for reply in mapped), Usage())
        if not good:
            why = bad[0] if bad else "every reply was empty"
            return failed(f"all {len(items)} items failed; {why}")
        reduced = await self._reduced(good, reduce_prompt, model, caller)
        error = reduced.error
        text = reduced.text
        if bad and reduced.ok:
            error = f"{len(bad)} of {len(items)} items failed; {bad[0]}"
            text = f"Error: {error}\n\nFrom the other items:\n{text}"
        return LeafReply(
            text,
            error=error,
            truncated=reduced.truncated or any(reply.truncated for reply in mapped),
            usage=usage + reduced.usage,
            model=reduced.model,
        )

    async def _reduced(
        self,
        partials: Sequence[tuple[str, str]],
        prompt: str,
        model: PricedModel,
        caller: Caller,
    ) -> LeafReply:
        """Reduce partial answers, in levels where they do not fit one prompt together."""
        usage, cut = Usage(), False
        try:
            room = self._reader.room_tokens(model, prompt)
        except Refused as refused:
            return failed(str(refused))
        while True:
            groups, shortened = _grouped(partials, room)
            if 1 < len(groups) == len(partials):
                return failed(f"no two partial answers fit the window of {model.name} together")
            cut = cut or shortened
            replies = await self._each_reduced(groups, prompt, model, caller)
            usage = sum((reply.usage for reply in replies), usage)
            cut = cut or any(reply.truncated for reply in replies)
            bad = next((reply for reply in replies if not reply.ok), None)
            if bad is not None or len(replies) == 1:
                last = bad or replies[0]
                return LeafReply(
                    last.text, error=last.error, truncated=cut, usage=usage, model=last.model
                )
            partials = _as_partials(replies)

    async def _each_reduced(
        self,
        groups: Iterable[Sequence[tuple[str, str]]],
        prompt: str,
        model: PricedModel,
        caller: Caller,
    ) -> Sequence[LeafReply]:
        return await _gathered(
            self._subcalls.ask(model, [Message("user", _reduction(each, prompt))], caller=caller)
            for each in groups
        )


def _as_partials(replies: Iterable[LeafReply]) -> list[tuple[str, str]]:
    """Return the answers of one level of a reduction, with their labels, for the next."""
    return [(f"group {n}", reply.text) for n, reply in enumerate(replies, 1)]


def _grouped(
    partials: Sequence[tuple[str, str]], room: int
) -> tuple[list[list[tuple[str, str]]], bool]:
    """Return the partial answers in groups that each fit, and whether one had to be cut."""
    groups: list[list[tuple[str, str]]] = [[]]
    used, cut = 0, False
    most = max(int(room * PARTIAL_SHARE), 16)
    for label, text in partials:
        fitting = split(text, budget_tokens=most)
        if len(fitting) > 1:
            text, cut = fitting[0].text, True
        tokens = count_tokens(_labelled(label, text)) + 1
        if groups[-1] and used + tokens > room:
            groups.append([])
            used = 0
        groups[-1].append((label, text))
        used += tokens
    return groups, cut


def _labelled(label: str, text: str) -> str:
    return f"[{label}]\n{text}\n\n"


def _reduction(group: Iterable[tuple[str, str]], prompt: str) -> str:
    shown = "".join(_labelled(label, text) for label, text in group)
    return f"Below are partial answers, each from a part of the material.\n\n{shown}{prompt}"


async def _gathered(waiting: Iterable[Awaitable[LeafReply]]) -> list[LeafReply]:
    return list(await asyncio.gather(*waiting))


def _checked_prompt(prompt: Any) -> str:
    if not isinstance(prompt, str):
        raise Refused(f"a prompt is a str, not {type(prompt).__name__}")
    if not prompt.strip():
        raise Refused("the prompt is empty; nothing was sent")
    return prompt

"""`retrieve`: search, read what was found, answer; and search again where the model asks for it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from rlm_rag.engine.calls import PricedModel
from rlm_rag.engine.coverage import Coverage
from rlm_rag.engine.identifiers import NAME, named_in
from rlm_rag.engine.named_files import globs_named
from rlm_rag.engine.services import Services
from rlm_rag.engine.strategies.answering import Prepared
from rlm_rag.engine.strategies.passages import Passages
from rlm_rag.engine.view import View

MOST_TOKENS = 12_000
"""Passages shown at once: some 24 windows, beyond which a reader gains little and pays more."""
SMALL_TOKENS = 1_600
"""Three windows, for a small model: it reads 30 to 60 tokens a second on two cores, and what is
beside the point misleads it."""

FAILED = "a search failed, so that nothing can be said of what the corpus does not hold"

WINDOW_SHARE = 0.5
SEARCHED_WINDOWS = 24
_AROUND_LINES = 8
_DEFINITION_LINES = 30

Globs = Sequence[str | None]
EVERYWHERE: Globs = (None,)

_NUMBERED = re.compile(r"^(\d+): ", re.MULTILINE)


class Retrieve:
    """Gathers passages for a question by the services of one run."""

    def __init__(
        self,
        *,
        question: str,
        view: View,
        services: Services,
        coverage: Coverage,
        root: PricedModel,
        most_tokens: int = MOST_TOKENS,
    ) -> None:
        self._question = question
        self._has_failed = False
        self._view = view
        self._services = services
        self._coverage = coverage
        window = root.facts.assumed_window
        self._budget_tokens = min(most_tokens, int(window * WINDOW_SHARE))

    async def first(self) -> Prepared:
        """Return the passages for the question: definitions it names, exact words, then ranked.

        Where it names files these come first, in the same order, with what they say of names that
        they do not define; what none of them has is looked for elsewhere.
        """
        passages = Passages(self._view, self._coverage)
        globs = await globs_named(self._view, self._question)
        names, quoted = named_in(self._question)
        undefined = [each for each in names if not await self._defined(passages, each, globs)]
        for name in undefined:
            await self._said(passages, name, globs)
        unsaid = [each for each in quoted if not await self._said(passages, each, globs)]
        for glob in globs:
            await self._search(passages, self._question, glob)
        for name in undefined:
            await self._defined(passages, name)
        for words in unsaid:
            await self._said(passages, words)
        await self._search(passages, self._question)
        shown = await passages.shown(self._budget_tokens)
        notes = () if shown else ("the search found nothing for the words of the question",)
        return Prepared(
            f"{shown or self._nothing('(Nothing was found.)')}\n\nQuestion: {self._question}",
            shown,
            self._failures() or notes,
        )

    async def again(self, words: str) -> Prepared:
        """Return the passages for other words, those of a search that the model asked for."""
        passages = Passages(self._view, self._coverage)
        await self._search(passages, words)
        if NAME.fullmatch(words):
            await self._defined(passages, words)
        shown = await passages.shown(self._budget_tokens // 2)
        return Prepared(
            f"Found for {words!r}:\n\n{shown or self._nothing('(Nothing.)')}\n\n"
            f"Question: {self._question}",
            shown,
            self._failures(),
        )

    def _nothing(self, said: str) -> str:
        return f"({FAILED})" if self._has_failed else said

    def _failures(self) -> tuple[str, ...]:
        return (FAILED,) if self._has_failed else ()

    async def _search(self, passages: Passages, query: str, glob: str | None = None) -> None:
        found = await self._services.looked_up(
            "search", query=query, k=SEARCHED_WINDOWS, path_glob=glob
        )
        if found is None:
            self._has_failed = True
            return
        for hit in found:
            passages.want(hit["path"], hit["line"], hit["end_line"], _core(hit))

    async def _defined(self, passages: Passages, name: str, globs: Globs = EVERYWHERE) -> bool:
        """Want the definitions of a name; return whether there are any."""
        last = name.rpartition(".")[2]
        has_any = False
        for glob in globs:
            found = await self._services.looked_up("symbols", name=last, path_glob=glob)
            for symbol in (found or ())[:4]:
                line = symbol["line"]
                passages.want(symbol["path"], line - 2, line + _DEFINITION_LINES)
                has_any = True
        return has_any

    async def _said(self, passages: Passages, words: str, globs: Globs = EVERYWHERE) -> bool:
        """Want the lines around some words; return whether they stand anywhere."""
        has_any = False
        for glob in globs:
            found = await self._services.looked_up(
                "grep_context", pattern=re.escape(words), k=5, path_glob=glob
            )
            for hit in (found or {}).get("hits", ()):
                line = hit["line"]
                passages.want(hit["path"], line - _AROUND_LINES, line + _AROUND_LINES)
                has_any = True
        return has_any


def _core(hit: Mapping[str, Any]) -> tuple[int, int] | None:
    """Return the lines that a hit's snippet shows, with a little around them."""
    numbers = [int(found[1]) for found in _NUMBERED.finditer(hit["snippet"])]
    shown = [number for number in numbers if hit["line"] <= number <= hit["end_line"]]
    if not shown:
        return None
    return max(min(shown) - 2, hit["line"]), min(max(shown) + 2, hit["end_line"])

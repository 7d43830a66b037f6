"""The map of definitions that a root model sees before its first turn."""

from __future__ import annotations

from rlm_rag.engine.services import Services
from rlm_rag.engine.view import View

LEAST_DOCUMENTS = 20
"""Of fewer the tree in the figures tells as much."""

MOST_BYTES = 3 << 20
"""Parsing more takes longer than a first turn may wait; `repo_map()` then does it on demand."""

BUDGET_CHARS = 1_200


async def first_map(services: Services, view: View) -> str:
    """Return signatures of what the rest leans on most, empty where there is nothing to show.

    Documents without definitions have none.
    """
    if len(view) < LEAST_DOCUMENTS or view.total_bytes > MOST_BYTES:
        return ""
    shown = await services.looked_up("repo_map", budget_chars=BUDGET_CHARS)
    return shown if isinstance(shown, str) and ":" in shown else ""

"""The map of definitions that a root model sees before its first turn."""

from __future__ import annotations

from rlm_rag.engine.services import Services
from rlm_rag.engine.view import View
from rlm_rag.sandbox.session import ServiceCall, ServiceError

LEAST_DOCUMENTS = 20
"""Of fewer the tree in the figures tells as much."""

MOST_BYTES = 3 << 20
"""Parsing more takes longer than a first turn may wait; `repo_map()` then does it on demand."""

BUDGET_CHARS = 1_200


async def first_map(services: Services, view: View) -> str:
    """Return signatures of what the rest leans on most, empty where there is nothing to show.

    It is asked for like a look-up of a block, numbered 0, so that the trace has it.
    """
    if len(view) < LEAST_DOCUMENTS or view.total_bytes > MOST_BYTES:
        return ""
    try:
        reply = await services.serve(
            ServiceCall(0, 0, "repo_map", (), {"budget_chars": BUDGET_CHARS})
        )
    except ServiceError:
        # Documents without definitions have no map.
        return ""
    return reply.value if isinstance(reply.value, str) and ":" in reply.value else ""

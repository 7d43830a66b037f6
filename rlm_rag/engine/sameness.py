"""Whether what a run does again is what its trace says it did."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from rlm_rag.errors import DivergedError
from rlm_rag.trace.events import BlockOutput

# What differs from process to process: addresses, clocks, durations. A computed fraction passes
# for one of these, and so is not compared.
_VOLATILE = re.compile(
    r"0x[0-9a-f]{4,}|\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\d\d:\d\d:\d\d|\d+\.\d+(?:e[-+]?\d+)?|\d{10,}"
)
# Limits, and what is left of them, may be higher now.
_STATUS = re.compile(r"(?m)^This is turn \d.*$")
_FIGURES = re.compile(r"\d[\d,.]*")
# How far a block came before it was ended depends on the clock.
_CUT_SHORT = re.compile(r"(?m)^(?:Timeout|WorkerLost): ")
_SHOWN_CHARS = 120


def asked(arguments: Mapping[str, Any]) -> str:
    """Return a digest of a call's arguments."""
    text = json.dumps(arguments, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:24]


def said(messages: Sequence[Mapping[str, str]]) -> str:
    """Return what the root model was told, as it is compared."""
    return without_figures("\n\n".join(f"{m['role']}: {m['content']}" for m in messages))


def without_figures(text: str) -> str:
    """Return a text of a prompt as it is compared."""
    return _FIGURES.sub("#", _STATUS.sub("", text))


def check_same(what: str, now: str, then: str) -> None:
    """Raise if a text differs from the recorded one.

    Raises:
        DivergedError: it does; the message shows where.
    """
    if now == then:
        return
    differing = (at for at, (a, b) in enumerate(zip(now, then, strict=False)) if a != b)
    at = next(differing, min(len(now), len(then)))
    begin = max(0, at - 20)
    raise DivergedError(
        f"the run differs from its trace: {what} has {now[begin : at + _SHOWN_CHARS]!r}, "
        f"recorded was {then[begin : at + _SHOWN_CHARS]!r}",
        hint="it needs the same corpus and the same version of rlm-rag; ask again to start anew",
    )


def check_output(now: BlockOutput, then: BlockOutput) -> None:
    """Raise if a block that ran again printed something else, but for clocks and addresses.

    Raises:
        DivergedError: it did.
    """
    if was_cut_short(then):
        return
    check_same(f"the output of block {now.block} of {now.run}", _shown(now), _shown(then))


def was_cut_short(output: BlockOutput) -> bool:
    """Whether a block was ended from outside, so that it may come to another end again."""
    return output.restarted or _CUT_SHORT.search(output.error or "") is not None


def _shown(output: BlockOutput) -> str:
    parts = (output.stdout, output.stderr, output.value or "", output.error or "")
    return _VOLATILE.sub("#", "\n".join(parts))

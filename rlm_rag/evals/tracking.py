"""RULER's variable tracking: which variables hold a value, through a chain of assignments."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise, repeat
from string import ascii_uppercase

from rlm_rag.evals.generated import GeneratedTask, Made, rng_of
from rlm_rag.evals.lengths import fitted
from rlm_rag.evals.needles import NOISE, hide
from rlm_rag.evals.scorers.judge import WANTS_ALL
from rlm_rag.evals.scorers.texts import ruler_all
from rlm_rag.evals.words import number
from rlm_rag.models.tokens import count_tokens

# RULER's `vt`: one chain of four hops (scripts/synthetic.yaml), values of five digits.
HOPS = 4
_NAME_LETTERS = 5
_VALUE_DIGITS = 5


def tracking_task(name: str) -> GeneratedTask:
    """Return the task: every variable of the chain has to be named."""
    return GeneratedTask(name=name, scorer=ruler_all, make=_make)


def _make(key: str, tokens: int) -> Made:
    rng = rng_of(key, "chain")
    names: dict[str, None] = {}
    while len(names) < HOPS + 1:
        names["".join(rng.choices(ascii_uppercase, k=_NAME_LETTERS))] = None
    chain, value = list(names), number(rng, _VALUE_DIGITS)
    lines = [f"VAR {chain[0]} = {value}"]
    lines += [f"VAR {name} = VAR {before}" for before, name in pairwise(chain)]
    return Made(
        question=(
            f"Which variables are given the value {value} in the text, directly or through other "
            "variables? Name every one."
        ),
        gold=chain,
        text=partial(_text, key, tokens, lines),
        meta={"hops": HOPS, WANTS_ALL: True},
    )


def _text(key: str, tokens: int, lines: Sequence[str]) -> str:
    hay = fitted(repeat(NOISE), tokens - count_tokens("\n".join(lines)))
    return "\n".join(hide(hay, lines, rng_of(key, "places")))

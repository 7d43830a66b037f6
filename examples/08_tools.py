"""Let blocks call functions of yours: JSON goes in and out, the function runs on your side."""

from pathlib import Path

import rlm_rag

HERE = Path(__file__).parent
WEIGHTS_GRAMS = {"4711": 900, "4712": 2500}


def weight_grams(number: str) -> int:
    """Weight of a parcel, by its number."""
    return WEIGHTS_GRAMS[number]


with rlm_rag.Repl(HERE / "parcel", tools=[weight_grams]) as repl:
    print(repl.run("sum(weight_grams(n) for n in ('4711', '4712'))").value)
    # An exception becomes an error reply, which is never mistaken for data.
    print(repl.run("reply = weight_grams('9999'); (reply.ok, reply.error)").value)

# `RLM(model=..., tools=[weight_grams])` offers the same to a model, which is told the
# function's signature and the first line of its documentation.

# Prints:
# 3400
# (False, "weight_grams: KeyError: '9999'")

"""Give a run a limit, see which one ended it, and go on from there without paying twice."""

import tempfile
from pathlib import Path

import rlm_rag
from rlm_rag import Limits

HERE = Path(__file__).parent
QUESTION = "What does express delivery cost?"

with tempfile.TemporaryDirectory() as folder:
    first = rlm_rag.ask(
        HERE / "parcel", QUESTION, model="offline", limits=Limits(iterations=1), trace=Path(folder)
    )
    print(first.stop_reason, "-", first.limit_detail)
    # What it had found by then is the answer all the same.
    print(first.citations[0].path)

    rest = rlm_rag.resume(Path(first.trace), raised={"iterations": 10})
    print(rest.stop_reason, "after", rest.iterations, "turns and", rest.usage.calls, "calls")

# Prints:
# iterations - the limit of 1 turn was reached
# parcel/rates.py
# answered after 3 turns and 4 calls

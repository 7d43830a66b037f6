"""Read a codebase by its definitions: outlines, where a name is defined and used, line ranges."""

from pathlib import Path

import rlm_rag

HERE = Path(__file__).parent

with rlm_rag.load(HERE / "parcel") as corpus:
    print(corpus.outline("parcel/tracking.py", budget_chars=180))
    for symbol in corpus.symbols("backoff_delay", references=True):
        print(f"{symbol.kind}: {symbol.path}:{symbol.line} {symbol.scope}".rstrip())
    print(corpus.read("parcel/retry.py", 10, 13))
    print(corpus.repo_map(budget_chars=120))

# Prints:
# 5: STATES = ("announced", "collected", "in transit", "delivered", "returned")
# 8: class Tracker:
# 9:   def __init__(self, carrier):
# 12:   def state(self, number: str) -> str:
# function: parcel/retry.py:10
# reference: parcel/retry.py:23 call_with_retry
# 10: def backoff_delay(attempt: int) -> float:
# 11:     """Seconds to wait before `attempt`: doubles each time, with jitter, up to a ceiling."""
# 12:     delay = min(LONGEST_DELAY_SECONDS, FIRST_DELAY_SECONDS * 2 ** (attempt - 1))
# 13:     return delay * random.uniform(0.5, 1.0)
# parcel/retry.py:
#   10: def backoff_delay(attempt: int) -> float:
#   16: def call_with_retry(send, attempts: int = 5):

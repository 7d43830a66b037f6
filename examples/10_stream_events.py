"""Follow a run while it happens: an event for each turn, call, block and look-up."""

from collections import Counter
from pathlib import Path

from rlm_rag import RLM, Answer

HERE = Path(__file__).parent

seen: Counter[str] = Counter()
for event in RLM("offline").stream(HERE / "parcel", "What does express delivery cost?"):
    if isinstance(event, Answer):
        print(event.stop_reason, event.citations[0].path)
    else:
        seen[type(event).__name__] += 1
print({name: seen[name] for name in ("TurnStarted", "CallSent", "BlockStarted")})

# Prints:
# answered parcel/rates.py
# {'TurnStarted': 3, 'CallSent': 3, 'BlockStarted': 3}

"""Ask a question of a folder, and see which lines the answer stands on."""

from pathlib import Path

import rlm_rag

HERE = Path(__file__).parent

# `offline` is the built-in policy: it searches, reads and quotes, and needs no key.
answer = rlm_rag.ask(HERE / "parcel", "When does a parcel count as lost?", model="offline")

print(answer.text.partition("\n")[0])
print("found:", answer.found, "| stopped:", answer.stop_reason)
for citation in answer.citations:
    print(f"{citation.path}:{citation.line}-{citation.end_line} {citation.status}")

# Prints:
# No language model was used: these are the passages that match the question best, found by search.
# found: True | stopped: answered
# docs/returns.md:3-8 verified

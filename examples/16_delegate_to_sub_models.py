"""Have sub-models read files whole: one call of a block, one reply a file."""

import json
import tempfile
from pathlib import Path

import rlm_rag

HERE = Path(__file__).parent
BLOCK = """
replies = map_files(["parcel/*.py"], "Does this file talk to a carrier? Answer yes or no.")
for path in sorted(replies):
    print(path, replies[path], replies[path].ok)
"""

with tempfile.TemporaryDirectory() as folder:
    # Stands in for the sub-model; `sub_model="openai/gpt-5-nano"` would ask a real one.
    script = Path(folder) / "replies.json"
    script.write_text(json.dumps(["yes", "yes", "yes"]))
    with rlm_rag.Repl(HERE / "parcel", sub_model=f"scripted:{script}") as repl:
        print(repl.run(BLOCK).stdout, end="")
        print(repl.usage.calls, "calls")

# Prints:
# parcel/rates.py yes True
# parcel/retry.py yes True
# parcel/tracking.py yes True
# 3 calls

"""Ask for JSON of a schema; what does not fit goes back to the model before you see it."""

import json
import tempfile
from pathlib import Path

import rlm_rag

HERE = Path(__file__).parent
SCHEMA = {
    "type": "object",
    "properties": {"days": {"type": "integer"}, "euros": {"type": "number"}},
    "required": ["days", "euros"],
}
# Stands in for a language model: the first reply does not fit the schema, the second does.
REPLIES = ['{"days": "fourteen", "euros": 500}', '{"days": 14, "euros": 500}']

with tempfile.TemporaryDirectory() as folder:
    script = Path(folder) / "replies.json"
    script.write_text(json.dumps(REPLIES))
    answer = rlm_rag.ask(
        HERE / "parcel",
        "After how many days is a parcel lost, and what is paid?",
        model=f"scripted:{script}",
        strategy="direct",
        schema=SCHEMA,
    )
print(answer.fits, answer.data, f"after {answer.usage.calls} calls")

# Prints:
# True {'days': 14, 'euros': 500} after 2 calls

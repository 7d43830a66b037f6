"""Runs in an interpreter that has rlms: asks it one question, and prints the answer as JSON.

The argument is a file of JSON: `context`, `question`, `api_base`, `seconds`, `temperature`.
"""

import json
import os
import sys
from pathlib import Path

from rlm import RLM
from rlm.utils.exceptions import TimeoutExceededError


def main(file: str) -> None:
    asked = json.loads(Path(file).read_text("utf-8"))
    # What its code prints must not be taken for the answer.
    out, sys.stdout = os.fdopen(os.dup(1), "w"), sys.stderr
    os.dup2(2, 1)
    rlm = RLM(
        backend="openai",
        backend_kwargs={
            "model_name": "local",
            "api_key": "no-key",
            "base_url": asked["api_base"],
        },
        max_timeout=asked["seconds"],
        sampling_args={"temperature": asked["temperature"]},
    )
    stop_reason = "answered"
    try:
        text = rlm.completion(asked["context"], root_prompt=asked["question"]).response
    except TimeoutExceededError as error:
        text, stop_reason = error.partial_answer, "timeout"
    print(json.dumps({"text": text, "stop_reason": stop_reason}), file=out, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

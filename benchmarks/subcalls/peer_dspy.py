"""Runs in an interpreter that has dspy: one block of its RLM sends a batch over HTTP.

Prints the seconds that the batch took inside the block. Arguments: the root model's address and
the sub-model's, and 1, since it has no children. Its local interpreter is used, which starts no
Deno.
"""

import sys

import dspy

BLOCK = """[[ ## reasoning ## ]]
All at once.

[[ ## code ## ]]
```python
import time
started = time.perf_counter()
replies = llm_query_batched([f"Question {{number}}" for number in range({count})])
taken = time.perf_counter() - started
assert replies == ["done"] * {count}, replies[:3]
SUBMIT(answer=str(taken))
```

[[ ## completed ## ]]"""


def main(root_base: str, sub_base: str, _: str) -> None:
    """Ask once to warm up, then print what the second took."""
    options = {"api_key": "no-key", "cache": False}
    dspy.configure(lm=dspy.LM("openai/m", api_base=root_base, **options))
    for counted in (False, True):
        rlm = dspy.RLM(
            "context, query -> answer",
            interpreter_factory=dspy.LocalInterpreter,
            max_llm_calls=100_000,
            sub_lm=dspy.LM("openai/leaf", api_base=sub_base, **options),
        )
        taken = float(rlm(context="# A", query="What do the parts say?").answer)
        if counted:
            print(taken)


if __name__ == "__main__":
    main(*sys.argv[1:])

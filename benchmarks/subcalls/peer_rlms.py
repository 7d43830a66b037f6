"""Runs in an interpreter that has rlms: one block of its RLM sends a batch over HTTP.

Prints the seconds that the batch took inside the block. Arguments: the root model's address, the
sub-model's, and how deep it goes: 1 for leaf calls, 2 for children, which reply by the same block.
"""

import sys

from rlm import RLM

BLOCK = """```repl
import time
started = time.perf_counter()
replies = llm_query_batched([f"Question {{number}}" for number in range({count})])
taken = time.perf_counter() - started
assert replies == ["done"] * {count}, replies[:3]
answer["content"] = str(taken)
answer["ready"] = True
```"""

CHILDREN = """```repl
import time
if str(context) == "# A":
    started = time.perf_counter()
    replies = rlm_query_batched([f"Question {{number}}" for number in range({count})])
    taken = time.perf_counter() - started
    assert replies == ["done"] * {count}, replies[:3]
else:
    taken = "done"
answer["content"] = str(taken)
answer["ready"] = True
```"""


def main(root_base: str, sub_base: str, depth: str) -> None:
    """Ask once to warm up, then print what the second took."""
    key = {"api_key": "no-key", "model_name": "m"}
    for counted in (False, True):
        rlm = RLM(
            backend="openai",
            backend_kwargs={**key, "base_url": root_base},
            other_backends=["openai"],
            other_backend_kwargs=[{**key, "model_name": "leaf", "base_url": sub_base}],
            max_depth=int(depth),
        )
        taken = float(rlm.completion("# A", root_prompt="What do the parts say?").response)
        if counted:
            print(taken)


if __name__ == "__main__":
    main(*sys.argv[1:])

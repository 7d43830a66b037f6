"""One process that asks twice and prints, as JSON, how long each step took; see `runs`."""

from __future__ import annotations

import itertools
import json
import sys
import time
from pathlib import Path


def main(script: str, folder: str, traces: str) -> None:
    """Ask a question of `folder` with the scripted model `script`, in a process just started."""
    marks = [time.perf_counter()]
    import rlm_rag

    marks.append(time.perf_counter())
    rlm = rlm_rag.RLM(model=f"scripted:{script}", trace=Path(traces))
    with rlm_rag.load(folder) as corpus:
        marks.append(time.perf_counter())
        for _ in range(2):
            answer = rlm.ask(corpus, "What is here?")
            marks.append(time.perf_counter())
            if answer.stop_reason != "answered":
                raise RuntimeError(f"the run ended by {answer.stop_reason}: {answer.limit_detail}")
    taken = [later - earlier for earlier, later in itertools.pairwise(marks)]
    print(json.dumps(dict(zip(("import", "load", "first", "second"), taken, strict=True))))


if __name__ == "__main__":
    main(*sys.argv[1:])

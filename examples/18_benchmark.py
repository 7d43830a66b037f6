"""Run a long-context benchmark by two strategies, and read the report from Python."""

import tempfile
from pathlib import Path

from rlm_rag.evals import RunConfig, RunFolder, report_of, start

with tempfile.TemporaryDirectory() as folder:
    run = Path(folder) / "niah"
    # Haystacks are generated from the seed: nothing is downloaded. `offline` is no language
    # model; name one in `models=` to measure it.
    start(
        RunConfig(
            tasks=("ruler:niah_single_2",),
            strategies=("retrieve", "direct"),
            lengths=(4096,),
            count=2,
        ),
        run,
    )
    for cell in report_of([RunFolder.open(run)]).cells:
        print(cell.task, cell.strategy, f"{cell.score:.0%} of {cell.scored}")

# Prints:
# ruler:niah_single_2 retrieve 100% of 2
# ruler:niah_single_2 direct 100% of 2

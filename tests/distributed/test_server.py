"""How the process of a corpus in shards ends."""

from __future__ import annotations

import subprocess
from pathlib import Path

from rlm_rag.child import command, environment


def test_a_process_that_serves_does_what_it_has_to_before_it_ends(tmp_path: Path) -> None:
    told = tmp_path / "told"
    (tmp_path / "ending.py").write_text(
        "from pathlib import Path\n"
        "from rlm_rag.indexes.server import serve\n"
        "def main(told):\n"
        "    serve(lambda: None, lambda: Path(told).write_text('ended'))\n"
    )
    argv = command("ending", str(told))
    argv[3] = argv[3].replace("; from", f"; sys.path.insert(0, {str(tmp_path)!r}); from")
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, env=environment(), check=False)
    assert (done.returncode, told.read_text()) == (0, "ended")

"""Other tools' batches, each run by an interpreter that has the tool, against the same servers."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.model_server import serving

PEERS = ("rlms", "dspy")
_TEXT = r'^{name} = """(.*?)"""'
_LONGEST_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Peer:
    """One tool's batch: `seconds` runs it in a process of its own."""

    name: str
    python: Path
    root_base: str
    sub_base: str
    depth: int = 1

    def seconds(self) -> float:
        """What the batch took inside its block, after one that warmed up.

        Raises:
            RuntimeError: it failed; the message is the end of what it said.
        """
        done = subprocess.run(
            [self.python, _script(self.name), self.root_base, self.sub_base, str(self.depth)],
            capture_output=True,
            text=True,
            timeout=_LONGEST_SECONDS,
        )
        if done.returncode:
            raise RuntimeError(f"{self.name} failed: {done.stderr.strip()[-500:]}")
        return float(done.stdout)


@contextmanager
def peer(
    name: str, python: Path, *, count: int, sub_base: str, of_children: bool = False
) -> Iterator[Peer]:
    """Give a peer whose root model sends `count` prompts to the model at `sub_base`.

    With `of_children` they go to children, which the root's own model plays.
    """
    text = _TEXT.format(name="CHILDREN" if of_children else "BLOCK")
    found = re.search(text, _script(name).read_text("utf-8"), re.DOTALL | re.MULTILINE)
    assert found is not None
    with serving("openai", 0, found[1].format(count=count)) as root_base:
        yield Peer(name, python, root_base, sub_base, 2 if of_children else 1)


def installed(python: Path) -> tuple[str, ...]:
    """The peers that an interpreter can import."""
    modules = {"rlms": "rlm", "dspy": "dspy"}
    return tuple(
        name
        for name in PEERS
        if subprocess.run([python, "-c", f"import {modules[name]}"], capture_output=True).returncode
        == 0
    )


def _script(name: str) -> Path:
    return Path(__file__).with_name(f"peer_{name}.py")

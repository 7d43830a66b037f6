"""A logger as `rlms` has it: the trajectory of a completion in memory, and in a file if asked."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from rlm_rag.compat.shapes import RLMIteration, RLMMetadata
from rlm_rag.trace.store import new_run_id


class Logger(Protocol):
    """What `RLM` asks of a logger; that of `rlms` will do."""

    def log_metadata(self, metadata: Any) -> None: ...

    def log(self, iteration: Any) -> None: ...

    def clear_iterations(self) -> None: ...

    def get_trajectory(self) -> dict[str, Any] | None: ...


class RLMLogger:
    """Keeps the metadata and the iterations of the latest completion.

    With `log_dir`, each is also a line of JSON in a file there, whose path is `log_file_path`.
    """

    def __init__(self, log_dir: str | None = None, file_name: str = "rlm") -> None:
        self.log_dir = log_dir
        self.log_file_path: str | None = None
        if log_dir is not None:
            folder = Path(log_dir)
            folder.mkdir(parents=True, exist_ok=True)
            self.log_file_path = str(folder / f"{file_name}_{new_run_id()}.jsonl")
        self._metadata: dict[str, Any] | None = None
        self._iterations: list[dict[str, Any]] = []

    def log_metadata(self, metadata: RLMMetadata) -> None:
        """Keep how the RLM was made; only the first counts."""
        if self._metadata is None:
            self._metadata = metadata.to_dict()
            self._write({"type": "metadata", "timestamp": _now(), **self._metadata})

    def log(self, iteration: RLMIteration) -> None:
        """Keep an iteration."""
        entry = {
            "type": "iteration",
            "iteration": len(self._iterations) + 1,
            "timestamp": _now(),
            **iteration.to_dict(),
        }
        self._iterations.append(entry)
        self._write(entry)

    def clear_iterations(self) -> None:
        """Forget the iterations, before another completion."""
        self._iterations = []

    def get_trajectory(self) -> dict[str, Any] | None:
        """Return `run_metadata` and `iterations`, None before any metadata."""
        if self._metadata is None:
            return None
        return {"run_metadata": self._metadata, "iterations": list(self._iterations)}

    @property
    def iteration_count(self) -> int:
        return len(self._iterations)

    def _write(self, entry: dict[str, Any]) -> None:
        if self.log_file_path is not None:
            with Path(self.log_file_path).open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")


def _now() -> str:
    return datetime.now().astimezone().isoformat()

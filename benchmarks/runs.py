"""What a whole run costs besides the model's time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import rlm_rag
from benchmarks.cold_start import command_line
from benchmarks.corpora import documents
from benchmarks.figures import Figure, Section, interleaved
from benchmarks.plan import MB, Plan, size_name

_ANSWER = "```repl\nanswer['content'] = 'A text.'\nanswer['ready'] = True\n```"
_BARE = "python -c pass"
_SEARCH = "```repl\nprint(search('retry backoff')[0]['path'])\n```"
_CORPUS_BYTES = MB


def measure(plan: Plan) -> tuple[Section, ...]:
    """Time `ask` with a model that replies at once: in a warm process and in a new one.

    The trace is written, and synced, as in any run.
    """
    with tempfile.TemporaryDirectory(prefix="rlm-rag-benchmark-") as name:
        folder = Path(name)
        source = folder / "source"
        for path, content in documents(_CORPUS_BYTES):
            (source / path).parent.mkdir(parents=True, exist_ok=True)
            (source / path).write_text(content, "utf-8")
        scripts = {
            "one turn": _script(folder / "one.json", [_ANSWER]),
            "two turns and a search": _script(folder / "two.json", [_SEARCH, _ANSWER]),
        }
        figures = (*_warm(plan, folder, scripts), *_cold(plan, folder, scripts["one turn"]))
    title = f"Fixed cost of a run, model replying at once, {size_name(_CORPUS_BYTES)} corpus"
    return (Section(title, figures),)


def _script(path: Path, replies: list[str]) -> Path:
    path.write_text(json.dumps(replies), "utf-8")
    return path


def _warm(plan: Plan, folder: Path, scripts: Mapping[str, Path]) -> list[Figure]:
    with rlm_rag.load(str(folder / "source")) as corpus:
        # The index is built once for a corpus, and measured elsewhere.
        corpus.search("retry")
        models = {
            turns: rlm_rag.RLM(model=f"scripted:{script}", trace=folder / "traces")
            for turns, script in scripts.items()
        }
        taken = interleaved(
            plan.runs,
            {turns: partial(_ask_milliseconds, rlm, corpus) for turns, rlm in models.items()},
        )
    return [
        Figure(
            name=f"ask, {turns}",
            unit="ms",
            values=tuple(values),
            base=None if turns == "one turn" else "ask, one turn",
            at_most=100 if turns == "one turn" else None,
        )
        for turns, values in taken.items()
    ]


def _ask_milliseconds(rlm: rlm_rag.RLM, corpus: rlm_rag.SearchableCorpus) -> float:
    started = time.perf_counter()
    answer = rlm.ask(corpus, "What is here?")
    if answer.stop_reason != "answered":
        raise RuntimeError(f"the run ended by {answer.stop_reason}: {answer.limit_detail}")
    return (time.perf_counter() - started) * 1000


def _cold(plan: Plan, folder: Path, script: Path) -> list[Figure]:
    """Time new processes: each step of a run inside one, and the whole command."""
    environment = os.environ | {"XDG_STATE_HOME": str(folder / "state")}
    steps: dict[str, list[float]] = {}
    ask = [*command_line(), "ask", str(folder / "source"), "What is here?"]

    def whole_command() -> float:
        return _process_milliseconds([*ask, "--model", f"scripted:{script}"], environment)[0]

    def inside() -> float:
        argv = [sys.executable, "-m", "benchmarks.one_run"]
        argv += [str(script), str(folder / "source"), str(folder / "traces")]
        total, printed = _process_milliseconds(argv, environment)
        for step, seconds in json.loads(printed).items():
            steps.setdefault(step, []).append(seconds * 1000)
        return total

    actions = {
        _BARE: lambda: _process_milliseconds([sys.executable, "-c", "pass"], environment)[0],
        "inside": inside,
        "rlm-rag ask, whole command": whole_command,
    }
    taken = interleaved(plan.runs, actions)
    rows = {
        _BARE: taken[_BARE],
        "new process: import rlm_rag": steps["import"],
        "new process: load, imports included": steps["load"],
        "new process: first ask, self-test of the sandbox included": steps["first"],
        "new process: second ask": steps["second"],
        "rlm-rag ask, whole command": taken["rlm-rag ask, whole command"],
    }
    return [
        Figure(
            name=name,
            unit="ms",
            # The steps of the warming round were collected too.
            values=tuple(values[-plan.runs :]),
            base=_BARE if name.startswith("rlm-rag") else None,
        )
        for name, values in rows.items()
    ]


def _process_milliseconds(argv: list[str], environment: dict[str, str]) -> tuple[float, str]:
    started = time.perf_counter()
    done = subprocess.run(
        argv, stdin=subprocess.DEVNULL, capture_output=True, env=environment, text=True, check=True
    )
    return (time.perf_counter() - started) * 1000, done.stdout

"""Many leaf calls of one batch: how near they come to the time that the model itself takes."""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import rlm_rag
from benchmarks.corpora import documents
from benchmarks.figures import Figure, Section, interleaved
from benchmarks.model_server import serving
from benchmarks.plan import KB, Plan
from benchmarks.slow_model import PREFIX, registered
from rlm_rag.trace.events import BlockOutput, Event

DELAY_SECONDS = 0.05
WIDTH = 16
_IDEAL = "the model's time alone"
_BATCH = """```repl
replies = llm_query_batched([f"Question {{number}}" for number in range({count})])
assert all(reply.ok for reply in replies), [reply.error for reply in replies if not reply.ok][0]
answer["content"] = "done"
answer["ready"] = True
```"""
_KEY_VARIABLE = "ANTHROPIC_API_KEY"
LITELLM_MODEL = "anthropic/claude-sonnet-4-5"


def measure(plan: Plan) -> tuple[Section, ...]:
    """Time one block that sends a batch to a sub-model, as the host saw it, trace included."""
    ideal = math.ceil(plan.leaf_calls / WIDTH) * DELAY_SECONDS
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rlm-rag-benchmark-")))
        corpus = stack.enter_context(
            rlm_rag.load([{"path": p, "content": c} for p, c in documents(KB)])
        )
        script = folder / "script.json"
        script.write_text(json.dumps([_BATCH.format(count=plan.leaf_calls)]), "utf-8")
        actions: dict[str, Callable[[], float]] = {}
        for name, sub_model, api_base in _ways(stack, plan):
            batch = _Batch(corpus, script, folder / "traces", sub_model, api_base)
            actions[name] = batch.seconds
        taken = interleaved(plan.leaf_rounds, actions)
    targets = {"in process": 0.70, "HTTP, direct": 1.0, "HTTP, litellm": 1.6}
    figures = [
        Figure(
            name=name,
            unit="s",
            values=tuple(values),
            base=_IDEAL,
            # The targets were set for as many calls as a full run sends.
            at_most=targets[name] if plan.leaf_calls == Plan().leaf_calls else None,
        )
        for name, values in taken.items()
    ]
    title = f"{plan.leaf_calls} leaf calls of {DELAY_SECONDS * 1000:g} ms, {WIDTH} wide"
    return (Section(title, (Figure(name=_IDEAL, unit="s", values=(ideal,)), *figures)),)


def _ways(stack: ExitStack, plan: Plan) -> Iterator[tuple[str, str, str | None]]:
    """Yield what each way is called, its sub-model and its address."""
    stack.enter_context(registered())
    yield "in process", f"{PREFIX}:{DELAY_SECONDS}", None
    yield "HTTP, direct", "leaf", stack.enter_context(serving("openai", DELAY_SECONDS))
    if plan.with_litellm:
        stack.enter_context(dummy_key())
        address = stack.enter_context(serving("anthropic", DELAY_SECONDS))
        yield "HTTP, litellm", LITELLM_MODEL, address


@contextmanager
def dummy_key() -> Iterator[None]:
    """Set a key that means nothing, and put back what was there."""
    earlier = os.environ.get(_KEY_VARIABLE)
    os.environ[_KEY_VARIABLE] = "no-key"
    try:
        yield
    finally:
        if earlier is None:
            del os.environ[_KEY_VARIABLE]
        else:
            os.environ[_KEY_VARIABLE] = earlier


class _Batch:
    """A run whose one block sends the batch."""

    def __init__(
        self,
        corpus: rlm_rag.SearchableCorpus,
        script: Path,
        traces: Path,
        sub_model: str,
        api_base: str | None,
    ) -> None:
        self._corpus = corpus
        self._block: BlockOutput | None = None
        self._rlm = rlm_rag.RLM(
            model=f"scripted:{script}",
            sub_model=sub_model,
            api_base=api_base,
            limits=rlm_rag.Limits(calls=None, concurrency=WIDTH, iterations=1),
            trace=traces,
            on_event=self._notice,
        )

    def seconds(self) -> float:
        self._rlm.ask(self._corpus, "What do the parts say?")
        if self._block is None or self._block.error is not None:
            raise RuntimeError(self._block.error if self._block else "no block ran")
        return self._block.seconds

    def _notice(self, event: Event) -> None:
        if isinstance(event, BlockOutput):
            self._block = event

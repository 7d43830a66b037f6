"""A model as judge of answers: asked within a run's money, its prompt and reply kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from rlm_rag.engine.admission import LimitReached
from rlm_rag.engine.budget import Budget
from rlm_rag.engine.caller import Caller
from rlm_rag.engine.calls import ModelCalls
from rlm_rag.engine.limits import Limits
from rlm_rag.engine.lineup import ModelNames, ModelSettings, open_lineup
from rlm_rag.engine.past import Past
from rlm_rag.engine.pool import Share
from rlm_rag.errors import ModelError, ModelKeyError, ModelNotFoundError
from rlm_rag.evals.base import Score
from rlm_rag.evals.config import Models
from rlm_rag.evals.record import BUDGET, JUDGE, Judgement, Record
from rlm_rag.evals.scorers.judge import judge_prompt, judged
from rlm_rag.models.base import Message
from rlm_rag.trace.recorder import Recorder
from rlm_rag.trace.store import new_run_id

REPLY_TOKENS = 1_000
"""A sentence and a verdict, with room for a model that reasons before it."""


class Judge:
    """Asks `model`, at the address and price of the run's models, what an answer is worth."""

    def __init__(
        self,
        model: str,
        models: Models,
        *,
        share: Callable[[], Share],
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._names = ModelNames(model=model)
        self._settings = ModelSettings(
            api_base=models.api_base, headers=headers or {}, price=models.price, temperature=0.0
        )
        self._share = share

    async def score(self, record: Record, rule: Score, *, traces: Path | None) -> Record:
        """Return the record with the judge's score; `rule` is what the task's own rule gave.

        Where the judge cannot be asked that is the record's error, and its answer stays.

        Raises:
            ModelKeyError, ModelNotFoundError: the judge can be asked of no sample.
        """
        prompt = judge_prompt(record.response, record.sample)
        try:
            judgement = await self._asked(prompt, traces)
        except (ModelKeyError, ModelNotFoundError):
            raise
        except ModelError as error:
            return record.failed(JUDGE, f"{error.kind}: {error.message}")
        except LimitReached as refusal:
            return record.failed(BUDGET, refusal.detail)
        scored = record.scored(judged(judgement.reply, rule))
        usd = None if None in (record.usd, judgement.usd) else _sum(record.usd, judgement.usd)
        return replace(scored, judge=judgement, usd=usd)

    async def _asked(self, prompt: str, traces: Path | None) -> Judgement:
        limits, run_id = Limits(), new_run_id()
        share = self._share()
        budget = Budget(limits, share=share)
        path = None if traces is None else traces / f"{run_id}.jsonl"
        recorder = Recorder(path)
        try:
            async with open_lineup(
                self._names, self._settings, limits=limits, share=share
            ) as lineup:
                calls = ModelCalls(
                    run_id=run_id, budget=budget, limits=limits, recorder=recorder, past=Past()
                )
                completion = await calls.complete(
                    lineup.root,
                    [Message("user", prompt)],
                    role="sub",
                    caller=Caller(0, 1),
                    max_output_tokens=REPLY_TOKENS,
                )
        finally:
            recorder.close()
        return Judgement(
            model=self._names.model,
            prompt=prompt,
            reply=completion.text,
            usd=budget.usage.usd,
            trace=None
            if traces is None or path is None
            else str(path.relative_to(traces.parents[1])),
        )


def _sum(*amounts: float | None) -> float:
    return sum(amount or 0.0 for amount in amounts)

"""The REPL of one loop: its blocks run and recorded, and what they have come to."""

from __future__ import annotations

import asyncio

from rlm_rag.engine.answer import StopReason
from rlm_rag.engine.carried import Left
from rlm_rag.engine.ending import Ending
from rlm_rag.engine.guidance import Guide
from rlm_rag.engine.history import History, RanBlock, error_text
from rlm_rag.engine.services import Services
from rlm_rag.engine.tree import Assignment, Tree
from rlm_rag.errors import SandboxError
from rlm_rag.sandbox.calls import uncounted
from rlm_rag.sandbox.session import BlockResult, Said, Session
from rlm_rag.trace import events

LAST_LOOK_SECONDS = 2.0
LOOK_START_SECONDS = 1.0
LOOK_BACK_SECONDS = 0.4
"""An interrupted run returns within a second; a block that ends by itself needs 20 ms for it."""
EXCERPT_CHARS = 2000


class Workbench:
    """Runs the blocks of one RLM in its session, in a conversation from where that had come to.

    `block` is the number of the last one, `candidate` what `answer` held last where it held
    something, and `variables` are the model's, with type and size as text.
    """

    def __init__(
        self,
        tree: Tree,
        assignment: Assignment,
        *,
        session: Session,
        services: Services,
        history: History,
        guide: Guide,
    ) -> None:
        carried = assignment.carried
        self._run_id = assignment.run_id
        self._carried = carried
        self._session = session
        self._services = services
        self._history = history
        self._guide = guide
        self._limits = tree.limits
        self._recorder = tree.recorder
        self._coverage = tree.coverage
        self._in_block = False
        self._last_output = ""
        self.block = 0 if carried is None else carried.block
        self.candidate = ""
        self.variables = () if carried is None else carried.names

    @property
    def goes_on(self) -> bool:
        """Whether a conversation was before it."""
        return self._carried is not None and bool(self._carried.exchanges)

    @property
    def is_unused(self) -> bool:
        """Whether no block has run, here or in the conversation so far."""
        return self.block == 0 and not self.goes_on

    async def run(self, turn: int, code: str) -> RanBlock:
        """Run the next block, and record it.

        Raises:
            SandboxError: the worker was lost too often.
        """
        self.block += 1
        run, block = self._run_id, self.block
        self._coverage.ran(code)
        self._recorder.record(events.BlockStarted(run=run, turn=turn, block=block, code=code))
        self._in_block = True
        if self._history.folded or self._carried is not None:
            self._session.tell_history(self._said())
        # A child's block has a clock of its own, and is no time of its parent's block.
        with uncounted():
            result = await self._session.run(
                code,
                block=block,
                timeout_seconds=self._limits.cell_seconds,
                output_chars=self._guide.output_chars(self._limits.output_chars),
            )
        self._in_block = False
        self.variables = result.variables
        self._take_candidate(result)
        self._last_output = result.stdout or self._last_output
        self._recorder.record(
            events.BlockOutput(
                run=run,
                block=block,
                stdout=result.stdout,
                stderr=result.stderr,
                value=result.value,
                error=error_text(result.error) if result.error else None,
                seconds=round(result.seconds, 6),
                waited_seconds=round(result.waited_seconds, 6),
                restarted=result.restarted,
            )
        )
        return RanBlock(block, code, result, self._services.looks(block))

    async def look(self, code: str = "answers or None") -> BlockResult | None:
        """Run a last piece of code, for what `answer` and other names hold; None where it fails."""
        try:
            async with asyncio.timeout(LAST_LOOK_SECONDS + LOOK_START_SECONDS):
                result = await self._session.look(
                    code,
                    block=self.block + 1,
                    timeout_seconds=LAST_LOOK_SECONDS,
                    output_chars=EXCERPT_CHARS * 2,
                )
        except (SandboxError, TimeoutError):
            return None
        self._take_candidate(result)
        return result

    async def look_back(self) -> None:
        """Take what `answer` holds in a block that was cut short."""
        if self._in_block:
            try:
                async with asyncio.timeout(LOOK_BACK_SECONDS):
                    await self.look()
            except TimeoutError:
                return

    async def leave(self, *, seconds: float) -> Left:
        """Return its messages, and the variables of its REPL."""
        kept = await self._session.keep(seconds=seconds)
        return Left(
            [(turn, message.role, message.content) for turn, message in self._history.turns],
            {**kept.state(), "last_block": self.block},
            self.variables,
        )

    def ending(self, stop_reason: StopReason, detail: str, why: str) -> Ending:
        """Return what there is, without another call; `why` says where that is no answer."""
        if self.candidate:
            return Ending(self.candidate, stop_reason, detail)
        text = f"No answer was reached: {why}."
        if self._last_output.strip():
            text += f"\n\nThe last output was:\n{self._last_output.strip()[-EXCERPT_CHARS:]}"
        return Ending(text, stop_reason, detail, is_answer=False)

    def _take_candidate(self, result: BlockResult) -> None:
        if result.answer is not None and result.answer.content.strip():
            self.candidate = result.answer.content

    def _said(self) -> list[Said]:
        before = () if self._carried is None else self._carried.said
        number = 0 if self._carried is None else len(self._carried.exchanges)
        own = (Said(number, turn, m.role, m.content) for turn, m in self._history.turns)
        return [*before, *own]

"""The turns of a run as the iterations that `rlms` logs."""

from __future__ import annotations

from collections.abc import Callable

from rlm_rag.compat.shapes import (
    CodeBlock,
    REPLResult,
    RLMChatCompletion,
    RLMIteration,
    usage_summary,
)
from rlm_rag.engine.recorded import usage_of
from rlm_rag.trace.events import (
    BlockOutput,
    BlockStarted,
    CallSent,
    Event,
    ReplyReceived,
    RunStarted,
    TurnStarted,
)


class Trajectory:
    """Takes a run's events, and tells each iteration of the root once it is over."""

    def __init__(self, tell: Callable[[RLMIteration], None]) -> None:
        self._tell = tell
        self._run = ""
        self._messages: list[dict[str, str]] = []
        self._call: int | None = None
        self._code = ""
        self._sent: dict[int, CallSent] = {}
        self._answered: list[RLMChatCompletion] = []
        self._present: RLMIteration | None = None

    def __call__(self, event: Event) -> None:
        if isinstance(event, RunStarted) and event.parent is None:
            self._run = event.run
        if event.run != self._run:
            return
        match event:
            case TurnStarted():
                self.end()
                self._messages += [dict(message) for message in event.messages]
                self._present = RLMIteration(list(self._messages), "", [])
            case CallSent(role="root"):
                self._call = event.call
            case ReplyReceived() if event.call == self._call and self._present is not None:
                self._present.response = event.text or ""
                self._present.iteration_time = event.seconds
                self._messages.append({"role": "assistant", "content": self._present.response})
            case CallSent():
                self._sent[event.call] = event
            case ReplyReceived() if event.call in self._sent:
                self._answered.append(_completion(self._sent.pop(event.call), event))
            case BlockStarted():
                self._code = event.code
            case BlockOutput() if self._present is not None:
                result = _result(event)
                result.rlm_calls, self._answered = self._answered, []
                self._present.code_blocks.append(CodeBlock(self._code, result))
                before = self._present.iteration_time or 0.0
                self._present.iteration_time = before + event.seconds

    def end(self, final_answer: str | None = None) -> None:
        """Tell the present iteration, which brought the answer if it did."""
        present, self._present = self._present, None
        if present is not None:
            present.final_answer = final_answer
            if final_answer is not None and present.code_blocks:
                present.code_blocks[-1].result.final_answer = final_answer
            self._tell(present)


def _completion(sent: CallSent, reply: ReplyReceived) -> RLMChatCompletion:
    return RLMChatCompletion(
        root_model=reply.model,
        prompt=sent.messages[-1]["content"] if sent.messages else "",
        response=reply.text or "",
        usage_summary=usage_summary({reply.model: usage_of(reply.usage)}, {}),
        execution_time=reply.seconds,
        error=reply.error,
    )


def _result(output: BlockOutput) -> REPLResult:
    stderr = "\n".join(part for part in (output.stderr, output.error or "") if part)
    stdout = "".join([output.stdout, output.value or ""])
    return REPLResult(stdout, stderr, output.seconds)

"""`--model offline`: a fixed policy in a model's place, which needs neither key nor network.

As a root model it writes real blocks: one that searches, one that reads, one that answers with
the best excerpts. As a sub-model it picks sentences. The same messages always get the same reply.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Mapping, Sequence

from rlm_rag.models.base import Completion, FinishReason, Message, ModelRequest, Usage
from rlm_rag.models.offline_answer import UNFINISHED, answer_text
from rlm_rag.models.offline_blocks import answer_block, literal, look_block, read_block
from rlm_rag.models.offline_clues import Clues, find_clues
from rlm_rag.models.offline_evidence import Evidence, rank_files, read_evidence
from rlm_rag.models.offline_excerpts import choose_excerpts, choose_places
from rlm_rag.models.offline_extract import extract
from rlm_rag.models.offline_prompts import shown_lines

NAME = "offline"
# The sections of a root model's first user message, as engine.history writes them.
BEFORE_HEADING = "# Earlier in this conversation"
QUESTION_HEADING = "# Question"
CORPUS_HEADING = "# Corpus"
ANSWERING_TURNS = 3

_LAST_CALL = re.compile(r"^The run ends here: .*No more code will run\.$", re.MULTILINE)
_STATUS = "\n\nThis is turn "


class OfflineModel:
    """Replies by rules to the messages it is shown; keeps nothing, costs nothing."""

    @property
    def name(self) -> str:
        """Always `offline`."""
        return NAME

    async def complete(self, request: ModelRequest) -> Completion:
        """Return the policy's next block or answer, or, for any other prompt, an extract."""
        text, cut = await asyncio.to_thread(_reply, request)
        finish_reason: FinishReason = "length" if cut else "stop"
        return Completion(text, Usage(calls=1), NAME, finish_reason)


def open_offline() -> OfflineModel:
    """Return the built-in model; nothing is opened."""
    return OfflineModel()


def _reply(request: ModelRequest) -> tuple[str, bool]:
    told = [message for message in request.messages if message.role == "user"]
    question = question_of(request.messages)
    if question is None:
        # What follows a strategy's prompt questions the answer to it, and shows nothing new.
        shown = [text for message in told if shown_lines(text := message.content) is not None]
        prompt = shown[-1] if shown else "\n".join(message.content for message in told)
        return extract(prompt, max_output_tokens=request.max_output_tokens)
    turn = sum(message.role == "assistant" for message in request.messages)
    outputs = [message.content for message in told[1:]]
    # A run that ends before its first turn says so in the first message, behind its status.
    if not outputs and _LAST_CALL.search(told[0].content.rpartition(_STATUS)[2]):
        return UNFINISHED, False
    return root_reply(question, outputs, turn), False


def question_of(messages: Sequence[Message]) -> str | None:
    """Return the question that a root model was given; None for a sub-model's prompt."""
    if len(messages) < 2 or messages[0].role != "system":
        return None
    start, end = f"{QUESTION_HEADING}\n", f"\n\n{CORPUS_HEADING}\n"
    first = messages[1].content
    if first.startswith(f"{BEFORE_HEADING}\n"):
        # The last of them: an answer that stands before it may quote anything.
        _, mark, question = first.rpartition(f"\n\n{start}")
        first = mark.lstrip("\n") + question
    if not first.startswith(start) or end not in first:
        return None
    return first[len(start) : first.rindex(end)]


def root_reply(question: str, outputs: Sequence[str], turn: int) -> str:
    """Return the reply of a turn, counted from 0: search, read, answer, whatever went wrong."""
    clues = find_clues(question)
    mark = mark_of(question)
    evidence = read_evidence(outputs, mark)
    ranked = rank_files(evidence, of_tests=clues.of_tests)
    if outputs and _LAST_CALL.search(outputs[-1]):
        return _answer(clues, evidence, ranked)
    if turn == 0:
        return look_block(clues, mark)
    if turn == 1 and ranked:
        return read_block(choose_places(evidence, ranked), mark)
    answer = _answer(clues, evidence, ranked)
    return answer_block(answer) if turn < ANSWERING_TURNS else f"FINAL({literal(answer)})"


def _answer(clues: Clues, evidence: Evidence, ranked: Mapping[str, float]) -> str:
    excerpts = choose_excerpts(evidence, ranked, clues.terms)
    return answer_text(
        clues, excerpts, list(ranked), looked=evidence.looked, outlines=evidence.outlines
    )


def mark_of(question: str) -> str:
    """Return what the policy's lines of output start with; no corpus holds it by chance."""
    digest = hashlib.sha256(question.encode("utf-8", "surrogatepass")).hexdigest()
    return f"evidence {digest[:12]} "

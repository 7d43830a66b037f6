"""What a small model is shown beside its prompts: how to begin, and what is there."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rlm_rag.engine.accounted import beyond_count
from rlm_rag.engine.left_out import counts_all, left_out
from rlm_rag.engine.reply import Block
from rlm_rag.engine.shapes import TOLD

MAX_QUESTION_CHARS = 800

MOST_OUTPUT_CHARS = 2_000
"""Of a block's output a small model reads this much: on two cores 2,000 tokens took a minute, and
it had printed the records that it was to count."""

MOST_REPLY_TOKENS = 768
"""A small model's reply is cut there: its blocks take some 60 tokens, and the 0.5B wrote without an
end until its time was over (a question of the sixty)."""

MOST_REPEATS = 2
"""So often in a row a small model may send what it has sent before; it goes on so to the end."""

ONE_BLOCK = ("\n```\n",)
"""Ends a small model's reply with its first block: what comes after it is the output that it
imagines, and a second block made for that (1.5B, on records)."""

_TAGGED = re.compile(r"```[A-Za-z]")

COMPUTED = "The root model wrote no code: the lines that its question's kind gives were run."

IN_WORDS = "Reply with the answer in words, with the file and line it is from. No code."

LEFT_OUT = (
    "The question names {values}, and your code went through records without it. Count in those "
    "that have it:\n```repl\n{setup}\n```"
)

ALL_COUNTED = (
    "The question names {words}, and your code counted whatever it says. Print some lines to see "
    "how they are written, then count those that it is about."
)

ONLY_FIRST = "Only the first block was run: send one, read what it prints, then send the next."

LOOK_FIRST = (
    "You have not looked at the documents yet. Reply with a block, such as:\n```repl\n{look}\n```"
)


class Guide:
    """What a loop does otherwise for a small model; `is_on` says whether it drives one.

    It may be turned on for a model that stumbled; one that is small from the start is also sent
    a `stop`, which larger ones may refuse.
    """

    def __init__(self, question: str, *, is_on: bool, shape: str = "documents") -> None:
        self._question = question
        self._beyond = beyond_count(question)
        self.is_on = is_on
        self._stops = is_on
        self.stop = ONE_BLOCK if is_on else ()
        self.look_first = LOOK_FIRST.format(look=TOLD[shape].look)
        """What it is told where it answers before it has looked."""
        self._computing = ""
        self._looking_up = ""
        self._setup = ""
        self._named: Sequence[Sequence[str]] = ()
        self.takes_words = False
        """Whether a reply without a block is an answer."""

    def offer(self, code: str) -> None:
        """Take the lines that compute what is asked, and end with the answer."""
        self._computing = code

    def instead(self, notes: list[str]) -> Block | None:
        """Return those lines, once, for a model whose reply is to be told to look first.

        Shown them, and told twice that it had not looked, the 0.5B wrote out a number that it had
        read elsewhere, of the limits that are left or of the example.
        """
        if self.look_first not in notes or not self._computing:
            return None
        notes[notes.index(self.look_first)] = COMPUTED
        code, self._computing = self._computing, ""
        return Block(code=code, tag="repl", line=1)

    def names(self, values: Sequence[Sequence[str]], *, setup: str) -> None:
        """Take the values of each column that the question names, and what binds their records."""
        self._named, self._setup = values, setup

    def left_out(self, code: str) -> str | None:
        """Return what to say of a block that counts, and leaves out what is asked.

        Asked which depot has the most deliveries that are late, the 1.5B took the status of the
        record that it had been shown, or none.
        """
        missing = left_out(code, self._named)
        if not missing:
            is_all = self.is_on and bool(self._beyond) and counts_all(code, self._beyond)
            return ALL_COUNTED.format(words=_quoted(self._beyond, "and")) if is_all else None
        return LEFT_OUT.format(values=_quoted(missing, "or"), setup=self._setup)

    def offer_look(self, code: str) -> None:
        """Take the lines that look up what is asked."""
        self._looking_up = code

    def looks(self) -> Block | None:
        """Return those lines, once, for a model that sends the same again; then take words.

        Asked in which file a function is defined, the 1.5B searched for its name three times over,
        with the definition in what it had printed. Asked for a block, it sent these lines again
        and again too; asked for words, it answers.
        """
        if not self._looking_up:
            return None
        code, self._looking_up = self._looking_up, ""
        self.takes_words = True
        return Block(code=code, tag="repl", line=1)

    def output_chars(self, most: int) -> int:
        """Return how much of a block's output is shown, `most` to a larger model."""
        return min(most, MOST_OUTPUT_CHARS) if self.is_on else most

    def reply_tokens(self, most: int | None) -> int | None:
        """Return the output cap of a reply, of a model whose own is `most`; None for no cap."""
        return min(MOST_REPLY_TOKENS, most or MOST_REPLY_TOKENS) if self.is_on else None

    def gives_up(self, repeats: int) -> bool:
        """Whether a model that sent so many blocks in a row that told nothing new is at its end."""
        return self.is_on and repeats >= MOST_REPEATS

    def to_run(self, blocks: Sequence[Block], notes: list[str]) -> Sequence[Block]:
        """Return the blocks of a reply that are run, and add to `notes` why not all are."""
        if not self.is_on or len(blocks) < 2:
            return blocks
        notes.append(ONLY_FIRST)
        return blocks[:1]

    def as_read(self, reply: str) -> str:
        """Return a reply as the model is to have it before it: with the fence that `stop` took.

        After one in whose place a fence without a tag was taken, there is no `stop` until it
        writes a tag.
        """
        read = f"{reply}\n```" if self.stop and reply.count("```") % 2 else reply
        if self._stops:
            self.stop = ONE_BLOCK if _TAGGED.search(reply) else ()
        return read

    def ended(self, told: str) -> str:
        """Return what the model is told, with the end that it needs.

        Without the question there, the 1.5B sent the block of its first turn twenty times over;
        with it, the one that computes the answer (trial of a count over 1,200 records).
        """
        if not self.is_on:
            return told
        asked = self._question[:MAX_QUESTION_CHARS]
        more = "..." if len(self._question) > MAX_QUESTION_CHARS else ""
        reply = IN_WORDS if self.takes_words else "Reply with the next block."
        return f"{told}\n\nQuestion: {asked}{more}\n{reply}"


def _quoted(words: Sequence[str], joined: str) -> str:
    return f" {joined} ".join(map(repr, words))

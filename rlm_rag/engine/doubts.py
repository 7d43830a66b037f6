"""What is asked about an answer before it is accepted; each doubt is raised once.

An answer that was computed by a block is taken as it is. One that the model wrote out itself is
questioned where its last block failed, or where it holds a number that no output ever showed. Of a
small model, it does not stand at all after a block that failed, or a look that found nothing.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from rlm_rag.engine.answer import denies
from rlm_rag.engine.citations import Citation
from rlm_rag.engine.form import MENDINGS, Form
from rlm_rag.engine.guidance import Guide
from rlm_rag.engine.history import RanBlock
from rlm_rag.engine.looks import BY_WORDS, Look
from rlm_rag.engine.origins import Origins
from rlm_rag.engine.question import asks_for_a_figure
from rlm_rag.engine.stated import stated_answer

MAX_NAMED = 8
MAX_NUMBERS = 200_000
MAX_TEXT_CHARS = 20_000

_NUMBER = re.compile(r"(?<![\w.,/:#-])\d+(?:,\d{3})*(?:\.\d+)?(?![\w/])", re.ASCII)
_ANY_NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?", re.ASCII)
_NOT_CLAIMED = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]*`|\"[^\"\n]*\"|“[^”]{0,2000}”"
    r"|^[ \t]*>[^\n]*|^[ \t]*\d{1,3}[.)](?=\s)|\blines? \d+(?:\s*(?:-|–|to|and)\s*\d+)?"
    r"|[^\s`\"“:]{1,200}:\d+(?:-\d+)?",
    re.MULTILINE | re.DOTALL | re.IGNORECASE,
)
FOUND_NONE = (
    "Your code found none, which is seldom so: print some of what it went through, see how it is "
    "written there, and count again."
)
FAILED = (
    "Your last block failed, and nothing ran since: mend it and run it, or say what else your "
    "answer rests on."
)
MEND_IT = "Your last block failed, and nothing ran since: mend it and run it."
FOUND_NOTHING = (
    "Your last look found nothing: search with other words, or with another function, and print "
    "what it finds."
)
ENOUGH_LOOKS = 2
"""After so many different look-ups that found nothing, "Not in the corpus" stands."""
_NOTHING = re.compile(
    r"(?:\s|\[\]|\{\}|\(\)|set\(\)|None|\{'hits': \[\], 'counts': \{\}, [^{}\n]*\})*", re.ASCII
)
# Of a question that counts nothing, "two places" is no figure to be computed.
_OF_NO_WEIGHT = 9


class Doubts:
    """Watches the turns of one RLM, and questions its answer.

    A model that `guide` guides is also questioned where a block of it gives an answer that it
    wrote out without a look, and each time after a block that failed. `hold` has what a text
    cites ready for the check. `seconds_left` says how long a check of the form may take.
    """

    def __init__(
        self,
        *,
        question: str,
        check: Callable[[str], Sequence[Citation]],
        why_false: Callable[[Citation], str],
        guide: Guide,
        hold: Callable[[str], Awaitable[None]] | None = None,
        form: Form | None = None,
        seconds_left: Callable[[], float | None] = lambda: None,
    ) -> None:
        self.form = form
        self._guide = guide
        self._seconds_left = seconds_left
        self._ran_well = False
        self._mendings = MENDINGS
        self._counts = asks_for_a_figure(question)
        self._seen = set(_numbers(question, _ANY_NUMBER))
        self._check = check
        self._why_false = why_false
        self._hold = hold
        self._raised: set[str] = set()
        self._last_failed = False
        self._last_empty = False
        # Looks, and blocks that went through the documents themselves.
        self._in_vain: set[Look | str] = set()
        self._origins = Origins()

    @property
    def schema(self) -> Mapping[str, Any] | None:
        """What the answer's JSON has to be of, None where it may be any text."""
        return None if self.form is None else self.form.schema

    def watch(self, ran: Sequence[RanBlock]) -> bool:
        """Take in what the blocks of a turn showed the model, and return whether they ran well.

        A guided model's block that only sets an answer is not taken for one that ran.
        """
        well = bool(ran)
        for block in ran:
            result = block.result
            for text in (result.stdout, result.stderr, result.value or ""):
                self.shown(text)
            if self._guide.is_on and not self._is_more_than_an_answer(block):
                well = False
                continue
            self._last_failed = result.error is not None
            self._ran_well = self._ran_well or not self._last_failed
            well = well and not self._last_failed
        return well

    def is_computed(self, block: RanBlock, text: str) -> bool:
        """Whether a block that set the answer `text` computed it, a guided model's of the corpus.

        To be asked before `watch` is told of the block.
        """
        if (stated_answer([block]) or "").strip() == text.strip():
            return False
        return not self._guide.is_on or bool(self._origins.of_corpus(block.code))

    def lacks(self, text: str, *, computed: bool) -> str | None:
        """Return what a guided model's answer cannot follow, None where it stands for itself."""
        if not self._guide.is_on or computed:
            return None
        if self._last_failed:
            return "its last block failed"
        if self._last_empty and not self._is_none(text):
            return "its last look found nothing"
        return None

    def shown(self, text: str) -> None:
        """Take in a text that the model has before it, for the numbers it holds."""
        if len(self._seen) < MAX_NUMBERS:
            self._seen.update(_numbers(text, _ANY_NUMBER))

    async def about(
        self, text: str, *, computed: bool, blind: bool = False, code: str = ""
    ) -> str | None:
        """Return what to ask the model of its answer, None where it stands.

        `computed` says that a block made the text, rather than the model, which had then seen
        nothing beyond the turns that were watched; `blind`, that it could have looked and did not;
        `code` is the block that set the answer, if one did.
        """
        parts = await self._misfit(text)
        blind = blind or (self._guide.is_on and not computed)
        if blind and not self._ran_well and self._first("blind"):
            return self._guide.look_first
        if self._last_failed and not computed:
            parts += self._after_failure()
        elif self.lacks(text, computed=computed) and self._first("empty"):
            parts.append(FOUND_NOTHING)
        elif self._found_none(text) and self._first("none"):
            parts.append(FOUND_NONE)
        if (left_out := self._guide.left_out(code)) is not None and self._first("left out"):
            parts.append(left_out)
        if not computed and (numbers := self._never_shown(text)) and self._first("numbers"):
            parts.append(
                f"No output has shown {', '.join(numbers[:MAX_NAMED])}: compute in Python what "
                "your answer counts or adds, and print it."
            )
        if false := await self._false_citations(text):
            named = "\n".join(f"- {self._why_false(each)}" for each in false[:MAX_NAMED])
            more = f"\n- and {len(false) - MAX_NAMED} more" if len(false) > MAX_NAMED else ""
            parts.append(f"These citations do not stand in the corpus; mend them:\n{named}{more}")
        if not parts:
            return None
        asked = "\n".join(parts)
        return f"Your answer is not accepted yet.\n{asked}\nThen give the whole answer again."

    def _after_failure(self) -> list[str]:
        if self._guide.is_on:
            return [MEND_IT]
        return [FAILED] if self._first("failed") else []

    def _is_more_than_an_answer(self, block: RanBlock) -> bool:
        """Whether a block did more than set one; takes in whether that found anything."""
        names = self._origins.of_corpus(block.code)
        shown = self._shown_by(block)
        self._origins.ran(block.code)
        if block.answer is not None and not names and block.result.error is None:
            return False
        self._in_vain.update(block.in_vain)
        if block.in_vain and names <= BY_WORDS and len(block.in_vain) == len(block.looks):
            self._last_empty = True
        elif block.result.error is None and (names or not shown):
            self._last_empty = _NOTHING.fullmatch(shown) is not None
            if self._last_empty and names and not block.in_vain:
                self._in_vain.add(block.code.strip())
        return True

    def _shown_by(self, block: RanBlock) -> str:
        """Return what a block has shown, an answer that it computed included."""
        if block.answer is None or not self.is_computed(block, block.answer):
            return block.shown
        return block.shown + block.answer

    def _is_none(self, text: str) -> bool:
        """Whether an answer says no more than what the looks that found nothing have shown."""
        if self._counts_none(text):
            return True
        return denies(text) and len(self._in_vain) >= ENOUGH_LOOKS

    def _counts_none(self, text: str) -> bool:
        return self._counts and set(_claimed(text)) == {"0"}

    async def _misfit(self, text: str) -> list[str]:
        if self.form is None or self._mendings == 0:
            return []
        fault = await self.form.fault(text, seconds_left=self._seconds_left())
        if fault is None:
            return []
        self._mendings -= 1
        return [f"It has not the form that was asked for:\n{fault}\n{self.form.instruction}"]

    async def _false_citations(self, text: str) -> list[Citation]:
        """Return those that do not stand, the first time that there are any."""
        if "citations" in self._raised:
            return []
        if self._hold is not None:
            await self._hold(text)
        false = [each for each in self._check(text) if each.status == "false"]
        return false if false and self._first("citations") else []

    def _first(self, doubt: str) -> bool:
        first = doubt not in self._raised
        self._raised.add(doubt)
        return first

    def _found_none(self, text: str) -> bool:
        """Whether a small model finds none, most often by a condition that it guessed."""
        if not self._guide.is_on:
            return False
        return self._counts_none(text) or _NOTHING.fullmatch(text) is not None

    def _never_shown(self, text: str) -> list[str]:
        new = [number for number in dict.fromkeys(_claimed(text)) if number not in self._seen]
        if self._counts:
            return new
        return [number for number in new if float(number) > _OF_NO_WEIGHT]


def _claimed(text: str) -> list[str]:
    """The numbers that an answer states itself: none of code, quotes, places and list items."""
    return _numbers(_NOT_CLAIMED.sub(" ", text[:MAX_TEXT_CHARS]), _NUMBER)


def _numbers(text: str, form: re.Pattern[str]) -> list[str]:
    """The numbers of a text, in one spelling: no separators, no zeros that say nothing."""
    return [_plain(match[0]) for match in form.finditer(text)]


def _plain(number: str) -> str:
    whole, dot, part = number.replace(",", "").partition(".")
    part = part.rstrip("0")
    return (whole.lstrip("0") or "0") + (dot + part if part else "")

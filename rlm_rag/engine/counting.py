"""How many tokens a provider counts in prompts, learnt from what it billed for earlier ones."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rlm_rag.models.base import Message
from rlm_rag.models.image_tokens import likely_image_tokens, most_image_tokens
from rlm_rag.models.tokens import IMAGE_TOKENS, most_message_tokens
from rlm_rag.models.vocabularies import highest_message_tokens, lowest_message_tokens

# Of shorter prompts what a chat template adds may be most: nothing is said of texts by them.
_TELLING_TOKENS = 256
# What a template mostly adds at most, its own system prompt: 60 to 65 in gpt-oss's, 25 in Llama
# 3.1's. More than that is the text's, unless it is more than the text has bytes.
_TEMPLATE_TOKENS = 64
# Some add far more: xAI 113 to 680 to each prompt of a Grok 4 (its own figures of usage), Mistral
# Small's some 160 and Devstral's some 900 to one without a system message.
_LONG_TEMPLATE_TOKENS = 1_024
_HAVE_LONG = re.compile("grok-(4|code)|mistral-?small|devstral|magistral", re.I)
# More than this is none.
_LONGEST_TEMPLATE_TOKENS = 2_048
# An estimate is up to four times of what is counted (`models.tokens`).
_LEAST_SHARE = 4
# What it has around a message beyond the four that are counted: one in Llama 3's.
_MORE_A_MESSAGE = 2
# The next text may be a little worse.
_MARGIN = 1.05


@dataclass(slots=True)
class _Billed:
    """What was billed for a prompt; `template` is what a template added to it, None until asked."""

    estimated: int
    tokens: int
    messages: tuple[Message, ...]
    template: int | None = None


class Counting:
    """How much more one model's provider counts than `count_message_tokens` does.

    What it counted more in any call so far is taken to be so in the next ones, but never as more
    tokens than a prompt has bytes, which no byte-level tokenizer makes of it: more than those is
    the template's. Near a limit a model whose template is not known, as `has_template` says,
    counts with a long one until it has billed a prompt, those with a system message and those
    without one each for themselves. `besides` goes with each prompt, and may be put into it.
    """

    def __init__(
        self,
        model: str = "",
        *,
        api_base: str | None = None,
        has_template: bool = False,
        besides: str = "",
    ) -> None:
        self._besides = (Message("user", besides),) if besides else ()
        self._model = model
        self._api_base = api_base
        self._has_template = has_template
        self._shortest: dict[bool, _Billed] = {}
        self._template_room: dict[bool, int] = {}
        self._ratio = 1.0
        self._added = 0
        self._added_by_image = 0
        # Images go with every turn; a large one's size is looked for in 20 MB.
        self._image_tokens: dict[tuple[str, Callable[[str, str], int]], int] = {}

    def learn(self, estimated: int, billed: int, messages: tuple[Message, ...] = ()) -> None:
        """Take note of what was billed for a prompt that `count_message_tokens` estimates so.

        Of a prompt with images what was billed more is taken to be theirs.
        """
        images = images_of(messages)
        if messages and not images:
            self._note(estimated, billed, messages)
        more = billed - self._of(estimated) - self._more(images, likely_image_tokens)
        if more <= 0:
            return
        excess = billed - estimated
        if images:
            self._added_by_image += math.ceil(more / len(images))
        elif messages and _is_template(excess, billed, (*messages, *self._besides)):
            self._added = max(self._added, excess)
        elif estimated >= _TELLING_TOKENS:
            self._ratio = max(self._ratio, _MARGIN * billed / estimated)
        else:
            self._added = max(self._added, min(excess, _TEMPLATE_TOKENS))

    def _note(self, estimated: int, billed: int, messages: tuple[Message, ...]) -> None:
        """Keep what tells most of the template: the bill for the prompt with the least text."""
        kind, text_tokens = _has_system(messages), estimated // _LEAST_SHARE
        room = self._template_room.get(kind, _LONGEST_TEMPLATE_TOKENS)
        self._template_room[kind] = min(room, max(0, billed - text_tokens))
        shortest = self._shortest.get(kind)
        if shortest is None or estimated < shortest.estimated:
            self._shortest[kind] = _Billed(estimated, billed, messages)

    def estimated(self, estimated: int, messages: Sequence[Message]) -> int:
        """Return what the provider is to be expected to count in a prompt."""
        scaled = self._of(estimated)
        if scaled != estimated:
            scaled = max(estimated, min(scaled, most_message_tokens(messages) + self._added))
        return scaled + self._more(images_of(messages), likely_image_tokens)

    def most(self, messages: Sequence[Message]) -> int:
        """Return the most that it can count in a prompt: a token for each byte, and a template.

        Images count as `most_image_tokens`.
        """
        template = max(_template(messages), self._added)
        if self._has_template:
            room = self._template_room.get(_has_system(messages), _LONGEST_TEMPLATE_TOKENS)
            template = max(template, room)
        images = self._more(images_of(messages), most_image_tokens)
        return most_message_tokens((*messages, *self._besides)) + template + images

    def counted(self, messages: Sequence[Message], estimated: int) -> int:
        """Return what tokenizers make of a prompt at most, with what a template may add.

        Not for the event loop: it takes a second for a megabyte. Where no tokenizer can be
        loaded, it is halfway from what was `estimated` to one token a byte, which is 0.75 to 1.2
        of the highest count for what we count too low. Images count as `most_image_tokens`.
        """
        images = self._more(images_of(messages), most_image_tokens)
        template = max(self._added, self._likely_template(messages))
        return self._highest(messages, estimated) + template + images

    def _highest(self, messages: Sequence[Message], estimated: int) -> int:
        sent = (*messages, *self._besides)
        highest = highest_message_tokens(sent, model=self._model, api_base=self._api_base)
        return (estimated + most_message_tokens(sent)) // 2 if highest is None else highest

    def _likely_template(self, messages: Sequence[Message]) -> int:
        """What a template adds: what was billed, or else as much as those of such a name add."""
        shortest = self._shortest.get(_has_system(messages))
        if shortest is None:
            return self._usual_template(messages) if self._has_template else 0
        if shortest.template is None:
            shortest.template = self._billed_template(shortest)
        return shortest.template

    def _billed_template(self, shortest: _Billed) -> int:
        billed, estimated, messages = shortest.tokens, shortest.estimated, shortest.messages
        usual = self._usual_template(messages)
        more = billed - self._highest(messages, estimated)
        if more > _LONGEST_TEMPLATE_TOKENS:
            more = usual
        if self._has_template:
            # What was counted too high of the text hides as much of the template.
            least = lowest_message_tokens(messages, model=self._model, api_base=self._api_base)
            more = max(more, min(billed - (estimated if least is None else least), usual))
        return more

    def _usual_template(self, messages: Sequence[Message]) -> int:
        return _LONG_TEMPLATE_TOKENS if _HAVE_LONG.search(self._model) else _template(messages)

    def _of(self, estimated: int) -> int:
        return math.ceil(estimated * self._ratio) + self._added

    def _more(self, images: Sequence[str], tokens_of: Callable[[str, str], int]) -> int:
        """What images cost beyond the `IMAGE_TOKENS` that they are estimated as."""
        return sum(
            self._tokens_of(image, tokens_of) - IMAGE_TOKENS + self._added_by_image
            for image in images
        )

    def _tokens_of(self, image: str, tokens_of: Callable[[str, str], int]) -> int:
        known = self._image_tokens.get((image, tokens_of))
        if known is None:
            known = self._image_tokens[image, tokens_of] = tokens_of(image, self._model)
        return known


def _template(messages: Sequence[Message]) -> int:
    return _TEMPLATE_TOKENS + _MORE_A_MESSAGE * len(messages)


def _is_template(excess: int, billed: int, messages: Sequence[Message]) -> bool:
    """Whether what was billed more must be a template's: more than there are bytes."""
    return excess <= _LONGEST_TEMPLATE_TOKENS and billed > most_message_tokens(messages)


def _has_system(messages: Sequence[Message]) -> bool:
    """Whether a prompt has a system message, in whose place templates have one of their own."""
    return bool(messages) and messages[0].role == "system"


def images_of(messages: Sequence[Message]) -> tuple[str, ...]:
    """Return the images of a prompt, in order."""
    return tuple(image for message in messages for image in message.images)

"""How many tokens a provider counts in prompts, learnt from what it billed for earlier ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from rlm_rag.models.base import Message
from rlm_rag.models.image_tokens import likely_image_tokens, most_image_tokens
from rlm_rag.models.tokens import IMAGE_TOKENS, most_message_tokens
from rlm_rag.models.vocabularies import highest_message_tokens

# Of shorter prompts what a chat template adds may be most: nothing is said of texts by them.
_TELLING_TOKENS = 256
# What a template adds at most, its own system prompt: 60 to 65 in gpt-oss's, 25 in Llama 3.1's.
# More than that is the text's.
_TEMPLATE_TOKENS = 64
# What it has around a message beyond the four that are counted: one in Llama 3's.
_MORE_A_MESSAGE = 2
# The next text may be a little worse.
_MARGIN = 1.05


class Counting:
    """How much more one model's provider counts than `count_message_tokens` does.

    What it counted more in any call so far is taken to be so in the next ones, but never as more
    tokens than a prompt has bytes, which no byte-level tokenizer makes of it. Near a limit a
    model whose template is not known, as `has_template` says, counts with a long one until it
    has billed a prompt.
    """

    def __init__(self, model: str = "", *, has_template: bool = False) -> None:
        self._model = model
        self._has_template = has_template
        self._shortest: tuple[int, int, tuple[Message, ...]] | None = None
        self._ratio = 1.0
        self._added = 0
        self._added_by_image = 0

    def learn(self, estimated: int, billed: int, messages: tuple[Message, ...] = ()) -> None:
        """Take note of what was billed for a prompt that `count_message_tokens` estimates so.

        Of a prompt with images what was billed more is taken to be theirs.
        """
        images = images_of(messages)
        if messages and not images and (not self._shortest or estimated < self._shortest[0]):
            self._shortest = (estimated, billed, messages)
        more = billed - self._of(estimated) - self._more(images, likely_image_tokens)
        if more <= 0:
            return
        if images:
            self._added_by_image += math.ceil(more / len(images))
        elif estimated >= _TELLING_TOKENS:
            self._ratio = max(self._ratio, _MARGIN * billed / estimated)
        else:
            self._added = max(self._added, min(billed - estimated, _TEMPLATE_TOKENS))

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
        images = self._more(images_of(messages), most_image_tokens)
        return most_message_tokens(messages) + _template(messages) + images

    def counted(self, messages: Sequence[Message], estimated: int, *, api_base: str | None) -> int:
        """Return what tokenizers make of a prompt at most, with what a template may add.

        Not for the event loop: it takes a second for a megabyte. Where no tokenizer can be
        loaded, it is halfway from what was `estimated` to one token a byte, which is 0.75 to 1.2
        of the highest count for what we count too low. Images count as `most_image_tokens`.
        """
        template = self._added
        if self._shortest is not None:
            asked, billed, shortest = self._shortest
            more = billed - self._highest(shortest, asked, api_base)
            template = max(template, min(more, _template(shortest)))
        elif self._has_template:
            template = max(template, _template(messages))
        images = self._more(images_of(messages), most_image_tokens)
        return self._highest(messages, estimated, api_base) + template + images

    def _highest(self, messages: Sequence[Message], estimated: int, api_base: str | None) -> int:
        highest = highest_message_tokens(messages, model=self._model, api_base=api_base)
        return (estimated + most_message_tokens(messages)) // 2 if highest is None else highest

    def _of(self, estimated: int) -> int:
        return math.ceil(estimated * self._ratio) + self._added

    def _more(self, images: Sequence[str], tokens_of: Callable[[str, str], int]) -> int:
        """What images cost beyond the `IMAGE_TOKENS` that they are estimated as."""
        return sum(
            tokens_of(image, self._model) - IMAGE_TOKENS + self._added_by_image for image in images
        )


def _template(messages: Sequence[Message]) -> int:
    return _TEMPLATE_TOKENS + _MORE_A_MESSAGE * len(messages)


def images_of(messages: Sequence[Message]) -> tuple[str, ...]:
    """Return the images of a prompt, in order."""
    return tuple(image for message in messages for image in message.images)

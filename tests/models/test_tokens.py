"""The estimate of tokens errs on the high side for what corpora are made of."""

from __future__ import annotations

import base64
import random
import string
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_rag.models import tokens
from rlm_rag.models.base import Message
from rlm_rag.models.tokens import count_message_tokens, count_tokens, most_message_tokens

# Counted with o200k_base: the first paragraph of PEP 20's text, a line of Python, of Chinese.
PROSE = "Beautiful is better than ugly. Explicit is better than implicit. Simple is better."
CODE = "    def complete(self, request: ModelRequest) -> Completion:\n        return self._model\n"
CHINESE = "检索增强生成是一种将外部知识库与大型语言模型相结合的技术"


def test_the_estimate_lies_above_the_true_count_and_below_twice_it() -> None:
    for text, true_count in ((PROSE, 17), (CODE, 18), (CHINESE, 20)):
        assert true_count * 0.9 <= count_tokens(text) <= true_count * 2.5


@given(st.text(st.characters(exclude_categories=[])), st.text(st.characters(exclude_categories=[])))
def test_it_grows_with_the_text_and_takes_any_text(one: str, other: str) -> None:
    both = count_tokens(one + other)
    assert max(count_tokens(one), count_tokens(other)) <= both
    assert both <= count_tokens(one) + count_tokens(other)
    assert both <= 1 + len((one + other).encode("utf-8", "surrogatepass"))


def test_an_empty_text_has_none_and_a_message_has_a_few_more() -> None:
    assert count_tokens("") == 0
    assert count_message_tokens([Message("user", "")]) > 0
    assert count_message_tokens([Message("user", CODE)]) > count_tokens(CODE)


def test_a_long_text_is_counted_at_once() -> None:
    text = CODE * 20_000
    started = time.perf_counter()
    assert tokens.count_tokens(text) > 300_000
    assert time.perf_counter() - started < 1


def test_a_prompt_of_what_is_no_language_is_counted_in_full() -> None:
    dice = random.Random(1)
    encoded = base64.b64encode(dice.randbytes(6000)).decode()
    letters = "".join(dice.choices(string.ascii_lowercase, k=8000))
    # Counted with cl100k_base.
    for text, true_count in ((encoded, 5744), (letters, 4360), (f"{PROSE} {encoded}", 5761)):
        assert true_count <= count_message_tokens([Message("user", text)]) <= 1.5 * true_count
    assert count_message_tokens([Message("user", CODE)]) < count_tokens(CODE) + 10


# With the highest count of cl100k_base, o200k_base, DeepSeek's and an older one of Claude's.
COSTLY = {
    "!function(a,b){var c=a.d;if(c>1){return b(c.e,a[0])}}(x,y);" * 9: 324,
    "a b c d e f g h i j k l m n o p q r s t u v w x y z " * 9: 235,
    "\U0001fae8\U0001f6dc\U0001f9cb\U0001f965" * 20: 240,
}


@pytest.mark.parametrize(("text", "true_count"), COSTLY.items(), ids=range(len(COSTLY)))
def test_minified_code_single_letters_and_emoji_are_counted_in_full(
    text: str, true_count: int
) -> None:
    assert true_count <= count_message_tokens([Message("user", text)]) <= 2 * true_count


@given(st.text(st.characters(exclude_categories=[])))
def test_no_estimate_is_beyond_one_token_a_byte(text: str) -> None:
    prompt = [Message("user", text)]
    assert count_tokens(text) <= count_message_tokens(prompt) <= most_message_tokens(prompt) + 1

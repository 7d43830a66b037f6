"""Prompts counted by the tokenizers that come with litellm, offline and without importing it."""

from __future__ import annotations

import itertools
import random
import subprocess
import sys

import pytest

from rlm_rag.models import vocabularies
from rlm_rag.models.base import Message
from rlm_rag.models.vocabularies import NAMES, highest_message_tokens

# The three of a prompt and the four of a message.
FRAME = 7
CHINESE = "检索增强生成是一种将外部知识库与大型语言模型相结合的技术"


def counted(text: str, *, model: str = "some/model", **of: str) -> int | None:
    return highest_message_tokens([Message("user", text)], model=model, **of)


# Counted with cl100k_base, o200k_base, DeepSeek's and an older tokenizer of Claude's.
HIGHEST = {
    "": 0,
    "Beautiful is better than ugly.": 6,
    CHINESE: 30,
    "\ufdfa": 15,
    " " * 4_000: 32,
}


@pytest.mark.parametrize(("text", "tokens"), HIGHEST.items(), ids=range(len(HIGHEST)))
def test_the_highest_count_is_taken(text: str, tokens: int) -> None:
    assert counted(text) == tokens + FRAME


def test_messages_and_images_add_what_stands_around_them() -> None:
    prompt = [Message("system", "Hi"), Message("user", "Hi", ("data:image/png;base64,",))]
    assert highest_message_tokens(prompt, model="m") == 2 + 3 + 2 * 4 + 1_600


@pytest.mark.parametrize(
    ("model", "of"),
    [
        ("gpt-4o-mini", {}),
        ("openai/gpt-5-mini", {}),
        ("gpt-4.1", {"api_base": "https://api.openai.com/v1"}),
    ],
)
def test_what_openai_serves_is_counted_by_its_own_tokenizer(model: str, of: dict[str, str]) -> None:
    assert counted(CHINESE, model=model, **of) == 19 + FRAME


@pytest.mark.parametrize(
    ("model", "of"),
    [
        ("openai/gpt-4o", {"api_base": "http://127.0.0.1:8080/v1"}),
        ("openrouter/openai/gpt-4o", {}),
        ("openai/qwen", {}),
    ],
)
def test_any_other_server_may_have_any_tokenizer(model: str, of: dict[str, str]) -> None:
    assert counted("\ufdfa", model=model, **of) == 15 + FRAME


NUMBERS = "12.5078,93.0021,7.9999,400.1234\n" * 40
SPACED = "a  b   c     d\n\n\n\t\t" * 50
SOURCE = (
    '''def merge(left: list[int], right: list[int]) -> list[int]:
    """Return both in order."""
    merged, i, j = [], 0, 0
    while i < len(left) and j < len(right):
        if left[i] <= right[j]:
            merged.append(left[i])
            i += 1
        else:
            merged.append(right[j])
            j += 1
    return merged + left[i:] + right[j:]
'''
    * 10
)


RULES = ("-" * 78 + "\n") * 20
BLANK = "\n \n  \n" * 100
RUSSIAN = "Поиск по документам возвращает строки с номерами. " * 10
KOREAN = "검색 증강 생성은 외부 지식을 언어 모델과 결합하는 기술입니다. " * 10


# Counted with the tokenizers of Qwen2.5-Coder, Mistral's Tekken of 2024 and its first one,
# Gemma 3, Llama 2 and GPT-2.
@pytest.mark.parametrize(
    ("model", "text", "tokens"),
    [
        ("openai/qwen2.5-coder", NUMBERS, 1_280),
        ("openai/qwen2.5-coder", SOURCE, 970),
        ("mistral/mistral-small-latest", NUMBERS, 1_280),
        ("mistral/open-mistral-7b", NUMBERS, 1_281),
        ("ollama/mistral-7b", SOURCE, 1_230),
        ("together_ai/mistralai/Mixtral-8x7B-v0.1", SPACED, 600),
        ("ollama/llama2", CHINESE, 29),
        ("ollama/llama2", BLANK, 501),
        ("ollama/mistral", SOURCE, 1_230),
        ("openrouter/gryphe/mythomax-l2-13b", KOREAN, 401),
        ("gemini/gemini-2.5-pro", SOURCE, 1_210),
        ("vertex_ai/gemini-2.5-pro", BLANK, 401),
        ("watsonx/ibm/granite-3-8b-instruct", RUSSIAN, 511),
        ("ollama/starcoder2", KOREAN, 760),
    ],
    ids=itertools.count(),
)
def test_tokenizers_whose_files_are_not_here_make_no_more_of_a_text(
    model: str, text: str, tokens: int
) -> None:
    highest = counted(text, model=model)
    assert highest is not None
    assert tokens <= highest - FRAME <= 4 * tokens


@pytest.mark.parametrize(("model", "tokens"), [("ollama/llama2", 121), ("ollama/gemma3", 120)])
def test_rules_of_a_table_are_not_taken_for_few_tokens(model: str, tokens: int) -> None:
    highest = counted(RULES, model=model)
    assert highest is not None and highest - FRAME >= tokens


@pytest.mark.parametrize(
    "model",
    [
        *("mistral/open-mistral-nemo", "mistral/mistral-small-latest", "openai/prompt-mpt"),
        *("watsonx/ibm/granite-4-h-small", "openrouter/allenai/olmo-3-32b", "openai/gpt-oss-20b"),
        *("mistral/mistral-small-24b-instruct-2501", "azure_ai/phi-4", "groq/llama-3.2-3b"),
    ],
)
def test_no_other_name_is_taken_for_one_of_a_small_vocabulary(model: str) -> None:
    assert counted(CHINESE, model=model) == 30 + FRAME


@pytest.mark.parametrize("text", ["Beautiful is better than ugly.\n" * 40, CHINESE])
def test_newer_tokenizers_of_claude_make_up_to_twice_as_much(text: str) -> None:
    highest, claude = counted(text), counted(text, model="openrouter/anthropic/Claude-opus-4.7")
    assert highest is not None and claude is not None
    assert claude - FRAME == 2 * (highest - FRAME)


def test_words_of_a_text_that_look_like_control_tokens_are_text() -> None:
    for word in ("<|endoftext|>", "<EOT>", "<｜end▁of▁sentence｜>"):
        tokens = counted(word * 10)
        assert tokens is not None
        assert tokens > 20 + FRAME


def test_half_a_surrogate_pair_is_counted_and_never_an_error() -> None:
    tokens = counted("\ud83d" * 10)
    assert tokens is not None
    assert tokens > FRAME


@pytest.mark.parametrize(
    "text",
    [
        "Beautiful is better than ugly.\n" * 800,
        "".join(random.Random(1).choices("abc ,.\n\u4e00\u00e9\U0001f965", k=20_000)),
        "x" * 20_000,
        "\n" * 20_000,
        "\u4e00\u9f98" * 10_000,
    ],
    ids=["prose", "mixed", "one letter", "one line end", "no spaces"],
)
def test_a_long_text_is_counted_in_parts_hardly_higher_than_whole_and_never_lower(
    text: str,
) -> None:
    whole = max(count(text) for count in map(vocabularies._vocabulary, NAMES) if count is not None)
    in_parts = counted(text)
    assert in_parts is not None
    assert whole <= in_parts - FRAME <= whole * 1.002 + 5


def test_neither_litellm_nor_the_network_is_needed() -> None:
    code = (
        "import socket, sys\n"
        "socket.socket.connect = None\n"
        "from rlm_rag.models.base import Message\n"
        "from rlm_rag.models.vocabularies import highest_message_tokens\n"
        "print(highest_message_tokens([Message('user', 'Hi')], model='openai/gpt-3.5-turbo'))\n"
        "print(sorted({'litellm', 'httpx', 'requests', 'tokenizers'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["8", "[]"]


def test_where_a_file_is_missing_nothing_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabularies, "litellm_folder", lambda: None)
    monkeypatch.setattr(vocabularies, "_vocabulary", vocabularies._loaded.__wrapped__)
    assert counted("Hi") is None

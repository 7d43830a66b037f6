"""How many tokens real tokenizers make of a text: those whose files come with litellm.

Of others it is known what they make more of than these. Nothing is fetched, and litellm is not
imported. Loading all four takes 1.6 s of processor and 170 MB once a process, counting 1 to 2 s
a megabyte: for calls near a limit and lost ones, off the event loop.
"""

from __future__ import annotations

import json
import math
import os
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from rlm_rag.models.base import Message
from rlm_rag.models.prices import litellm_folder, provider_of
from rlm_rag.models.providers import provider_at, served_name
from rlm_rag.models.tokens import framing_tokens

Count = Callable[[str], int]

# The names under which tiktoken looks for its files: SHA-1 of the addresses they are published at.
_TIKTOKEN_FILES = {
    "cl100k_base": "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
    "o200k_base": "fb374d419588a4632f3f557e76b4b70aebbca790",
}
_JSON_FILES = {"claude": "anthropic_tokenizer.json", "deepseek": "deepseek_tokenizer.json"}
NAMES = (*_TIKTOKEN_FILES, *_JSON_FILES)
# Tokenizers take more than their share of time for a megabyte without a space.
_PART_CHARS = 8_192
_BORDER = re.compile(r"\S(?=\s)")
_DIGITS = re.compile("[0-9]+")
_LOADING = threading.Lock()


@dataclass(frozen=True, slots=True)
class _Family:
    """Models, by name, whose tokenizer is not here: what it makes of these tokenizers' one.

    What matches `apart` has a token for each byte.
    """

    names: re.Pattern[str]
    share: float
    apart: re.Pattern[str] | None = None


_FAMILIES = (
    # Claude's from Opus 4.7 on make up to 1.46 tokens for one of those before (English and German
    # prose, by Anthropic's own counts), and these up to 1.3 for one of cl100k's.
    _Family(re.compile("claude", re.I), 2),
    # Vocabularies of 32,000 (Llama 2's, Mistral's until 2024, what was made from those) and of
    # 50,000 (GPT-2's, NeoX's, StarCoder's, Granite's until its fourth) make up to 1.18 tokens of
    # these tokenizers' one (capitals at random), and mostly join neither spaces nor rules of a
    # table nor the bytes of a character beyond ASCII: Russian, Chinese and Korean have twice as
    # many with GPT-2's.
    _Family(
        re.compile(
            r"llama-?2|code-?llama|vicuna|alpaca|wizard|mythomax|xwin|solar|openchat|starling"
            r"|zephyr|hermes-2|openhermes|neural-?chat|dolphin-(?:mi|phi)|\borca|sqlcoder|mathstral"
            r"|codestral|mixtral|mistral(?:$|[-:](?:7b|8x|instruct|latest|tiny|v0))"
            r"|mistral-(?:small|large)-24\d\d|phi-?[1-3]|tinyllama|\byi-|\byi:|\bgpt-?2\b|gpt-?neo"
            r"|gpt-?j|pythia|olmo(?!-?[23])|falcon|stablelm|starcoder|smollm|granite(?!-?4)|codegen"
            r"|\bmpt-",
            re.I,
        ),
        1.2,
        re.compile(r"[0-9]+|\s{2,}|[!-/:-@\[-`{-~]{4,}|[^\x00-\x7f]+"),
    ),
    # Gemma's, which is Gemini's too, has up to 1.08 for Korean syllables at random, a token for
    # each line end between spaces, and shorter ones for rows of one sign: 1.09 for source code, 2
    # to 3 for rules and blank lines.
    _Family(
        re.compile("gemma|gemini", re.I),
        1.15,
        re.compile(r"[0-9\n\r\t]+|\s{16,}|[!-/:-@\[-`{-~]{8,}"),
    ),
)


def highest_message_tokens(
    messages: Sequence[Message], *, model: str, api_base: str | None = None
) -> int | None:
    """The most tokens that one of the tokenizers makes of a chat prompt.

    Of a model that OpenAI serves its own tokenizer counts alone; else cl100k, o200k, DeepSeek's
    and an older one of Claude's, each as it is and with a token for each digit, as Qwen's,
    Gemma's and Mistral's have it. For a model that is called a Claude twice that; for a Gemma, a
    Gemini and those with a small vocabulary more, and a token for each byte of what such a one
    does not join. Texts that look like control tokens are counted as text, images as in
    `count_message_tokens`. Texts beyond 8,192 characters are counted in parts, with one token for
    each cut besides: 0.1 % too high rather than too low. None where a tokenizer cannot be loaded.
    """
    own = _own(model, api_base)
    if (known := _known(own)) is None:
        return None
    texts = [_decodable(message.content) for message in messages]
    highest = joined = _highest(known, texts)
    if own is None:
        digits = _highest(known, texts, apart=_DIGITS)
        highest = max(joined, digits, _unseen(known, texts, model, joined))
    return framing_tokens(messages) + highest


def lowest_message_tokens(
    messages: Sequence[Message], *, model: str, api_base: str | None = None
) -> int | None:
    """The fewest tokens that one of these tokenizers makes of a chat prompt, else as above."""
    if (known := _known(_own(model, api_base))) is None:
        return None
    texts = [_decodable(message.content) for message in messages]
    lowest = min(sum(_counted(count, text) for text in texts) for count in known)
    return framing_tokens(messages) + lowest


def _known(own: str | None) -> Sequence[Count] | None:
    """The tokenizers to count by, a model's `own` or all; None where one cannot be loaded."""
    counts = [_vocabulary(name) for name in (NAMES if own is None else (own,))]
    known = [count for count in counts if count is not None]
    return known if len(known) == len(counts) else None


def _unseen(counts: Sequence[Count], texts: Sequence[str], model: str, joined: int) -> int:
    """What is known of a tokenizer whose file is not here by its model's name; 0 if nothing is.

    `joined` is the highest count with nothing apart.
    """
    for family in _FAMILIES:
        if family.names.search(model):
            if family.apart is not None:
                joined = _highest(counts, texts, apart=family.apart)
            return math.ceil(family.share * joined)
    return 0


def _highest(
    counts: Sequence[Count], texts: Sequence[str], *, apart: re.Pattern[str] | None = None
) -> int:
    """The highest of some counts, what matches `apart` having a token for each of its bytes."""
    if apart is None:
        return max(sum(_counted(count, text) for text in texts) for count in counts)
    between = Counter(piece for text in texts for piece in apart.split(text))
    single = sum(len(run.encode()) for text in texts for run in apart.findall(text))
    return single + max(
        sum(times * _counted(count, piece) for piece, times in between.items()) for count in counts
    )


def is_served_by_openai(model: str, api_base: str | None) -> bool:
    """Whether OpenAI itself serves a model, by its name or by the address."""
    if api_base is not None:
        return provider_at(api_base) == "openai"
    prefix, slash, _ = model.partition("/")
    return (prefix if slash else provider_of(model)) == "openai"


def _own(model: str, api_base: str | None) -> str | None:
    """The tokenizer of a model that OpenAI serves; None for any other."""
    if not is_served_by_openai(model, api_base):
        return None
    try:
        from tiktoken.model import encoding_name_for_model

        encoding = encoding_name_for_model(served_name(model))
    except (ImportError, KeyError):
        return None
    return encoding if encoding in _TIKTOKEN_FILES else None


def _vocabulary(name: str) -> Count | None:
    with _LOADING:
        return _loaded(name)


@cache
def _loaded(name: str) -> Count | None:
    installed = litellm_folder()
    if installed is None:
        return None
    folder = installed / "litellm_core_utils" / "tokenizers"
    try:
        if name in _TIKTOKEN_FILES:
            return _of_tiktoken(name, folder)
        return _of_json(folder / _JSON_FILES[name])
    except (ImportError, OSError, ValueError, KeyError):
        # Another version of litellm: callers then count by a higher estimate.
        return None


def _of_tiktoken(name: str, folder: Path) -> Count:
    import tiktoken

    if not (folder / _TIKTOKEN_FILES[name]).is_file():
        # tiktoken would fetch it.
        raise FileNotFoundError(_TIKTOKEN_FILES[name])
    before = os.environ.get("TIKTOKEN_CACHE_DIR")
    os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)
    try:
        encoding = tiktoken.get_encoding(name)
    finally:
        if before is None:
            del os.environ["TIKTOKEN_CACHE_DIR"]
        else:
            os.environ["TIKTOKEN_CACHE_DIR"] = before
    return lambda text: len(encoding.encode_ordinary(text))


def _of_json(file: Path) -> Count:
    from tokenizers import Tokenizer

    described = json.loads(file.read_bytes())
    # A provider does not take a corpus's words for control tokens, which are one token each.
    described["added_tokens"] = []
    tokenizer = Tokenizer.from_str(json.dumps(described))
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False))


def _decodable(text: str) -> str:
    """The text without halves of surrogate pairs, which no tokenizer takes."""
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def _counted(count: Count, text: str) -> int:
    parts = list(_parts(text))
    return sum(map(count, parts)) + len(parts) - 1 if parts else 0


def _parts(text: str) -> Iterator[str]:
    """Cut a text before a space where there is one, which is where tokens mostly end."""
    start = 0
    while len(text) - start > _PART_CHARS:
        last = start + _PART_CHARS
        borders = _BORDER.finditer(text, start + _PART_CHARS // 2, last)
        end = max((border.end() for border in borders), default=last)
        yield text[start:end]
        start = end
    if start < len(text):
        yield text[start:]

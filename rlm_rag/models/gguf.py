"""What the head of a GGUF file says of its model: enough to choose a context size.

The format is llama.cpp's (docs/gguf.md of ggml): a magic, a version, counts, then key-value pairs.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from rlm_rag.errors import ModelNotFoundError

MAGIC = b"GGUF"
MAX_PAIRS = 10_000
MAX_STRING_BYTES = 1 << 24
MAX_PASSED_BYTES = 1 << 32
_SCALARS = {
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}
_STRING, _ARRAY = 8, 9
# Two bytes a number of the cache, of keys and of values.
_CACHE_BYTES = 4


@dataclass(frozen=True, slots=True)
class ModelShape:
    """`trained_tokens` is the longest context that the model was made for.

    `cache_bytes` is what one token of a context takes in the cache of keys and values.
    """

    trained_tokens: int
    cache_bytes: int


def read_shape(path: Path) -> ModelShape:
    """Read the head of a GGUF file.

    Raises:
        ModelNotFoundError: it is missing, or no GGUF file of a language model.
    """
    try:
        with path.open("rb") as file:
            pairs = _pairs(file)
        name = str(pairs["general.architecture"])
        heads = _number(pairs, f"{name}.attention.head_count")
        width = _number(pairs, f"{name}.embedding_length") // max(heads, 1)
        cached = pairs.get(f"{name}.attention.head_count_kv")
        kept = cached if isinstance(cached, int) else heads
        layers = _number(pairs, f"{name}.block_count")
        trained = _number(pairs, f"{name}.context_length")
    except OSError as error:
        raise ModelNotFoundError(
            f"the model file {path} cannot be read: {error.strerror or error}",
            hint="local:PATH names a GGUF file, such as local:models/qwen2.5-coder-1.5b.gguf",
        ) from error
    except (KeyError, ValueError, struct.error) as error:
        raise ModelNotFoundError(
            f"{path} is no GGUF file of a language model: {error}",
            hint="give a file whose name ends in .gguf, whole and not split",
        ) from error
    return ModelShape(trained, max(1, layers * kept * width * _CACHE_BYTES))


def _number(pairs: dict[str, object], key: str) -> int:
    value = pairs[key]
    if not isinstance(value, int) or value < 1:
        raise ValueError(f"{key} is {value!r:.40}")
    return value


def _pairs(file: BinaryIO) -> dict[str, object]:
    if file.read(4) != MAGIC:
        raise ValueError("it does not begin with GGUF")
    (version,) = _unpack(file, "I")
    if not 2 <= version <= 3:
        raise ValueError(f"version {version} of the format is not known")
    _, count = _unpack(file, "QQ")
    if count > MAX_PAIRS:
        raise ValueError(f"it has {count} entries")
    pairs: dict[str, object] = {}
    for _ in range(count):
        key = _string(file)
        (kind,) = _unpack(file, "I")
        pairs[key] = _value(file, kind)
    return pairs


def _value(file: BinaryIO, kind: int) -> object:
    if kind in _SCALARS:
        return _unpack(file, _SCALARS[kind])[0]
    if kind == _STRING:
        return _string(file)
    if kind != _ARRAY:
        raise ValueError(f"a value of kind {kind}")
    inner, length = _unpack(file, "IQ")
    if inner in _SCALARS:
        # Passed over: token scores and types are long, and of no use here.
        _pass_over(file, length * struct.calcsize("<" + _SCALARS[inner]))
        return None
    if inner != _STRING or length > MAX_STRING_BYTES:
        raise ValueError(f"an array of {length} values of kind {inner}")
    for _ in range(length):
        (size,) = _unpack(file, "Q")
        _pass_over(file, size)
    return None


def _pass_over(file: BinaryIO, size: int) -> None:
    if size > MAX_PASSED_BYTES:
        raise ValueError(f"an array of {size} bytes")
    file.seek(size, 1)


def _string(file: BinaryIO) -> str:
    (size,) = _unpack(file, "Q")
    if size > MAX_STRING_BYTES:
        raise ValueError(f"a text of {size} bytes")
    return file.read(size).decode("utf-8", "replace")


def _unpack(file: BinaryIO, form: str) -> tuple[int, ...]:
    form = "<" + form
    return struct.unpack(form, file.read(struct.calcsize(form)))

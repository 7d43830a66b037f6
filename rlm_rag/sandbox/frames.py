"""The frames that the host and a worker exchange: encoding, assembly, and what may be in them.

One frame is one line of ASCII JSON. A message that does not fit a frame travels as `part`
frames. The worker imports this module in a bare interpreter, so it stays with the standard
library, and away from modules that are slow to import.
"""

from __future__ import annotations

import itertools

from rlm_rag.errors import ProtocolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

VERSION = 1
MAX_FRAME_BYTES = 1 << 20
MAX_MESSAGE_BYTES = 64 << 20
MAX_DEPTH = 100
MAX_NAME_CHARS = 256
MAX_VARIABLES = 200
# Of the names that belong to the model: `answers` and `plan`.
MAX_MEMORIES = 2
# Lists, dicts and their items in one message: what 64 MiB of brackets would cost in memory is
# thirty times that.
MAX_ITEMS = 1 << 19
# Folders in what `init` names as libraries: what model code may import, and what it may not.
PACKAGES, PRIVATE = "packages", "private"
# What a worker may leave with its host, of variables in any form, and in how many of them.
MAX_KEPT_CHARS = 64 << 20
MAX_KEPT_NAMES = 10_000
# Escaping doubles a part's quotes and backslashes at worst; the rest is the part's envelope.
_PART_CHARS = (MAX_FRAME_BYTES - 1024) // 2
_MAX_ID = 1 << 53

_part_ids = itertools.count(1)


def finite(literal: str) -> float:
    """Read a number of JSON.

    Raises:
        ValueError: it is beyond what a float holds.
    """
    number = float(literal)
    if number - number != 0.0:
        raise ValueError(f"{literal} is not a finite number")
    return number


def refuse_constant(literal: str) -> float:
    """Refuse NaN and Infinity, which `json` reads though JSON has none.

    Raises:
        ValueError: always.
    """
    raise ValueError(f"{literal} is not JSON")


def _coders() -> tuple[Callable[[Any], str], Callable[[str], Any]]:
    """Return what writes and reads JSON: the accelerators beneath `json`, or `json` itself.

    Importing `json` takes a third of the time that a worker takes to start: it imports `re`.
    """
    try:
        return _accelerated()
    except (ImportError, TypeError):
        import json

        encoder = json.JSONEncoder(allow_nan=False, separators=(",", ":"))
        decoder = json.JSONDecoder(parse_float=finite, parse_constant=refuse_constant)
        return encoder.encode, decoder.decode


class _Scanning:
    strict = True
    object_hook = object_pairs_hook = None
    parse_float = staticmethod(finite)
    parse_int = int
    parse_constant = staticmethod(refuse_constant)


def _accelerated() -> tuple[Callable[[Any], str], Callable[[str], Any]]:
    from _json import encode_basestring_ascii, make_encoder, make_scanner

    context: Any = _Scanning()
    scan = make_scanner(context)

    def encode(value: Any) -> str:
        # The first argument tells containers that hold themselves.
        write = make_encoder({}, _refuse, encode_basestring_ascii, None, ":", ",", *_CHOICES)
        return "".join(write(value, 0))

    def decode(text: str) -> Any:
        text = text.strip(" \t\r\n")
        try:
            value, end = scan(text, 0)
        except StopIteration:
            raise ValueError("it holds no value") from None
        if end != len(text):
            raise ValueError("something follows the value")
        return value

    if (encode({"a": [1.5, "\u00e9", None]}), decode('{"a":[1.5,true]}')) != _KNOWN:
        raise TypeError("these are other accelerators than are known")
    return encode, decode


def _refuse(value: Any) -> Any:
    raise TypeError(f"a {type(value).__name__} is not JSON")


# Neither sorted keys, skipped ones nor NaN.
_CHOICES = (False, False, False)
_KNOWN = ('{"a":[1.5,"\\u00e9",null]}', {"a": [1.5, True]})
_encode, _decode = _coders()


def encode(message: Mapping[str, Any]) -> bytes:
    """Return the frames of one message, newlines included, ready to be written in one piece.

    Raises:
        ProtocolError: the message is larger than `MAX_MESSAGE_BYTES`, or has more than
            `MAX_ITEMS` items.
        TypeError, ValueError, RecursionError: a value that JSON cannot carry (NaN and
            infinities included).
    """
    text = _encode(message)
    if len(text) < MAX_FRAME_BYTES:
        return text.encode("ascii") + b"\n"
    if len(text) > MAX_MESSAGE_BYTES:
        raise ProtocolError(
            f"a message of {len(text):,} bytes is larger than the {MAX_MESSAGE_BYTES:,} allowed"
        )
    if has_too_many_items(text):
        raise ProtocolError(f"a message of more than {MAX_ITEMS:,} items is not allowed")
    part_id = next(_part_ids)
    starts = range(0, len(text), _PART_CHARS)
    frames = [
        _encode(
            {
                "t": "part",
                "id": part_id,
                "last": start == starts[-1],
                "data": text[start : start + _PART_CHARS],
            }
        )
        for start in starts
    ]
    return "\n".join(frames).encode("ascii") + b"\n"


def too_deep(value: object, *, depth: int = MAX_DEPTH) -> bool:
    """Say whether lists and dicts nest deeper in `value` than `depth` levels."""
    level = [value] if isinstance(value, (dict, list, tuple)) else []
    for _ in range(depth):
        if not level:
            return False
        level = [
            item
            for box in level
            for item in (box.values() if isinstance(box, dict) else box)
            if isinstance(item, (dict, list, tuple))
        ]
    return bool(level)


def parse(text: str) -> dict[str, Any]:
    """Return the JSON object of one frame or assembled message.

    Raises:
        ProtocolError: not a JSON object with a type, deeper than `MAX_DEPTH`, or of more than
            `MAX_ITEMS` items.
    """
    if has_too_many_items(text):
        raise ProtocolError(f"a frame holds more than {MAX_ITEMS:,} items")
    try:
        value = _decode(text)
    except RecursionError:
        raise ProtocolError("a frame nests too deep") from None
    except ValueError as error:
        raise ProtocolError(f"a frame is not JSON: {error}") from None
    if not isinstance(value, dict) or not isinstance(value.get("t"), str):
        raise ProtocolError("a frame is not an object with a type")
    if text.count("[") + text.count("{") > MAX_DEPTH and too_deep(value):
        raise ProtocolError(f"a frame nests deeper than {MAX_DEPTH} levels")
    return value


def has_too_many_items(text: str) -> bool:
    """Say whether JSON text holds more than `MAX_ITEMS` values, without decoding it."""
    if len(text) <= MAX_ITEMS or _count_marks(text) <= MAX_ITEMS:
        return False
    # Commas and brackets in strings do not count: what is left once strings are cut out does.
    plain = text.replace("\\\\", "").replace('\\"', "")
    if plain.count('"') > 4 * MAX_ITEMS:
        return True
    return sum(map(_count_marks, plain.split('"')[::2])) > MAX_ITEMS


def _count_marks(text: str) -> int:
    return text.count(",") + text.count("[") + text.count("{")


class Assembler:
    """Turns the frames of one direction into messages, joining parts."""

    def __init__(self) -> None:
        self._id: int | None = None
        self._pieces: list[str] = []
        self._size = 0
        self._dropping = False

    def drop(self) -> None:
        """Forget the message that is under way; what is still to come of it is left out."""
        self._pieces = []
        self._dropping = self._id is not None

    def feed(self, frame: bytes) -> dict[str, Any] | None:
        """Take one frame without its newline; return a message once it is whole, else None.

        One that no memory was left for (MemoryError) may be fed again.

        Raises:
            ProtocolError: the frame is malformed, too large or too deep, or parts of two
                messages are mixed.
        """
        if len(frame) >= MAX_FRAME_BYTES:
            raise ProtocolError(f"a frame is longer than {MAX_FRAME_BYTES:,} bytes")
        if not frame.isascii():
            raise ProtocolError("a frame is not ASCII")
        message = parse(frame.decode("ascii"))
        if message["t"] == "part":
            return self._join(message)
        if self._id is not None:
            raise ProtocolError("a frame came between the parts of another message")
        return message

    def _join(self, part: dict[str, Any]) -> dict[str, Any] | None:
        _check_fields(part, _PART)
        if self._id is None:
            self._id = part["id"]
        elif self._id != part["id"]:
            raise ProtocolError("the parts of two messages are mixed")
        size = self._size + len(part["data"])
        if not part["data"] or size > MAX_MESSAGE_BYTES:
            raise ProtocolError("a message in parts is empty, or larger than allowed")
        if part["last"]:
            message = None if self._dropping else self._whole(part["data"])
            self._id, self._pieces, self._size, self._dropping = None, [], 0, False
            return message
        if not self._dropping:
            self._pieces.append(part["data"])
        self._size = size
        return None

    def _whole(self, last: str) -> dict[str, Any]:
        text = "".join((*self._pieces, last))
        if not text.isascii():
            raise ProtocolError("a message in parts is not ASCII")
        message = parse(text)
        if message["t"] == "part":
            raise ProtocolError("a part inside a part")
        return message


def check_worker_message(message: Mapping[str, Any]) -> None:
    """Hold a worker's message against the fields of its type, all required and no others.

    What passes has the right types and bounded lists; it may still be a lie.

    Raises:
        ProtocolError: an unknown type, or a field that is missing, unknown or of a wrong type.
    """
    fields = _WORKER_FIELDS.get(message["t"])
    if fields is None:
        raise ProtocolError(f"a worker sent a frame of unknown type {message['t'][:40]!r}")
    _check_fields(message, fields)


def _check_fields(message: Mapping[str, Any], fields: Mapping[str, Callable[[Any], bool]]) -> None:
    if len(message) != len(fields) + 1 or not fields.keys() <= message.keys():
        odd = sorted((message.keys() - {"t"}) ^ fields.keys())
        raise ProtocolError(
            f"a {message['t']} frame lacks fields or has unknown ones: {', '.join(odd)[:200]}"
        )
    for name, holds in fields.items():
        if not holds(message[name]):
            raise ProtocolError(f"the field {name} of a {message['t']} frame has a wrong value")


def _is_id(value: object) -> bool:
    return type(value) is int and 0 <= value < _MAX_ID


def _is_bool(value: object) -> bool:
    return isinstance(value, bool)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_optional_text(value: object) -> bool:
    return value is None or isinstance(value, str)


def _is_name(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= MAX_NAME_CHARS


def _is_seconds(value: object) -> bool:
    return type(value) in (int, float) and value >= 0  # type: ignore[operator]


def _is_error(value: object) -> bool:
    return value is None or _is_record(value, {"type": str, "message": str, "traceback": str})


def _is_answer(value: object) -> bool:
    return value is None or _is_record(value, {"content": str, "ready": bool})


def _is_record(value: object, types: Mapping[str, type]) -> bool:
    return (
        isinstance(value, dict)
        and value.keys() == types.keys()
        and all(isinstance(value[name], kind) for name, kind in types.items())
    )


def _is_memory(value: object) -> bool:
    return (
        isinstance(value, list)
        and len(value) <= MAX_MEMORIES
        and all(isinstance(row, list) and len(row) == 2 for row in value)
        and all(_is_text(part) for row in value for part in row)
    )


def _is_names(value: object) -> bool:
    return isinstance(value, list) and len(value) <= MAX_VARIABLES and all(map(_is_name, value))


def _is_kept_name(value: object) -> bool:
    return isinstance(value, str) and len(value) <= MAX_NAME_CHARS


def _is_kept_names(value: object) -> bool:
    return (
        isinstance(value, list) and len(value) <= MAX_KEPT_NAMES and all(map(_is_kept_name, value))
    )


def _is_variables(value: object) -> bool:
    return (
        isinstance(value, list)
        and len(value) <= MAX_VARIABLES
        and all(
            isinstance(row, list) and len(row) == 3 and all(map(_is_text, row)) for row in value
        )
    )


_PART: Mapping[str, Callable[[Any], bool]] = {"id": _is_id, "last": _is_bool, "data": _is_text}
_WORKER_FIELDS: Mapping[str, Mapping[str, Callable[[Any], bool]]] = {
    "hello": {
        "version": _is_id,
        "python": _is_name,
        "worker": _is_name,
        "layers": lambda value: isinstance(value, dict),
    },
    "call": {
        "call": _is_id,
        "block": _is_id,
        "name": _is_name,
        "args": lambda value: isinstance(value, list),
        "kwargs": lambda value: isinstance(value, dict),
    },
    "done": {
        "block": _is_id,
        "stdout": _is_text,
        "stderr": _is_text,
        "stdout_cut": _is_id,
        "stderr_cut": _is_id,
        "value": _is_optional_text,
        "error": _is_error,
        "answer": _is_answer,
        "overwritten": _is_names,
        "variables": _is_variables,
        "memory": _is_memory,
        "seconds": _is_seconds,
    },
    "piece": {"name": _is_kept_name, "data": _is_text, "last": _is_bool},
    "snapshot": {"block": _is_id, "gone": _is_kept_names},
    "restored": {"names": _is_kept_names},
    "kept": {},
}

import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlm_rag.errors import ProtocolError
from rlm_rag.sandbox import frames

TEXT = st.text(st.characters(codec=None), max_size=30)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


def messages_of(data: bytes) -> list[dict[str, Any]]:
    assembler = frames.Assembler()
    assert data.endswith(b"\n")
    found = [assembler.feed(line) for line in data[:-1].split(b"\n")]
    return [message for message in found if message is not None]


@given(value=JSON)
def test_a_message_comes_back_as_it_was(value: Any) -> None:
    message = {"t": "reply", "value": value}
    data = frames.encode(message)
    assert data.isascii()
    assert messages_of(data) == [message]


@settings(max_examples=40)
@given(value=JSON, text=st.sampled_from(["x", '"', "\\", "\ud800", "é", "\n", '\\"']))
def test_a_message_in_parts_comes_back_as_it_was(value: Any, text: str) -> None:
    message = {"t": "reply", "value": value, "pad": text * 3000}
    limit, chars = frames.MAX_FRAME_BYTES, frames._PART_CHARS
    frames.MAX_FRAME_BYTES, frames._PART_CHARS = 2000, 400
    try:
        data = frames.encode(message)
        assert max(map(len, data.split(b"\n"))) < 2000
        assert data.count(b"\n") > 1
        assert messages_of(data) == [message]
    finally:
        frames.MAX_FRAME_BYTES, frames._PART_CHARS = limit, chars


def test_a_large_message_is_sent_in_frames_that_are_small_enough() -> None:
    message = {"t": "reply", "value": '"\\\ud800é' * 300_000}
    data = frames.encode(message)
    assert max(map(len, data.split(b"\n"))) < frames.MAX_FRAME_BYTES
    assert messages_of(data + frames.encode({"t": "end"})) == [message, {"t": "end"}]


def test_a_message_that_is_too_large_is_not_sent() -> None:
    with pytest.raises(ProtocolError, match="larger"):
        frames.encode({"t": "reply", "value": "x" * frames.MAX_MESSAGE_BYTES})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}, b"", object()])
def test_what_json_cannot_carry_is_not_sent(value: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        frames.encode({"t": "reply", "value": value})


BAD_FRAMES = [
    b"",
    b"{",
    b"[]",
    b"1",
    b'"t"',
    b"{}",
    b'{"t":1}',
    b'{"t":"x","v":NaN}',
    b'{"t":"x","v":-Infinity}',
    b'{"t":"x","v":1e999}',
    b'{"t":"x","v":' + b"1" * 5000 + b"}",
    b'{"t":"x"} {"t":"x"}',
    b'{"t":"\xc3\xa9"}',
    b'{"t":"x","v":"\x01"}',
    b'{"t":"x","v":' + b"[" * 101 + b"]" * 101 + b"}",
    b'{"t":"x","v":' + b"[" * 300_000 + b"]" * 300_000 + b"}",
    b'{"t":"x","v":"' + b"x" * frames.MAX_FRAME_BYTES + b'"}',
    b'{"t":"part","id":1,"last":true,"data":""}',
    b'{"t":"part","id":1,"last":true,"data":"{\\"t\\":\\"part\\"}"}',
    b'{"t":"part","id":1,"last":true,"data":"\\u00e9"}',
    b'{"t":"part","id":true,"last":true,"data":"{}"}',
    b'{"t":"part","id":1,"last":1,"data":"{}"}',
    b'{"t":"part","id":1,"last":true}',
    b'{"t":"part","id":1,"last":true,"data":"{}","more":1}',
]


@pytest.mark.parametrize("frame", BAD_FRAMES, ids=lambda frame: frame[:40].decode("latin-1"))
def test_a_bad_frame_is_a_protocol_error(frame: bytes) -> None:
    with pytest.raises(ProtocolError):
        frames.Assembler().feed(frame)


@given(frame=st.binary(max_size=60) | TEXT.map(lambda text: text.encode("utf-8", "replace")))
def test_any_bytes_are_a_message_or_a_protocol_error(frame: bytes) -> None:
    try:
        message = frames.Assembler().feed(frame)
    except ProtocolError:
        return
    assert message is None or isinstance(message["t"], str)


@pytest.mark.parametrize(
    "second",
    [{"t": "done"}, {"t": "part", "id": 2, "last": True, "data": "x"}],
    ids=["a whole message", "a part of another"],
)
def test_parts_of_two_messages_do_not_mix(second: dict[str, Any]) -> None:
    assembler = frames.Assembler()
    first = {"t": "part", "id": 1, "last": False, "data": "{"}
    assert assembler.feed(json.dumps(first).encode()) is None
    with pytest.raises(ProtocolError):
        assembler.feed(json.dumps(second).encode())


def test_parts_that_never_end_are_stopped_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "MAX_MESSAGE_BYTES", 1000)
    assembler = frames.Assembler()
    frame = json.dumps({"t": "part", "id": 1, "last": False, "data": "x" * 300}).encode()
    with pytest.raises(ProtocolError):
        for _ in range(4):
            assembler.feed(frame)


def test_a_hundred_levels_pass_and_more_do_not() -> None:
    def nested(levels: int) -> Any:
        value: Any = 1
        for _ in range(levels):
            value = [value]
        return value

    assert not frames.too_deep(nested(100))
    assert frames.too_deep(nested(101))
    assert messages_of(frames.encode({"t": "x", "v": nested(99)}))


HELLO = {"t": "hello", "version": 1, "python": "3.11.7", "worker": "ab", "layers": {}}
CALL = {"t": "call", "call": 1, "block": 0, "name": "search", "args": ["q"], "kwargs": {"k": 3}}
DONE = {
    "t": "done",
    "block": 1,
    "stdout": "",
    "stderr": "",
    "stdout_cut": 0,
    "stderr_cut": 0,
    "value": None,
    "error": None,
    "answer": None,
    "overwritten": [],
    "variables": [],
    "memory": [],
    "seconds": 0.5,
}
WRONG_FIELDS = [
    (HELLO, {"version": True}),
    (HELLO, {"version": "1"}),
    (HELLO, {"worker": ""}),
    (HELLO, {"layers": []}),
    (CALL, {"call": -1}),
    (CALL, {"call": 1.0}),
    (CALL, {"call": 1 << 60}),
    (CALL, {"name": ""}),
    (CALL, {"name": "x" * 300}),
    (CALL, {"args": {}}),
    (CALL, {"kwargs": []}),
    (DONE, {"stdout": None}),
    (DONE, {"stdout_cut": -1}),
    (DONE, {"value": 1}),
    (DONE, {"error": "boom"}),
    (DONE, {"error": {"type": "E", "message": "m"}}),
    (DONE, {"error": {"type": "E", "message": "m", "traceback": 1}}),
    (DONE, {"answer": {"content": "x", "ready": 1}}),
    (DONE, {"answer": {"content": "x", "ready": True, "more": 1}}),
    (DONE, {"overwritten": "search"}),
    (DONE, {"overwritten": [1]}),
    (DONE, {"overwritten": ["x"] * 1000}),
    (DONE, {"variables": [["a", "b"]]}),
    (DONE, {"variables": [["a", "b", "c"]] * 1000}),
    (DONE, {"seconds": -1}),
    (DONE, {"seconds": True}),
    (DONE, {"seconds": "1"}),
]


@pytest.mark.parametrize("message", [HELLO, CALL, DONE])
def test_right_messages_of_a_worker_pass(message: dict[str, Any]) -> None:
    frames.check_worker_message(message)
    for name in message.keys() - {"t"}:
        rest = {key: value for key, value in message.items() if key != name}
        with pytest.raises(ProtocolError, match=name):
            frames.check_worker_message(rest)
    with pytest.raises(ProtocolError, match="surplus"):
        frames.check_worker_message({**message, "surplus": 1})


@pytest.mark.parametrize(("message", "wrong"), WRONG_FIELDS, ids=str)
def test_a_field_of_a_wrong_kind_is_a_protocol_error(
    message: dict[str, Any], wrong: dict[str, Any]
) -> None:
    with pytest.raises(ProtocolError):
        frames.check_worker_message({**message, **wrong})


@pytest.mark.parametrize("kind", ["exec", "reply", "x" * 5000])
def test_a_worker_cannot_send_what_only_the_host_sends(kind: str) -> None:
    with pytest.raises(ProtocolError):
        frames.check_worker_message({"t": kind})


@pytest.mark.parametrize(
    "item",
    ["[],", "{},", '"",', "1,", '{"":1},', '"\\"",'],
    ids=["lists", "dicts", "texts", "numbers", "pairs", "escapes"],
)
def test_a_message_of_many_items_is_refused_without_being_built(item: str) -> None:
    text = f'{{"t":"call","args":[{item * (4 * frames.MAX_ITEMS)}1]}}'
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError, match="items"):
            frames.parse(text)
        assert tracemalloc.get_traced_memory()[1] < 4 * len(text)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("text", ["," * 3_000_000, '[{",' * 1_000_000, "\\," * 1_000_000])
def test_marks_inside_of_texts_are_not_items(text: str) -> None:
    message = {"t": "done", "stdout": text}
    assert messages_of(frames.encode(message)) == [message]


def test_as_many_items_as_are_allowed_pass() -> None:
    message = {"t": "call", "args": [[]] * (frames.MAX_ITEMS // 2 - 10)}
    assert messages_of(frames.encode(message)) == [message]


def test_a_message_of_more_items_is_not_sent() -> None:
    with pytest.raises(ProtocolError, match="524,288 items"):
        frames.encode({"t": "reply", "value": [{"text": ""}] * (frames.MAX_ITEMS // 2)})


def test_a_message_that_is_dropped_takes_the_rest_of_it_along() -> None:
    long = frames.encode({"t": "reply", "value": "x" * (3 << 20)}).splitlines()
    for dropped_after in range(len(long)):
        assembler = frames.Assembler()
        for number, frame in enumerate(long):
            found = assembler.feed(frame)
            assert found is None or dropped_after == len(long) - 1
            if number == dropped_after:
                assembler.drop()
        assert assembler.feed(b'{"t":"kept"}') == {"t": "kept"}

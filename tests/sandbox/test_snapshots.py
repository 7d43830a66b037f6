"""What a host takes of a worker's snapshots, and what it refuses."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import rlm_rag
from rlm_rag.errors import ProtocolError
from rlm_rag.sandbox import frames
from rlm_rag.sandbox.snapshots import KeptVariables


def piece(name: str, data: str, *, last: bool = True) -> dict[str, object]:
    return {"t": "piece", "name": name, "data": data, "last": last}


def kept(*pieces: dict[str, object]) -> KeptVariables:
    variables = KeptVariables()
    variables.begin_block(1, "x = 1")
    for each in pieces:
        variables.take_piece(each)
    return variables


def given_back(variables: KeptVariables) -> list[dict[str, object]]:
    return [json.loads(frame) for frame in variables.frames(plain=False)]


def test_pieces_count_once_their_snapshot_ended() -> None:
    variables = kept(piece("x", "AA", last=False), piece("x", "BB"))
    assert len(variables) == 0
    variables.take_snapshot({"block": 1, "gone": []})
    assert given_back(variables) == [
        piece("x", "AA", last=False),
        piece("x", "BB"),
        {"t": "restore", "blocks": [[1, "x = 1"]], "plain": False},
    ]


def test_a_snapshot_that_never_ended_leaves_the_one_before() -> None:
    variables = kept(piece("x", "AA"))
    variables.take_snapshot({"block": 1, "gone": []})
    variables.take_piece(piece("x", "BB", last=False))
    variables.drop_arriving()
    assert given_back(variables)[0] == piece("x", "AA")


def test_gone_and_lost_names_are_forgotten() -> None:
    variables = kept(piece("x", "AA"), piece("y", "BB"), piece("z", "CC"))
    variables.take_snapshot({"block": 1, "gone": []})
    variables.take_snapshot({"block": 2, "gone": ["x"]})
    variables.keep_only({"z", "never there"})
    assert [frame.get("name") for frame in given_back(variables)] == ["z", None]
    assert variables.block == 2


def too_large() -> None:
    variables = KeptVariables()
    variables.begin_block(1, "")
    for number in range(200):
        variables.take_piece(piece(str(number), "A" * (1 << 20)))


def too_large_in_turns() -> None:
    variables = KeptVariables()
    for number in range(200):
        variables.begin_block(number, "")
        variables.take_piece(piece(str(number), "A" * (1 << 20)))
        variables.take_snapshot({"block": number, "gone": []})


def too_many_names() -> None:
    kept(*[piece(str(number), "") for number in range(frames.MAX_KEPT_NAMES + 1)])


def empty_pieces() -> None:
    kept(*[piece("x", "", last=False)] * 5000)


def piece_after_the_last() -> None:
    kept(piece("x", "AA"), piece("x", "BB"))


def unfinished() -> None:
    kept(piece("x", "AA", last=False)).take_snapshot({"block": 1, "gone": []})


@pytest.mark.parametrize(
    "send",
    [too_large, too_large_in_turns, too_many_names, empty_pieces, piece_after_the_last, unfinished],
)
def test_more_or_other_than_is_allowed_is_refused(send: Callable[[], None]) -> None:
    with pytest.raises(ProtocolError):
        send()


READERS = {"pickle", "_pickle", "cPickle", "dill", "cloudpickle", "shelve", "copyreg", "joblib"}


# A benchmark published as pickles, read from the user's own path by a reader that finds no class.
OF_DATA = ("evals/claims.py",)


def imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield str(node.module).partition(".")[0]
        elif isinstance(node, ast.Attribute) and node.attr in ("loads", "load", "_load"):
            yield f"{ast.unparse(node.value)}.{node.attr}"


def test_nothing_that_runs_on_the_host_can_read_a_pickle() -> None:
    package = Path(str(rlm_rag.__file__)).parent
    for path in package.rglob("*.py"):
        text = path.read_text("utf-8")
        # Most files need no parsing; only in letters beyond ASCII has a name other spellings.
        is_silent = text.isascii() and not any(name in text for name in (*READERS, "marshal"))
        if "inside" not in path.parts and not is_silent:
            names = set(imported(ast.parse(text)))
            if path.relative_to(package).as_posix() not in OF_DATA:
                assert not names & READERS, path
            assert "marshal.loads" not in names, path
            assert "marshal.load" not in names, path
    inside = ast.parse((package / "sandbox/inside/pickling.py").read_text("utf-8"))
    assert "_pickle" in set(imported(inside))

"""Landmarks kept as bytes: they come back as they were, or not at all."""

from __future__ import annotations

import pickle
import sqlite3
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from rlm_rag.indexes.definition_cache import DefinitionCache, Outlined
from rlm_rag.indexes.landmark_bytes import decode, encode
from rlm_rag.indexes.landmarks import Landmarks
from rlm_rag.indexes.skeleton import Definition

NAMES = st.sampled_from(["load", "Reader", "猫", "", "a\nb"])
DEFINITIONS = st.lists(
    st.builds(
        lambda line, length, name, parents: Definition(
            line, "function", name, name, tuple(parents), len(parents), line + length
        ),
        st.integers(1, 70_000),
        st.integers(0, 20),
        NAMES,
        st.lists(NAMES, max_size=6),
    ),
    max_size=12,
)


@given(DEFINITIONS)
def test_landmarks_come_back_as_they_were(definitions: list[Definition]) -> None:
    landmarks = Landmarks.of(definitions)
    decoded = decode(encode(landmarks))
    assert decoded is not None
    for found in (decoded, pickle.loads(pickle.dumps(decoded))):
        assert list(found.lines) == list(landmarks.lines)
        assert list(found.ends) == list(landmarks.ends)
        assert list(found.names) == list(landmarks.names)
        assert found.names[-3:] == list(landmarks.names)[-3:]


@given(DEFINITIONS, st.data())
def test_damaged_bytes_give_none(definitions: list[Definition], data: st.DataObject) -> None:
    encoded = bytearray(encode(Landmarks.of(definitions)))
    assert decode(bytes(encoded[: data.draw(st.integers(0, len(encoded) - 1))])) is None
    encoded[data.draw(st.integers(0, len(encoded) - 1))] ^= data.draw(st.integers(1, 255))
    assert decode(bytes(encoded)) is None


def test_damaged_landmarks_are_made_of_the_definitions(tmp_path: Path) -> None:
    definition = Definition(3, "class", "Task", "class Task:", end_line=9)
    cache = DefinitionCache(tmp_path / "a")
    cache.add([(b"k", Outlined((definition,))), (b"said", Outlined((definition,), "scanned"))])
    cache.close()
    with sqlite3.connect(tmp_path / "a") as database:
        database.execute("UPDATE landmarks SET data = x'00' WHERE digest = ?", (b"k",))
    database.close()
    cache = DefinitionCache(tmp_path / "a")
    found = cache.landmarks([b"k", b"said", b"never"])
    cache.close()
    assert found == {b"k": Landmarks.of([definition]), b"said": None}

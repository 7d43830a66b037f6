import copy
import gc
import json
import pickle
import weakref
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlm_rag.packed import PackedCorpus
from rlm_rag.packing import PackedWriter
from rlm_rag.sandbox.inside.context import LazyContext, LazyEntry, open_context

TEXTS = {"a.py": "x = 1\n", "b/c.md": "# T\r\n\ud800 \x00", "empty": "", "d": "жук" * 9}


def pack(path: Path, texts: dict[str, str], shape: str = "documents") -> PackedCorpus:
    with PackedWriter(path, shape=shape) as writer:
        for name, content in texts.items():
            writer.add(name, content)
    return PackedCorpus.open(path)


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PackedCorpus]:
    with pack(tmp_path_factory.mktemp("packed") / "corpus", TEXTS) as corpus:
        yield corpus


@pytest.fixture
def lazy(packed: PackedCorpus) -> LazyContext:
    return LazyContext.of(packed)


def plain() -> list[dict[str, str]]:
    return [{"path": path, "content": content} for path, content in TEXTS.items()]


EXTRA = {"path": "a.py", "content": "x = 1\n"}


def statement(code: str) -> Callable[[Any], Any]:
    compiled = compile(code, "<statement>", "exec")

    def run(c: Any) -> Any:
        names = {"c": c, "extra": dict(EXTRA), "copy": copy, "json": json, "pickle": pickle}
        names |= {"chain": chain, "OrderedDict": OrderedDict, "Counter": Counter, "r": None}
        exec(compiled, names)
        return names["r"], names["c"]

    return run


LIST_READS = r"""
r = c + [1]
r = [1] + c
r = c + c
r = c * 2
r = 2 * c
r = c * 0
r = c + (1,)
r = (1,) + c
r = c + None
r = c.copy()
r = copy.copy(c)
r = copy.deepcopy(c)
r = list(reversed(c))
r = c == list(c), list(c) == c, c == c, c != list(c), c == [], [] == c, c == tuple(c), c == 3
r = c < [], [] < c, c >= [], c <= []
r = c < c
r = c.index(extra)
r = c.index(c[2], 1)
r = c.index(c[2], -2, -1)
r = c.index(extra, 1)
r = c.index("no")
r = c.count(extra), c.count(None)
r = extra in c, c[1] in c, "a.py" in c, None not in c
r = c[0], c[-1], c[True]
r = c[99]
r = c[-99]
r = c["path"]
r = c[0]["user"]
r = c[1:], c[:-1], c[::-1], c[::2], c[5:], c[slice(0, 2)]
r = list(c), tuple(c), [*c], (*c, 1), len(c), bool(c), not c
r = (lambda *a: a)(*c)
a, *b = c; r = a, b
w, x, y, z = c; r = w, z
w, x = c
r = sorted(c, key=lambda e: e["path"], reverse=True)
r = sorted(c)
r = json.dumps(c), json.dumps(c, indent=1), json.dumps(c, sort_keys=True)
r = json.dumps({"c": c, "e": c[0]}), json.dumps(c[1:]), json.dumps([c[0], c[0]])
r = json.loads(json.dumps(c))
r = pickle.loads(pickle.dumps(c)), pickle.loads(pickle.dumps(c[0], 0))
r = repr(c), str(c), f"{c}", "%s" % c[0], "{}".format(c)
r = isinstance(c, list), isinstance(c[0], dict)
r = [e["path"] for e in c], [len(e["content"]) for e in c]
r = {e["path"]: e["content"] for e in c}
r = list(enumerate(c)), list(zip(c, c[1:])), list(chain(c, c)), list(map(len, c))
r = list(filter(lambda e: e["content"], c)), max(c, key=lambda e: len(e["content"]))
r = sum(len(e["content"]) for e in c), any(c), all(c)
r = list(c.__iter__()), c.__len__(), c.__contains__(extra), c.__getitem__(0)
r = hash(c)
r = next(iter(c)), next(iter(reversed(c)))
l = [1]; m = l; l += c; r = l, m is l
l = [1]; l.extend(c); r = l
l = [1]; l[0:0] = c; r = l
l = []; l[:] = c; r = l
match c:\n    case [first, *rest]: r = first, rest
match c[0]:\n    case {"path": p, "content": t}: r = p, t
r = [d for d in c if d not in c[:1]]
r = c is c[:]
r = len(set(map(id, c[:] + c[:])))
"""

LIST_CHANGES = r"""
c.append(extra)
c.extend([extra, extra]); r = c[-1]
c.extend(c)
c.insert(1, extra)
c.insert(-1, 5)
r = c.pop()
r = c.pop(0)
r = c.pop(44)
c.remove(extra)
c.remove("no")
c.reverse()
c.sort(key=lambda e: len(e["content"]))
c.sort()
c.clear(); r = bool(c), c == [], list(c)
c.clear(); c.append(extra)
c[0] = extra
c[1:3] = []
c[::2] = c[::-2]
c[99] = extra
del c[0]
del c[:]
del c[77]
c += [extra]
c += c
c *= 2
c *= 0
c[:] = [e for e in c if e["content"]]
r = []\nfor e in c:\n    r.append(e["path"])\n    if len(c) < 8: c.append(extra)
r = []\nfor e in c:\n    c.remove(e)\n    r.append(e["path"])
r = []\nfor e in reversed(c):\n    c.pop()\n    r.append(e["path"])
"""

ENTRY_READS = r"""
e = c[1]; r = e["path"], e["content"], e.get("path"), e.get("content"), e.get("no"), e.get("no", 4)
e = c[1]; r = dict(e), {**e}, list(e), list(e.keys()), list(e.values()), list(e.items())
e = c[1]; r = (lambda **k: k)(**e)
e = c[1]; r = "{path} {content}".format(**e), "%(path)s %(content)s" % e
e = c[1]; r = "{path}".format_map(e), "{content}".format_map(e)
e = c[1]; r = e | {"x": 1}, {"x": 1} | e, e | e, e | OrderedDict(x=1), OrderedDict(x=1) | e
e = c[1]; r = e | 3
e = c[1]; r = 3 | e
e = c[1]; r = e.copy(), copy.copy(e), copy.deepcopy(e)
e = c[1]; r = e == dict(e), dict(e) == e, e == c[2], e != dict(e), e == 5, [e] == [dict(e)]
e = c[1]; r = {"path": e["path"], "content": e["content"]} == e
r = c[1] == c[1], c[1] != c[2], c[1] == {"path": "b/c.md"}, {"path": "b/c.md"} == c[1]
r = c[1] < c[2]
r = len(c[1]), bool(c[1]), "content" in c[1], "path" in c[1], "no" in c[1], [] in [c[1]]
r = [] in c[1]
r = list(reversed(c[1])), repr(c[1]), str(c[1]), list(zip(*c[1].items()))
r = json.dumps(c[1]), json.dumps(c[1], indent=2)
r = OrderedDict(c[1]), Counter(c[1]).keys() == c[1].keys(), dict(c[1].items())
d = {}; d.update(c[1]); r = d
d = {}; d |= c[1]; r = d
d = {**c[0], **c[1]}; r = d
d = dict(c[1], extra=1); r = d
r = {k: v for k, v in c[1].items()}, [k for k in c[1]]
p, t = c[1].values(); r = p, t
r = c[1].keys() | {"z"}, ("path", "b/c.md") in c[1].items()
r = c[1].fromkeys("ab"), c[1].__contains__("content"), c[1].__len__()
r = hash(c[1])
r = sorted(c[1]), max(c[1]), list(map(str.upper, c[1]))
"""

ENTRY_CHANGES = r"""
c[0]["x"] = 1; r = c[0]["x"], c[0]
c[0]["content"] = "new"; r = c[0]
c[0]["path"] = "p"; r = c[0], [e["path"] for e in c]
c[0].update(z=2); r = c[0]
c[0].update({"z": 2}, y=3); r = c[0]
c[0].update(c[1]); r = c[0]
r = c[0].pop("content"); r = r, c[0]
r = c[0].pop("no", 1), c[0]
r = c[0].pop("no")
r = c[0].popitem(), c[0]
r = c[0].setdefault("content", 1), c[0].setdefault("q", 2), c[0]
del c[0]["content"]; r = c[0], "content" in c[0], len(c[0]), c[0].get("content")
del c[0]["content"]; r = c[0]["content"]
del c[0]["no"]
c[0].clear(); r = c[0], bool(c[0]), c[:1]
c[0] |= {"x": 1}
e = c[0]; e |= {"x": 1}; r = c[0]
for e in c: e["n"] = len(e["content"])\nr = [e["n"] for e in c]
c[0]["x"] = 1; c.append(extra); r = c[0]
c[0]["x"] = 1; r = c[:1], list(c), [] + c, json.dumps(c), {**c[0]}, c.index(c[0])
"""


def statements() -> list[str]:
    groups = (LIST_READS, LIST_CHANGES, ENTRY_READS, ENTRY_CHANGES)
    return [line.replace("\\n", "\n") for text in groups for line in text.split("\n") if line]


def outcome(run: Callable[[Any], Any], context: Any) -> tuple[str, Any, list[Any]]:
    try:
        result, after = run(context)
    except Exception as error:  # noqa: BLE001 (any error is an outcome to compare)
        return type(error).__name__, None, list(context)
    return "", result, list(after)


def simple(value: Any) -> Any:
    """Rebuild `value` from exact types through the iteration and item protocols alone."""
    if isinstance(value, LazyEntry):
        return {key: value[key] for key in value.keys()}  # noqa: SIM118
    if isinstance(value, list):
        return [simple(item) for item in value]
    if isinstance(value, tuple):
        return tuple(simple(item) for item in value)
    return value


@pytest.mark.parametrize("code", statements())
def test_a_lazy_context_does_what_a_plain_list_of_dicts_does(code: str, lazy: LazyContext) -> None:
    run = statement(code)
    wanted = outcome(run, plain())
    got = outcome(run, lazy)
    assert tuple(map(simple, got)) == tuple(map(simple, wanted))


@settings(max_examples=150, deadline=None)
@given(codes=st.lists(st.sampled_from(statements()), min_size=2, max_size=6))
def test_any_sequence_of_operations_agrees_with_a_plain_list(
    codes: list[str], packed: PackedCorpus
) -> None:
    lazy: Any = LazyContext.of(packed)
    listed: Any = plain()
    for code in codes:
        run = statement(code)
        if len(listed) > 500:
            break
        wanted = outcome(run, listed)
        got = outcome(run, lazy)
        assert tuple(map(simple, got)) == tuple(map(simple, wanted))


@settings(max_examples=60, deadline=None)
@given(
    start=st.none() | st.integers(-7, 7),
    stop=st.none() | st.integers(-7, 7),
    step=st.none() | st.integers(-4, 4).filter(bool),
)
def test_slices_are_those_of_a_list(
    start: int | None, stop: int | None, step: int | None, packed: PackedCorpus
) -> None:
    part = slice(start, stop, step)
    assert LazyContext.of(packed)[part] == plain()[part]


def test_making_a_context_and_reading_paths_decodes_no_content(
    lazy: LazyContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: PackedCorpus, number: int) -> str:
        raise AssertionError(f"content {number} was decoded")

    monkeypatch.setattr(PackedCorpus, "content", refuse)
    assert [entry["path"] for entry in lazy] == list(TEXTS)
    assert len(lazy) == 4
    assert "content" in lazy[0]
    lazy.append({"path": "n", "content": ""})
    assert lazy[1]["path"] == "b/c.md"


def test_iterating_keeps_no_entry_alive(lazy: LazyContext) -> None:
    seen = []
    for entry in lazy:
        assert isinstance(entry["content"], str)
        seen.append(weakref.ref(entry))
    del entry
    gc.collect()
    assert [ref() for ref in seen] == [None] * 4


def test_an_entry_is_one_object_as_long_as_it_is_held(lazy: LazyContext) -> None:
    held = lazy[2]
    assert lazy[2] is held
    assert lazy[-2:][0] is held
    lazy.reverse()
    assert lazy[1] is held


def test_a_wrong_key_says_which_keys_there_are(lazy: LazyContext) -> None:
    with pytest.raises(KeyError) as caught:
        lazy[0]["user"]
    assert '"path" and "content"' in "".join(caught.value.__notes__)


def test_a_huge_context_is_not_shown_whole(
    lazy: LazyContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlm_rag.sandbox.inside.context._WHOLE_REPR_BYTES", 3)
    assert "4 documents" in repr(lazy)


@pytest.mark.parametrize(
    ("shape", "texts", "wanted"),
    [
        ("text", {"<context>": "a\r\nb"}, "a\r\nb"),
        ("text", {}, ""),
        ("texts", {"<context[0]>": "a", "<context[1]>": ""}, ["a", ""]),
        ("mapping", {"k": "v", "l": "w"}, {"k": "v", "l": "w"}),
    ],
)
def test_other_shapes_come_as_they_were_given(
    shape: str, texts: dict[str, str], wanted: Any, tmp_path: Path
) -> None:
    with pack(tmp_path / "packed", texts, shape) as corpus:
        value = open_context(corpus, shape)
    assert value == wanted
    assert type(value) is type(wanted)

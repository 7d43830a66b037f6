"""The Python that the offline policy writes.

Texts of the question and of the corpus enter it as literals alone, in ASCII and without the
characters that a fence is made of, so that no text can end its literal or its block.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from rlm_rag.models.offline_clues import Clues
from rlm_rag.models.offline_excerpts import MAX_LINE_CHARS, Place

SEARCH_K = 15
MENTIONS_K = 20
CALLS_K = 100
DEFINITIONS = 8
OUTLINE_CHARS = 3000
_GLOB_MARKS = re.compile(r"([\\*?\[\]!# ])")

_SHOW = """\
import json
import re

def show(kind, path, **found):
    line = json.dumps({"kind": kind, "path": path, **found}, ensure_ascii=False)
    print(%(mark)s + line.encode("utf-8", "backslashreplace").decode())
"""
_LOOK = """
def show_windows(number, query, **options):
    hits = search(query, **options)
    for hit in hits:
        show("window", hit["path"], query=number, line=hit["line"], end_line=hit["end_line"],
             score=hit["score"], snippet="" if number else hit["snippet"])
    return [hit["path"] for hit in hits]

question = %(query)s
show_windows(0, question, k=%(search_k)d)
"""
_LOOK_FOR_BASE_FORMS = """
show_windows(1, %(base_query)s, k=%(search_k)d)
"""
_LOOK_FOR_NAMES = """
for name, last_part, glob in %(names)s:
    in_file = show_windows(0, question, k=3, path_glob=glob) if glob else []
    for path in in_file:
        show("named", path)
    found = symbols(name) or (symbols(last_part) if last_part and not in_file else [])
    for symbol in found[:%(definitions)d]:
        path, line = symbol["path"], symbol["line"]
        head = re.sub(r"^ *\\d+: ?", "", read(path, line, line + 7), flags=re.M)
        show("definition", path, name=name, line=line, head=head[:600])
    if not found and not in_file:
        mentions = grep_context(re.escape(name), k=%(mentions_k)d, ignore_case=True)
        first = {}
        for hit in mentions["hits"]:
            first.setdefault(hit["path"], hit["line"])
        for path, line in first.items():
            show("mention", path, name=name, line=line, count=mentions["counts"][path])
"""
# A stop word is met in any text: only where it stands as a call does is it one.
_LOOK_FOR_CALLS = """
for name, call in %(calls)s:
    defined = [(symbol["path"], symbol["line"]) for symbol in symbols(name)]
    hits = grep_context(call, k=%(calls_k)d)["hits"]
    called = [(hit["path"], hit["line"]) for hit in hits]
    uses = [place for place in called if place not in defined]
    for path, line in uses[:%(definitions)d]:
        show("call", path, name=name, line=line)
    for path, line in [] if uses else defined[:%(definitions)d]:
        show("definition", path, name=name, line=line, head="")
"""
_LOOKED = """
show("looked", "")
"""
_READ = """
places = %(places)s
for path, first, last in places:
    while first <= last:
        rows = read(path, first, last).split("\\n")
        rows = [row for row in (re.match(r"\\s*(\\d+): ?(.*)", row, re.S) for row in rows) if row]
        if not rows or int(rows[0][1]) != first:
            break
        show("lines", path, line=first, lines=[row[2][:%(line_chars)d] for row in rows])
        # One answer ends within a line that is longer than that.
        first += len(rows)
show("outline", places[0][0], text=outline(places[0][0], budget_chars=%(outline_chars)d))
"""


def literal(text: str) -> str:
    """Return a Python string literal of one ASCII line, without backtick and tilde."""
    return ascii(text).replace("`", "\\x60").replace("~", "\\x7e")


def look_block(clues: Clues, mark: str) -> str:
    """Return the block that searches for the question and for each name in it."""
    code = _SHOW % {"mark": literal(mark)}
    code += _LOOK % {"query": literal(clues.query), "search_k": SEARCH_K}
    if clues.base_query != clues.query:
        base_query = literal(clues.base_query)
        code += _LOOK_FOR_BASE_FORMS % {"base_query": base_query, "search_k": SEARCH_K}
    if clues.used:
        calls = ",\n    ".join(_call_row(name) for name in clues.used)
        code += _LOOK_FOR_CALLS % {
            "calls": f"[\n    {calls},\n]",
            "definitions": DEFINITIONS,
            "calls_k": CALLS_K,
        }
    names = [name for name in clues.names if name not in clues.used]
    if names:
        rows = ",\n    ".join(_name_row(name) for name in names)
        code += _LOOK_FOR_NAMES % {
            "names": f"[\n    {rows},\n]",
            "definitions": DEFINITIONS,
            "mentions_k": MENTIONS_K,
        }
    return _fenced("First, what the search says of the question.", code + _LOOKED)


def read_block(places: Sequence[Place], mark: str) -> str:
    """Return the block that reads the places, and outlines the first one's document."""
    rows = [f"({literal(place.path)}, {place.line}, {place.end_line})" for place in places]
    code = _SHOW % {"mark": literal(mark)}
    code += _READ % {
        "places": "[\n    " + ",\n    ".join(rows) + ",\n]",
        "line_chars": MAX_LINE_CHARS,
        "outline_chars": OUTLINE_CHARS,
    }
    return _fenced("Then the lines around what was found.", code)


def answer_block(text: str) -> str:
    """Return the block that gives the answer and ends the run."""
    lines = "\n    ".join(literal(line) for line in text.splitlines(keepends=True) or [""])
    code = f'answer["content"] = (\n    {lines}\n)\nanswer["ready"] = True\n'
    return _fenced("This is the best that can be shown without a language model.", code)


def _name_row(name: str) -> str:
    """Return a name, its last part, and the glob of the file that it may be; None where none."""
    parts = [part for part in re.split(r"\W+", name) if part]
    last_part = literal(parts[-1]) if len(parts) > 1 and " " not in name else "None"
    is_path = re.fullmatch(r"[\w./ -]*\w", name) and ("/" in name or "." in name[1:-1])
    glob = literal(_GLOB_MARKS.sub(r"\\\1", name)) if is_path else "None"
    return f"({literal(name)}, {last_part}, {glob})"


def _call_row(name: str) -> str:
    """Return a name, and the pattern of what calls it."""
    word = re.escape(name)
    pattern = rf"(?<!\w){word}\(|[.:>]{word}(?!\w)"
    return f"({literal(name)}, {literal(pattern)})"


def _fenced(says: str, code: str) -> str:
    return f"{says}\n\n```repl\n{code.strip()}\n```"

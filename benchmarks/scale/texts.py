"""A large corpus of real text: this interpreter's library, again and again in other words."""

from __future__ import annotations

import re
import sysconfig
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_LONG_WORD = re.compile(r"[a-z]{6,}")
# One word of so many is another one in each copy.
_CHANGED = 5


def documents(total_bytes: int) -> Iterator[tuple[str, str]]:
    """Yield `(path, content)`, `total_bytes` of content or a little more, the same every time.

    In copy `n` a fifth of the long words end in a letter more, which ones differs from copy to
    copy, so that the vocabulary grows with the corpus and few windows have an equal.
    """
    done = copy = 0
    while done < total_bytes:
        for path, text in _library():
            changed = _LONG_WORD.sub(lambda word, copy=copy: _word(word[0], copy), text)
            yield f"copy{copy:03}/{path}", changed
            done += len(changed)
            if done >= total_bytes:
                return
        copy += 1


@cache
def _library() -> tuple[tuple[str, str], ...]:
    root = Path(sysconfig.get_paths()["stdlib"])
    found = []
    for file in sorted(root.rglob("*.py")):
        if "site-packages" not in file.parts:
            try:
                found.append((file.relative_to(root).as_posix(), file.read_text("utf-8")))
            except UnicodeDecodeError:
                # Tests of encodings are written in others.
                continue
    return tuple(found)


@cache
def _word(word: str, copy: int) -> str:
    if not copy or sum(word.encode()) % _CHANGED != copy % _CHANGED:
        return word
    return f"{word}{chr(ord('a') + copy % 26)}{chr(ord('a') + copy // 26 % 26)}"

"""What a model thought aloud before its reply, where a server leaves it in the text."""

from __future__ import annotations

import re

_THOUGHT = re.compile(r"\A\s*<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)


def without_thought(reply: str) -> str:
    """Return a reply without the thought that it begins with, all of it where that has no end."""
    return _THOUGHT.sub("", reply).strip()

"""Blocks that attack whoever runs them: their own interpreter, and the host behind it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Harm = Literal["hangs", "dies", "floods", "talks", "asks"]


@dataclass(frozen=True, slots=True)
class HostileBlock:
    """`harm` is what it does to an interpreter of its own, which proves that it is one.

    `is_quick` ones run always, the others where tests may take long.
    A block that `talks` writes to the host past the worker; it ends in that worker's end. One that
    `asks` writes calls, which are answered.
    """

    name: str
    code: str
    harm: Harm

    @property
    def is_quick(self) -> bool:
        return self.name in _QUICK


_HANGS = {
    "a loop": "while True: pass",
    "a loop that swallows interrupts": """
while True:
    try:
        while True:
            pass
    except BaseException:
        pass
""",
    "a regular expression that goes back for ever": """
import re
re.match(r'(a+)+$', 'a' * 60 + 'b')
""",
    "one huge number": "7 ** (10 ** 9)",
    "a count in C": "sum(range(1 << 60))",
    "a search in C": "any(map(bool, iter(int, 1)))",
    "an endless repr": """
class R:
    def __repr__(self):
        while True:
            pass
R()
""",
    "an endless str of an error": """
class E(Exception):
    def __str__(self):
        while True:
            pass
raise E
""",
    "ignored signals": """
import signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
while True:
    pass
""",
    "blocked signals": """
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
while True:
    pass
""",
    "a wait for itself": """
import threading
lock = threading.Lock()
lock.acquire()
lock.acquire()
""",
    "a sleep with the interpreter's lock": "import ctypes\nctypes.PyDLL(None).sleep(1000)",
    "a finaliser": """
class Last:
    def __del__(self):
        while True:
            pass
Last()
while True:
    pass
""",
    "a sort of liars": """
class Liar:
    def __lt__(self, other):
        while True:
            pass
sorted([Liar(), Liar()])
""",
}
_DEATHS = {
    "an exit": "import os\nos._exit(0)",
    "an abort": "import os\nos.abort()",
    "a bad address": "import ctypes\nctypes.string_at(0)",
    "a stack without end": """
import sys
sys.setrecursionlimit(1 << 30)
nested = []
for _ in range(10 ** 5):
    nested = [nested]
repr(nested)
""",
    "a bad instruction": "import ctypes\nctypes.pythonapi.Py_FatalError(b'over')",
    "closed descriptors": "import os\nos.closerange(0, 1024)\nos._exit(1)",
    "freed memory": "import ctypes\nctypes.memset(id(None), 0, 64)\nNone\n[None] * 9",
}
_FLOODS = {
    "output": "while True: print('x' * 100_000)",
    "errors": "import sys\nwhile True: sys.stderr.write('x' * 100_000)",
    "a huge value": "print('x' * (60 << 20))\n'x' * (60 << 20)",
    "a huge repr": """
class R:
    def __repr__(self):
        return 'x' * (60 << 20)
print(R())
R()
""",
    "output of many threads": """
import threading
def shout():
    while True:
        print('x' * 100_000)
for _ in range(8):
    threading.Thread(target=shout, daemon=True).start()
shout()
""",
}

# Every descriptor that the worker kept for itself.
FORGE = """
import json, os, threading, time
def frame(**fields):
    return json.dumps(fields).encode() + b'\\n'
def forge(data):
    sent = 0
    for descriptor in range(3, 256):
        try:
            sent += os.write(descriptor, data) > 0
        except OSError:
            pass
    return sent
"""
_CALL = "t='call', block=1, args=[], kwargs={}"
_TALK = {
    "noise": "forge(b'\\xff\\x00noise\\n')",
    "no JSON": "forge(b'{\\n')",
    "no object": "forge(b'[1]\\n')",
    "an empty line": "forge(b'\\n')",
    "not a number": "forge(frame(t='done', block=float('nan')))",
    "a frame of no kind": "forge(frame(t='shutdown'))",
    "a second greeting": "forge(frame(t='hello', version=1, python='3', worker='w', layers={}))",
    "another block's end": "forge(frame(t='done', block=999))",
    "deep nesting": "forge(b'[' * 200_000 + b'\\n')",
    "deep nesting in a call": f"""
deep = []
for _ in range(400):
    deep = [deep]
forge(frame(call=1, name='search', **(dict({_CALL}) | {{'args': deep}})))
""",
    "a bomb of numbers": "forge(frame(t='done', block=1).replace(b'}', b'0' * 100_000 + b'}'))",
    "a frame without end": "while True:\n    forge(b'x' * 60_000)",
    "part of a frame that never began": "forge(frame(t='part', id=7, last=True, data='x'))",
    "parts without end": """
number = 0
while True:
    number += 1
    forge(frame(t='part', id=number, last=False, data='x' * 60_000))
""",
    "an exit hook": """
import atexit, ctypes
atexit.register(forge, b'{}\\n')
ctypes.pythonapi.Py_Exit(0)
""",
    "a frame after its block": """
threading.Thread(target=lambda: (time.sleep(0.1), forge(b'{}\\n'))).start()
""",
}
_ASK = {
    "a service that is not": f"forge(frame(call=1, name='shell', {_CALL}))",
    "calls without end": f"""
number = 0
while True:
    number += 1
    forge(frame(call=number, name='search', {_CALL}))
""",
}

# One for each way in which a host holds.
_QUICK = frozenset(
    {
        *("a loop that swallows interrupts", "a regular expression that goes back for ever"),
        *("a count in C", "an endless repr", "ignored signals"),
        *("an exit", "a bad address", "closed descriptors", "output", "a huge repr"),
        *("noise", "not a number", "a second greeting", "deep nesting", "a frame without end"),
        *("part of a frame that never began", "a frame after its block", "a service that is not"),
    }
)

# Reads what the host sends in the worker's place.
THEFT = """
import os, threading
def steal(descriptor):
    try:
        while os.read(descriptor, 1 << 20):
            pass
    except OSError:
        pass
for descriptor in range(3, 256):
    try:
        os.fstat(descriptor)
    except OSError:
        continue
    threading.Thread(target=steal, args=(descriptor,), daemon=True).start()
"""

BLOCKS = (
    *(HostileBlock(name, code, "hangs") for name, code in _HANGS.items()),
    *(HostileBlock(name, code, "dies") for name, code in _DEATHS.items()),
    *(HostileBlock(name, code, "floods") for name, code in _FLOODS.items()),
    *(HostileBlock(name, f"{FORGE}\n{code}", "talks") for name, code in _TALK.items()),
    *(HostileBlock(name, f"{FORGE}\n{code}", "asks") for name, code in _ASK.items()),
)

"""Code that waits in a variable until a fresh worker reads it: many ways and many aims."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.sandbox.attacks.blocks import FORGE

_AIM = "won = open(F['secret']).read()"

# What code does once it runs in the fresh worker.
_AIMS = {
    "a file": _AIM,
    "the environment of a process": "won = open(f\"/proc/{F['victim']}/environ\", 'rb').read()",
    "a write": "won = open(F['target'], 'a').write('x')",
    "the worker's own sources": """
import rlm_rag.sandbox.inside.worker as worker
won = open(worker.__file__, 'ab')
""",
    "the network": "import socket\nwon = socket.create_connection(('127.0.0.1', F['tcp']))",
    "a socket by path": """
import socket
won = not socket.socket(socket.AF_UNIX).connect(F['socket'])
""",
    "an abstract socket": """
import socket
won = not socket.socket(socket.AF_UNIX).connect('\\0' + F['abstract'])
""",
    "a signal to another process": "import os\nos.kill(F['victim'], 0)\nwon = True",
    "a process": """
import os
child = os.fork()
child or os._exit(0)
won = os.waitpid(child, 0)[0] == child
""",
    "a program": "import os\nwon = os.system('exit 7') == 7 << 8",
    "memory of another process": "won = open(f\"/proc/{F['victim']}/mem\", 'rb')",
}

# How code comes to run there: `PAYLOAD` is the code, `trap` the variable that is kept.
_WAYS = {
    "__reduce__": """
class Reduced:
    def __reduce__(self):
        return exec, (PAYLOAD,)
trap = Reduced()
""",
    "__reduce_ex__ inside plain data": """
class ReducedEx:
    def __reduce_ex__(self, protocol):
        return exec, (PAYLOAD,)
trap = {'a': [1, (ReducedEx(),)]}
""",
    "__setstate__": """
class Stated:
    def __init__(self): self.code = PAYLOAD
    def __setstate__(self, state): exec(state['code'], {})
trap = Stated()
""",
    "__new__": """
class Made:
    def __new__(cls, code=None):
        if code:
            exec(code, {})
        return super().__new__(cls)
    def __getnewargs__(self): return (PAYLOAD,)
trap = Made()
""",
    "__setitem__": """
class Mapped(dict):
    def __setitem__(self, key, value): exec(value, {})
trap = Mapped()
dict.__setitem__(trap, 'a', PAYLOAD)
""",
    "__hash__": """
class Hashed:
    def __reduce__(self): return Hashed.remade, (PAYLOAD,)
    @staticmethod
    def remade(code):
        made = Hashed()
        made.loaded = code
        return made
    def __hash__(self):
        exec(getattr(self, 'loaded', ''), {})
        return 1
trap = {Hashed()}
""",
    "a registered reducer": """
import copyreg
class Registered: pass
copyreg.pickle(Registered, lambda _: (exec, (PAYLOAD,)))
trap = Registered()
""",
    "a state setter": """
class Plain: pass
def set_state(made, code): exec(code, {})
class Setter:
    def __reduce__(self): return Plain, (), PAYLOAD, None, None, set_state
trap = Setter()
""",
    "a partial function": """
import functools
class Applied:
    def __reduce__(self): return functools.partial(exec, PAYLOAD), ()
trap = Applied()
""",
    "a forged piece": "keep('trap', b'P', PAYLOAD)",
    "a forged piece for the other reader": "keep('trap', b'D', PAYLOAD)",
}


# Makes pieces that no worker would send.
PRELUDE = f"""
{FORGE}
import base64
def keep_bytes(name, data):
    text = base64.b64encode(data).decode()
    assert forge(frame(t='piece', name=name, data=text, last=True))
    assert forge(frame(t='snapshot', block=1, gone=[]))
def keep(name, reader, code):
    keep_bytes(name, reader + f'cbuiltins\\nexec\\n(S{{code!r}}\\ntR.'.encode())
"""

_PAYLOAD = """
import builtins
told = builtins.__dict__.setdefault('told', {{}})
names = {{'F': {facts!r}}}
try:
    exec({aim!r}, names)
    told[{variable!r}] = 'won' if names.get('won') else 'lost'
except BaseException as error:
    told[{variable!r}] = f'{{type(error).__name__}}: {{error}}'
"""


@dataclass(frozen=True, slots=True)
class SnapshotAttack:
    """Code that waits in `variable`; read back, it writes how it fared to `builtins.told`."""

    title: str
    variable: str
    aim: str
    way: str

    def block(self, facts: Mapping[str, Any]) -> str:
        """Return the block that leaves the code behind, after `PRELUDE` ran."""
        payload = _PAYLOAD.format(facts=dict(facts), aim=self.aim, variable=self.variable)
        return self.way.replace("trap", self.variable).replace("PAYLOAD", repr(payload))


_PAIRS = [
    *((f"{name}, by __reduce__", aim, _WAYS["__reduce__"]) for name, aim in _AIMS.items()),
    *((f"a file, by {name}", _AIM, way) for name, way in _WAYS.items() if name != "__reduce__"),
]
ATTACKS = tuple(
    SnapshotAttack(title, f"trap_{number}", aim, way)
    for number, (title, aim, way) in enumerate(_PAIRS)
)

# What harms its reader, by `keep_bytes` or otherwise.
BOMBS = {
    "nested without end": "keep_bytes('bomb', b'P' + b']' * 10**6 + b'a' * (10**6 - 1) + b'.')",
    "calls in calls": """
class Nested:
    def __init__(self, depth): self.depth = depth
    def __reduce__(self): return Nested, (Nested(self.depth + 1),)
bomb = Nested(0)
""",
    "a hash of what was doubled sixty times": (
        "keep_bytes('bomb', b'P\\x80\\x05()' + b'2\\x86' * 60 + b'\\x91.')"
    ),
    "a length that is none": "keep_bytes('bomb', b'P\\x80\\x05\\x8e' + b'\\xff' * 7 + b'\\x7fx.')",
    "a memo of two thousand million": "keep_bytes('bomb', b'PNr\\xff\\xff\\xff\\x7f.')",
    "no pickle": "keep_bytes('bomb', b'P' + bytes(range(256)))",
    "no reader": "keep_bytes('bomb', b'')",
    "a name of the worker's own": "keep_bytes('answer', b'Pcos\\n_exit\\n(K\\x07tR.')",
}

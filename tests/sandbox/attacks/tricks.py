"""Getting at files from inside the interpreter, by ways round what a language could forbid."""

from __future__ import annotations

from tests.sandbox.attacks.attack import Attack

_WAYS = {
    "the subclasses of object": """
loader = next(c for c in object.__subclasses__() if c.__name__ == 'BuiltinImporter')
system = loader.load_module('posix')
won = system.read(system.open(F['secret'], 0), 10)
""",
    "the frames above": """
import types
won = sys._getframe().f_back.f_builtins['open'](F['secret']).read()
""",
    "a traceback": """
try:
    1 / 0
except ZeroDivisionError as error:
    won = error.__traceback__.tb_frame.f_builtins['open'](F['secret']).read()
""",
    "a format string": """
class Spy:
    def __getattr__(self, name):
        return open(F['secret']).read()
won = '{0.anything}'.format(Spy())
""",
    "code made by hand": """
import types
won = types.FunctionType(compile('open(path).read()', 'x', 'eval'), {'path': F['secret']})()
""",
    "a pickle": """
import pickle
won = pickle.loads(b"cbuiltins\\nopen\\n(V" + F['secret'].encode() + b"\\ntR.").read()
""",
    "an import": """
from importlib.machinery import SourceFileLoader
won = SourceFileLoader('m', F['secret']).get_data(F['secret'])
""",
    "the C library": """
d = checked(libc.open(F['secret'].encode(), 0))
b = ctypes.create_string_buffer(8)
won = libc.read(d, b, 8) > 0
""",
    "a map of the file": """
import mmap
d = os.open(F['secret'], 0)
won = mmap.mmap(d, 0, prot=1)[:1]
""",
    "a finaliser": """
found = []
sys.unraisablehook = lambda _: None
class Late:
    def __del__(self):
        found.append(open(F['secret']).read())
Late()
won = found
""",
    "a thread": """
found = []
def look():
    try:
        found.append(open(F['secret']).read())
    except OSError:
        pass
t = threading.Thread(target=look); t.start(); t.join()
won = found
""",
}

ATTACKS = tuple(Attack("tricks", name, code) for name, code in _WAYS.items())

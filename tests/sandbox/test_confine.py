"""What a layer lets a worker see and do."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import dill
import pytest

import rlm_rag
from rlm_rag.errors import SandboxUnavailableError, UsageError
from rlm_rag.sandbox import layers
from rlm_rag.sandbox.confine import probe
from rlm_rag.sandbox.confine.landlock import NOWHERE, Landlock
from rlm_rag.sandbox.confine.unconfined import Unconfined
from rlm_rag.sandbox.confine.view import Layer, WorkerLimits, interpreter
from rlm_rag.setting_table import SANDBOXES
from tests.sandbox.support import ALL_LAYERS, CONFINING, IN_NAMESPACES, lines_of

ROOT = str(Path(rlm_rag.__file__).parents[1])
DILL = str(Path(dill.__file__).parents[1])
SYSTEM_PYTHON = "/usr/bin/python3.11"

# A host of its own, in whatever interpreter and user the test gives it.
HOST = """
import sys
from rlm_rag.errors import SandboxUnavailableError
from rlm_rag.sandbox import layers
for layer in layers._CONFINING:
    print(layer.name, layers.self_test(layer))
try:
    print("chosen", layers.choose_layer().name)
except SandboxUnavailableError as error:
    print(error.message)
    print(error.hint)
"""


def run_host(*command: str, first: str = "", **environment: str) -> str:
    done = subprocess.run(
        [*command, "-B", "-c", first + HOST],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": f"{ROOT}:{DILL}", **environment},
        cwd="/",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("layer", CONFINING)
def test_a_confining_layer_passes_its_self_test(layer: Layer) -> None:
    assert layers.self_test(layer) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="some of the attempts need root when unconfined")
def test_what_a_host_killed_in_its_self_test_left_is_removed_by_the_next(tmp_path: Path) -> None:
    held = (
        "class Held(Unconfined):\n"
        "  def launch(self, *_, **__): print('testing', flush=True); time.sleep(60)\n"
        "layers.self_test(Held())"
    )
    imports = (
        "import time; from rlm_rag.sandbox import layers\n"
        "from rlm_rag.sandbox.confine.unconfined import Unconfined\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", imports + held],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        cwd=ROOT,
        stdout=subprocess.PIPE,
    ) as host:
        assert host.stdout is not None
        assert host.stdout.readline() == b"testing\n"
        assert [path.name for path in tmp_path.glob("*/canary")] == ["canary"]
        host.kill()
    run_host(sys.executable, TMPDIR=str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_every_attempt_of_the_self_test_works_where_nothing_confines() -> None:
    arguments = ["1", "canary", "1", "socket", "name", "corpus"]
    wanted = [f"{name}: OPEN" for name in probe.attempts(arguments)]
    assert layers.self_test(Unconfined()) == wanted


def test_memory_that_runs_out_blocks_the_attempt_to_take_it_and_no_other(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(probe, "JOB_MEMORY_BYTES", 1 << 60)
    monkeypatch.setattr(probe, "attempts", lambda _: {"take": probe._take_memory})
    with pytest.raises(FileNotFoundError):
        probe.main(["/nonexistent/corpus"])
    assert capsys.readouterr().out == "take: blocked\n"
    monkeypatch.setattr(probe, "attempts", lambda _: {"other": lambda: bytearray(1 << 60)})
    with pytest.raises(MemoryError):
        probe.main(["/nonexistent/corpus"])


def test_none_is_never_chosen_unless_it_is_named() -> None:
    assert layers.choose_layer().name in ("bwrap", "namespaces", "landlock")
    assert layers.choose_layer("none").name == "none"


def test_a_layer_can_be_asked_for_by_name() -> None:
    assert layers.choose_layer("namespaces").name == "namespaces"


def test_an_unknown_layer_is_a_usage_error_that_names_the_known_ones() -> None:
    with pytest.raises(UsageError) as caught:
        layers.choose_layer("docker-in-docker")
    assert caught.value.hint is not None
    assert "namespaces" in caught.value.hint


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux for what it lacks")
@pytest.mark.parametrize(
    ("name", "system"), [("sandbox-exec", "macOS alone"), ("job", "Windows alone")]
)
def test_a_layer_of_another_system_has_a_name_and_fails_closed(name: str, system: str) -> None:
    with pytest.raises(SandboxUnavailableError) as caught:
        layers.choose_layer(name)
    assert f"the sandbox {name} does not work on this machine" in caught.value.message
    assert system in caught.value.message
    assert caught.value.hint is not None
    assert "--sandbox auto" in caught.value.hint


def test_a_setting_may_name_each_layer() -> None:
    assert set(SANDBOXES) == set(layers.LAYER_NAMES)


NO_NAMESPACES = ("unshare", "-Ur", "sh", "-c")
CLOSE_THEM = 'echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"'

# The kernel nests no more than 16 restrictions in each other.
EXHAUST_LANDLOCK = """
import ctypes
libc = ctypes.CDLL(None)
libc.prctl(38, 1, 0, 0, 0)
for _ in range(16):
    rules = libc.syscall(444, ctypes.byref(ctypes.c_uint64(1 << 11)), ctypes.c_size_t(8), 0)
    assert rules >= 0 and libc.syscall(446, rules, 0) == 0
"""


@pytest.mark.skipif(shutil.which("unshare") is None, reason="needs unshare")
def test_where_namespaces_are_closed_landlock_and_the_filter_hold_alone() -> None:
    printed = run_host(*NO_NAMESPACES, CLOSE_THEM, "sh", interpreter())
    assert "namespaces ['launch: [Errno 28] unshare" in printed
    assert printed.endswith("landlock []\nchosen landlock\n")


@pytest.mark.skipif(shutil.which("unshare") is None, reason="needs unshare")
def test_where_no_layer_works_it_fails_closed_and_says_why() -> None:
    printed = run_host(*NO_NAMESPACES, CLOSE_THEM, "sh", interpreter(), first=EXHAUST_LANDLOCK)
    assert "chosen" not in printed
    assert "no sandbox works on this machine (bwrap: " in printed
    assert "; namespaces: launch: [Errno 28] unshare" in printed
    assert "; landlock: OSError: [Errno 7]" in printed
    assert "--sandbox none" in printed


@pytest.mark.skipif(not Path(SYSTEM_PYTHON).exists(), reason="no system interpreter")
def test_the_layers_hold_in_the_system_interpreter_for_root_and_for_an_ordinary_user() -> None:
    lines = run_host(SYSTEM_PYTHON).splitlines()
    assert lines[1:3] == ["namespaces []", "landlock []"]
    assert lines[-1].startswith("chosen ")
    if os.geteuid() == 0 and shutil.which("setpriv"):
        ordinary = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups")
        assert run_host(*ordinary, SYSTEM_PYTHON, HOME="/nonexistent").splitlines() == lines


@pytest.mark.parametrize("layer", IN_NAMESPACES)
def test_a_worker_sees_the_interpreter_the_corpus_and_its_scratch_folder_alone(
    layer: Layer, tmp_path: Path
) -> None:
    folder = tmp_path / "private"
    folder.mkdir(mode=0o700)
    packed = folder / "corpus"
    packed.write_bytes(b"packed")
    packed.chmod(0o600)
    code = """
import os
print(sorted(os.listdir("/")))
print(sorted(os.listdir("/dev")), os.listdir("/etc"), os.listdir("/worker"))
print(os.getcwd(), os.listdir("."), open("/corpus.packed").read())
found = [p for top in sys.path for p in (top + "/site-packages", top + "/dist-packages")
         if os.path.isdir(p) and os.listdir(p)]
print(found, os.path.isdir("/usr/lib/python3/dist-packages"))
"""
    lines = lines_of(layer, code, packed=packed)
    beside = {
        "scratch",
        "dev",
        "etc",
        "tmp",
        "lib",
        "lib64",
        "worker",
        "corpus.packed",
        "libraries",
    }
    prefix = Path(interpreter()).parts[1]
    assert set(eval(lines[0])) <= {*beside, "usr", prefix, "nix"}
    assert lines[1] == "['null', 'random', 'urandom'] ['ld.so.cache'] ['rlm_rag']"
    assert lines[2] == "/scratch [] packed"
    assert lines[3] == "[] False"


@pytest.mark.parametrize("layer", ALL_LAYERS)
def test_the_environment_is_empty_and_hashes_are_the_same_in_every_worker(
    layer: Layer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "canary")
    code = "import os\nprint(sorted(os.environ))\nprint(hash('a'), hash(b'b'))"
    first, second = lines_of(layer, code), lines_of(layer, code)
    names = set(eval(first[0]))
    assert names - {"PWD", "PYTHONTZPATH"} == {"HOME", "LANG", "PYTHONHASHSEED", "TMPDIR"}
    assert first[1] == second[1]


@pytest.mark.parametrize("layer", CONFINING)
def test_a_time_zone_of_the_host_is_not_there_rather_than_closed(layer: Layer) -> None:
    code = """
import zoneinfo
try:
    zoneinfo.ZoneInfo("Europe/Berlin")
except zoneinfo.ZoneInfoNotFoundError:
    print("none")
"""
    assert lines_of(layer, code) == ["none"]


@pytest.mark.parametrize("layer", ALL_LAYERS)
def test_no_descriptor_of_the_host_is_inherited(layer: Layer) -> None:
    code = """
import fcntl
def is_open(descriptor):
    try:
        fcntl.fcntl(descriptor, fcntl.F_GETFD)
    except OSError:
        return False
    return True
print([n for n in range(4096) if is_open(n)])
"""
    with Path("/etc/passwd").open() as inheritable:
        os.set_inheritable(inheritable.fileno(), True)
        plain = [sys.executable, "-I", "-c", code]
        seen = subprocess.run(plain, close_fds=False, capture_output=True, text=True, check=True)
        assert inheritable.fileno() in json.loads(seen.stdout)
        assert lines_of(layer, code) == ["[0, 1, 2]"]


@pytest.mark.parametrize("layer", CONFINING)
def test_no_capability_no_privilege_and_no_new_namespace_is_left_to_a_worker(layer: Layer) -> None:
    code = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
print([libc.prctl(23, n, 0, 0, 0) for n in range(41)].count(1))
print(libc.prctl(39, 0, 0, 0, 0), libc.prctl(3, 0, 0, 0, 0), libc.prctl(21, 0, 0, 0, 0))
print(libc.unshare(0x10000000), libc.unshare(0x00020000), libc.setuid(0), libc.setgid(0))
print(os.getuid() == 0 or os.getgid() == 0 or 0 in os.getgroups())
"""
    if os.geteuid() != 0 and isinstance(layer, Landlock):
        code = code.replace("range(41)", "()")  # Dropping them is itself a privilege.
    assert lines_of(layer, code) == ["0", "1 0 2", "-1 -1 -1 -1", "False"]


@pytest.mark.parametrize("layer", IN_NAMESPACES)
def test_a_worker_is_the_first_process_of_its_namespace(layer: Layer) -> None:
    assert lines_of(layer, "import os\nprint(os.getpid(), os.getsid(0))") == ["1 1"]


@pytest.mark.parametrize("layer", CONFINING)
def test_each_worker_of_a_host_that_is_root_is_a_user_of_its_own(layer: Layer) -> None:
    users = [lines_of(layer, "import os\nprint(os.getuid())")[0] for _ in range(2)]
    if os.geteuid() == 0:
        assert len({*users, "0"}) == 3
    else:
        assert users == ["1000", "1000"] or users == [str(os.geteuid())] * 2


@pytest.mark.parametrize("layer", IN_NAMESPACES)
def test_the_scratch_folder_is_bounded_in_bytes(layer: Layer) -> None:
    code = """
try:
    with open("big", "wb") as file:
        for _ in range(64):
            file.write(bytes(1 << 16))
            file.flush()
except OSError as error:
    print(error.errno)
"""
    limits = WorkerLimits(scratch_bytes=1 << 20)
    assert lines_of(layer, code, limits=limits)[0] in ("27", "28")


@pytest.mark.parametrize("layer", IN_NAMESPACES)
def test_the_scratch_folder_is_bounded_in_files(layer: Layer) -> None:
    code = """
count = 0
try:
    while True:
        open(f"f{count}", "w").close()
        count += 1
except OSError as error:
    print(error.errno, count < 100)
"""
    limits = WorkerLimits(scratch_inodes=100)
    assert lines_of(layer, code, limits=limits) == ["28 True"]


def test_where_no_scratch_folder_can_be_bounded_there_is_none() -> None:
    code = """
import os, tempfile
print(os.path.exists(os.environ["TMPDIR"]))
for attempt in (lambda: open("here", "w"), lambda: tempfile.TemporaryFile()):
    try:
        attempt()
        print("OPEN")
    except OSError as error:
        print(type(error).__name__)
"""
    assert lines_of(Landlock(), code) == ["False", "PermissionError", "FileNotFoundError"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may try")
def test_nobody_can_make_the_folder_that_stands_for_no_scratch_folder() -> None:
    with pytest.raises(OSError, match=NOWHERE):
        Path(NOWHERE).mkdir()


def test_installed_packages_beside_the_standard_library_cannot_be_read() -> None:
    code = """
import os
folder = os.path.dirname(os.__file__) + "/site-packages"
for name in os.listdir(folder) if os.path.isdir(folder) else ():
    path = f"{folder}/{name}/__init__.py"
    if os.path.exists(path):
        try:
            open(path)
            print("OPEN", path)
        except PermissionError:
            pass
import json, sqlite3, xml.dom.minidom, concurrent.futures, encodings.cp1252
print("done")
"""
    assert lines_of(Landlock(), code) == ["done"]


@pytest.mark.parametrize("layer", CONFINING)
def test_programs_written_to_the_scratch_folder_cannot_replace_what_a_worker_is_made_of(
    layer: Layer,
) -> None:
    code = """
import os
for path in (os.__file__, sys.executable, "/worker/rlm_rag/errors.py", "/etc/ld.so.cache"):
    for attempt in (lambda: open(path, "a"), lambda: os.unlink(path), lambda: os.rename(path, "x")):
        try:
            attempt()
            print("OPEN", path)
        except OSError:
            pass
print("done")
"""
    assert lines_of(layer, code) == ["done"]


def test_the_library_can_be_imported_without_what_confines() -> None:
    code = "import sys, rlm_rag.sandbox.layers; print([m for m in sys.modules if 'httpx' in m])"
    done = subprocess.run(
        [sys.executable, "-B", "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"

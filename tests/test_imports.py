from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TypeGuard

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "rlm_rag"

# docs/design.md section 2, from the ground up; a room imports itself and the floors below.
FLOORS: tuple[tuple[str, ...], ...] = (
    (
        "errors",
        "lines",
        "counts",
        "packed",
        "packed_tables",
        "packing",
        "holes",
        "globs",
        "scratch",
        "own_folders",
        "kept",
        "child",
        "traits",
        "closing",
        "pages",
        "shown",
        "argument_types",
    ),
    ("corpus", "setting_table", "settings"),
    ("loaders", "indexes", "sandbox", "trace"),
    ("models",),
    ("engine",),
    ("distributed",),
    (
        "api",
        "cited",
        "conversation",
        "rlm",
        "recovery",
        "sessions",
        "streaming",
        "repl",
        "compat",
        "answer_file",
        "mapping",
    ),
    ("evals", "mcp"),
    ("cli",),
)
FLOOR_OF = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}
STRANGERS = ("loaders", "indexes", "sandbox", "models")
# These run inside the sandbox, where there is a bare interpreter and nothing else.
INSIDE = (
    "rlm_rag.errors",
    "rlm_rag.lines",
    "rlm_rag.packed",
    "rlm_rag.sandbox.frames",
    "rlm_rag.sandbox.halves",
    "rlm_rag.sandbox.inside",
)
# Model code prints, and the sandbox's self-test is a program of its own.
PRINTING = (*INSIDE, "rlm_rag.sandbox.confine.probe", "rlm_rag.cli")
HEAVY = ("litellm", "numpy", "httpx", "tree_sitter", "openai", "asyncio", "rich", "mcp")


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def name_of(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room_of(module: str) -> str | None:
    parts = module.split(".")
    return parts[1] if parts[0] == "rlm_rag" and len(parts) > 1 else None


@cache
def statements(file: Path) -> tuple[ast.Import | ast.ImportFrom | ast.Call, ...]:
    """Return a file's imports, and its calls of `print`, wherever they stand."""
    return tuple(filter(is_looked_at, ast.walk(ast.parse(file.read_text("utf-8")))))


def is_looked_at(node: ast.AST) -> TypeGuard[ast.Import | ast.ImportFrom | ast.Call]:
    match node:
        case ast.Import() | ast.ImportFrom() | ast.Call(func=ast.Name(id="print")):
            return True
    return False


def imports_of(file: Path) -> Iterator[tuple[str, int]]:
    """Yield what a file imports, wherever the statement stands, as absolute names."""
    module = name_of(file)
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    for node in statements(file):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")[: len(package.split(".")) - node.level + 1]
            prefix = ".".join(base) if node.level else ""
            source = ".".join(part for part in (prefix, node.module) if part)
            yield from ((f"{source}.{alias.name}", node.lineno) for alias in node.names)


def complaints(file: Path) -> Iterator[str]:
    room = room_of(name_of(file))
    if room in (None, "__main__"):
        return
    for imported, line in imports_of(file):
        if imported == "rlm_rag" and room != "cli":
            yield f"{file}:{line} imports the front door"
        other = room_of(imported)
        if other in (None, "__version__", room):
            continue
        if other not in FLOOR_OF:
            yield f"{file}:{line} imports {imported}, which has no floor"
        elif FLOOR_OF[other] > FLOOR_OF[room]:
            yield f"{file}:{line}: {room} imports {other} from a floor above"
        elif room in STRANGERS and other in STRANGERS:
            yield f"{file}:{line}: {room} imports {other}; they do not know each other"
        elif FLOOR_OF[other] == FLOOR_OF[room] and FLOOR_OF[room] == FLOOR_OF["trace"]:
            yield f"{file}:{line}: {room} imports {other} of its own floor"


def test_every_module_stands_on_a_floor() -> None:
    rooms = {room_of(name_of(file)) for file in modules()} - {None, "__main__"}
    assert rooms <= set(FLOOR_OF)


def test_imports_run_one_way() -> None:
    assert [text for file in modules() for text in complaints(file)] == []


def test_what_runs_inside_the_sandbox_imports_the_standard_library_alone() -> None:
    wrong = []
    for file in modules():
        if not name_of(file).startswith(INSIDE):
            continue
        for imported, line in imports_of(file):
            top = imported.partition(".")[0]
            if top not in sys.stdlib_module_names and not imported.startswith(INSIDE):
                wrong.append(f"{file}:{line} imports {imported}")
    assert wrong == []


def test_only_the_command_line_prints() -> None:
    wrong = [
        f"{file}:{node.lineno}"
        for file in modules()
        if not name_of(file).startswith(PRINTING)
        for node in statements(file)
        if isinstance(node, ast.Call)
    ]
    assert wrong == []


def loaded_by(code: str) -> set[str]:
    run = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys\nprint('\\n'.join(sys.modules))"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return {name.partition(".")[0] for name in run.stdout.split("\n")}


@pytest.mark.parametrize(
    "code",
    [
        "import rlm_rag",
        "import rlm_rag.settings",
        "from rlm_rag.cli.main import main; main(['--help'])",
        "from rlm_rag.cli.main import main; main(['ask', '--help'])",
        "from rlm_rag.cli.main import main; main(['search', '--help'])",
        "from rlm_rag.cli.main import main; main(['mcp', '--help'])",
    ],
)
def test_the_door_is_light(code: str) -> None:
    assert loaded_by(code) & set(HEAVY) == set()


def test_a_question_that_no_server_is_asked_loads_no_client() -> None:
    code = "import rlm_rag; rlm_rag.ask({'a.txt': 'The fee is 5 euros.'}, 'fee?', trace=False)"
    loaded = loaded_by(code)
    assert "asyncio" in loaded
    assert loaded & {"litellm", "httpx", "openai", "rich", "mcp"} == set()

"""What grammars find: kinds, names, nesting, signatures and documentation."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlm_rag.indexes.grammars import GRAMMARS, Grammar, grammar_of
from rlm_rag.indexes.skeleton import Definition
from rlm_rag.indexes.tree import parsed

GOLDENS = Path(__file__).with_name("goldens")


def found_in(path: str, source: str) -> list[Definition]:
    data = source.encode()
    grammar = grammar_of(path, data)
    assert grammar is not None
    return parsed(data, grammar)


def told(path: str, source: str) -> str:
    """Return each definition as `line depth kind scope.name`."""
    found = found_in(path, source)
    names = (".".join((*one.parents, one.name)) for one in found)
    return ", ".join(
        f"{one.line} {one.depth} {one.kind} {name}" for one, name in zip(found, names, strict=True)
    )


def one_in(path: str, source: str, name: str) -> Definition:
    (one,) = (one for one in found_in(path, source) if one.name == name)
    return one


@pytest.mark.parametrize("golden", sorted(GOLDENS.glob("*.txt")), ids=lambda path: path.stem)
def test_what_was_read_by_hand_is_found(golden: Path) -> None:
    source = golden.with_suffix("").read_bytes()
    grammar = grammar_of(golden.stem, source)
    assert grammar is not None
    found = [f"{one.line} {one.depth} {one.kind} {one.name}" for one in parsed(source, grammar)]
    assert found == golden.read_text().splitlines()


@pytest.mark.parametrize("grammar", GRAMMARS, ids=lambda grammar: grammar.name)
def test_every_language_has_a_query_that_its_grammar_takes(grammar: Grammar) -> None:
    assert parsed(b"", grammar) == []


SOURCES = {
    "a.py": (
        "LIMIT = 1\n"
        "@decorated\n"
        "async def fetch(a,\n"
        "        b):\n"
        "    local = 1\n"
        "    class Inner(Base):\n"
        "        field: int = 3\n"
        "        def method(self): pass\n"
        "type Alias[T] = list[T]\n",
        "1 0 constant LIMIT, 3 0 function fetch, 6 1 class fetch.Inner, "
        "7 2 field fetch.Inner.field, 8 2 method fetch.Inner.method, 9 0 type Alias",
    ),
    "a.ts": (
        "export default abstract class Foo<T> extends Bar {\n"
        "  private static x: number = 1;\n"
        "  constructor(private y: string) { super(); }\n"
        "  load(a: string): void;\n"
        "  async load(a: any): Promise<void> { const z = 1; }\n"
        "}\n"
        "export const arrow = async <T,>(a: T) => a;\n"
        "export enum Color { Red, Green = 2 }\n"
        "declare module 'm' { function f(): void }\n"
        "export type Id = string;\n",
        "1 0 class Foo, 2 1 field Foo.x, 3 1 method Foo.constructor, "
        "3 2 field Foo.constructor.y, 4 1 method Foo.load, 5 1 method Foo.load, "
        "7 0 function arrow, 8 0 enum Color, 8 1 enumerator Color.Red, "
        "8 1 enumerator Color.Green, 9 0 namespace m, 9 1 function m.f, 10 0 type Id",
    ),
    "a.go": (
        "package p\n"
        "type Server[T any] struct {\n\tmux *Mux\n\t*Base\n}\n"
        "func (s *Server[T]) Handle(w Writer) error {\n\tx := 1\n}\n"
        "func Map[T any](x T) T { return x }\n"
        "const (\n\tA = iota\n\tB\n)\n",
        "1 0 package p, 2 0 struct Server, 3 1 field Server.mux, 4 1 field Server.Base, "
        "6 0 method Server.Handle, 9 0 function Map, 11 0 constant A, 12 0 constant B",
    ),
    "a.rs": (
        "pub(crate) enum E { A, B { x: u8 } }\n"
        "impl<'a> fmt::Display for Foo<'a> {\n    async fn new(x: i32) -> Self { }\n}\n"
        "macro_rules! vec { () => {} }\nstatic N: u8 = 1;\n",
        "1 0 enum E, 1 1 enumerator E.A, 1 1 enumerator E.B, 1 2 field E.B.x, 2 0 impl Foo, "
        "3 1 method Foo.new, 5 0 macro vec, 6 0 constant N",
    ),
    "a.c": (
        "#define MAX(a) (a)\n"
        "typedef struct point { int x, *y; } point_t;\n"
        "static int *first(struct point *p) {\n    int local = 1;\n}\n"
        "int declared(void);\n"
        'static const char *names[] = {"a"};\n'
        "#ifdef A\nint one(void) {\n#else\nint one(long x) {\n#endif\n}\n"
        "#if 0\nint off(void) { }\n#endif\n",
        "1 0 macro MAX, 2 0 type point_t, 2 1 struct point_t.point, 2 2 field point_t.point.x, "
        "2 2 field point_t.point.y, 3 0 function first, 6 0 declaration declared, "
        "7 0 variable names, 9 0 function one, 11 1 function one.one, 15 0 function off",
    ),
    "a.cpp": (
        "namespace a::b {\n"
        "class EXPORT_API Foo : public Bar {\n"
        " public:\n"
        "  explicit Foo(int x);\n"
        "  template <typename T> T get() const override { return T(); }\n"
        "  bool operator==(const Foo& o) const;\n"
        "};\n"
        "}\n"
        "void Foo::stop(int x) { int y = 1; }\n",
        "1 0 namespace a::b, 2 1 class a::b.Foo, 4 2 method a::b.Foo.Foo, "
        "5 2 method a::b.Foo.get, 6 2 method a::b.Foo.operator==, 9 0 method Foo.stop",
    ),
}


@pytest.mark.parametrize("path", SOURCES)
def test_definitions_are_found_with_what_they_belong_to(path: str) -> None:
    source, expected = SOURCES[path]
    assert told(path, source) == expected


@pytest.mark.parametrize(
    ("path", "source", "name", "signature"),
    [
        ("a.py", "@cached(1)\ndef f(a: int,\n      b=')') -> str:\n    pass\n", "f",
         "def f(a: int, b=')') -> str:"),
        ("a.go", "type T struct {\n\ta int\n}\n", "T", "type T struct"),
        ("a.java", 'class A {\n  @Get("/x(y")\n  public <T> List<T> all(int a,\n    T b) { }\n}\n',
         "all", "public <T> List<T> all(int a, T b)"),
        ("a.js", "export const f = async (a) => {\n};\n", "f", "export const f = async (a) =>"),
        ("a.cs", "class A {\n  [Test] public int F(int x) => 1;\n}\n", "F",
         "public int F(int x)"),
        ("a.ex", "defmodule A do\n  @type t :: integer\nend\n", "t", "@type t :: integer"),
        ("a.rb", "class A\n  def go(a, b = 1)\n    a\n  end\nend\n", "go", "def go(a, b = 1)"),
    ],
)  # fmt: skip
def test_a_signature_is_what_is_written_before_the_body(
    path: str, source: str, name: str, signature: str
) -> None:
    assert one_in(path, source, name).signature == signature


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("a.py", 'def f():\n    """Said first.\n\n    Said later."""\n'),
        ("a.py", "def f():\n    r'''\n    Said first.\n    '''\n"),
        ("a.js", "/**\n * Said first.\n * Said later.\n */\nfunction f() {}\n"),
        ("a.go", "// Said first.\n// Said later.\nfunc f() {}\n"),
        ("a.rs", "/// Said first.\n#[inline]\nfn f() {}\n"),
        ("a.rb", "# Said first.\ndef f\nend\n"),
        ("a.lua", "--- Said first.\nfunction f() end\n"),
        ("a.erl", "%% Said first.\nf() -> ok.\n"),
        ("a.ml", "(** Said first. *)\nlet f x = x\n"),
        ("a.java", "class A {\n  /** Said first. */\n  @Test\n  void f() {}\n}\n"),
        ("a.cs", "class A {\n/// <summary>\n/// Said first.\n/// </summary>\nvoid f() {}\n}\n"),
        ("a.cs", 'class A {\n/// <summary>Said <see cref="T:first"/>.</summary>\nvoid f() {}\n}\n'),
        ("a.rs", "/// Said first.\n#[cfg(test)] fn f() {}\n"),
        ("a.jl", '"Said first."\nf(x) = x\n'),
        ("a.jl", '"""\n    Said first.\n\nSaid later.\n"""\nfunction f(x) x end\n'),
        ("a.ex", 'defmodule A do\n  @doc "Said first."\n  @spec f :: 1\n  def f, do: 1\nend\n'),
        ("a.ex", 'defmodule A do\n  @doc ~S"""\n  Said first.\n  """\n  def f, do: 1\nend\n'),
        ("a.ex", 'defmodule f do\n  @moduledoc """\n  Said first.\n  """\nend\n'),
    ],
)
def test_documentation_gives_its_first_line(path: str, source: str) -> None:
    assert one_in(path, source, "f").doc == "Said first."


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("a.kt", "// Of A.\nclass A(val f: Int)\n"),
        ("a.swift", "/// Of A.\nstruct A { func f() {} }\n"),
        ("a.proto", "// Of A.\nmessage A { enum f { X = 0; } }\n"),
        ("a.java", "class A {\n  /** Of g. */\n  void g(); void f();\n}\n"),
        ("a.jl", 'x = ["a",\n"b"]\nf(x) = x\n'),
        ("a.jl", 'function g(x)\n"b"\nend\nf(x) = x\n'),
        ("a.ex", 'defmodule A do\n  @x "b"\n  def f, do: 1\nend\n'),
        ("a.js", "// Of A.\nclass A { " + "g() {} " * 200 + "f() {} }\n"),
    ],
)
def test_a_comment_above_a_line_is_of_what_begins_it(path: str, source: str) -> None:
    assert one_in(path, source, "f").doc == ""


@pytest.mark.parametrize(
    ("path", "source", "signature"),
    [
        ("a.java", "interface A {\n  void f(); int g(int x); // h\n}\n", "void f();"),
        ("a.c", "int f(int x,\n      int y); /* does x */\n", "int f(int x, int y);"),
        ("a.ts", "interface A { f(): number; g?: string }\n", "f(): number;"),
        ("a.rs", "trait A { fn f(&self); }\n", "fn f(&self);"),
        ("a.go", "package p\ntype A interface { f() }\n", "f()"),
    ],
)
def test_a_signature_ends_where_what_it_is_of_does(path: str, source: str, signature: str) -> None:
    assert one_in(path, source, "f").signature == signature


def test_brackets_in_quoted_documentation_stay() -> None:
    assert one_in("a.jl", '"""\n    f(x)\n\nSaid.\n"""\nf(x) = x\n', "f").doc == "f(x)"


def test_a_comment_that_an_empty_line_parts_is_of_something_else() -> None:
    assert one_in("a.go", "// Of the file.\n\nfunc f() {}\n", "f").doc == ""


def test_what_a_module_sets_in_any_branch_is_found() -> None:
    source = (
        "try:\n    import a\nexcept ImportError:\n    a = None\n"
        "if b:\n    pass\nelif c:\n    d = 1\nelse:\n    if d:\n        e = 1\n"
        "for f in g:\n    if f:\n        h = f\n"
        "if i:\n    def j():\n        local = 1\n"
    )
    expected = "4 0 variable a, 8 0 variable d, 11 0 variable e, 14 0 variable h, 16 0 function j"
    assert told("a.py", source) == expected


def test_a_definition_ends_with_its_body() -> None:
    source = "class A:\n    def f(self):\n        x = (1,\n             2)\n\n\nB = 1\n"
    ends = {one.name: one.end_line for one in found_in("a.py", source)}
    assert ends == {"A": 4, "f": 4, "B": 7}


def test_a_part_that_cannot_be_read_is_scanned() -> None:
    source = "def good(): pass\n\nclass Old:\n    def f(self, (a, b)): print a\n\ndef g(): pass\n"
    assert {"good", "Old", "f", "g"} <= {one.name for one in found_in("a.py", source)}


def test_carriage_returns_end_lines_as_line_feeds_do() -> None:
    for end in ("\r\n", "\r"):
        source = end.join(("a = 1", "def f():", "    pass", "def g(): pass", ""))
        assert [one.line for one in found_in("a.py", source)] == [1, 2, 4]


@pytest.mark.parametrize(
    ("path", "source", "name"),
    [
        ("run", "#!/bin/sh\nf() { :; }\n", "bash"),
        ("run", "#!/usr/bin/env python3\n", "python"),
        ("a.h", "int f(void);\n", "c"),
        ("a.h", "namespace a { class B; }\n", "cpp"),
        ("lib/Rakefile", "task :x\n", "ruby"),
        ("A.PY", "", "python"),
        ("a.html", "<!doctype html><h1>A</h1>", "html"),
    ],
)
def test_a_language_is_told_by_name_and_by_content(path: str, source: str, name: str) -> None:
    grammar = grammar_of(path, source.encode())
    assert grammar is not None
    assert grammar.name == name


@pytest.mark.parametrize("path", ["run", "a.txt", ".py", "a.html", "a.pdf#page=1", "py"])
def test_other_documents_have_no_grammar(path: str) -> None:
    assert grammar_of(path, b"plain text") is None


def test_a_definition_ends_with_a_body_that_its_grammar_has_beside_it() -> None:
    source = "class A {\n  int go(int x) {\n    void inner() {}\n    return x;\n  }\n}\n"
    one = one_in("a.dart", source, "go")
    assert (one.line, one.end_line, one.signature) == (2, 5, "int go(int x)")
    assert one_in("a.dart", source, "inner").parents == ("A", "go")


def test_functions_of_one_name_with_other_parameters_are_others() -> None:
    assert (
        told("a.erl", "f(1) -> a;\nf(2) -> b.\nf(1, 2) -> c.\n") == "1 0 function f, 3 0 function f"
    )


def test_each_selector_of_a_rule_is_found_and_shown_alone() -> None:
    found = found_in("a.css", "h1,\n.b > a { color: red }\n")
    assert [(one.line, one.name, one.signature, one.end_line) for one in found] == [
        (1, "h1", "h1", 2),
        (2, ".b > a", ".b > a", 2),
    ]


def test_a_dot_belongs_to_the_names_of_some_languages() -> None:
    assert told("a.mk", "dep_x.mk = 1\n") == "1 0 variable dep_x.mk"
    assert told("a.R", "print.shop <- function(x) x\n") == "1 0 function print.shop"


def test_members_of_kotlin_that_share_their_lines_are_found() -> None:
    source = (
        "class A { companion object { fun f(): A { return A() } } ; fun g() {} fun h() {} }\n"
        "class B(val x: Int) { companion object Named { const val MAX = 10 }\n"
        '  val text = "${x } fun no() {" }\n'
        "interface I {val y: Int}\n"
        "class J { lateinit var l: String; private set\n  val m: Int = 1; get() = field\n}\n"
    )
    assert told("a.kt", source) == (
        "1 0 class A, 1 1 object A.Companion, 1 2 method A.Companion.f, "
        "1 1 method A.g, 1 1 method A.h, 2 0 class B, 2 1 property B.x, "
        "2 1 object B.Named, 2 2 property B.Named.MAX, 3 1 property B.text, "
        "4 0 interface I, 4 1 property I.y, 5 0 class J, 5 1 property J.l, 6 1 property J.m"
    )


def test_what_begins_in_another_branch_of_csharp_is_not_within_the_first() -> None:
    source = (
        "namespace N {\n#if A\nclass P : B {\n#elif C\nclass P : D {\n#else\nclass P {\n#endif\n"
        "  void F() { G(1, 2, 3, 4); }\n#if E\n  class Q { void R() {} }\n#else\n"
        "  class Q { void R() {} }\n#endif\n}\n}\n"
        "#if false\nclass S {\n#else\nclass T {\n#endif\n}\n"
    )
    assert told("a.cs", source) == (
        "1 0 namespace N, 3 1 class N.P, 5 1 class N.P, 7 1 class N.P, 9 2 method N.P.F, "
        "11 2 class N.P.Q, 11 3 method N.P.Q.R, 13 2 class N.P.Q, 13 3 method N.P.Q.R, "
        "20 0 class T"
    )


def test_a_macro_holds_no_other_of_the_next_branch() -> None:
    source = "#ifdef A\n#define LIMIT \\\n  1\n#else\n#define LIMIT\n#endif\n"
    assert told("a.c", source) == "2 0 macro LIMIT, 5 0 macro LIMIT"
    assert found_in("a.c", source)[0].end_line == 3


def test_a_function_that_returns_one_has_its_name_alone() -> None:
    source = "int (*choose(int x))(int) { return 0; }\nint *(plain)(void) { return 0; }\n"
    assert told("a.c", source) == "1 0 function choose, 2 0 function plain"


def test_a_function_that_begins_its_body_is_found_in_it() -> None:
    source = "class A {\n  void F() { int Local(int x) { return x + 1; } Local(1); }\n}\n"
    assert told("a.cs", source) == "1 0 class A, 2 1 method A.F, 2 2 function A.F.Local"


def test_types_of_other_modules_are_read_with_their_arguments() -> None:
    source = (
        'export declare const A: import("react").FC<import("./b").C & import(\'d\').E<any>>;\n'
        'export declare function f(): { g: import("h").I<string>; j: number };\n'
        'const k = await import("l").M<string>();\n'
    )
    expected = "1 0 variable A, 2 0 function f, 2 1 field f.g, 2 1 field f.j, 3 0 variable k"
    for path in ("a.ts", "a.tsx"):
        assert told(path, source) == expected
        assert found_in(path, source)[0].signature.endswith("E<any>>")

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlm_rag.indexes.definitions import definitions, masked, scannable
from rlm_rag.indexes.language_rows import LANGUAGES
from rlm_rag.lines import count_lines

# Each source, and what is defined in it: line, depth, kind, name.
SOURCES = {
    "a.py": (
        '"""def nope(x): in a docstring."""\n'
        "LIMIT = 1\n"
        "@decorated\n"
        "async def fetch(a,\n"
        "        b):\n"
        "    class Inner(Base):\n"
        "        def method(self): pass\n"
        "class Last: pass\n",
        "2 0 constant LIMIT, 4 0 function fetch, 6 1 class Inner, 7 2 method method, "
        "8 0 class Last",
    ),
    "a.ts": (
        "export default class Foo extends Bar {\n"
        "  constructor(a, b) { if (x) { foo(); } }\n"
        "  async load(url: string): Promise<void> {\n"
        "    return fetch(url);\n"
        "  }\n"
        "  private static handle<T>(x: T): T {\n"
        "  }\n"
        "}\n"
        "export const arrow = async (a) => a + 1;\n"
        "interface I { x: number }\n"
        "// function no() {}\n"
        "type T = string;\n"
        "export async function main() {}\n",
        "1 0 class Foo, 2 1 method constructor, 3 1 method load, 6 1 method handle, "
        "9 0 function arrow, 10 0 interface I, 12 0 type T, 13 0 function main",
    ),
    "A.java": (
        "public class Foo<T> extends Bar {\n"
        "    private static final int MAX_SIZE = 3;\n"
        "    public Foo(int x) { super(x); }\n"
        "    @Override public List<String> names(int a,\n"
        "         String b) throws IOException {\n"
        "        if (x) { y(); } else if (z) { }\n"
        "        return new Foo(3);\n"
        "    }\n"
        "}\n"
        "interface Shape { double area(); }\n",
        "1 0 class Foo, 2 1 constant MAX_SIZE, 3 1 method Foo, 4 1 method names, "
        "10 0 interface Shape",
    ),
    "a.c": (
        "#define MAX(a, b) ((a) > (b))\n"
        "static int foo(int a, char *b)\n"
        "{\n"
        "  if (a) { bar(b); }\n"
        "  return foo(a, b);\n"
        "}\n"
        "int proto(void);\n"
        "struct point {\n"
        "  int x;\n"
        "};\n"
        "PyObject *\n"
        "Thing_New(void)\n"
        "{\n"
        "}\n",
        "1 0 macro MAX, 2 0 function foo, 7 0 declaration proto, 8 0 struct point, "
        "12 0 function Thing_New",
    ),
    "a.cpp": (
        "class Foo : public Bar {\n"
        " public:\n"
        "  Foo(int x) : y(x) {}\n"
        "  void run() const override { go(); }\n"
        "};\n"
        "void Foo::stop(int x) {\n"
        "}\n",
        "1 0 class Foo, 3 1 method Foo, 4 1 method run, 6 0 function stop",
    ),
    "b.hpp": (
        "template <typename T, class = void> struct Holder : Base<T> {\n"
        "  bool operator()(int x) const { return x; }\n"
        "};\n"
        "template <> struct API_EXPORT Holder<int> {};\n"
        "class Version::Builder : public Other {\n"
        "};\n"
        "template <class... A> using Pack = Tuple<A...>;\n"
        "template <bool B = true> constexpr auto size() -> decltype(f()) { return 1; }\n"
        'extern "C" int fuzz(const char* data) {\n'
        "}\n",
        "1 0 struct Holder, 2 1 method operator(), 4 0 struct Holder, 5 0 class Builder, "
        "7 0 type Pack, 8 0 function size, 9 0 function fuzz",
    ),
    "a.cs": (
        "namespace A.B {\n"
        "    public sealed class Foo : Bar {\n"
        "        public async Task<int> RunAsync(int x) {\n"
        "        }\n"
        "        public int Y(int x) => x + 1;\n"
        "    }\n"
        "}\n",
        "1 0 namespace A.B, 2 1 class Foo, 3 2 method RunAsync, 5 2 method Y",
    ),
    "a.go": (
        "type Server struct {\n}\n"
        "func (s *Server) Handle(w http.ResponseWriter) error {\n}\n"
        "func Map[T any](x T) T { }\n",
        "1 0 struct Server, 3 0 method Handle, 5 0 function Map",
    ),
    "a.rs": (
        "impl<'a> Foo<'a> {\n"
        "    pub async fn new(x: i32) -> Self { }\n"
        "}\n"
        "pub(crate) enum E { A }\n"
        "trait T { }\n",
        "1 0 impl Foo, 2 1 method new, 4 0 enum E, 5 0 trait T",
    ),
    "a.rb": (
        "module A\n  class Foo < Bar\n    def self.make(x)\n    end\n    def ok?\n",
        "1 0 module A, 2 1 class Foo, 3 2 method make, 5 2 method ok?",
    ),
    "a.php": (
        "<?php\nabstract class Foo {\n    public static function make($a) { }\n}\n"
        "function top() {}\n",
        "2 0 class Foo, 3 1 method make, 5 0 function top",
    ),
    "a.kt": (
        "data class Foo(val x: Int) {\n    override suspend fun bar(a: Int): Int { }\n}\n"
        "fun String.ext(): Int = 3\n",
        "1 0 class Foo, 2 1 method bar, 4 0 function ext",
    ),
    "a.swift": (
        "public final class Foo: Bar {\n    func go(a: Int) -> Int { }\n}\nprotocol P { }\n",
        "1 0 class Foo, 2 1 method go, 4 0 interface P",
    ),
    "a.sh": ("function a { }\nb() {\n}\n# c() {\n", "1 0 function a, 2 0 function b"),
    "a.js": (
        "const routes = {\n  index: (x) => x,\n  show: async function (id) {},\n  n: (1),\n}\n"
        "this.conn.onopen = () => {}\nlet Channel = class {}\n    if (x) {\n    switch (y) {\n",
        "1 0 constant routes, 2 1 method index, 3 1 method show, 6 0 function onopen, "
        "7 0 class Channel",
    ),
    "b.ts": (
        "interface Shape {\n  area(unit: string): number;\n  name?(): string\n}\n"
        "  return cond\n    ? one(x)\n    : two(y)\n",
        "1 0 interface Shape, 2 1 method area, 3 1 method name",
    ),
    "a.lua": (
        "local wait = function(x)\nend\nM.run = function()\n",
        "1 0 function wait, 3 0 function M.run",
    ),
    "a.ex": (
        "defprotocol Sized do\n  @type t :: any\n  defguardp is_x(x) when x\n",
        "1 0 type Sized, 2 1 type t, 3 1 function is_x",
    ),
    "a.scala": (
        "sealed abstract class A\n  final override protected def go(x: Int) = 1\ncase object B\n",
        "1 0 class A, 2 1 method go, 3 0 trait B",
    ),
    "a.bats": ("setup() {\n}\n", "1 0 function setup"),
    "a.jl": (
        "mutable struct Heap{T}\nend\nfunction Base.push!(h::Heap, x)\nsize(h) = 1\nx = f(y)\n",
        "1 0 struct Heap, 3 0 function push!, 4 0 function size",
    ),
    "a.dart": (
        "abstract class A {\n  Future<int> go(int x) async {\n  }\n  int get z => 3;\n}\n",
        "1 0 class A, 2 1 method go, 4 1 method z",
    ),
    "a.erl": (
        "-module(m).\n-record(state, {x}).\nstart(X) ->\n    call(X).\n",
        "1 0 module m, 2 0 struct state, 3 0 function start",
    ),
    "a.mk": (
        "CC := gcc\nall: a.o\n\tgo: x\n%.o: %.c\na b: c\ndefine tell\n",
        "1 0 variable CC, 2 0 target all, 4 0 target %.o, 5 0 target a, 6 0 macro tell",
    ),
    "a.css": (
        ".btn-primary > a:hover {\n  margin: .5em;\n}\n#top, p {\n",
        "1 0 rule .btn-primary, 4 0 rule #top",
    ),
    "a.tf": (
        'resource "aws_vpc" "main" {\n  x = 1\n}\nvariable "name" {\n# module "no" {\n',
        "1 0 block main, 4 0 block name",
    ),
    "a.tex": (
        "\\section{Scope}\n\\newcommand{\\env}[1]{x}\n% \\section{No}\n\\subsection*{Part}\n",
        "1 0 heading Scope, 2 0 macro \\env, 4 0 heading Part",
    ),
    "a.unknown": ("function a(x)\nplain text\n", "1 0 definition a"),
    "a.md": (
        "---\ntitle: # x\n---\n# A\n```\n# no\n```\n~~~ py\n# no\n~~~\n## B ##\nSet\n===\n",
        "4 0 heading A, 11 1 heading B, 12 0 heading Set",
    ),
    "a.rst": (
        "=====\nTitle\n=====\n\nSec\n---\n\nSub\n~~~\n\nOther\n-----\n",
        "2 0 heading Title, 5 1 heading Sec, 8 2 heading Sub, 11 1 heading Other",
    ),
    "a.yaml": (
        "# c\nname: x\non:\n  push:\n    branches: [main]\nsteps:\n  - uses: a\n  - run: |\n"
        '      no: text\n"b c": 3\nurl: http://x:80\n',
        "2 0 key name, 3 0 key on, 4 1 key push, 5 2 key branches, 6 0 key steps, 10 0 key b c, "
        "11 0 key url",
    ),
    "a.toml": (
        "title = 1\n[tool.x]\na = 'b'\ntext = '''\nno = 1\n'''\n[[bin]]\n\"q r\" = 2\n",
        "1 0 key title, 2 0 table tool.x, 3 1 key a, 4 1 key text, 7 0 table bin, 8 1 key q r",
    ),
    "a.json": (
        '{\n  "a": {"b": [ {"c": 1} ], "d": "x: y"},\n  // "no": 1\n  "e": "q\\"r"\n}\n',
        "2 0 key a, 2 1 key b, 2 2 key c, 2 1 key d, 4 0 key e",
    ),
    "a.ini": (
        '; no: c\n[core]\nx: y\n[remote "origin"]\nurl = z\n',
        '2 0 table core, 3 1 key x, 4 0 table remote "origin", 5 1 key url',
    ),
    "a.txt": (
        "INTRODUCTION\n\nSome text\nmore.\n\n1.2 Scope\n\ntext\n",
        "1 0 heading INTRODUCTION, 6 1 heading 1.2 Scope",
    ),
}


@pytest.mark.parametrize("path", SOURCES)
def test_definitions_are_found_with_their_kind_and_nesting(path: str) -> None:
    source, expected = SOURCES[path]
    found = [
        f"{one.line} {one.depth} {one.kind} {one.name}"
        for one in definitions(path, source.encode())
    ]
    assert ", ".join(found) == expected


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_lines_are_counted_the_same_with_other_line_ends(end: str) -> None:
    source = SOURCES["a.py"][0]
    changed = definitions("a.py", source.replace("\n", end).encode())
    assert [(one.line, one.name) for one in changed] == [
        (one.line, one.name) for one in definitions("a.py", source.encode())
    ]


def test_a_signature_goes_to_the_end_of_its_parameters() -> None:
    source = "def f(a: int,\n      b: str = ')',\n      ) -> dict[str, int]:\n    pass\n"
    (one,) = definitions("a.py", source.encode())
    assert one.signature == "def f(a: int, b: str = ')', ) -> dict[str, int]:"


fragments = st.sampled_from(
    ["def f(", "class A:", "{", "}", "(", ")", '"""', "'", '"', "`", "/*", "*/", "//", "\\", "\n",
     "\r", "    ", "fn x", "# h", "---", "```", "é", "\x00", "int f(int a) {", "=>", ";", "::"]
)  # fmt: skip


@settings(deadline=None)
@given(st.lists(fragments, max_size=60).map("".join), st.sampled_from(sorted(SOURCES)))
def test_any_text_has_definitions_within_its_lines(text: str, path: str) -> None:
    data = text.encode()
    for one in definitions(path, data):
        assert 1 <= one.line <= count_lines(data)
        assert one.name


@given(st.lists(fragments, max_size=60).map("".join), st.sampled_from(LANGUAGES))
def test_masking_keeps_every_line_in_its_place(text: str, language: object) -> None:
    data = scannable(text.encode())
    blanked = masked(data, language)  # type: ignore[arg-type]
    assert len(blanked) == len(data)
    assert [m.start() for m in re.finditer(b"\n", blanked)] == [
        m.start() for m in re.finditer(b"\n", data)
    ]


@pytest.mark.parametrize("path", [path for path in SOURCES if path != "a.unknown"])
@pytest.mark.parametrize(
    "text", ["a " * 50_000, "public " * 15_000, "\n  a b c d e f(" * 5_000, "'\"`" * 30_000,
             "x" * 100_000, "(" * 100_000, "f(\n" * 20_000, "\n\tint *" * 15_000,
             "impl<" * 20_000, "a::" * 30_000]
)  # fmt: skip
def test_no_text_makes_the_scan_slow(path: str, text: str) -> None:
    started = time.process_time()
    definitions(path, text.encode())
    assert time.process_time() - started < 3

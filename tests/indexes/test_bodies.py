"""Which bodies of functions are left out of a text before a grammar reads it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_rag.indexes import tree
from rlm_rag.indexes.body_rows import BODIES
from rlm_rag.indexes.cuts import Cut, without_bodies
from rlm_rag.indexes.grammars import grammar_named

# Of each pair, the second is what is left of the first.
LEFT = {
    "python": (
        'class A:\n    def f(self, x=\')\'):  # why\n        # how\n\n        """Doc.\n  more\n'
        '        """\n        return [self,\n            x]  # it\n        # end\n\n    LIMIT = 1\n'
        "def g():\n    def h(): return 1000000\n    return h\n",
        "class A:\n    def f(self, x=')'):  # why\n        # how\n\n        0\n"
        "        # end\n\n    LIMIT = 1\n"
        "def g():\n    def h(): return 1000000\n    return h\n",
    ),
    "go": (
        "func f(x interface{}) (int, error) {\n\treturn \"}\" + `{` + '{' // }\n}\n"
        "func g() {\n\ttype local struct{ field int }\n}\n"
        "var table = []T{\n\t{1, 2, 3, 4, 5},\n}\ntype S struct {\n\tfield int // { \n}\n",
        "func f(x interface{}) (int, error) {}\n"
        "func g() {\n\ttype local struct{ field int }\n}\n"
        "var table = []T{}\ntype S struct {\n\tfield int // { \n}\n",
    ),
    "rust": (
        "impl<'a> S<'a> {\n  fn f(&self) -> &'a str { let x = '}'; r#\"{\"#.call(x) }\n"
        "  fn g() { enum Local { First, Second } }\n}\nenum E { A { field: fn(i32) }, B }\n",
        "impl<'a> S<'a> {\n  fn f(&self) -> &'a str {}\n"
        "  fn g() { enum Local { First, Second } }\n}\nenum E { A { field: fn(i32) }, B }\n",
    ),
    "php": (
        '<?php class A { public function f() { $x = "{$a["x"]}"; # }\n } const LIMIT = 100000; }\n'
        "function g() { $local = function () { return 1000000; }; }\n?>\n",
        "<?php class A { public function f() {} const LIMIT = 100000; }\n"
        "function g() { $local = function () {}; }\n?>\n",
    ),
    "kotlin": (
        'class A(val x: Int) { fun f() { val s = "${a { "x" }}"; """}""" /* } */ }\n'
        "  init { val local = 1000000 }\n  fun g() { fun inner() { println(1234567) } } }\n",
        "class A(val x: Int) { fun f() {}\n"
        "  init { val local = 1000000 }\n  fun g() { fun inner() {} } }\n",
    ),
    "java": (
        "class A { int f() throws B, C { if (x) { return '}'; } return 1; }\n"
        '  Runnable r = new Runnable("{") { public void run() { work(1, 2, 3, 4); } };\n'
        "  enum E { ONE(1) { int g() { return 1 + 1 + 1; } } }\n}\n",
        "class A { int f() throws B, C {}\n"
        '  Runnable r = new Runnable("{") { public void run() {} };\n'
        "  enum E { ONE(1) { int g() { return 1 + 1 + 1; } } }\n}\n",
    ),
    "csharp": (
        'class A { int X { get { return _x + @"\\{".Length; } set; }\n'
        '  void F<T>() where T : B, new() { if (a) { G("}"); } }\n'
        "  int H() { return Add(1);\n  int Add(int x) { return x + 1000; } }\n}\n",
        "class A { int X { get {} set; }\n"
        "  void F<T>() where T : B, new() {}\n"
        "  int H() { return Add(1);\n  int Add(int x) { return x + 1000; } }\n}\n",
    ),
    "c": (
        "struct s *f(struct s *p) {\n  if (p) { return p->next['}']; } }\n"
        "int values[] = { 1, 2, 3, 4, 5, 6, 7 };\n"
        "int g(void) {\n#define INNER { 1000\n  return INNER; }\nstruct t { int field, other; };\n",
        "struct s *f(struct s *p) {;}\n"
        "int values[] = {};\n"
        "int g(void) {\n#define INNER { 1000\n  return INNER; }\nstruct t { int field, other; };\n",
    ),
    "cpp": (
        "class A : public B<C> { A() : x(1'000) { call(x, x, x, x, x, x, x, x, x, x, x, x); }\n"
        '  auto f() const noexcept -> D<E> { return R"(})"; }\n'
        "  void g() { struct Local { int field; }; } };\n",
        "class A : public B<C> { A() : x(1'000) {; }\n"
        "  auto f() const noexcept -> D<E> {; }\n"
        "  void g() { struct Local { int field; }; } };\n",
    ),
    "typescript": (
        "class A { f(x: { a: string }): B<C> { return x.a + `}${'}'}` + \"'\" } }\n"
        "test('it', async () => { expect(one.replace(/[{'/]/g, '')).toBe(2) })\n"
        "function g() {\n  const h = (x: number) => { return x + 1000000 }\n  class Local {}\n"
        "  if (h(1)) { return { method() { return 1 + 1 + 1 } } }\n"
        "  const typed = {} as { field?: string, other: number }\n}\n",
        "class A { f(x: { a: string }): B<C> {} }\n"
        "test('it', async () => {})\n"
        "function g() {\n  const h = (x: number) => {}\n  class Local {}\n"
        "  if (h(1)) { return { method() {} } }\n"
        "  const typed = {} as { field?: string, other: number }\n}\n",
    ),
    "javascript": (
        "(function () {\n  a(b, function () { return /[{'/]/.test(`}${'}'}`) + \"'\" })\n"
        "  c.d = function (e) { e.each(function () { return 1000000 }) }\n"
        "  if (a) { return { f() { return 1 + 1 + 1 }, g: () => { return 1 + 1 + 1 } } }\n})()\n"
        "class H { i = 1; j() { return 1 + 1 + 1 + 1 } }\n",
        "(function () {\n  a(b, function () {})\n"
        "  c.d = function (e) {}\n"
        "  if (a) { return { f() {}, g: () => {} } }\n})()\n"
        "class H { i = 1; j() {} }\n",
    ),
    "ruby": (
        "class A\n  def f(x, y)\n    x.each do |z|\n      puts 'end'\n    end\n  end\n\n"
        "  def g\n    define_method(:h) { 1 + 1 }\n  end\n"
        "  it 'does' do\n    expect(1).to eq 1\n  end\n"
        "  context do\n    LIMIT = 1_000_000\n  end\nend\n",
        "class A\n  def f(x, y)\n  end\n\n"
        "  def g\n    define_method(:h) { 1 + 1 }\n  end\n"
        "  it 'does' do\n  end\n  context do\n    LIMIT = 1_000_000\n  end\nend\n",
    ),
}


LEFT["tsx"] = LEFT["typescript"]

TRICKY = [
    (name, source)
    for text in Path(__file__).with_name("tricky.txt").read_text("utf-8").split("=== ")[1:]
    for name, _, source in [text.partition("\n")]
]


def left(source: str, language: str) -> str:
    cut = without_bodies(source.encode(), language)
    return source if cut is None else cut.text.decode()


@pytest.mark.parametrize("language", BODIES)
def test_bodies_that_define_nothing_are_left_out(language: str) -> None:
    source, rest = LEFT[language]
    assert left(source, language) == rest


@pytest.mark.parametrize("language", BODIES)
def test_the_outline_is_that_of_the_whole_text(
    language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, _ = LEFT[language]
    grammar = grammar_named(language)
    found = tree.parsed(source.encode(), grammar)
    monkeypatch.setattr(tree, "without_bodies", lambda text, language: None)
    assert found == tree.parsed(source.encode(), grammar) != []


@pytest.mark.parametrize("language", sorted({name for name, _ in TRICKY} | {"tsx"}))
def test_tricky_texts_have_the_same_outline_with_and_without_bodies(
    language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    grammar = grammar_named(language)
    written = "typescript" if language == "tsx" else language
    sources = [source.encode() for name, source in TRICKY if name == written]
    found = [tree.parsed(source, grammar) for source in sources]
    monkeypatch.setattr(tree, "without_bodies", lambda text, language: None)
    assert found == [tree.parsed(source, grammar) for source in sources]
    assert len(sources) == 10
    assert all(found)


def test_braces_in_macros_and_semicolons_in_values_are_no_code() -> None:
    source = '#define BEGIN namespace n {\nconst char *s[] = { "a;b", "c;d", "e;f" };\n'
    assert left(source, "cpp") == "#define BEGIN namespace n {\nconst char *s[] = {};\n"


def test_what_a_macro_may_have_opened_is_no_body() -> None:
    inner = "\n  int f(int x) { return one(x) + two(x); }\n}\n"
    rest = "\n  int f(int x) {; }\n}\n"
    assert left("namespace n MACRO(1) {" + inner, "cpp") == "namespace n MACRO(1) {" + rest
    opened = "MACRO(1) {\nint f(int x) { return one(x) + two(x); }\n}\n"
    assert left(opened, "cpp") == opened


def test_objects_that_are_passed_or_returned_are_no_types() -> None:
    passed = "function f() {\n  set({ count: 1 }); g(() => ({ b: 2 })); return { c: 3 }\n}\n"
    typed = "function f() {\n  let x: Map<string, { a: b }>, y = {} as { c: d }\n}\n"
    assert left(passed, "typescript") == "function f() {}\n"
    assert left(typed, "typescript") == typed


ODD = (
    "void f() { a_long_body(1, 2, 3); } }",
    "void f() { a_long_body(1, 2, 3); } void g() {",
    'void f() { a_long_body(1, 2, 3); } char *s = "',
    "void f() { a_long_body(1, 2, 3); } /* ",
    "void f() { a_long_body(1, 2, 3); }" + "{" * 2000 + "}" * 2000,
)


@pytest.mark.parametrize("source", ODD)
def test_of_a_text_whose_brackets_are_odd_nothing_is_left_out(source: str) -> None:
    assert left(source, "c") == source


def test_where_little_can_be_left_out_nothing_is() -> None:
    body = "void f() { a_long_body(1, 2, 3); }\n"
    assert left(body + "int declared(int one, int two);\n", "c") != body
    many = body + "int declared(int one, int two);\n" * 20
    assert left(many, "c") == many


def test_what_cannot_be_read_without_the_bodies_is_read_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = b"void f() { one(); two(); three(); four(); }\nint x[ { 1 } ;\n"
    texts: list[int] = []
    cut = without_bodies(source, "c")
    assert cut is not None
    find = tree._broken
    monkeypatch.setattr(tree, "_broken", lambda root: (texts.append(root.end_byte), find(root))[1])
    tree.parsed(source, grammar_named("c"))
    assert texts == [len(cut.text), len(source)]


def test_what_a_body_that_ended_early_leaves_has_the_text_read_whole() -> None:
    source = "\ndef f():\n    x = (1000, 1000, 1000,\n1, 2)\n    return x\nY = 1\n"
    assert left(source, "python") == "\ndef f():\n    0\n1, 2)\n    return x\nY = 1\n"
    found = tree.parsed(source.encode(), grammar_named("python"))
    assert [(one.name, one.end_line) for one in found] == [("f", 5), ("Y", 6)]


PIECES = (
    *("{", "}", "{}", '"', "'", "`", "/*", "//", "/a", "(/a", "(/[", "(", ")", "= {", "= (", ": ("),
    *(
        "){}",
        "= a",
        "=>",
        "{a:",
        "{a: b,",
        "{a(",
        "):a<",
        "= async",
        "`${",
        "new",
        "new (",
        "new {",
    ),
    *("struct", "struct a", "class a{", "enum", 'R"(', 'r#"', '@"', '"""', '"\\', "fn a", "fun"),
    *("type", ";static", "A", "attr_a", "?>", "// ?", ") const &", ") throws a", ") where ()"),
    *(") -> a", "\n def a\n", "\n def a\n  b\n", "\n a do\n", "\na b(", "\na<", "#define a\\\n"),
    *("\ndef a(", "\n def a():\n  b\n", '\n def a():\n  """\n', "\ndef a():\n b\n'''"),
)


@pytest.mark.parametrize("language", BODIES)
def test_no_text_takes_long(language: str) -> None:
    started = time.process_time()
    for piece in PIECES:
        text = "void f() {\n" + f"{piece} " * (60_000 // len(piece)) + "\n}"
        without_bodies(text.encode(), language)
    # 3 MB at 100 ns a byte: four times what the slowest takes.
    assert time.process_time() - started < 1


@given(st.binary(max_size=60), st.lists(st.integers(0, 60), max_size=8, unique=True))
def test_what_is_left_of_a_text_is_found_in_it(whole: bytes, offsets: list[int]) -> None:
    bounds = sorted(offset for offset in offsets if offset <= len(whole))
    spans = list(zip(bounds[::2], bounds[1::2], strict=False))
    cut = Cut(whole, spans)
    kept = [at for at in range(len(whole)) if not any(start <= at < end for start, end in spans)]
    assert cut.text == bytes(whole[at] for at in kept)
    assert [cut.offset(at) for at in range(len(cut.text))] == kept
    places = [sum(at < start for at in kept) for start, _ in spans]
    for at in range(len(kept)):
        assert cut.is_cut(at, at) == (at in places)


def test_what_stands_in_the_place_of_a_part_moves_what_follows_it() -> None:
    whole = b"abcdef"
    cut = Cut(whole, [(1, 1), (3, 5)], b"\n")
    assert cut.text == b"a\nbc\nf"
    kept = [0, 2, 3, 5]
    assert bytes(whole[cut.offset(at)] for at in kept) == b"abcf"

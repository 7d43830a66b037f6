"""What is blanked of C and C++ so that a grammar can read it."""

from __future__ import annotations

import time

import pytest

from rlm_rag.indexes.grammars import grammar_named
from rlm_rag.indexes.macros import without_macros
from rlm_rag.indexes.skeleton import Definition
from rlm_rag.indexes.tree import parsed

# Each follows a line feed; what stands between < and > is blanked.
BLANKED = (
    "«API» void f();",
    "«API» Status f(int x);",
    "«API NODISCARD» std::pair<A, B<C>>* f(int x);",
    "  static «CONSTEXPR20» auto f() -> int {",
    "template <typename T> «INLINE» T f(T x) {",
    '«DEPRECATED("f(x)")»\nstd::string g(int x);',
    "«API» operator bool() const;",
    "«API» ~A();",
    "  «CONSTEXPR» A(int x) : b(x) {}",
    "«BEGIN_NAMESPACE»\nnamespace a {",
    "  «PUSH_WARNINGS(4180)»  // why\n\n  int x;",
    "«PRAGMA_GCC(optimize)»\n\nint x;",
    "namespace std «VISIBILITY(default)»\n{",
    "class «EXPORT» A : public B {",
    "MATCHER(IsIn, n«, \"a\" + x(1)») {\n}",
    "DECLARE_KIND(«bool, kBool»);",
    "«extern template auto f<char>(int) -> A<char>;»",
    "void f() const «NOEXCEPT» {",
    "void f()\n    «REQUIRES_LOCK(mutex_)»;",
    "A() «UNLOCK(x) COLD» : b(x) {}",
    "void «CALLBACK» f(int x);",
    "«GLAPI» const GLubyte * «APIENTRY» f(GLenum name);",
    "int x «__attribute__((unused))»;",
)  # fmt: skip
# What a macro could not be told from, or what is one that must stay.
KEPT = (
    "DWORD f(int x);",
    "DWORD const x = 1;",
    "CARD32 length B32;",
    "const DWORD f(int x);",
    "enum A {\n  FIRST_ONE,\n  SECOND_ONE\n};\nint x;",
    "TEST(A, b) {\n}\n",
    "}  // namespace a\n\nTEST(A, c) {",
    "FLAGS(a, b);",
    "x = (char*) CONSTANT;",
    "if (x) RETRY;",
    "#define API\nint x;",
    "#undef API\nint x;",
    "  return CALL(x);",
    "TEMPLATE_HEAD\nCLASS_NAME::\nheap() : b(x) {\n}",
    "void f() { DWORD x; }",
)
PIECES = (
    *(
        "API\n",
        "const\n",
        "A(\n",
        "AAA(\n",
        "AAA(x\n",
        "AAA(a,\n",
        "AAA x<\n",
        "AAA x<a>\n",
        "AAA x*",
    ),
    *(") AAA\n", ") AAA(", ")\n AAA(x) ", "extern template\n", "namespace a AAA(\n", "AAA(()()\n"),
    *("API ", "\n API x ", "EXPORT", "static ", "template <a> ", "class AAA ", "struct AAA(a) "),
    *("AAA_BEGIN", "\n\n", ") const ", "__attribute__((", "AAA(aaa, \n"),
)


def blanks(source: str) -> str:
    text, _ = without_macros(b"\n" + source.encode(), "cpp")
    return text.decode()[1:]


def found_in(source: str) -> list[Definition]:
    return parsed(source.encode(), grammar_named("cpp"))


@pytest.mark.parametrize("marked", BLANKED)
def test_what_no_name_could_stand_for_is_blanked(marked: str) -> None:
    pieces = marked.replace("»", "«").split("«")
    expected = "".join(
        "".join("\n" if one == "\n" else " " for one in piece) if number % 2 else piece
        for number, piece in enumerate(pieces)
    )
    assert blanks("".join(pieces)) == expected


@pytest.mark.parametrize("source", KEPT)
def test_what_may_be_a_type_or_a_name_stays(source: str) -> None:
    assert blanks(source) == source


def test_functions_of_old_stay_in_c() -> None:
    source = b"\nFOO(a, b)\n  int a;\n"
    assert without_macros(source, "c")[0] == source


def test_definitions_behind_macros_are_found_with_all_that_is_written() -> None:
    source = (
        "namespace a {\nBEGIN_NAMESPACE\nclass EXPORT A {\n public:\n"
        "  int count() const LOCKS_EXCLUDED(mutex_) { return count_; }\n"
        "  // Waits.\n  ATTRIBUTE_NOINLINE\n  void wait() LOCKS_EXCLUDED(mutex_);\n"
        "  int count_ = 0;\n};\n"
        "template <typename T> API T made(T x) { return x; }\nEND_NAMESPACE\n}\n"
    )
    found = found_in(source)
    assert [(one.line, one.kind, ".".join((*one.parents, one.name))) for one in found] == [
        (1, "namespace", "a"),
        (3, "class", "a.A"),
        (5, "method", "a.A.count"),
        (8, "method", "a.A.wait"),
        (9, "field", "a.A.count_"),
        (11, "function", "a.made"),
    ]
    assert found[2].signature == "int count() const LOCKS_EXCLUDED(mutex_)"
    assert found[3].signature == "ATTRIBUTE_NOINLINE void wait() LOCKS_EXCLUDED(mutex_);"
    assert found[3].doc == "Waits."
    assert found[5].signature == "API T made(T x)"


def test_the_value_of_a_macro_is_left_out_and_its_lines_are_not() -> None:
    source = (
        "#define LIMIT(x) \\\n  do { /* an apostrophe's, and a brace { */ \\\n    f(x); \\\n"
        "  } while (0)\nvoid f(int x) { g(x, x, x, x, x, x); }\nint y;\n"
    )
    found = [(one.line, one.name, one.end_line, one.signature) for one in found_in(source)]
    assert found == [
        (1, "LIMIT", 4, "#define LIMIT(x) \\"),
        (5, "f", 5, "void f(int x)"),
        (6, "y", 6, "int y;"),
    ]


def test_attributes_in_two_brackets_are_not_of_a_signature() -> None:
    assert found_in("[[nodiscard]] int f(int x);\n")[0].signature == "int f(int x);"


def test_a_long_line_says_nothing_of_the_first() -> None:
    first, long = "void CALLED f(int x);", f"{'x ' * 200}API"
    assert without_macros(first.encode(), "cpp")[0].decode() == first.replace("CALLED", " " * 6)
    kept = "\n".join(("void UNKNOWN f(int x);", long)).encode()
    assert without_macros(kept, "cpp")[0] == kept


def test_long_lines_behind_one_long_word_do_not_take_long() -> None:
    started = time.process_time()
    without_macros(("x" * 600_000 + f"\n{'x' * 310} API" * 2_000).encode(), "cpp")
    # With the first line looked at for each of the others: 1.7 s, by the square of the length.
    assert time.process_time() - started < 1


def test_no_text_takes_long() -> None:
    started = time.process_time()
    for piece in PIECES:
        without_macros(b"\n" + (piece * (30_000 // len(piece))).encode(), "cpp")
    # 900 KB: what would grow with the square of the length takes minutes.
    assert time.process_time() - started < 2

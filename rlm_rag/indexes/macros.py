"""What stands in declarations of C and C++ and is of a macro, or of a compiler.

A grammar takes a macro for a type or a name, and what it takes to get over that is half of the time
that it takes for a header. Each of these patterns holds only where no name of the language could
stand; whatever is blanked becomes spaces, so that all offsets and lines stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from rlm_rag.indexes.atomic import compiled

Span = tuple[int, int]

_NAME = rb"[A-Z_][A-Z0-9_]{2,60}+(?!\w)"
_WITHIN = rb"(?:[^();{}]++|\([^();{}]*+\)){1,20}+"
_BRACKETS = rb"\((?:%b)?+\)" % _WITHIN
_CALLED = _NAME + rb"(?:%b)?+" % _BRACKETS

# Between the keyword and the name, as in `class EXPORT Name {`.
_BEFORE_NAME = compiled(
    rb"[ \t\n;](?:class|struct|union|enum)[ \t\n]+"
    rb"((?:[A-Z_][A-Z0-9_]{2,60}(?:\([^()\n]{0,100}\))?[ \t\n]+){1,3})"
    rb"(?=[A-Za-z_][\w:]{0,200}[ \t\n]*(?:final\b[ \t\n]*)?[:{<;])"
)
_KEYWORDS = (b"class", b"struct", b"union", b"enum")

# What a declaration begins with: words before its type; words that are no type by themselves; the
# type and the name of what is declared; and what is declared without a type, as in
# `A(int x) : b(x) {` and `operator bool()`.
_SPECIFIERS = (
    rb"(?:(?:const|static|inline|constexpr|consteval|constinit|extern(?:\stemplate)?|virtual"
    rb"|volatile|friend|mutable)\s++){0,6}+"
)
_BUILT_IN = (
    rb"(?:void|bool|char|int|unsigned|signed|short|long|float|double|auto|explicit|template|typename"
    rb"|struct|class|enum|union|using|decltype|typedef|namespace)\b|~|\"C\"|(?:public|protected"
    rb"|private)\s*+:"
)
_NO_TYPE = rb"(?!(?:return|operator|const|volatile|delete|new|and|or|final|override|noexcept)\b)"
_GENERIC = rb"(?:<[^<>;(){}]*+(?:<[^<>;(){}]*+>[^<>;(){}]*+){0,5}+>[\w:]*+)?+"
_TYPE_AND_NAME = (
    _NO_TYPE + rb"[A-Za-z_:][\w:]*+(?<!:)" + _GENERIC + rb"(?:\s*+[*&]++\s*+|\s++)(?:const\s++)?+"
    # A name like a macro's may be one behind the name.
    rb"(?:operator\b|(?:%b\s++)?+(?!%b)%b[A-Za-z_~][\w:~]*+\s*+[(;=\[{,)])"
    % (_NAME, _NAME, _NO_TYPE)
)
_WITHOUT_TYPE = (
    rb"[A-Za-z_]\w*+\s*+%b\s*+(?:noexcept\s*+)?+:(?!:)"
    rb"|operator\s++(?!(?:new|delete|co_await)\b)\w" % _BRACKETS
)
_DECLARATION = _SPECIFIERS + rb"(?:%b)" % b"|".join((_BUILT_IN, _TYPE_AND_NAME, _WITHOUT_TYPE))

# Of lines, each with the line feed before it, which is found fast; a directive does not begin so.
# Macros before a declaration, as in `API void f();`, also behind what it begins with;
_BEFORE = rb"(%b(?:\s++%b){0,5}+)\s++(?=%b)" % (_CALLED, _CALLED, _DECLARATION)
_FIRST = rb"(?=[tsicevfm])(?:template\s?<[^<>\n;{}]*+>[ \t]++)?+" + _SPECIFIERS + rb"(?=[A-Z_])"
# macros that have a line of their own;
_ALONE = rb"((?=\w*(?:BEGIN|END|NAMESPACE|PUSH|POP|PRAGMA))%b)" % _CALLED
_AT_MARGIN = rb"[A-Z_](?<=\n[A-Z_])[A-Z0-9_]{2,60}+(?!\w)"
_CALLED_ALONE = rb"(%b%b)[ \t]*+(?=(?://[^\n]*+)?\n(?:\n|//|%b))" % (_AT_MARGIN, _BRACKETS, _NAME)
# what is not like a parameter, as in `MATCHER(Is, n, "") {`; and what only makes what is there.
_PLAIN = (
    rb"(?!(?:enum|void|bool|char|int|unsigned|signed|short|long|float|double)\b)"
    rb"[A-Za-z_][\w:]*+(?=\s*+[,)])"
)
_NO_PARAMETER = rb"%b\((?:%b(?:\s*+,\s*+%b){0,9}+)?+((?=[^)])%b)\)(?=\s*+[{;])" % (
    *(_AT_MARGIN, _PLAIN, _PLAIN),
    _WITHIN,
)
_BEHIND_NAMESPACE = rb"namespace[ \t]++\w++[ \t]++(%b)(?=\s*+\{)" % _CALLED
_MADE = rb"(extern\stemplate\b[^;{}]{0,500}+;)"
# Most lines do not begin with a name; so it is looked for once.
_LINES = compiled(
    rb"\n[ \t]*+(?:%b|%b|(?=[A-Z_][A-Z0-9_]{2})(?:%b)|%b)"
    % (
        *(_MADE, _BEHIND_NAMESPACE),
        b"|".join(
            (_CALLED_ALONE, _NO_PARAMETER, _ALONE + rb"[ \t]*+(?=(?://[^\n]*+)?\n)", _BEFORE)
        ),
        _FIRST + _BEFORE,
    )
)

# As in `void CALLBACK f(int x);`. Few texts have such, and those have one of these.
_LINE_BYTES = 300
_CONVENTIONS = (b"API", b"CALL", b"EXPORT")
_BEHIND_TYPE = compiled(
    rb"[ \t]*+(?:\w++[ \t*]++){1,4}?"
    rb"(?<!\bnew )(?<!\belse )(?<!\bconst )(?<!\bcase )(?<!\bstatic )(?<!\bextern )(?<!\binline )"
    rb"(?<!\breturn )(?<!\bstruct )(?<!\benum )(?<!\bclass )(?<!\bunion )(?<!\bvirtual )"
    rb"(?<!\bfriend )(?<!\bvolatile )(?<!\bthrow )(?<!\btypename )(?<!\bconstexpr )(?<!\btypedef )"
    rb"(%b)[ \t]++[A-Za-z_]\w*+[ \t]*+\(" % _NAME
)
# As in `void f() const NOEXCEPT {` and `void f() GUARDED_BY(x);`: before a semicolon stands what a
# cast is of as well, so that there a name must tell.
_TELLING = (
    rb"(?=\w*(?:GUARDED|LOCK|REQUIRE|EXCLU|NOEXCEPT|THROW|ATTR|DEPRECATED|LIFETIME|NONNULL|PRINTF"
    rb"|NORETURN|COLD|MUST_USE|UNUSED|NODISCARD))"
)
_SEVERAL = rb"%b(?:\s++%b){0,5}+" % (_CALLED, _CALLED)
_BEHIND_BRACKETS = compiled(
    rb"\)[ \t&]*+(?:\n[ \t]++)?+"
    rb"(?:(?:const|noexcept|override|final)\b[ \t&]*+(?:\n[ \t]++)?+){0,3}+"
    rb"(?:(%b)(?=\s*+(?:[{:]|(?:const|noexcept|override|final)\b|->))|(%b)(?=\s*+[;=]))"
    % (_SEVERAL, _TELLING + _SEVERAL)
)
# What a compiler is told beside the language; begins with a literal, which is found fast.
_ATTRIBUTE = compiled(
    rb"__(?:attribute__[ \t]*\(\([^\n]{0,200}?\)\)|declspec[ \t]*\([^()\n]{0,100}\)"
    rb"|(?:inline|inline__|restrict|extension__|cdecl|stdcall|fastcall|thread)\b)"
)
_BLANKS = bytes(byte if byte == ord("\n") else ord(" ") for byte in range(256))


def without_macros(text: bytes, language: str) -> tuple[bytes, Mapping[int, int]]:
    """Blank what stands in declarations of C and C++ and is of a macro or a compiler.

    Returns the text, and beside where a declaration then starts, where it did with its macros.
    """
    spans: list[Span] = []
    starts: dict[int, int] = {}
    # A pattern would try each white space of the text, which takes three times as long.
    for keyword in _KEYWORDS:
        at = text.find(keyword, 1)
        while at > 0:
            if match := _BEFORE_NAME.match(text, at - 1):
                spans.append(match.span(1))
            at = text.find(keyword, at + len(keyword))
    spans += (match.span() for match in _ATTRIBUTE.finditer(text))
    if language == "cpp":
        for match in _LINES.finditer(text):
            start, end = match.span(match.lastindex or 0)
            spans.append((start, end))
            starts[match.end()] = start
        spans += (match.span(match.lastindex or 0) for match in _BEHIND_BRACKETS.finditer(text))
        spans += _conventions(text)
    return blanked(text, spans), starts


def _conventions(text: bytes) -> Iterator[Span]:
    for word in _CONVENTIONS:
        at = text.find(word)
        while at >= 0:
            line = text.rfind(b"\n", max(0, at - _LINE_BYTES), at) + 1
            # Else it begins further back, and what is found would be the text's first line.
            begins_near = line > 0 or at <= _LINE_BYTES
            if begins_near and (match := _BEHIND_TYPE.match(text, line)):
                yield match.span(1)
            following = text.find(b"\n", at)
            at = text.find(word, following) if following >= 0 else -1


def blanked(text: bytes, spans: Iterable[Span]) -> bytes:
    """Return a text with spaces for what stands in spans of it; line feeds stay."""
    changed = bytearray(text)
    for start, end in spans:
        changed[start:end] = text[start:end].translate(_BLANKS)
    return bytes(changed)

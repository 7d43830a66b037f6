"""What tells the bodies of functions, one language a row; of others every byte is parsed."""

from __future__ import annotations

from collections.abc import Mapping

from rlm_rag.indexes.bodies import Blocks, Braces
from rlm_rag.indexes.indents import Indents

_COMMENTS = (rb"//[^\n]*+", rb"/\*[^*]*+(?:\*(?!/)[^*]*+)*+\*/")
_STRING = rb'"[^"\\\n]*+(?:\\[\s\S][^"\\\n]*+)*+"'
_LONG_STRING = rb'"[^"\\]*+(?:\\[\s\S][^"\\]*+)*+"'
_LONG_CHARACTERS = rb"'[^'\\]*+(?:\\[\s\S][^'\\]*+)*+'"
_THREE_QUOTES = rb'"""[^"]*+(?:"(?!"")[^"]*+)*+"""+'
_CHARACTER = rb"'(?:[^'\\\n]{1,4}|\\[^\n][^'\n]{0,10})'"


def _words(*words: bytes, then: bytes = rb"\b", no: bytes = rb"\w$.") -> tuple[bytes, ...]:
    """Return patterns of words, none of the letters `no` before them."""
    return tuple(word + rb"(?<![" + no + rb"]" + word + rb")" + then for word in words)


# What may stand in a line of the preprocessor, and in those that go on with it.
_C_LINES = rb"(?:[^\n\\/]++|\\[\s\S]|//(?:[^\n\\]++|\\[\s\S])*+|%b|/(?!\*))" % _COMMENTS[1]
# The value of a macro may hold a brace or a quote that has no other, and nothing for an outline.
_VALUE = rb"#[ \t]*+define[ \t]++\w++(?:\([^()\n]*+\))?+()" + _C_LINES + rb"*+"
_DEFINE = rb"#[ \t]*+define\b" + _C_LINES + rb"*+"
_DIRECTIVE = rb"#(?![ \t]*+define\b)" + _C_LINES + rb"*+"
_C_COMMENTS = (rb"//[^\\\n]*+(?:\\[\s\S][^\\\n]*+)*+", _COMMENTS[1])
_C_SKIPPED = (_DIRECTIVE, _STRING, *_C_COMMENTS, _CHARACTER)
_C_BODY = (
    rb"\)[\s&]*+(?:(?:const|noexcept|override|final|mutable|volatile|try)\b[\s&]*+)*+"
    rb"(?:->[\w:<>*&\s,]*+)?+\{",
    # Values of an array or a structure.
    rb"\{(?<==\{)",
    rb"\{(?<==\s\{)",
)
_C_BRACE = rb"\b[^;{}()=]{0,300}+\{"
# For macros a fifth of the texts cannot be read wholly, and some of these are parsed again; fewer
# in C++, where more of them are blanked.
_C_SHARE = 0.25
_CPP_SHARE = 0.10
# Where a line begins with a name and brackets, a macro may have opened a namespace.
_C_LINE = rb"\n\w[^\n;:(]*+\("

# A function in another has no word of its own: a type and a name where a statement begins.
_STATEMENT = (
    rb"return|new|await|throw|else|yield|goto|case|using|if|lock|while|for|foreach|switch|catch"
)
_GENERIC = rb"<[^;{}()=\n]{0,200}>"
_LOCAL_FUNCTION = (
    rb"[;{}\n]\s*+(?:(?:static|async|unsafe|extern|ref|readonly)\s++)*+(?!(?:%(words)b)\b)"
    rb"(?:\w[\w.:]*+(?:%(generic)b)?|\([^;{}()=\n]*+\))(?:\[[\[\],]*+)?[?*]?+\s++"
    rb"(?!(?:is|as|in|and|or|not|switch|with|when)\b)\w++\s*+(?:%(generic)b\s*+)?\("
) % {b"words": _STATEMENT, b"generic": _GENERIC}

# An object with members of its own; no array. It ends where another begins, so that of many in
# a row each is read once.
_ANONYMOUS = (
    rb"new\s(?<!\wnew\s)(?:[^;{}\"'/n]++|n(?!ew\s)|%b|%b|%b|%b|/(?![/*]))*+"
    rb"\{(?<!\]\{)(?<!\]\s\{)"
) % (_STRING, _CHARACTER, *_COMMENTS)

_CHARACTERS = rb"'[^'\\\n]*+(?:\\[\s\S][^'\\\n]*+)*+'"
_TEMPLATE = rb"`[^`\\]*+(?:\\[\s\S][^`\\]*+)*+`"
# Behind what begins an expression a slash begins a pattern.
# (Bounded: in a long line one could begin at each of many slashes.)
_PATTERN = rb"(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.){0,60}+\]){1,100}+/"
_BEFORE_PATTERN = rb"[(,=:\[!&|?{};+~^%*<>-]"
_SCRIPT_SKIPPED = (
    *(_STRING, _CHARACTERS, _TEMPLATE, *_COMMENTS),
    *(rb"/(?<=%b/)" % before + _PATTERN for before in (_BEFORE_PATTERN, _BEFORE_PATTERN + rb" ")),
    rb"/(?<=return /)" + _PATTERN,
)
# A function without a name that is given one; brackets behind which it is none begin no other.
_NAMED = rb"\s*+(?:async\b\s*+)?+(?:<|function\b|[\w$]++\s*+=>|\((?![^()]*+\)\s*+[^=:\s{]))"
_SCRIPT_CONTROL = rb"[ \t]*+(?:\}[ \t]*+)?+(?:else[ \t]++)?+(?:if|for|while|switch|catch|with)\b"
# One that is given none: what stands before its brackets tells it from a method.
_UNNAMED = rb"function\b(?<![\w$.]function)\s*+\([^(){}]*+\)\s*+\{"
# A type that is written out, by its first member.
_MEMBER = (
    rb"\s*+(?:readonly\s++)?+[\"'\w$\[\].-]++"
    rb"(?:\?:|:[^{}()=;]*+;|:[^{}()=,;]*+\}|\??\([^(){}]*+\)\s*+:)"
)
_TYPESCRIPT = Braces(
    _SCRIPT_SKIPPED,
    (rb'"', rb"'", rb"`", rb"/\*"),
    body=(
        rb"\)\s*+(?::[\w.<>\[\]|&,\s]++)?+\{(?<![|&<,:]\{)(?<![|&<,:]\s\{)",
        rb"=>\s*+\{(?!" + _MEMBER + rb")",
        _UNNAMED,
    ),
    holder=(
        rb"\{(?<![\w$)\]>]\(\{)(?<!=> \(\{)(?<!return \{)(?=" + _MEMBER + rb")",
        *_words(b"class", b"interface", b"enum", b"type", then=rb"\s"),
    ),
    other=(rb"=" + _NAMED, rb":" + _NAMED, *_words(b"function", then=rb"\b(?!\s*+\()")),
    control=_SCRIPT_CONTROL,
)
_JAVASCRIPT = Braces(
    _SCRIPT_SKIPPED,
    (rb'"', rb"'", rb"`", rb"/\*"),
    body=(rb"\)\s*+\{", rb"=>\s*+\{", _UNNAMED),
    holder=_words(b"class", then=rb"\s"),
    other=(rb"=" + _NAMED, rb":" + _NAMED, *_words(b"function", then=rb"\b(?!\s*+\()")),
    control=_SCRIPT_CONTROL,
)

SKIPPED_OF_KOTLIN = (_THREE_QUOTES, _STRING, *_COMMENTS, _CHARACTER, rb"`[^`\n]*+`")

BODIES: Mapping[str, Braces | Blocks | Indents] = {
    "python": Indents(),
    "go": Braces(
        (_STRING, *_COMMENTS, rb"`[^`]*+`", _CHARACTER),
        (rb'"', rb"'", rb"`", rb"/\*"),
        holder=(rb"struct\s*+\{(?!\s*+\})", rb"interface\s*+\{(?!\s*+\})"),
        other=(rb"type\b(?<![\w(]type)",),
        loose=True,
    ),
    "rust": Braces(
        (
            *(rb'r"[^"]*+"', rb'r#"[^"]*+(?:"(?!#)[^"]*+)*+"#', _LONG_STRING, *_COMMENTS),
            *(_CHARACTER, rb"'\w++"),
        ),
        (rb'r#+"', rb'"', rb"'", rb"/\*"),
        function=(rb"fn\s(?<!\wfn\s)(?=\w)",),
        holder=_words(b"struct", b"enum", b"union", b"trait", b"impl", b"mod"),
        other=_words(b"const", b"static", b"type", b"macro_rules", no=rb"\w$.*"),
    ),
    "php": Braces(
        (
            *(_LONG_STRING, _LONG_CHARACTERS, rb"//[^\n?]*+(?:\?(?!>)[^\n?]*+)*+", _COMMENTS[1]),
            *(rb"#(?!\[)[^\n?]*+(?:\?(?!>)[^\n?]*+)*+", rb"\?>\s*+\Z"),
        ),
        (rb'"', rb"'", rb"`", rb"/\*", rb"<<<", rb"\?>"),
        function=_words(b"function", no=rb"\w$>:"),
        holder=_words(b"class", b"interface", b"trait", b"enum", b"namespace", no=rb"\w$>:"),
        other=_words(b"const", b"define", b"fn", no=rb"\w$>:"),
    ),
    "kotlin": Braces(
        SKIPPED_OF_KOTLIN,
        (rb'"', rb"'", rb"`", rb"/\*"),
        function=_words(b"fun"),
        holder=_words(b"class", b"interface", b"object", no=rb"\w$.:"),
        other=_words(b"typealias", b"constructor", b"annotation"),
    ),
    "java": Braces(
        (_THREE_QUOTES, _STRING, *_COMMENTS, _CHARACTER),
        body=(rb"\)\s*+(?:throws\b[\w\s.,]++)?+\{",),
        holder=(*_words(b"class", b"interface", b"record", then=rb"\s"), _ANONYMOUS),
        # A constant with members of its own looks like a method.
        whole=_words(b"enum", then=rb"\s"),
    ),
    "csharp": Braces(
        (
            *(rb'@\$?"[^"]*+(?:""[^"]*+)*+"', rb'\$@"[^"]*+(?:""[^"]*+)*+"', _THREE_QUOTES),
            *(_STRING, *_COMMENTS, _CHARACTER, rb"#[^\n]*+"),
        ),
        body=(
            rb"\)\s*+(?:where\b[^{};()]*+(?:\(\)[^{};()]*+)*+)?+\{",
            *_words(b"get", b"set", b"init", b"add", b"remove", then=rb"\s*+\{"),
        ),
        holder=_words(*(b"class", b"struct", b"interface", b"enum", b"record"), then=rb"\s++[\w@]"),
        within=_LOCAL_FUNCTION,
    ),
    "c": Braces(
        _C_SKIPPED,
        body=_C_BODY,
        holder=_words(b"struct", b"union", b"enum", then=_C_BRACE),
        other=(_DEFINE, *_words(b"typedef")),
        within=_C_LINE,
        kept=b";",
        least_share=_C_SHARE,
    ),
    "cpp": Braces(
        (
            # Between digits.
            rb"'(?<=[0-9a-fA-F]')(?=[0-9a-fA-F])",
            *(rb'R"\([^)]*+(?:\)(?!")[^)]*+)*+\)"', *_C_SKIPPED),
        ),
        (rb'R"', rb'"', rb"'", rb"/\*"),
        body=_C_BODY,
        holder=(
            *_words(b"struct", b"union", b"enum", b"class", then=_C_BRACE),
            *_words(b"namespace", then=rb"\b[^;{}=]{0,300}+\{"),
        ),
        other=(
            *(_DEFINE, *_words(b"typedef", b"template")),
            *_words(b"using", b"namespace", then=rb"\s++\w++\s*+="),
        ),
        value=(_VALUE,),
        within=_C_LINE,
        kept=b";",
        least_share=_CPP_SHARE,
    ),
    "javascript": _JAVASCRIPT,
    "typescript": _TYPESCRIPT,
    "tsx": _TYPESCRIPT,
    "ruby": Blocks(
        rb"def [^\n()]*+(?:\([^\n()]*+\))?+[^\n()]*+"
        rb"|[^\s#][^\n]*+(?:(?<= do)|(?<=\|))",
        rb"(?:def|module|alias)[ \t]|class[ \t](?<![.:@$\w]class[ \t])"
        rb"|[A-Z]\w*+\s*+(?:\|\||&&|[-+*/])?=(?![=~>])"
        rb"|(?:define_method|alias_method|define_singleton_method|def_delegator|scope|attr(?:_\w++)?+"
        rb"|[cm]attr_accessor|class_attribute)[ \t(]++[:\"']",
    ),
}

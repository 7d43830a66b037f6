"""What definitions look like in each language: one language a row of a table.

The patterns are lexical and meant for whole corpora: each begins at a line's start, matches
within a bounded stretch and cannot backtrack far, since the text may be hostile.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

from rlm_rag.globs import without_part

VARIABLE = "variable"
NAME = rb"[A-Za-z_$\x80-\xff][\w$\x80-\xff]{0,200}"


@dataclass(frozen=True, slots=True)
class Rule:
    """One form of definition; `(?P<name>...)` in `pattern` becomes the definition's name.

    `ends` is set where the form also fits calls, so that what follows the name must be a
    parameter list and then one of these bytes: `{` a body, `;` a declaration without one.
    With `declares`, `;` after a form at the margin makes it of the kind `declaration`.
    """

    kind: str
    pattern: bytes
    ends: bytes = b""
    declares: bool = False


@dataclass(frozen=True, slots=True)
class Language:
    """`mask` matches the strings and comments in which nothing is a definition.

    `begins` holds, as a class of a pattern, the bytes that forms other than variables begin with.
    """

    name: str
    suffixes: tuple[str, ...]
    rules: tuple[Rule, ...]
    mask: bytes = rb"(?!)"
    filenames: tuple[str, ...] = ()
    begins: bytes = b""
    pattern: re.Pattern[bytes] = field(init=False, repr=False, compare=False)
    lasting_pattern: re.Pattern[bytes] = field(init=False, repr=False, compare=False)
    mask_pattern: re.Pattern[bytes] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        lasting = tuple(rule for rule in self.rules if rule.kind != VARIABLE)
        ahead = b"(?=[" + self.begins + b"])" if self.begins else b""
        object.__setattr__(self, "pattern", self._any_of(self.rules, b""))
        object.__setattr__(self, "lasting_pattern", self._any_of(lasting, ahead))
        object.__setattr__(self, "mask_pattern", re.compile(self.mask, re.DOTALL))

    def _any_of(self, rules: Sequence[Rule], ahead: bytes) -> re.Pattern[bytes]:
        forms = (
            rule.pattern.replace(b"(?P<name>", b"(?P<r%d>" % self.rules.index(rule))
            for rule in rules
        )
        any_form = b"(?:" + b"|".join(forms).replace(b"NAME", NAME) + b")"
        # A literal line feed first: the scanner then skips from line to line with memchr.
        return re.compile(rb"\n(?P<indent>[ \t]{0,120})" + ahead + any_form)


_QUOTED = rb"'(?:[^'\\\n]|\\.){0,4000}'|" rb'"(?:[^"\\\n]|\\.){0,4000}"'
_SLASHED = rb"//[^\n]*|/\*.*?(?:\*/|\Z)"
_C_MASK = _SLASHED + rb"|" + _QUOTED
_BACKTICKS = rb"`(?>(?:[^`\\]|\\.)*)`"
_HASH = rb"#[^\n]*"

# Words that stand before a parenthesis and a brace without defining anything.
_CONTROL = (
    rb"(?!(?:if|for|while|switch|return|else|do|case|catch|new|throw|sizeof|typeof|await|using|"
    rb"delete|goto|assert|defer|yield|lock|when|synchronized|super|this|elif|foreach|match)\b)"
)
_TYPE_WORDS = rb"(?:[\w:<>,.?&*\[\]~@$\x80-\xff]{1,120}[ \t]{1,8}[*&]{0,3}){1,8}"
_JAVA_MODIFIERS = (
    rb"(?:(?:public|protected|private|static|final|abstract|sealed|non-sealed|strictfp|default|"
    rb"internal|partial|readonly|ref|unsafe|file|new|override|virtual|extern)[ \t]+){0,8}"
)
_KOTLIN_MODIFIERS = (
    rb"(?:(?:public|private|protected|internal|open|abstract|final|sealed|data|inline|value|"
    rb"override|suspend|operator|infix|tailrec|external|inner|lateinit|const|annotation|enum|"
    rb"expect|actual|companion|static|mutating|nonmutating|class|indirect|fileprivate|"
    rb"required|convenience|lazy|weak|dynamic|unowned|optional|final|async|nonisolated|"
    rb"@[\w.]+(?:\([^()\n]{0,200}\))?)[ \t]+){0,8}"
)
_RUST_PUB = rb"(?:pub(?:\([^)\n]{0,60}\))?[ \t]+)?(?:default[ \t]+)?"
_JS_EXPORT = rb"(?:export[ \t]+)?(?:default[ \t]+)?(?:declare[ \t]+)?"
_JS_MEMBER = (
    rb"(?:(?:public|private|protected|static|readonly|abstract|override|async|get|set|"
    rb"declare|accessor)[ \t]+){0,6}\*?[ \t]{0,4}#?"
)

_PYTHON = Language(
    "python",
    (".py", ".pyi", ".pyx", ".pxd", ".bzl", ".star"),
    (
        Rule("class", rb"c?(?:class)[ \t]+(?P<name>NAME)[ \t]*[(:\[\\]"),
        Rule("function", rb"(?:async[ \t]+|cp)?def[ \t]+(?P<name>NAME)[ \t]*[(\[\\]"),
        Rule("constant", rb"(?<=\n)(?:type[ \t]+)?(?P<name>[A-Z_][A-Z0-9_]{1,100})[ \t]*[:=](?!=)"),
        Rule("type", rb"type[ \t]+(?P<name>NAME)(?:\[[^\n=]{0,200}\])?[ \t]*=(?!=)"),
        Rule(VARIABLE, rb"(?<=\n)(?P<name>NAME)[ \t]*(?::[^\n=]{1,200})?=(?!=)"),
    ),
    rb"'''(?:[^\\]|\\.)*?(?:'''|\Z)|"
    rb'"""(?:[^\\]|\\.)*?(?:"""|\Z)|' + _HASH + rb"|" + _QUOTED,
    filenames=("SConstruct", "SConscript", "BUILD", "WORKSPACE"),
    begins=rb"acdtA-Z_",
)

_JAVASCRIPT = Language(
    "javascript",
    (".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts", ".vue", ".svelte"),
    (
        Rule("class", _JS_EXPORT + rb"(?:abstract[ \t]+)?class[ \t]+(?P<name>NAME)"),
        Rule("interface", _JS_EXPORT + rb"interface[ \t]+(?P<name>NAME)"),
        Rule("enum", _JS_EXPORT + rb"(?:const[ \t]+)?enum[ \t]+(?P<name>NAME)[ \t]*\{"),
        Rule("namespace", _JS_EXPORT + rb"(?:namespace|module)[ \t]+(?P<name>NAME)[ \t.]*"),
        Rule("type", _JS_EXPORT + rb"type[ \t]+(?P<name>NAME)[ \t]*[=<]"),
        Rule(
            "function",
            _JS_EXPORT + rb"(?:async[ \t]+)?function[ \t]*\*?[ \t]*(?P<name>NAME)[ \t]*[(<]",
        ),
        Rule(
            "function",
            _JS_EXPORT + rb"(?:const|let|var)[ \t]+(?P<name>NAME)[ \t]*(?::[^\n=]{1,200})?=[ \t]*"
            rb"(?:async\b[ \t]*)?(?:function\b|(?:<[^\n>]{1,100}>)?\([^()\n]{0,300}\)"
            rb"[^\n={]{0,200}=>|NAME[ \t]*=>|\([^()\n]{0,300}(?=\n))",
        ),
        Rule(
            "function",
            rb"(?:module\.)?(?:exports\.|[\w$.]{1,80}\.prototype\.)(?P<name>NAME)[ \t]*=[ \t]*"
            rb"(?:async[ \t]+)?(?:function\b|\()",
        ),
        Rule("constant", rb"(?<=\n)" + _JS_EXPORT + rb"(?:const|let|var)[ \t]+(?P<name>NAME)"),
        Rule(
            "method",
            rb"(?<=[ \t])" + _CONTROL + _JS_MEMBER + rb"(?!function\b)(?P<name>NAME)[ \t]*\??"
            rb"(?:<[^\n>(]{1,100}>)?(?=\()",
            ends=b"{",
        ),
        Rule(
            "method",
            rb"(?<=[ \t])" + _JS_MEMBER + rb"(?P<name>NAME)[ \t]*=[ \t]*(?:async[ \t]*)?"
            rb"\([^()\n]{0,300}\)[^\n={]{0,100}=>",
        ),
    ),
    _C_MASK + rb"|" + _BACKTICKS,
)

_JAVA = Language(
    "java",
    (".java", ".groovy", ".gradle", ".scala", ".cs"),
    (
        Rule("namespace", rb"namespace[ \t]+(?P<name>[\w.]{1,200})"),
        Rule("class", _JAVA_MODIFIERS + rb"(?:record[ \t]+class|class)[ \t]+(?P<name>NAME)"),
        Rule("interface", _JAVA_MODIFIERS + rb"@?interface[ \t]+(?P<name>NAME)"),
        Rule("enum", _JAVA_MODIFIERS + rb"enum[ \t]+(?P<name>NAME)"),
        Rule("struct", _JAVA_MODIFIERS + rb"(?:record[ \t]+struct|struct)[ \t]+(?P<name>NAME)"),
        Rule("record", _JAVA_MODIFIERS + rb"record[ \t]+(?P<name>NAME)[ \t]*[(<]"),
        Rule("trait", rb"(?:sealed[ \t]+)?(?:trait|object)[ \t]+(?P<name>NAME)"),
        Rule("function", rb"(?:override[ \t]+|private[ \t]+)?def[ \t]+(?P<name>NAME)"),
        Rule("delegate", _JAVA_MODIFIERS + rb"delegate[ \t]+" + _TYPE_WORDS + rb"(?P<name>NAME)\("),
        Rule(
            "constant",
            rb"(?:(?:public|private|protected|internal|static|final|const|readonly)[ \t]+){2,6}"
            + _TYPE_WORDS
            + rb"(?P<name>[A-Z][A-Za-z0-9_]{1,100})[ \t]*=",
        ),
        Rule(
            "method",
            rb"(?<=[ \t])"
            + _CONTROL
            + rb"(?:@[\w.]+[ \t]+){0,3}(?:<[^\n(]{1,100}>[ \t]+)?"
            + _TYPE_WORDS
            + rb"(?P<name>NAME)[ \t]*(?:<[^\n>(]{1,100}>)?(?=\()",
            ends=b"{;",
        ),
        Rule("method", rb"(?<=[ \t])" + _CONTROL + rb"(?P<name>NAME)[ \t]*(?=\()", ends=b"{"),
    ),
    rb'@"[^"]*(?:""[^"]*)*"|"""(?:[^\\]|\\.)*?"""|' + _C_MASK,
)

_C = Language(
    "c",
    (".c", ".h", ".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx", ".inl", ".ipp", ".cu", ".m", ".mm"),
    (
        Rule("macro", rb"#[ \t]*define[ \t]+(?P<name>NAME)"),
        Rule("namespace", rb"(?:inline[ \t]+)?namespace[ \t]+(?P<name>[\w:]{1,200})[ \t]*\{?"),
        Rule(
            "class",
            rb"(?:template[ \t]*<[^\n]{0,200}>[ \t]*)?(?:class|@interface|@implementation)[ \t]+"
            rb"(?:[A-Z_]{2,60}[ \t]+)?(?P<name>NAME)(?![\w \t:<>,*&]{0,200}[;)=(])",
        ),
        Rule(
            "struct",
            rb"(?:typedef[ \t]+|static[ \t]+|const[ \t]+){0,3}(?:struct|union)[ \t]+"
            rb"(?P<name>NAME)[ \t]*(?:final[ \t]*)?(?::[^\n;{(]{0,200})?(?:\{|(?=\n[ \t]*\{))",
        ),
        Rule(
            "enum",
            rb"(?:typedef[ \t]+)?enum[ \t]+(?:class[ \t]+|struct[ \t]+)?(?P<name>NAME)"
            rb"[ \t]*(?::[^\n;{(]{0,100})?(?:\{|(?=\n[ \t]*\{))",
        ),
        Rule("type", rb"using[ \t]+(?P<name>NAME)[ \t]*="),
        Rule("type", rb"\}[ \t]*(?P<name>NAME)[ \t]*;"),
        Rule(
            "type",
            rb"typedef[ \t]+(?:[\w:]{1,80}[ \t]+){0,4}[\w:]{1,80}[ \t*]{1,8}(?P<name>NAME)[ \t]*;",
        ),
        Rule(
            "function",
            _CONTROL + rb"(?!#|typedef\b)" + _TYPE_WORDS + rb"(?:[\w~]{1,80}(?:<[^\n>(]{0,80}>)?::)"
            rb"{0,6}(?P<name>~?NAME|operator[^\s\w]{1,3})[ \t]*(?=\()",
            ends=b"{",
            declares=True,
        ),
        Rule(
            "function",
            _CONTROL + rb"(?:[\w~]{1,80}(?:<[^\n>(]{0,80}>)?::){0,6}(?P<name>~?NAME)[ \t]*(?=\()",
            ends=b"{",
        ),
    ),
    _C_MASK,
)

_GO = Language(
    "go",
    (".go",),
    (
        Rule("method", rb"func[ \t]*\([^)\n]{0,120}\)[ \t]*(?P<name>NAME)[ \t]*[(\[]"),
        Rule("function", rb"func[ \t]+(?P<name>NAME)[ \t]*[(\[]"),
        Rule("struct", rb"(?:type[ \t]+)?(?P<name>NAME)(?:\[[^\]\n]{0,80}\])?[ \t]+struct[ \t]*\{"),
        Rule("interface", rb"(?:type[ \t]+)?(?P<name>NAME)(?:\[[^\]\n]{0,80}\])?[ \t]+interface\b"),
        Rule("type", rb"type[ \t]+(?P<name>NAME)\b"),
        Rule("constant", rb"(?<=\n)(?:const|var)[ \t]+(?P<name>NAME)\b"),
    ),
    _SLASHED + rb"|" + _QUOTED + rb"|`[^`]*`",
)

_RUST = Language(
    "rust",
    (".rs",),
    (
        Rule("macro", rb"macro_rules![ \t]*(?P<name>NAME)"),
        Rule(
            "function",
            _RUST_PUB + rb'(?:(?:const|async|unsafe|extern(?:[ \t]*"[^"\n]{0,20}")?)[ \t]+){0,4}'
            rb"fn[ \t]+(?P<name>NAME)",
        ),
        Rule("struct", _RUST_PUB + rb"(?:struct|union)[ \t]+(?P<name>NAME)"),
        Rule("enum", _RUST_PUB + rb"enum[ \t]+(?P<name>NAME)"),
        Rule("trait", _RUST_PUB + rb"(?:unsafe[ \t]+)?trait[ \t]+(?P<name>NAME)"),
        Rule("module", _RUST_PUB + rb"mod[ \t]+(?P<name>NAME)[ \t]*\{"),
        Rule("type", _RUST_PUB + rb"type[ \t]+(?P<name>NAME)"),
        Rule(
            "impl",
            rb"(?:unsafe[ \t]+)?impl\b(?:[ \t]*<[^\n{]{0,200}?>)?[ \t]+"
            rb"(?:[^\n{]{0,200}?[ \t]for[ \t]+)?(?:[\w:]{1,100}::)?(?P<name>NAME)",
        ),
        Rule("constant", _RUST_PUB + rb"(?:const|static)[ \t]+(?:mut[ \t]+)?(?P<name>NAME)[ \t]*:"),
    ),
    _SLASHED + rb'|"(?:[^"\\]|\\.){0,20000}"|' + rb"'(?:\\.|[^\\'\n])'",
)

_RUBY = Language(
    "ruby",
    (".rb", ".rake", ".gemspec", ".ru", ".cr"),
    (
        Rule("class", rb"class[ \t]+(?P<name>[A-Z][\w:]{0,200})"),
        Rule("module", rb"module[ \t]+(?P<name>[A-Z][\w:]{0,200})"),
        Rule(
            "method",
            rb"(?:private[ \t]+|protected[ \t]+|public[ \t]+)?def[ \t]+(?:self\.)?"
            rb"(?P<name>NAME[?!=]?|[-+*/<>=\[\]%]{1,3})",
        ),
        Rule("constant", rb"(?P<name>[A-Z][A-Z0-9_]{1,100})[ \t]*=(?![=>~])"),
    ),
    rb"(?<=\n)=begin.*?(?:\n=end|\Z)|" + _HASH + rb"|" + _QUOTED,
    filenames=("Rakefile", "Gemfile"),
)

_PHP = Language(
    "php",
    (".php", ".phtml", ".inc"),
    (
        Rule("namespace", rb"namespace[ \t]+(?P<name>[\w\\]{1,200})"),
        Rule(
            "class",
            rb"(?:(?:abstract|final|readonly)[ \t]+){0,3}class[ \t]+(?P<name>NAME)",
        ),
        Rule("interface", rb"interface[ \t]+(?P<name>NAME)"),
        Rule("trait", rb"trait[ \t]+(?P<name>NAME)"),
        Rule("enum", rb"enum[ \t]+(?P<name>NAME)"),
        Rule(
            "function",
            rb"(?:(?:public|protected|private|static|final|abstract)[ \t]+){0,5}"
            rb"function[ \t]+&?[ \t]*(?P<name>NAME)[ \t]*\(",
        ),
        Rule(
            "constant",
            rb"(?:(?:public|protected|private|final)[ \t]+){0,2}const[ \t]+(?:[\w|?]{1,60}[ \t]+)?"
            rb"(?P<name>NAME)[ \t]*=",
        ),
    ),
    _C_MASK + rb"|#(?!\[)[^\n]*",
)

_KOTLIN = Language(
    "kotlin",
    (".kt", ".kts", ".swift", ".dart"),
    (
        Rule(
            "class",
            _KOTLIN_MODIFIERS
            + rb"(?:class|actor|struct|mixin)[ \t]+(?P<name>(?!func\b|var\b)NAME)",
        ),
        Rule(
            "interface",
            _KOTLIN_MODIFIERS + rb"(?:fun[ \t]+)?(?:interface|protocol)[ \t]+(?P<name>NAME)",
        ),
        Rule("enum", _KOTLIN_MODIFIERS + rb"enum[ \t]+(?P<name>(?!class\b)NAME)"),
        Rule("object", _KOTLIN_MODIFIERS + rb"(?:object|extension)[ \t]+(?P<name>NAME)"),
        Rule(
            "function",
            _KOTLIN_MODIFIERS + rb"(?:fun|func)[ \t]+(?:<[^\n(]{1,100}>[ \t]*)?"
            rb"(?:[\w<>?,]{1,100}\.){0,4}(?P<name>NAME|`[^`\n]{1,100}`)",
        ),
        Rule("method", _KOTLIN_MODIFIERS + rb"(?P<name>init|deinit)[?!]?[ \t]*(?=[({])"),
        Rule("type", _KOTLIN_MODIFIERS + rb"typealias[ \t]+(?P<name>NAME)"),
        Rule(
            "constant",
            rb"(?:(?:public|private|internal|static|const)[ \t]+){0,4}(?:val|let)[ \t]+"
            rb"(?P<name>[A-Z][A-Za-z0-9_]{1,100})\b",
        ),
    ),
    rb'"""(?:[^\\]|\\.)*?"""|' + _C_MASK,
)

_SHELL = Language(
    "shell",
    (".sh", ".bash", ".zsh", ".ksh", ".fish"),
    (
        Rule("function", rb"function[ \t]+(?P<name>[\w:.-]{1,100})"),
        Rule("function", rb"(?P<name>[\w:.-]{1,100})[ \t]*\([ \t]*\)"),
        Rule(
            "constant",
            rb"(?<=\n)(?:(?:export|readonly|declare[ \t]+-\w+)[ \t]+)?"
            rb"(?P<name>[A-Z][A-Z0-9_]{1,80})=",
        ),
    ),
    rb"(?<![\w$'\"\\])#[^\n]*",
    filenames=("Makefile", "configure", ".bashrc", ".profile"),
)

_LUA = Language(
    "lua",
    (".lua", ".jl", ".ex", ".exs", ".pl", ".pm", ".r", ".R", ".ml", ".hs", ".zig", ".nim"),
    (
        Rule(
            "function",
            rb"(?:local[ \t]+|pub[ \t]+|export[ \t]+|private[ \t]+)?(?:function|sub|def|defp|"
            rb"defmacro|fn|proc|macro)[ \t]+(?P<name>[\w.:!?\x80-\xff]{1,200})",
        ),
        Rule(
            "type",
            rb"(?:pub[ \t]+)?(?:mutable[ \t]+|abstract[ \t]+)?(?:struct|module|defmodule|package|"
            rb"type|data|newtype|class|trait)[ \t]+(?P<name>[A-Z\x80-\xff][\w.:]{0,200})",
        ),
        Rule("function", rb"(?P<name>[\w.]{1,100})[ \t]*(?:<-|=)[ \t]*function\b"),
        Rule("function", rb"let[ \t]+(?:rec[ \t]+)?(?P<name>[a-z_]\w{0,100})"),
    ),
    _QUOTED,
)

_SQL = Language(
    "sql",
    (".sql",),
    (
        Rule(
            "table",
            rb"(?i:create[ \t]+(?:or[ \t]+replace[ \t]+)?(?:temp(?:orary)?[ \t]+|unique[ \t]+|"
            rb"materialized[ \t]+)?(?:table|view|index|function|procedure|trigger|type|schema)"
            rb"[ \t]+(?:if[ \t]+not[ \t]+exists[ \t]+)?)(?P<name>[\w.\"`\[\]]{1,200})",
        ),
    ),
    rb"--[^\n]*|/\*.*?(?:\*/|\Z)",
)

GENERIC = Language(
    "generic",
    (),
    (
        Rule(
            "definition",
            rb"(?:(?:public|private|protected|export|static|pub|local|async)[ \t]+){0,4}"
            rb"(?:def|class|function|func|fun|fn|sub|struct|interface|enum|trait|module|type|"
            rb"message|service|proc|macro|namespace|package)[ \t]+(?P<name>NAME)[ \t]*"
            rb"(?=[({:<\[=\n])",
        ),
    ),
)

LANGUAGES = (
    _PYTHON,
    _JAVASCRIPT,
    _JAVA,
    _C,
    _GO,
    _RUST,
    _RUBY,
    _PHP,
    _KOTLIN,
    _SHELL,
    _LUA,
    _SQL,
)

_MARKUP = {
    ".md": "markdown",
    ".markdown": "markdown",
    ".mdx": "markdown",
    ".rst": "rest",
    ".rest": "rest",
    ".txt": "plain",
    ".text": "plain",
    ".adoc": "asciidoc",
    ".org": "org",
    ".pdf": "plain",
}
# What documents of other forms are turned into when they are loaded.
_MADE_MARKDOWN = frozenset(
    re.findall(
        r"\.\w+",
        """
        .docx .docm .dotx .dotm .pptx .pptm .ppsx .potx .xlsx .xlsm .xltx .xltm .odt .ott .ods .ots
        .odp .otp .fodt .fods .fodp .epub .html .htm .xhtml .ipynb .rtf .eml
        """,
    )
)
_SHELL_SCRIPT = re.compile(rb"#![^\n]{0,100}?\b(?:ba|da|k|z)?sh\b")
_CODE_CELL = re.compile(rb"`{3,}(\w{1,40})\n")


@cache
def _by_suffix() -> dict[str, Language]:
    return {suffix: language for language in LANGUAGES for suffix in language.suffixes}


@cache
def _by_filename() -> dict[str, Language]:
    return {name: language for language in LANGUAGES for name in language.filenames}


def _suffix(path: str) -> tuple[str, str]:
    name = without_part(path).rpartition("/")[2]
    stem, dot, suffix = name.rpartition(".")
    return name, dot + suffix if stem else ""


def language_of(path: str, data: bytes = b"") -> Language | None:
    """Return the language whose definitions a document may hold, or None.

    Where the name has no suffix, what it begins with tells a script of the shell.
    """
    name, suffix = _suffix(path)
    if name in _by_filename():
        return _by_filename()[name]
    if not suffix:
        return _SHELL if _SHELL_SCRIPT.match(data) else None
    return _by_suffix().get(suffix) or _by_suffix().get(suffix.lower())


def markup_of(path: str) -> str | None:
    """Return the markup in which a document of that path has its headings, or None."""
    name, suffix = _suffix(path)
    if not suffix and name.isupper():
        return "plain"
    if suffix.lower() in _MADE_MARKDOWN:
        return "markdown"
    return _MARKUP.get(suffix.lower())


def cell_language(path: str, data: bytes) -> Language | None:
    """Return the language of a notebook's code cell; None where the document is none."""
    fence = _CODE_CELL.match(data) if _suffix(path)[1].lower() == ".ipynb" else None
    if fence is None:
        return None
    name = fence[1].decode("ascii", "replace").lower()
    return next((language for language in LANGUAGES if language.name == name), GENERIC)

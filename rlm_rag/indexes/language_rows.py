"""What definitions look like in each language: one language a row, some in `script_rows`."""

from __future__ import annotations

from rlm_rag.indexes.forms import (
    BACKTICKS,
    C_MASK,
    HASH,
    QUOTED,
    SLASHED,
    VARIABLE,
    Language,
    Rule,
)
from rlm_rag.indexes.script_rows import (
    CSS,
    ERLANG,
    HCL,
    JULIA,
    LATEX,
    LUA,
    MAKE,
    RUBY,
    SHELL,
    SQL,
)

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
_SCALA_MODIFIERS = (
    rb"(?:(?:override|private|protected|final|implicit|inline|sealed|case|abstract|lazy)"
    rb"(?:\[\w{1,60}\])?[ \t]+){0,5}"
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
_JS_FUNCTION = (
    rb"(?:function\b|(?:<[^\n>]{1,100}>)?\([^()\n]{0,300}\)[^\n={]{0,200}=>|NAME[ \t]*=>"
    rb"|\([^()\n]{0,300}(?=\n))"
)
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
    rb'"""(?:[^\\]|\\.)*?(?:"""|\Z)|' + HASH + rb"|" + QUOTED,
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
            rb"(?:async\b[ \t]*)?" + _JS_FUNCTION,
        ),
        Rule(
            "function",
            rb"[\w$.]{1,120}\.(?P<name>NAME)[ \t]*=[ \t]*(?:async\b[ \t]*)?" + _JS_FUNCTION,
        ),
        Rule("class", rb"(?:(?:const|let|var)[ \t]+)?(?P<name>NAME)[ \t]*=[ \t]*class\b"),
        Rule(
            "method",
            rb"(?<=[ \t])[\"']?(?P<name>NAME)[\"']?[ \t]*:[ \t]*(?:async\b[ \t]*)?" + _JS_FUNCTION,
        ),
        Rule(
            "method",
            rb"(?<=[ \t])" + _CONTROL + _JS_MEMBER + rb"(?P<name>NAME)\??(?:<[^\n>(]{1,100}>)?"
            rb"\([^()\n]{0,300}\)[ \t]*:[^\n{=?]{1,200};?[ \t]*(?=\n)",
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
    C_MASK + rb"|" + BACKTICKS,
    begins=rb"A-Za-z_$#*\"'\x80-\xff",
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
        Rule("trait", _SCALA_MODIFIERS + rb"(?:trait|object)[ \t]+(?P<name>NAME)"),
        Rule("class", _SCALA_MODIFIERS + rb"class[ \t]+(?P<name>NAME)"),
        Rule("function", _SCALA_MODIFIERS + rb"def[ \t]+(?P<name>NAME)"),
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
    rb'@"[^"]*(?:""[^"]*)*"|"""(?:[^\\]|\\.)*?"""|' + C_MASK,
)

_CPP_TEMPLATE = rb"(?:template[ \t]*<[^\n]{0,200}?>[ \t]*){0,2}"
_CPP_WITHIN = rb"(?:[\w~]{1,80}(?:<[^\n>(]{0,80}>)?::){0,6}"
_CPP_ARGUMENTS = rb"(?:<[^\n;(){}]{0,200}>)?"

_C = Language(
    "c",
    (".c", ".h", ".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx", ".inl", ".ipp", ".cu", ".m", ".mm"),
    (
        Rule("macro", rb"#[ \t]*define[ \t]+(?P<name>NAME)"),
        Rule("namespace", rb"(?:inline[ \t]+)?namespace[ \t]+(?P<name>[\w:]{1,200})[ \t]*\{?"),
        Rule(
            "class",
            _CPP_TEMPLATE + rb"(?:class|@interface|@implementation)[ \t]+"
            rb"(?:[A-Z_]{2,60}[ \t]+)?(?:\w{1,80}::){0,4}"
            rb"(?P<name>NAME)(?![\w \t:<>,*&]{0,200}[;)=(])",
        ),
        Rule(
            "struct",
            _CPP_TEMPLATE
            + rb"(?:typedef[ \t]+|static[ \t]+|const[ \t]+){0,3}(?:struct|union)[ \t]+"
            rb"(?:[A-Z_]{4,60}[ \t]+)?(?P<name>NAME)" + _CPP_ARGUMENTS + rb"[ \t]*(?:final[ \t]*)?"
            rb"(?::[^\n;{(]{0,200})?(?:\{|(?=\n[ \t]*\{))",
        ),
        Rule(
            "enum",
            rb"(?:typedef[ \t]+)?enum[ \t]+(?:class[ \t]+|struct[ \t]+)?(?P<name>NAME)"
            rb"[ \t]*(?::[^\n;{(]{0,100})?(?:\{|(?=\n[ \t]*\{))",
        ),
        Rule("type", _CPP_TEMPLATE + rb"using[ \t]+(?P<name>NAME)[ \t]*="),
        Rule("type", rb"\}[ \t]*(?P<name>NAME)[ \t]*;"),
        Rule(
            "type",
            rb"typedef[ \t]+(?:[\w:]{1,80}[ \t]+){0,4}[\w:]{1,80}[ \t*]{1,8}(?P<name>NAME)[ \t]*;",
        ),
        Rule(
            "function",
            rb"(?:extern \"C\" )?"
            + _CONTROL
            + rb"(?!#|typedef\b)"
            + _CPP_TEMPLATE
            + _TYPE_WORDS
            + _CPP_WITHIN
            + rb"(?P<name>operator[^\s\w]{1,3}|~?NAME)[ \t]*(?=\()",
            ends=b"{",
            declares=True,
        ),
        Rule(
            "function",
            _CONTROL + _CPP_WITHIN + rb"(?P<name>~?NAME)[ \t]*(?=\()",
            ends=b"{",
        ),
    ),
    C_MASK,
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
    SLASHED + rb"|" + QUOTED + rb"|`[^`]*`",
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
    SLASHED + rb'|"(?:[^"\\]|\\.){0,20000}"|' + rb"'(?:\\.|[^\\'\n])'",
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
    C_MASK + rb"|#(?!\[)[^\n]*",
)

_KOTLIN = Language(
    "kotlin",
    (".kt", ".kts", ".swift"),
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
    rb'"""(?:[^\\]|\\.)*?"""|' + C_MASK,
)

_DART = Language(
    "dart",
    (".dart",),
    (
        Rule(
            "class",
            rb"(?:(?:abstract|final|sealed|base|interface|mixin)[ \t]+){0,4}(?:class|mixin|enum|"
            rb"extension(?:[ \t]+type)?|typedef)[ \t]+(?!on\b|type\b)(?P<name>NAME)",
        ),
        Rule(
            "function",
            _CONTROL
            + _TYPE_WORDS
            + rb"(?:(?:get|set)[ \t]+)?(?P<name>NAME)(?:<[^\n>(]{1,100}>)?(?=\()",
            ends=b"{;",
        ),
        Rule("function", _CONTROL + rb"(?P<name>NAME)[ \t]*(?=\()", ends=b"{"),
        Rule("method", _TYPE_WORDS + rb"get[ \t]+(?P<name>NAME)\b"),
    ),
    C_MASK,
)

LANGUAGES = (
    _PYTHON,
    _JAVASCRIPT,
    _JAVA,
    _C,
    _GO,
    _RUST,
    RUBY,
    _PHP,
    _KOTLIN,
    SHELL,
    LUA,
    JULIA,
    _DART,
    ERLANG,
    MAKE,
    CSS,
    HCL,
    LATEX,
    SQL,
)

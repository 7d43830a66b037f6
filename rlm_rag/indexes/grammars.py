"""Which grammar reads which files: one language a row, with its query in `queries/`.

A grammar comes in a wheel of its own, or with the extra `grammars`. Adding a language is one
row here and one file there; a row in `body_rows.py` makes it faster.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from rlm_rag.globs import without_part

EXTRA = "pip install 'rlm-rag[grammars]'"


@dataclass(frozen=True, slots=True)
class Grammar:
    """`wheel` is the module of a language's own wheel and `function` what gives it there.

    Without one, the extra's pack has it under the name `pack`, by default its own. `query` names
    the file of its query where that is another language's, `comment` matches how a line begins
    that is a comment; where these are `tagged`, documentation has tags as XML has. It may be a
    string above as well, behind what `quoted` matches on its line. With `inside` the first string
    of a body is its documentation. With `clauses` several definitions of one name in a row are
    one; a `preprocessed` text has macros. In `dotted` names a dot is a letter like others.
    """

    name: str
    suffixes: tuple[str, ...]
    filenames: tuple[str, ...] = ()
    wheel: str = ""
    function: str = "language"
    pack: str = ""
    query: str = ""
    comment: bytes = rb"//+[/!<]*"
    tagged: bool = False
    quoted: bytes = b""
    inside: bool = False
    clauses: bool = False
    preprocessed: bool = False
    dotted: bool = False


_HASH = rb"#+(?![\[!])[:']?"
_DASHES = rb"--+[ |]*"
_AT_DOC = rb"@(?:type)?doc[ \t]+(?:~[sS])?"
_PARENTHESES = rb"\(\*+"

GRAMMARS = (
    Grammar("python", (".py", ".pyi"), wheel="tree_sitter_python", comment=_HASH, inside=True),
    Grammar("javascript", (".js", ".jsx", ".mjs", ".cjs"), wheel="tree_sitter_javascript"),
    Grammar(
        "typescript",
        (".ts", ".mts", ".cts"),
        wheel="tree_sitter_typescript",
        function="language_typescript",
    ),
    Grammar(
        "tsx",
        (".tsx",),
        wheel="tree_sitter_typescript",
        function="language_tsx",
        query="typescript",
    ),
    Grammar("go", (".go",), wheel="tree_sitter_go"),
    Grammar("rust", (".rs",), wheel="tree_sitter_rust"),
    Grammar("java", (".java",), wheel="tree_sitter_java"),
    Grammar("kotlin", (".kt", ".kts"), wheel="tree_sitter_kotlin"),
    Grammar("scala", (".scala", ".sc", ".sbt"), wheel="tree_sitter_scala"),
    Grammar("swift", (".swift",), wheel="tree_sitter_swift"),
    Grammar("c", (".c",), wheel="tree_sitter_c", preprocessed=True),
    Grammar(
        "cpp",
        (".cc", ".cpp", ".cxx", ".c++", ".hh", ".hpp", ".hxx", ".h++", ".inl", ".ipp", ".tpp"),
        wheel="tree_sitter_cpp",
        preprocessed=True,
    ),
    Grammar("csharp", (".cs",), wheel="tree_sitter_c_sharp", tagged=True),
    Grammar(
        "ruby",
        (".rb", ".rake", ".gemspec", ".ru"),
        ("Rakefile", "Gemfile", "Vagrantfile", "Guardfile"),
        wheel="tree_sitter_ruby",
        comment=_HASH,
    ),
    Grammar(
        "php",
        (".php", ".phtml", ".inc"),
        wheel="tree_sitter_php",
        function="language_php",
        comment=rb"#|//+",
    ),
    Grammar(
        "bash",
        (".sh", ".bash", ".zsh", ".ksh", ".bats"),
        (".bashrc", ".bash_profile", ".profile", ".zshrc"),
        wheel="tree_sitter_bash",
        comment=_HASH,
    ),
    Grammar("lua", (".lua",), wheel="tree_sitter_lua", comment=_DASHES),
    Grammar("perl", (".pl", ".pm", ".t"), comment=_HASH),
    Grammar("r", (".r", ".R"), comment=_HASH, dotted=True),
    Grammar("julia", (".jl",), comment=_HASH, quoted=rb"(?:@doc )?(?:raw)?"),
    Grammar("haskell", (".hs",), comment=_DASHES, clauses=True),
    Grammar("ocaml", (".ml",), comment=_PARENTHESES),
    Grammar("ocaml_interface", (".mli",), comment=_PARENTHESES),
    Grammar("elixir", (".ex", ".exs"), comment=_HASH, clauses=True, quoted=_AT_DOC),
    Grammar("erlang", (".erl", ".hrl"), comment=rb"%+", clauses=True),
    Grammar("dart", (".dart",)),
    Grammar("sql", (".sql",), comment=_DASHES),
    Grammar("hcl", (".hcl", ".tf", ".tfvars"), comment=rb"#|//"),
    Grammar("proto", (".proto",)),
    Grammar(
        "make", (".mk", ".mak"), ("Makefile", "makefile", "GNUmakefile"), comment=_HASH, dotted=True
    ),
    Grammar("dockerfile", (".dockerfile",), ("Dockerfile", "Containerfile"), comment=_HASH),
    Grammar("css", (".css",)),
    Grammar("html", (".html", ".htm", ".xhtml")),
    Grammar("latex", (".tex", ".sty", ".cls", ".ltx"), comment=rb"%+"),
)

# A header's first lines tell whether it is of C or of C++.
_HEAD_BYTES = 16 << 10
_C_PLUS_PLUS = re.compile(
    rb"^[ \t]*(?:class|namespace|template|using|public|private|protected)\b(?!\s*\()|\w::\w"
    rb"|^[ \t]*#[ \t]*include[ \t]*<[a-z_]+>",
    re.MULTILINE,
)
# Loaded web pages are text with headings; their source has tags.
_TAGS = re.compile(rb"(?i)<(?:!doctype|html|head|body|div|section|h[1-6])\b")
_SHEBANG = re.compile(
    rb"#![^\n]{0,100}?\b(ba|da|k|z)?sh\b|#![^\n]{0,100}?\b(python|ruby|perl|node)"
)
_INTERPRETED = {
    b"python": "python",
    b"ruby": "ruby",
    b"perl": "perl",
    b"node": "javascript",
}


@cache
def _by_name() -> dict[str, Grammar]:
    return {grammar.name: grammar for grammar in GRAMMARS}


@cache
def _by_suffix() -> dict[str, Grammar]:
    return {suffix: grammar for grammar in GRAMMARS for suffix in grammar.suffixes}


@cache
def _by_filename() -> dict[str, Grammar]:
    return {name: grammar for grammar in GRAMMARS for name in grammar.filenames}


def grammar_named(name: str) -> Grammar:
    """Return the row of that name.

    Raises:
        KeyError: there is none.
    """
    return _by_name()[name]


def grammar_of(path: str, data: bytes | memoryview) -> Grammar | None:
    """Return the grammar of a document, by its name, or by what it begins with; or None."""
    name = without_part(path).rpartition("/")[2]
    stem, _, ending = name.rpartition(".")
    if name in _by_filename():
        return _by_filename()[name]
    suffix = f".{ending}" if stem and ending else ""
    if not suffix:
        return _interpreted(data)
    if suffix == ".h":
        return _by_name().get("cpp" if _C_PLUS_PLUS.search(data[:_HEAD_BYTES]) else "c")
    grammar = _by_suffix().get(suffix) or _by_suffix().get(suffix.lower())
    if grammar is not None and grammar.name == "html" and not _TAGS.search(data[:_HEAD_BYTES]):
        return None
    return grammar


def _interpreted(data: bytes | memoryview) -> Grammar | None:
    match = _SHEBANG.match(data)
    if match is None:
        return None
    return _by_name().get(_INTERPRETED.get(match[2] or b"", "bash"))

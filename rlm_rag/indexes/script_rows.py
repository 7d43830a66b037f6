"""What definitions look like in languages of scripts, of markup and of configuration."""

from __future__ import annotations

from rlm_rag.indexes.forms import (
    HASH,
    QUOTED,
    SLASHED,
    VARIABLE,
    Language,
    Rule,
)

RUBY = Language(
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
    rb"(?<=\n)=begin.*?(?:\n=end|\Z)|" + HASH + rb"|" + QUOTED,
    filenames=("Rakefile", "Gemfile"),
)

SHELL = Language(
    "shell",
    (".sh", ".bash", ".zsh", ".ksh", ".fish", ".bats"),
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
    filenames=("configure", ".bashrc", ".profile"),
)

LUA = Language(
    "lua",
    (".lua", ".ex", ".exs", ".pl", ".pm", ".r", ".R", ".ml", ".hs", ".zig", ".nim"),
    (
        Rule(
            "function",
            rb"(?:local[ \t]+|pub[ \t]+|export[ \t]+|private[ \t]+)?(?:function|sub|defp?|"
            rb"defmacrop?|defguardp?|defdelegate|fn|proc|macro)[ \t]+"
            rb"(?P<name>[\w.:!?\x80-\xff]{1,200})",
        ),
        Rule(
            "type",
            rb"(?:pub[ \t]+)?(?:mutable[ \t]+|abstract[ \t]+)?(?:struct|module|defmodule|"
            rb"defprotocol|defimpl|package|type|data|newtype|class|trait)[ \t]+"
            rb"(?P<name>[A-Z\x80-\xff][\w.:]{0,200})",
        ),
        Rule("function", rb"(?:local[ \t]+)?(?P<name>[\w.]{1,100})[ \t]*(?:<-|=)[ \t]*function\b"),
        Rule("type", rb"@(?:typep?|opaque|(?:macro)?callback)[ \t]+(?P<name>[a-z_]\w{0,100}[?!]?)"),
        Rule("function", rb"let[ \t]+(?:rec[ \t]+)?(?P<name>[a-z_]\w{0,100})"),
    ),
    QUOTED,
)

JULIA = Language(
    "julia",
    (".jl",),
    (
        Rule(
            "function",
            rb"(?:@\w+[ \t]+){0,2}(?:function|macro)[ \t]+(?:[\w.]{1,80}\.)?(?P<name>NAME!?)",
        ),
        Rule(
            "function",
            rb"(?:@\w+[ \t]+){0,2}(?:[\w.]{1,80}\.)?(?P<name>NAME!?)(?:\{[^}\n]{0,80}\})?"
            rb"\([^\n=]{0,200}\)[^\n=]{0,120}=(?!=)",
        ),
        Rule(
            "struct",
            rb"(?:(?:@[\w.]+|mutable|abstract|primitive)[ \t]+){0,3}(?:struct|type)[ \t]+"
            rb"(?P<name>NAME)",
        ),
        Rule("module", rb"(?:bare)?module[ \t]+(?P<name>NAME)"),
    ),
    rb'"""(?:[^\\]|\\.)*?(?:"""|\Z)|' + HASH + rb"|" + QUOTED,
)

ERLANG = Language(
    "erlang",
    (".erl", ".hrl"),
    (
        Rule("function", rb"(?<=\n)(?P<name>[a-z]\w{0,200}|'[^'\n]{1,200}')[ \t]*\("),
        Rule("macro", rb"-define\([ \t]*(?P<name>\w{1,200})"),
        Rule("struct", rb"-record\([ \t]*(?P<name>\w{1,200})"),
        Rule("type", rb"-(?:type|opaque|callback)[ \t]+(?P<name>[a-z]\w{0,200})[ \t]*\("),
        Rule("module", rb"-module\([ \t]*(?P<name>\w{1,200})"),
    ),
    rb"\$\\?.|%[^\n]*|" + rb'"(?:[^"\\]|\\.){0,4000}"',
    begins=rb"a-z'\-",
)

MAKE = Language(
    "make",
    (".mk", ".mak"),
    (
        Rule("macro", rb"define[ \t]+(?P<name>[\w.-]{1,200})"),
        Rule(
            VARIABLE,
            rb"(?:(?:export|override)[ \t]+){0,2}(?P<name>[\w.-]{1,200})[ \t]*(?:::?:?|[?+!])?=",
        ),
        Rule("target", rb"(?<=\n)(?P<name>[\w./%$(){}@-]{1,200})[ \t]*::?(?![=:])"),
        Rule(
            "target",
            rb"(?<=\n)(?P<name>[\w./%$(){}@-]{1,200})(?:[ \t]+[\w./%$(){}@-]{1,200}){1,9}"
            rb"[ \t]*::?(?![=:])",
        ),
    ),
    rb"(?<![\\$])#[^\n]*",
    filenames=("Makefile", "makefile", "GNUmakefile"),
)

CSS = Language(
    "css",
    (".css", ".scss", ".less"),
    (Rule("rule", rb"(?P<name>[.#]-?[A-Za-z_][\w-]{0,100})(?=[^{};\n]{0,300}[{,])"),),
    rb"/\*.*?(?:\*/|\Z)",
    begins=rb".#",
)

HCL = Language(
    "hcl",
    (".tf", ".hcl", ".tfvars"),
    (
        Rule("block", rb'(?:resource|data)[ \t]+"[^"\n]{1,100}"[ \t]+"(?P<name>[^"\n]{1,100})"'),
        Rule("block", rb'(?:module|variable|output|provider)[ \t]+"(?P<name>[^"\n]{1,100})"'),
    ),
    HASH + rb"|" + SLASHED,
    begins=rb"rdmvop",
)

LATEX = Language(
    "latex",
    (".tex", ".sty", ".cls", ".ltx"),
    (
        Rule(
            "heading",
            rb"\\(?:part|chapter|(?:sub){0,2}section|paragraph)\*?(?:\[[^\]\n]{0,200}\])?"
            rb"\{(?P<name>[^{}\n]{1,200})\}",
        ),
        Rule(
            "macro",
            rb"\\(?:(?:(?:re)?new|provide)command|DeclareRobustCommand|[gex]?def)\*?[ \t]*\{?"
            rb"(?P<name>\\[A-Za-z@]{1,100})",
        ),
    ),
    rb"(?<!\\)%[^\n]*",
    begins=rb"\\",
)

SQL = Language(
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

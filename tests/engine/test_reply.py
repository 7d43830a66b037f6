"""Blocks and answers are read from replies as models really write them."""

import ast
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlm_rag.engine.fences import MAX_FENCES
from rlm_rag.engine.reply import Block, parse_reply


def codes(text):
    return [block.code for block in parse_reply(text).blocks]


@pytest.mark.parametrize(
    "reply",
    [
        "```repl\nx = f(1)\n```",
        "```repl\nx = f(1)",
        "```repl\nx = f(1)\n",
        "```REPL\nx = f(1)\n```\n",
        "```repl.\nx = f(1)\n```",
        "~~~repl\nx = f(1)\n~~~",
        "~~~~~~ Python\nx = f(1)\n~~~~~~~~",
        "``````py\nx = f(1)\n``````",
        "   ```python3\n   x = f(1)\n   ```",
        "\t```python\n\tx = f(1)\n\t```",
        "1. first:\n    ```repl\n    x = f(1)\n    ```",
        "```{.python}\nx = f(1)\n```",
        "```{.python .numberLines}\nx = f(1)\n```",
        '```python title="a(b)" linenos\nx = f(1)\n```',
        "```python id=1\nx = f(1)\n```",
        "```\nx = f(1)\n```",
        "```repl x = f(1)```",
        "```repl x = f(1)\n```",
        "```repl\nx = f(1)```",
        "Let me look: ```repl\nx = f(1)\n```",
        "- ```repl\n  x = f(1)\n  ```",
        "```repl\n    x = f(1)\n```",
        "```repl\r\nx = f(1)\r\n```\r\n",
    ],
)
def test_every_way_to_fence_a_block_is_accepted(reply):
    assert codes(reply) == ["x = f(1)"]


def test_a_block_tells_its_tag_and_the_line_of_its_fence():
    reply = parse_reply("I will look.\n\n```Python3\nf()\n```\n")
    assert reply.blocks == (Block("f()", "python", 3),)


def test_blocks_come_in_order():
    assert codes("```repl\na()\n```\nand\n~~~repl\nb()\n~~~") == ["a()", "b()"]


def test_a_fence_closes_only_by_its_own_mark_at_least_as_long_and_alone():
    code = "s = '''\n~~~\n```\n``` not alone\n'''\nf()"
    assert codes(f"````repl\n{code}\n`````\nprose") == [code]


def test_a_closing_fence_may_be_missing_before_the_next_block():
    assert codes("```repl\na = 1\n```repl\nb = 2\n```") == ["a = 1", "b = 2"]


def test_a_string_left_open_swallows_no_later_block():
    assert codes("```repl\nx = '''abc\n```\nthen\n```repl\ny = '''ok'''\n```") == [
        "x = '''abc",
        "y = '''ok'''",
    ]


def test_a_block_that_does_not_parse_is_still_run_where_it_is_tagged():
    assert codes("```repl\nfor in\n```") == ["for in"]


def test_escapes_that_python_warns_about_do_not_stop_a_block():
    code = 're.findall("\\d", """\n```\n""")'
    assert codes(f"```\n{code}\n```") == [code]


FENCE_LINES = st.builds(
    lambda indent, mark, length, tag: indent + mark * length + tag,
    st.sampled_from(["", "  ", "\t"]),
    st.sampled_from("`~"),
    st.integers(1, 7),
    st.sampled_from(["", "", "repl", "python", "json", " ", " repl"]),
)
BODY_LINES = st.one_of(
    FENCE_LINES,
    st.text(st.characters(codec="utf-8", exclude_characters="\\\r\n'\"\x00\x0c"), max_size=12),
)


@st.composite
def programs(draw):
    """Python whose strings hold lines of any marks, with code and comments around them."""
    parts = []
    for number in range(draw(st.integers(1, 4))):
        quote = draw(st.sampled_from(['"""', "'''"]))
        other = "'" if quote == '"""' else '"'
        prefix = draw(st.sampled_from(["", "r"]))
        lines = draw(
            st.lists(st.one_of(BODY_LINES, st.just(f"it{other}s {other * 3}")), max_size=6)
        )
        parts.append(f"x{number} = f({prefix}{quote}\n" + "\n".join(lines) + f"\n{quote})")
        parts.append(
            draw(st.sampled_from(["", "# it's ```", "y = 'a`~~~'", "if x:\n    g('\\\n')"]))
        )
    return "\n".join(parts)


@given(
    programs(),
    st.sampled_from(["```", "~~~", "````", "~~~~~"]),
    st.sampled_from(["repl", "py", ""]),
)
def test_code_with_any_nesting_of_marks_comes_out_unchanged(code, fence, tag):
    ast.parse(code)
    assert codes(f"Look:\n{fence}{tag}\n{code}\n{fence}\nSo it's done.") == [code]


@given(programs(), programs())
def test_two_blocks_of_any_nesting_stay_two(first, second):
    assert codes(f"```repl\n{first}\n```\nthen\n```repl\n{second}\n```") == [first, second]


@settings(deadline=None, max_examples=300)
@given(st.text(st.sampled_from("`~ \n'\"#(){}\\xrepl:FINAL_VAR\r\t"), max_size=200))
def test_no_reply_raises(text):
    reply = parse_reply(text)
    assert all(block.code.strip() for block in reply.blocks)
    assert not (reply.blocks and (reply.final or reply.final_var))


@settings(deadline=None)
@given(st.text(max_size=200))
def test_no_text_raises(text):
    parse_reply(text)


def test_where_there_is_a_repl_block_only_those_run():
    reply = parse_reply("```python\na()\n```\n```repl\nb()\n```\n```\nc()\n```")
    assert [block.code for block in reply.blocks] == ["b()"]
    assert any("python block at line 1" in note for note in reply.notes)
    assert any("untagged block at line 7" in note for note in reply.notes)


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        ("x = 1", True),
        ("print(x)", True),
        ("for a in b:\n    c += 1", True),
        ("just some words", False),
        ("path/to/file", False),
        ("answer", False),
        ("1 + 1", False),
        ('{"a": [1, 2]}', False),
    ],
)
def test_an_untagged_block_runs_only_where_it_calls_or_assigns(text, runs):
    reply = parse_reply(f"```\n{text}\n```")
    assert bool(reply.blocks) is runs
    assert bool(reply.notes) is not runs


def test_blocks_of_other_languages_are_named_as_not_run():
    reply = parse_reply("```bash\nls\n```\n```json\n{}\n```")
    assert not reply.blocks
    assert "`bash` at line 1" in reply.notes[0]
    assert "`json` at line 4" in reply.notes[1]


def test_a_block_shown_inside_a_longer_fence_of_another_language_is_not_run():
    assert codes("````markdown\n```repl\na()\n```\n````\n") == []


def test_empty_blocks_are_left_out_and_named():
    reply = parse_reply("```repl\n\n```\n```python\nf()\n```")
    assert [block.code for block in reply.blocks] == ["f()"]
    assert "empty" in reply.notes[0]
    assert parse_reply("```repl").blocks == ()


@pytest.mark.parametrize(
    ("text", "final"),
    [
        ("FINAL(42)", "42"),
        ("So:\n  FINAL(42)\n", "42"),
        ("**FINAL(42)**", "42"),
        ("FINAL(it's (a) and (b))", "it's (a) and (b)"),
        ("FINAL(don't)", "don't"),
        ("FINAL('tis (so) what it's)", "'tis (so) what it's"),
        ('FINAL(he said ":)" twice)', 'he said ":)" twice'),
        ("FINAL(see `f(` there)", "see `f(` there"),
        ("FINAL(Steps:\n1) one\n2) two\na) three)\n", "Steps:\n1) one\n2) two\na) three"),
        ("FINAL(Yes :) it works)", "Yes :) it works"),
        ('FINAL("a) b")', "a) b"),
        ("FINAL('it\\'s\\n(ok')", "it's\n(ok"),
        ('FINAL("""two\nlines)""")', "two\nlines)"),
        ('FINAL("a" and "b")', '"a" and "b"'),
        ("FINAL(cut off (here", "cut off (here"),
        ("FINAL(42)\nThat is all (really).", "42"),
        ("FINAL(42) That's it.", "42"),
        ("FINAL(first)\nFINAL(second)", "first"),
        ("```\nFINAL(The answer is so)\n```", "The answer is so"),
        ("FINAL(\n  spaced\n)", "spaced"),
        ("FINAL(答案（是）四十二)", "答案（是）四十二"),
    ],
)
def test_a_final_written_as_text_is_taken_to_its_balancing_parenthesis(text, final):
    reply = parse_reply(text)
    assert (reply.final, reply.final_var, reply.blocks) == (final, None, ())


@pytest.mark.parametrize("text", ["FINAL_VAR(out)", "FINAL_VAR('out')", "FINAL_VAR( `out` )"])
def test_a_final_var_names_its_variable(text):
    assert parse_reply(text).final_var == "out"


@pytest.mark.parametrize(
    "text",
    [
        "I will call FINAL(answer) when I know.",
        "FINAL(answer) is what I will call then.",
        "FINAL() ends the run.",
        "The FINAL answer",
        "MY_FINAL(3)",
        "",
    ],
)
def test_a_final_mentioned_in_prose_ends_nothing(text):
    reply = parse_reply(text)
    assert reply.final is None
    assert reply.final_var is None


@pytest.mark.parametrize(
    "text",
    [
        'depot, n = Counter(rows).most_common(1)[0]\nFINAL(f"{depot}, with {n}.")',
        "print(len(rows))",
        "for row in rows:\n    print(row)\n```",
        'FINAL(f"There are {len(rows)}.")',
    ],
)
def test_a_reply_that_is_code_without_a_fence_is_run(text):
    reply = parse_reply(text)
    assert [block.code.strip() for block in reply.blocks] == [text.removesuffix("```").strip()]
    assert (reply.final, reply.notes) == (None, ())


@pytest.mark.parametrize(
    "text",
    ["port = 8431", "Done (see above)", "len(rows)", "It prints (print(x)) that.", "FINAL(answer)"],
)
def test_prose_that_parses_is_not_run(text):
    assert parse_reply(text).blocks == ()


def test_a_final_beside_a_block_ends_nothing_and_is_named():
    reply = parse_reply("```repl\nx = f()\n```\nFINAL(42)")
    assert reply.final is None
    assert any("FINAL written as text at line 4" in note for note in reply.notes)


def test_a_final_called_inside_a_block_is_not_named():
    assert parse_reply("```repl\nFINAL(x)\n```").notes == ()


@pytest.mark.parametrize(
    "imagined",
    [
        "Output:\n42",
        "**Output:**\n```\nx = 42\n```",
        "REPL output: 42",
        "```output\n42\n```",
        "```repl-output\n42\n```",
        "Output of the block:\n42",
    ],
)
def test_imagined_output_is_pointed_out_and_never_run(imagined):
    reply = parse_reply(f"```python\nprint(x)\n```\n\n{imagined}\n")
    assert [block.code for block in reply.blocks] == ["print(x)"]
    assert any("not real" in note and "line" in note for note in reply.notes)


def test_prose_about_output_before_a_block_is_left_alone():
    assert parse_reply("The result: unknown yet.\n```repl\nf()\n```").notes == ()


def test_a_tagged_block_behind_a_label_is_run_all_the_same():
    assert codes("Result: ```repl\nf()\n```") == ["f()"]


def test_notes_stay_short_however_many_blocks_there_are():
    reply = parse_reply("```bash\nls\n```\n" * 500 + "```repl\n\n```\n" * 500)
    assert sum(len(note) for note in reply.notes) < 1000


def test_blocks_beyond_the_most_are_named():
    reply = parse_reply("```repl\nf()\n```\n" * (MAX_FENCES + 1))
    assert len(reply.blocks) == MAX_FENCES
    assert str(MAX_FENCES) in reply.notes[0]


@pytest.mark.parametrize(
    "text",
    [
        '```repl\n\\"""\n```\n' * 50_000,
        "```\n" * 250_000,
        "```repl\n(\n```\n" * 60_000,
        "```repl\n'''" + "\n```" * 250_000,
        "FINAL('" + "'\\" * 500_000,
        "\nFINAL(a) b" * 90_000,
        "```repl\nx=" + "(1+" * 300_000,
        "```repl\n" + "x = 1\n" * 160_000 + "```",
        "\n" + " >" * 500_000,
        "'\\" * 500_000,
    ],
    ids=range(10),
)
def test_a_megabyte_of_anything_is_read_in_linear_time(text):
    started = time.process_time()
    parse_reply(text)
    assert time.process_time() - started < 3


@pytest.mark.parametrize("rest", [" - done", " — that is all", "\n- done", ". Done.", ""])
def test_what_is_added_behind_a_final_does_not_undo_it(rest):
    assert parse_reply(f"FINAL(line 5 (of retry.py)){rest}").final == "line 5 (of retry.py)"

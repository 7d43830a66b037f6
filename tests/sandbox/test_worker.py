"""A real worker from hello to its end: names, the answer, services, the corpus."""

import platform
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rlm_rag.packing import PackedWriter
from rlm_rag.sandbox import frames
from rlm_rag.sandbox.boot import worker_hash
from rlm_rag.sandbox.inside.worker import WORKER_FAILED
from tests.sandbox.raw_worker import RawWorker, Refused

Start = Callable[..., RawWorker]
REPLY = {"ok": True, "error": None, "truncated": False, "usage": {"calls": 1}, "model": "m"}


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started = []

    def start(**options: Any) -> RawWorker:
        worker = RawWorker(tmp_path, **options)
        started.append(worker)
        return worker

    yield start
    for worker in started:
        worker.close()


@pytest.fixture
def worker(start: Start) -> RawWorker:
    return start()


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "packed"
    with PackedWriter(path) as writer:
        writer.add("src/a.py", "x = 1\r\n")
        writer.add("b.md", "\ud800")
    return path


def test_the_hello_names_version_python_and_the_hash_of_the_sources(worker: RawWorker) -> None:
    assert worker.hello["version"] == frames.VERSION
    assert worker.hello["python"] == platform.python_version()
    assert worker.hello["worker"] == worker_hash()


def test_hashes_of_strings_are_the_same_in_every_worker(start: Start) -> None:
    first, second = start(), start()
    assert first.run("hash('a')")["value"] == second.run("hash('a')")["value"]


def test_a_worker_has_an_empty_environment_and_no_packages(worker: RawWorker) -> None:
    assert worker.run("import os; sorted(os.environ)")["value"] == (
        "['HOME', 'LANG', 'PYTHONHASHSEED', 'TMPDIR']"
    )
    assert worker.run("import click")["error"]["type"] == "ModuleNotFoundError"
    assert worker.run("import sys; hasattr(sys.modules['rlm_rag'], 'ask')")["value"] == "False"


def test_the_worker_ends_when_the_host_closes_its_end(worker: RawWorker) -> None:
    worker.start("while True: pass")
    assert worker.process.stdin is not None
    worker.process.stdin.close()
    assert worker.process.wait(5) == 0


def test_shutdown_and_nonsense_end_the_worker(start: Start) -> None:
    worker = start()
    worker.send({"t": "shutdown"})
    assert worker.process.wait(5) == 0
    worker = start()
    assert worker.process.stdin is not None
    worker.process.stdin.write(b"nonsense\n")
    worker.process.stdin.flush()
    assert worker.process.wait(5) == 3


def test_a_corpus_that_cannot_be_opened_ends_the_worker(start: Start, tmp_path: Path) -> None:
    worker = start(corpus=tmp_path / "nowhere")
    assert worker.process.wait(5) == WORKER_FAILED


def test_context_is_the_corpus(start: Start, corpus: Path) -> None:
    worker = start(corpus=corpus)
    assert worker.run("len(context), ctx is context, context[0]")["value"] == (
        r"(2, True, {'path': 'src/a.py', 'content': 'x = 1\r\n'})"
    )
    assert worker.run("context")["value"] == (
        r"[{'path': 'src/a.py', 'content': 'x = 1\r\n'}, {'path': 'b.md', 'content': '\ud800'}]"
    )
    done = worker.run("context = context[:1]\ncontext.append(1)")
    assert done["overwritten"] == ["context"]
    assert worker.run("len(context)")["value"] == "2"
    worker.run("context.append({'path': 'mine', 'content': ''})\ncontext[0]['tag'] = 5")
    assert worker.run("len(context), context[0]['tag']")["value"] == "(3, 5)"
    assert "path" in worker.run("context[0]['user']")["error"]["traceback"]


def test_opening_a_path_of_the_corpus_says_to_read_it(start: Start, corpus: Path) -> None:
    worker = start(corpus=corpus)
    for code in ("open('src/a.py')", "import pathlib; pathlib.Path('./src/a.py').read_text()"):
        error = worker.run(code)["error"]
        assert error["type"] == "FileNotFoundError"
        assert "context" in error["message"]
    assert "read('src/a.py')" in worker.run("open('src/a.py')")["error"]["message"]
    done = worker.run("open('mine.txt', 'w').write('kept')\nopen('mine.txt').read()")
    assert done["value"] == "'kept'"


@pytest.mark.parametrize(
    ("shape", "value"), [("text", "'one'"), ("texts", "['one']"), ("mapping", "{'p': 'one'}")]
)
def test_context_has_the_shape_it_was_given_in(
    shape: str, value: str, start: Start, tmp_path: Path
) -> None:
    with PackedWriter(tmp_path / "packed", shape=shape) as writer:
        writer.add("p", "one")
    worker = start(corpus=tmp_path / "packed", shape=shape)
    assert worker.run("context")["value"] == value


def test_bound_names_come_back_and_overwriting_is_reported(worker: RawWorker) -> None:
    done = worker.run("search = 1\ndef read(): pass\ndel FINAL\nllm_query = None\nmine = 1")
    assert set(done["overwritten"]) == {"search", "read", "FINAL", "llm_query"}
    assert worker.run("callable(search), callable(FINAL), mine")["value"] == "(True, True, 1)"
    done = worker.run("answers['a'] = 1\nplan = 'steps'\n__name__ = 'x'\n__builtins__ = None")
    assert done["overwritten"] == []
    assert worker.run("answers, plan, __name__")["value"] == "({'a': 1}, 'steps', '__main__')"
    assert worker.run("globals().clear()")["error"] is None
    assert worker.run("callable(search)")["value"] == "True"


@pytest.mark.parametrize(
    ("code", "content", "ready"),
    [
        ("answer['content'] = 'c'; answer['ready'] = True", "c", True),
        ("answer['ready'] = True; answer['content'] = 'c'", "c", True),
        ("answer.update(ready=True, content='c')", "c", True),
        ("answer |= {'content': 'c', 'ready': True}", "c", True),
        ("answer = {'content': 'c', 'ready': True}", "c", True),
        ("answer = 'c'", "c", False),
        ("answer = 42", "42", False),
        ("answer = {'content': 7, 'ready': 'false'}", "7", False),
        ("answer = {'content': 7, 'ready': 1}", "7", True),
        ("answer = {'total': 3}", '{\n  "total": 3\n}', False),
        ("answer['content'] = ['a', 'é']; answer['ready'] = True", '[\n  "a",\n  "é"\n]', True),
        ("answer['content'] = {1, }; answer['ready'] = True", "{1}", True),
        ("answer['ready'] = True", "", True),
        ("FINAL('c')", "c", True),
        ("FINAL({'a': (1, 2)})", '{\n  "a": [\n    1,\n    2\n  ]\n}', True),
        ("FINAL([float('nan'), -float('inf'), 1.5])", "[\n  null,\n  null,\n  1.5\n]", True),
        ("FINAL({float('nan'): 1})", "{nan: 1}", True),
        ("FINAL(None)", "", True),
        ("found = 'c'; FINAL_VAR('found')", "c", True),
        ("found = ['c']; FINAL_VAR(found)", '[\n  "c"\n]', True),
        ("answer = 'old'; FINAL('c')", "c", True),
        ("def f(): answer['content'] = 'c'; answer['ready'] = True\nf()", "c", True),
        ("FINAL('c')\n1 / 0", "c", True),
        ("FINAL('\\ud800')", "\ud800", True),
    ],
)
def test_an_answer_counts_however_it_was_set(
    code: str, content: str, ready: bool, worker: RawWorker
) -> None:
    assert worker.run(code)["answer"] == {"content": content, "ready": ready}
    after = worker.run("answer")
    assert after["value"] == repr({"content": content, "ready": False})
    assert after["answer"] == ({"content": content, "ready": False} if content else None)


def test_an_answer_may_be_finished_in_a_later_block(worker: RawWorker) -> None:
    assert worker.run("1")["answer"] is None
    worker.run("answer['content'] = 'draft'")
    assert worker.run("answer = None")["answer"] == {"content": "draft", "ready": False}
    assert worker.run("answer['ready'] = True")["answer"] == {"content": "draft", "ready": True}
    assert worker.run("del answer")["answer"] == {"content": "draft", "ready": False}


def test_a_huge_answer_is_cut(worker: RawWorker) -> None:
    content = worker.run("FINAL('é' * 5_000_000)")["answer"]["content"]
    assert len(content) < 1_000_100
    assert "characters cut" in content


def test_a_huge_list_is_cut_as_an_answer_with_a_mark(worker: RawWorker) -> None:
    rows = "rows = [{'id': n, 'name': f'user {n}'} for n in range(50_000)]"
    content = worker.run(f"{rows}\nFINAL_VAR('rows')")["answer"]["content"]
    assert len(content) < 1_000_100
    mark = r"\n\[\.\.\. [\d,]+ characters cut \.\.\.\]\n"
    assert re.search(f'"id": 0,.*{mark}.*"user 49999"', content, re.DOTALL)


def test_final_var_of_an_unknown_name_names_those_there_are(worker: RawWorker) -> None:
    done = worker.run("total = 1\nFINAL_VAR('totl')")
    assert done["answer"] is None
    assert "'totl'" in done["stdout"]
    assert "total" in done["stdout"]


@pytest.mark.parametrize("final", ["FINAL_VAR('answer')", "FINAL(answer)"])
def test_an_answer_that_was_set_before_is_given_as_it_is(worker: RawWorker, final: str) -> None:
    worker.run("answer = 60")
    assert worker.run(final)["answer"] == {"content": "60", "ready": True}


def test_variables_can_be_had_and_set_by_name(worker: RawWorker) -> None:
    done = worker.run("repl_set('v', 3)\nrepl_set('search', 3)\nrepl_set('no name', 3)\nv")
    assert done["value"] == "3"
    assert done["stderr"].count("repl_set: Error") == 2
    assert worker.run("repl_get('v'), repl_get('w', 9)")["value"] == "(3, 9)"
    assert worker.run("SHOW_VARS()")["value"] == "v: int"
    assert worker.run("print(capabilities())")["stdout"].count("search(query") == 1
    assert "turns: 30" in worker.run("capabilities()")["value"]


def test_retrieval_returns_what_the_host_answers(start: Start) -> None:
    def serve(name: str, *args: Any, **kwargs: Any) -> Any:
        return "1: text\n" if name in ("outline", "read", "repo_map") else [name, args, kwargs]

    worker = start(serve=serve)
    assert worker.run("search('q', k=3)")["value"] == (
        "['search', ['q'], {'k': 3, 'path_glob': None}]"
    )
    assert "'ignore_case': True" in worker.run("grep_context('p', ignore_case=True)")["value"]
    assert worker.run("symbols('n', references=True)[2]")["value"] == (
        "{'path_glob': None, 'references': True}"
    )
    for code in ("outline('a')", "read('a', 2, 3)", "repo_map()"):
        assert worker.run(code)["value"] == "1: text\n"
    assert worker.run("read('a').upper()")["value"] == repr("1: TEXT\n")
    assert worker.calls[-1]["kwargs"] == {"start": 1, "end": None}
    assert [call["call"] for call in worker.calls] == list(range(1, len(worker.calls) + 1))


def test_a_note_of_the_host_is_shown_on_stderr(worker: RawWorker) -> None:
    worker.start("search('q')")
    call = worker.receive()
    worker.send(
        {"t": "reply", "call": call["call"], "ok": True, "value": [], "note": "no such glob"}
    )
    assert worker.finish()["stderr"] == "search: no such glob\n"


def test_a_failed_retrieval_is_an_error_in_its_own_shape(start: Start) -> None:
    def serve(*_args: Any, **_kwargs: Any) -> Any:
        raise Refused("there is no path 'x'")

    worker = start(serve=serve)
    done = worker.run("search('q'), symbols('n')")
    assert done["value"] == "([], [])"
    assert done["stderr"] == (
        "search: Error: there is no path 'x'\nsymbols: Error: there is no path 'x'\n"
    )
    assert worker.run("g = grep_context('p'); g['error'], g['truncated'], g['hits']")["value"] == (
        "(\"there is no path 'x'\", True, [])"
    )
    assert worker.run("r = read('x'); r.ok, r[:7]")["value"] == "(False, 'Error: ')"


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("search('q', top=3)", "[]"),
        ("grep_context('p', glob='*')['hits']", "[]"),
        ("outline()[:8], read('a', begin=1).ok", "('Error: o', False)"),
        ("llm_query('q', temperature=1).ok, rlm_query().ok", "(False, False)"),
        ("[r.ok for r in llm_query_batched(['q'], size=2)]", "[False]"),
        ("[r.ok for r in map_files(['a'], 'q', glob='*').values()]", "[False]"),
        ("spawn().status, rlm_await('t', 1, 2).ok, tasks(1)", "('failed', False, [])"),
        ("add_context('a').ok", "False"),
    ],
)
def test_a_call_that_does_not_fit_is_an_error_in_its_own_shape_and_not_sent(
    worker: RawWorker, code: str, value: str
) -> None:
    done = worker.run(code)
    assert (done["error"], done["value"]) == (None, value)
    assert "<locals>" not in done["stderr"]
    for line in done["stderr"].splitlines():
        name, _, said = line.partition(": Error: ")
        assert said.startswith(f"{name}() ")
        assert f"; it is called as {name}(" in said
    assert worker.calls == []


def test_a_task_that_is_asked_wrongly_says_how_it_is_asked(worker: RawWorker) -> None:
    done = worker.run(
        "t = spawn(len)\n"
        "print([r.ok for r in (t.cancel(3), t.tell(), t.tell('a', to='b'), t.result(1, 2))])"
    )
    assert (done["error"], done["stdout"]) == (None, "[False, False, False, False]\n")
    spawned, *told = done["stderr"].splitlines()
    assert spawned.startswith("spawn: Error: ")
    wrong = "Error: the arguments do not fit; it is called as task."
    assert told == [
        f"cancel: {wrong}cancel()",
        f"tell: {wrong}tell(text)",
        f"tell: {wrong}tell(text)",
        f"result: {wrong}result(timeout=None)",
    ]
    assert worker.calls == []


def test_an_error_inside_a_function_of_the_caller_is_not_one_of_its_arguments(
    worker: RawWorker,
) -> None:
    done = worker.run("class L(list):\n  def __iter__(self): 1 + ''\nllm_query_batched(L())")
    assert done["error"]["type"] == "TypeError"
    assert done["stderr"] == ""


def test_arguments_that_cannot_be_sent_are_an_error_not_a_call(worker: RawWorker) -> None:
    done = worker.run(
        "deep = []\nfor _ in range(300): deep = [deep]\n"
        "[search(bad) for bad in ({1}, float('nan'), deep, b'x', object(), 'x' * (65 << 20))]"
    )
    assert done["value"] == "[[], [], [], [], [], []]"
    assert done["stderr"].count("search: Error:") == 6
    assert worker.calls == []


def test_a_reply_is_a_str_that_knows_how_it_came_about(start: Start) -> None:
    def serve(name: str, prompt: str, **kwargs: Any) -> Any:
        if "refuse" in prompt:
            raise Refused("no budget")
        return {**REPLY, "text": f"re: {prompt}", "truncated": "long" in prompt}

    worker = start(serve=serve)
    assert worker.run("r = llm_query('hi', max_tokens=5)\nr")["value"] == "re: hi"
    assert worker.calls[0]["kwargs"] == {"max_tokens": 5}
    assert (
        worker.run(
            "r + '!', r.ok, r.error, r.truncated, r.usage['calls'], r.usage['output_tokens'], "
            "r.model, isinstance(r, str), len(r)"
        )["value"]
        == "('re: hi!', True, None, False, 1, 0, 'm', True, 6)"
    )
    assert worker.run("(await llm_query('long')).truncated")["value"] == "True"
    done = worker.run("r = llm_query('refuse')\nr.ok, r.error, str(r)")
    assert done["value"] == "(False, 'no budget', 'Error: no budget')"
    assert done["stderr"] == "llm_query: Error: no budget\n"
    assert (
        worker.run(
            "import pickle, copy, json\n"
            "[(c, c.ok, c.error) for c in (pickle.loads(pickle.dumps(r)), copy.deepcopy(r))]"
            ", json.dumps([r])"
        )["value"].count("no budget")
        == 5
    )


@pytest.mark.parametrize(
    "prompt",
    [
        "''",
        "'  \\n'",
        "None",
        "5",
        "b'x'",
        "[]",
        "['x']",
        "{'content': 'x'}",
        "[{}]",
        "[{'role': 'user', 'content': ' '}]",
    ],
)
def test_a_prompt_that_is_none_is_never_a_call(prompt: str, worker: RawWorker) -> None:
    done = worker.run(f"r = llm_query({prompt})\nr.ok, r[:7]")
    assert done["value"] == "(False, 'Error: ')"
    assert done["stderr"].startswith("llm_query: Error: ")
    assert worker.calls == []


def test_a_batch_is_aligned_and_its_bad_prompts_cost_nothing(start: Start) -> None:
    def serve(name: str, prompts: list[str], model: str | None = None) -> Any:
        return [
            {**REPLY, "text": prompt.upper(), "ok": prompt != "b", "error": None}
            for prompt in prompts
        ]

    worker = start(serve=serve)
    done = worker.run("rs = llm_query_batched(['a', '', 'b', None, 'c'])\nlist(map(str, rs))")
    assert done["value"] == (
        "['A', 'Error: the prompt is empty; nothing was sent', 'B', 'Error: a prompt is a str or "
        "a list of messages, not NoneType', 'C']"
    )
    assert worker.calls[0]["args"] == [["a", "b", "c"]]
    assert [line.partition(":")[0] for line in done["stderr"].splitlines()] == [
        "llm_query_batched[1]",
        "llm_query_batched[2]",
        "llm_query_batched[3]",
    ]
    assert worker.run("[r.ok for r in await llm_query_batched(x for x in 'ab')]")["value"] == (
        "[True, False]"
    )
    assert worker.run("llm_query_batched([]), llm_query_batched([''])[0].ok")["value"] == (
        "([], False)"
    )
    assert worker.run("llm_query_batched('abc')[0].ok")["value"] == "False"
    assert len(worker.calls) == 2


def test_a_batch_that_fails_whole_is_an_error_at_every_place(start: Start) -> None:
    def serve(*_args: Any) -> Any:
        raise Refused("down")

    done = start(serve=serve).run("[str(r) for r in llm_query_batched(['a', 'b'])]")
    assert done["value"] == "['Error: down', 'Error: down']"


def test_threads_of_model_code_may_call_at_the_same_time(start: Start) -> None:
    worker = start(serve=lambda name, prompt: {**REPLY, "text": prompt})
    done = worker.run(
        "from concurrent.futures import ThreadPoolExecutor\n"
        "with ThreadPoolExecutor(8) as pool:\n"
        "    got = list(pool.map(llm_query, [str(n) for n in range(200)]))\n"
        "got == [str(n) for n in range(200)]"
    )
    assert done["value"] == "True"
    assert len({call["call"] for call in worker.calls}) == 200


def test_calls_and_replies_larger_than_a_frame_pass(start: Start) -> None:
    worker = start(serve=lambda name, prompt: {**REPLY, "text": prompt[::-1]})
    done = worker.run("p = 'é\"\\\\' * 900_000\nllm_query(p) == p[::-1]")
    assert done["value"] == "True"


def test_a_call_waits_no_longer_than_it_may(start: Start) -> None:
    worker = start(await_seconds=0.1)
    done = worker.run("llm_query('x')")
    assert done["value"] == "Error: no reply came within 0.1 seconds"
    worker.send({"t": "reply", "call": 1, "ok": True, "value": 1, "note": None})
    assert worker.run("1")["value"] == "1"


def test_an_interrupt_reaches_a_block_that_waits_for_the_host(worker: RawWorker) -> None:
    worker.start("llm_query('x')")
    call = worker.receive()
    worker.interrupt()
    assert worker.finish(timeout_seconds=5)["error"]["type"] == "Interrupted"
    worker.send({"t": "reply", "call": call["call"], "ok": True, "value": 1, "note": None})
    assert worker.run("2")["value"] == "2"


def test_interrupts_never_cut_a_frame_in_two(start: Start) -> None:
    worker = start(serve=lambda name, prompt: {**REPLY, "text": "r"})
    for _ in range(6):
        worker.start("big = 'x' * 900_000\nwhile True: llm_query(big)")
        worker.reply(worker.receive())
        worker.interrupt()
        assert worker.finish(timeout_seconds=10)["error"]["type"] == "Interrupted"


def test_a_reply_may_come_while_no_block_runs(worker: RawWorker) -> None:
    worker.start(
        "import threading\nbox = []\n"
        "thread = threading.Thread(target=lambda: box.append(llm_query('x')))\nthread.start()"
    )
    messages = [worker.receive(), worker.receive()]
    call = next(message for message in messages if message["t"] == "call")
    value = {**REPLY, "text": "late"}
    worker.send({"t": "reply", "call": call["call"], "ok": True, "value": value, "note": None})
    assert worker.run("thread.join(); box[0]")["value"] == "late"


def test_what_is_not_offered_says_so_plainly(start: Start) -> None:
    worker = start(services=("read",))
    for name in ("rlm_query", "add_context", "todo", "llm_query"):
        arguments = "'x', 'y'" if name == "add_context" else "'x'"
        done = worker.run(f"r = {name}({arguments})\nr.ok, str(r)")
        assert done["value"] == f"(False, 'Error: {name} is not offered in this run')"
        assert name in done["stderr"]
    assert worker.run("search('x')")["value"] == "[]"
    assert worker.calls == []


def test_tools_of_the_caller_run_on_the_host(start: Start) -> None:
    def serve(name: str, *args: Any, **kwargs: Any) -> Any:
        if not args:
            raise Refused("needs a place")
        return {"name": name, "place": args[0], **kwargs}

    worker = start(tools=("weather",), serve=serve)
    assert worker.run("weather('Rome', days=2)")["value"] == (
        "{'name': 'weather', 'place': 'Rome', 'days': 2}"
    )
    done = worker.run("weather().ok")
    assert (done["value"], done["stderr"]) == ("False", "weather: Error: needs a place\n")
    assert "weather" in worker.run("capabilities()")["value"]


def test_a_forked_child_cannot_talk_in_the_workers_place(worker: RawWorker) -> None:
    done = worker.run(
        "import os\npid = os.fork()\nif not pid:\n"
        "    print(llm_query('x'), flush=True)\n    os._exit(0)\n_ = os.waitpid(pid, 0)"
    )
    assert done["stdout"] == "Error: a child process of the worker cannot call the host\n"
    assert worker.calls == []


def test_a_block_goes_out_and_back_quickly(worker: RawWorker) -> None:
    worker.run("1")
    seconds = []
    for _ in range(300):
        started = time.perf_counter()
        worker.run("1 + 1")
        seconds.append(time.perf_counter() - started)
    assert min(seconds) < 0.003

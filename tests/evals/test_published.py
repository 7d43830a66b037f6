from __future__ import annotations

import gzip
import io
import json
import pickle
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rlm_rag.errors import BenchmarkDataError, RlmRagError, SourceError, UsageError
from rlm_rag.evals.base import Response, Sample, TaskOptions
from rlm_rag.evals.tasks import TASKS, find_task

DATA_TASKS = [name for name, entry in TASKS.items() if entry.needs != "nothing"]


def lines(path: Path, *rows: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def asked(name: str, data: Path | None, **options: Any) -> list[Sample]:
    return list(find_task(name).samples(TaskOptions(data=data, **options)))


def documents(sample: Sample) -> dict[str, str]:
    return dict(sample.haystack.source())  # type: ignore[arg-type]


def worth(name: str, sample: Sample, text: str) -> float:
    return find_task(name).scorer(Response(text=text), sample).value


@pytest.mark.parametrize("name", DATA_TASKS)
def test_without_data_the_task_says_what_it_wants_and_downloads_nothing(name: str) -> None:
    with pytest.raises(UsageError, match="needs its data: --data PATH") as raised:
        asked(name, None)
    assert raised.value.hint


@pytest.mark.parametrize("name", DATA_TASKS)
def test_a_path_of_nothing_and_an_empty_folder_are_refused(name: str, tmp_path: Path) -> None:
    for path in (tmp_path / "missing", tmp_path):
        with pytest.raises(BenchmarkDataError):
            asked(name, path)


@pytest.mark.parametrize("name", [*DATA_TASKS, "mrcr", "infinitebench:passkey"])
@pytest.mark.parametrize(
    "text", ["[", "[1]", '{"a": 1}', "null", "[{}]", "\xff\x00", "[" * 100_000]
)
def test_a_file_of_another_form_is_refused_with_what_is_expected(
    name: str, text: str, tmp_path: Path
) -> None:
    for suffix in (".json", ".jsonl"):
        path = tmp_path / f"data{suffix}"
        path.write_bytes(text.encode("latin-1"))
        with pytest.raises(BenchmarkDataError) as raised:
            asked(name, path)
        assert raised.value.hint


def test_longbench_takes_its_json(tmp_path: Path) -> None:
    row = {
        "_id": "66f36490",
        "domain": "Code",
        "sub_domain": "Repository",
        "difficulty": "hard",
        "length": "short",
        "question": "Which one?",
        **{f"choice_{letter}": f"choice {letter}" for letter in "ABCD"},
        "answer": "C",
        "context": "a long text " * 100,
    }
    path = tmp_path / "data.json"
    path.write_text(json.dumps([row, row | {"_id": "2", "context": "x" * 100_000}]))
    sample, longer = asked("longbench-v2", tmp_path)
    assert (sample.id, sample.gold, sample.meta["difficulty"]) == ("66f36490", "C", "hard")
    assert "(B) choice B" in sample.question
    assert list(documents(sample).values()) == [row["context"]]
    assert worth("longbench-v2", sample, "The correct answer is (C)") == 1.0
    assert asked("longbench-v2", tmp_path, lengths=(1000,)) == [sample]
    assert longer.length_tokens is not None and longer.length_tokens > 20_000
    path.write_text(json.dumps([row | {"answer": "E"}]))
    with pytest.raises(BenchmarkDataError, match=r"data\.json, row 1: 'answer' is 'E'"):
        asked("longbench-v2", tmp_path)


def test_infinitebench_takes_its_lines_one_file_a_task(tmp_path: Path) -> None:
    row = {"context": "noise 71432 noise", "input": "What is the key?", "answer": "71432"}
    lines(tmp_path / "passkey.jsonl", row, row | {"id": 7, "answer": ["71432"]})
    first, second = asked("infinitebench:passkey", tmp_path)
    assert (first.id, second.id, second.gold) == ("0", "7", "71432")
    assert worth("infinitebench:passkey", second, "It is 71432.") == 1.0
    with pytest.raises(BenchmarkDataError, match=r"there is none of kv_retrieval\.jsonl"):
        asked("infinitebench:kv_retrieval", tmp_path)


def mrcr_row(**changed: Any) -> dict[str, Any]:
    messages = [
        {"role": "user", "content": "Write a poem about owls"},
        {"role": "assistant", "content": "Owls, owls."},
        {"role": "user", "content": "Prepend zX9 to the first poem about owls."},
    ]
    row = {"prompt": json.dumps(messages), "answer": "zX9Owls, owls."}
    return row | {"random_string_to_prepend": "zX9", "n_needles": 2} | changed


def test_mrcr_keeps_the_turns_apart_and_asks_the_last(tmp_path: Path) -> None:
    path = lines(tmp_path / "data.jsonl", mrcr_row())
    (sample,) = asked("mrcr", path)
    assert sample.question == "Prepend zX9 to the first poem about owls."
    assert documents(sample) == {
        "1-user.txt": "Write a poem about owls",
        "2-assistant.txt": "Owls, owls.",
    }
    assert worth("mrcr", sample, "zX9Owls, owls.") == 1.0
    for bad in (mrcr_row(prompt="["), mrcr_row(answer="Owls"), mrcr_row(prompt='["a", "b"]')):
        with pytest.raises(BenchmarkDataError, match="row 1"):
            asked("mrcr", lines(path, bad))


def oolong_row(**changed: Any) -> dict[str, Any]:
    row = {
        "id": 17,
        "context_window_id": 3,
        "context_window_text": "Date: Jan 01, 2023 || User: 1 || Instance: hello",
        "question": "How many?",
        "answer": "[4]",
        "answer_type": "ANSWER_TYPE.NUMERIC",
        "dataset": "spam",
        "task_group": "counting",
    }
    return row | changed


@pytest.mark.parametrize(
    ("answer", "kind", "text"),
    [
        ("[4]", "NUMERIC", "Answer: 4"),
        ("['spam']", "LABEL", "Label: spam"),
        ("[datetime.date(2023, 5, 3)]", "DATE", "Date: May 3, 2023"),
        ("['more common than']", "COMPARISON", "Answer: more common"),
    ],
)
def test_oolongs_answers_are_read_as_it_writes_them(
    answer: str, kind: str, text: str, tmp_path: Path
) -> None:
    row = oolong_row(answer=answer, answer_type=f"ANSWER_TYPE.{kind}")
    (sample,) = asked("oolong:synth", lines(tmp_path / "validation.jsonl", row))
    assert worth("oolong:synth", sample, text) == 1.0
    assert sample.cluster == sample.haystack.key


def test_oolongs_samples_are_as_long_as_it_names_them(tmp_path: Path) -> None:
    rows = [oolong_row(id=at, context_len=length) for at, length in enumerate((2048, 1024))]
    path = lines(tmp_path / "test.jsonl", *rows, oolong_row(id=9))
    assert [each.length_tokens for each in asked("oolong:synth", path)][:2] == [2048, 1024]
    assert [each.id for each in asked("oolong:synth", path, lengths=(1024,))] == ["1", "9"]
    lines(path, oolong_row(context_len="long"))
    with pytest.raises(BenchmarkDataError, match="'context_len' is \"long\""):
        asked("oolong:synth", path)


def test_oolongs_shards_are_one_and_its_real_part_wants_a_box(tmp_path: Path) -> None:
    lines(tmp_path / "part-0.jsonl", oolong_row(answer="12"))
    lines(tmp_path / "part-1.jsonl", oolong_row(id=18, answer="a, b"))
    first, second = asked("oolong:real", tmp_path)
    assert first.haystack == second.haystack
    assert worth("oolong:real", first, r"\boxed{12}") == 1.0
    assert worth("oolong:real", second, r"\boxed{b}") == 0.0
    with pytest.raises(BenchmarkDataError, match="no list of the answer"):
        asked("oolong:synth", lines(tmp_path / "x.jsonl", oolong_row(answer="12")))


def beir_folder(folder: Path) -> Path:
    corpus = [
        {"_id": "doc 1", "title": "Einstein", "text": "He developed relativity."},
        {"_id": "a/../b", "title": "", "text": "Wheat beer is a beer."},
    ]
    lines(folder / "corpus.jsonl", *corpus)
    lines(
        folder / "queries.jsonl",
        {"_id": "q1", "text": "who found relativity"},
        {"_id": "q2", "text": "what is wheat beer"},
        {"_id": "q3", "text": "not judged"},
    )
    (folder / "qrels").mkdir()
    (folder / "qrels" / "test.tsv").write_text(
        "query-id\tcorpus-id\tscore\nq1\tdoc 1\t2\nq2\ta/../b\t1\nq2\tdoc 1\t0\n"
    )
    return folder


def test_beir_takes_its_folder_and_scores_rankings(tmp_path: Path) -> None:
    first, second = asked("beir", beir_folder(tmp_path))
    assert (first.id, first.query, second.id) == ("q1", "who found relativity", "q2")
    assert first.haystack == second.haystack
    found = documents(first)
    assert found["doc%201.txt"] == "Einstein\n\nHe developed relativity."
    assert all("/" not in path for path in found)
    ranking = find_task("beir").ranking
    assert ranking is not None
    beer = next(path for path, text in found.items() if "beer" in text)
    assert ranking(Response(ranked=(beer, "doc%201.txt")), second).value == 1.0
    assert ranking(Response(ranked=("doc%201.txt", beer)), second).value < 1.0
    assert ranking(Response(ranked=()), second).value == 0.0


@pytest.mark.parametrize("ranked", [("q1.txt", "doc%201.txt"), ("doc%201.txt", "q1.txt")])
def test_beir_passes_over_the_document_that_is_the_query(
    ranked: tuple[str, ...], tmp_path: Path
) -> None:
    query, _ = asked("beir", beir_folder(tmp_path))
    task = find_task("beir")
    assert task.ranking is not None
    assert task.ranking(Response(ranked=ranked), query).value == 1.0
    assert worth("beir", query, "\n".join(ranked)) == 1.0
    assert task.ranking(Response(ranked=("q2.txt", *ranked)), query).value < 1.0


@pytest.mark.parametrize(
    ("qrels", "said"),
    [
        (b"q1 doc 1 1\n", "line 1"),
        (b"query-id\tcorpus-id\tscore\nq1\tdoc 1\tmuch\n", "line 2"),
        (b"q1\tdoc 1\t--1\nq1\tdoc 1\t--1\n", "line 2"),
        (b"q\xff\tdoc 1\t1\n", "cannot be read"),
    ],
)
def test_beirs_judgements_in_another_form_are_refused(
    qrels: bytes, said: str, tmp_path: Path
) -> None:
    (beir_folder(tmp_path) / "qrels" / "test.tsv").write_bytes(qrels)
    with pytest.raises(BenchmarkDataError, match=said):
        asked("beir", tmp_path)


def test_beirs_judgements_may_begin_with_a_mark_and_end_in_blank_lines(tmp_path: Path) -> None:
    path = beir_folder(tmp_path) / "qrels" / "test.tsv"
    path.write_bytes(b"\xef\xbb\xbfq1\tdoc 1\t-1\r\nq1\ta/../b\t2\r\n\r\n")
    (sample,) = asked("beir", tmp_path)
    assert sorted(sample.gold.values()) == [-1, 2]


def test_browsecomp_ranks_evidence_and_finds_the_answer(tmp_path: Path) -> None:
    gold, other = {"docid": "9", "text": "It is Ada."}, {"docid": "7", "text": "Noise."}
    row = {"query_id": "769", "query": "Who?", "answer": "Ada Lovelace"}
    row |= {"gold_docs": [gold], "evidence_docs": [gold], "negative_docs": [other, gold]}  # type: ignore[dict-item]
    lines(tmp_path / "browsecomp_plus_decrypted.jsonl", row)
    (sample,) = asked("browsecomp-plus", tmp_path)
    assert documents(sample) == {"9.txt": "It is Ada.", "7.txt": "Noise."}
    assert worth("browsecomp-plus", sample, "It was Ada Lovelace!") == 1.0
    assert worth("browsecomp-plus", sample, "Grace Hopper") == 0.0
    ranking = find_task("browsecomp-plus").ranking
    assert ranking is not None
    score = ranking(Response(ranked=("7.txt", "9.txt")), sample)
    assert score.detail["gold_mrr"] == 0.5
    lines(tmp_path / "corpus.jsonl", {"docid": "9", "text": "Ada.", "url": "https://x"})
    assert documents(sample) == {"9.txt": "Ada."}


def archive(path: Path, files: dict[str, bytes]) -> None:
    with tarfile.open(path, "w:gz") as members:
        for name, data in files.items():
            info = tarfile.TarInfo(f"flask-1.0/{name}")
            info.size = len(data)
            members.addfile(info, io.BytesIO(data))


def test_locate_takes_issues_and_the_releases_they_are_of(tmp_path: Path) -> None:
    row = {"id": "1", "sdist": "flask==1.0", "query": "Session is lost", "gold": ["src/s.py"]}
    lines(tmp_path / "issues.jsonl.gz", row)
    with pytest.raises(BenchmarkDataError, match=r"flask==1\.0") as raised:
        asked("locate", tmp_path)
    assert raised.value.hint is not None and "pip download" in raised.value.hint
    archive(tmp_path / "flask-1.0.tar.gz", {"src/s.py": b"session = 1", "logo.png": b"\0\1"})
    (sample,) = asked("locate", tmp_path)
    assert documents(sample) == {"src/s.py": "session = 1"}
    assert (sample.query, sample.cluster) == ("Session is lost", "flask")
    assert worth("locate", sample, "1. `src/s.py:10`") == 1.0
    ranking = find_task("locate").ranking
    assert ranking is not None
    assert ranking(Response(ranked=("tests/test_s.py", "src/s.py")), sample).value == 1.0


def nocha(folder: Path) -> Path:
    rows = [
        {"book_title": "a_book", "claim": f"Claim {at} {truth}", "type": truth, "index": at}
        for truth in (True, False)
        for at in (3, 1)
    ]
    folder.mkdir(exist_ok=True)
    (folder / "data_sample.json").write_text(json.dumps(rows))
    return folder


def test_nocha_counts_pairs_of_a_book(tmp_path: Path) -> None:
    nocha(tmp_path)
    with pytest.raises(BenchmarkDataError, match="there is no book 'a_book'"):
        asked("nocha", tmp_path)
    (tmp_path / "classic_books.pkl").write_bytes(pickle.dumps({"a_book": "Once upon a time."}))
    claims = asked("nocha", tmp_path)
    assert [claim.joint for claim in claims] == ["a_book/1"] * 2 + ["a_book/3"] * 2
    assert {claim.gold for claim in claims[:2]} == {True, False}
    assert documents(claims[0]) == {"book.txt": "Once upon a time."}
    values = [worth("nocha", claim, "<answer>TRUE</answer>") for claim in claims]
    assert sorted(values) == [0.0, 0.0, 1.0, 1.0]
    # Half a pair would count as one that is right.
    assert [claim.joint for claim in asked("nocha", tmp_path, count=3)] == [c.joint for c in claims]
    assert len(asked("nocha", tmp_path, count=1)) == 2


@pytest.mark.parametrize("changed", [{"index": 7}, {"type": "True"}])
def test_a_claim_of_nocha_without_its_other_is_refused(
    changed: dict[str, Any], tmp_path: Path
) -> None:
    path = nocha(tmp_path) / "data_sample.json"
    (tmp_path / "a_book.txt").write_text("Once upon a time.")
    rows = json.loads(path.read_text())
    path.write_text(json.dumps([*rows[:-1], rows[-1] | changed]))
    with pytest.raises(BenchmarkDataError, match="one true and one false claim"):
        asked("nocha", tmp_path)


class Evil:
    def __reduce__(self) -> tuple[Callable[[str], Any], tuple[str]]:
        return eval, ("1 / 0",)


def test_a_pickle_of_books_runs_no_code(tmp_path: Path) -> None:
    nocha(tmp_path)
    (tmp_path / "classic_books.pkl").write_bytes(pickle.dumps({"a_book": Evil()}))
    with pytest.raises(BenchmarkDataError, match=r"names builtins\.eval"):
        asked("nocha", tmp_path)


SQUAD = {
    "data": [
        {
            "paragraphs": [
                {
                    "context": f"Fact {number} is {number * 7}. " * 20,
                    "qas": [
                        {
                            "question": f"What is fact {number}?",
                            "answers": [{"text": str(number * 7)}],
                            "is_impossible": number == 1,
                        }
                    ],
                }
                for number in range(20)
            ]
        }
    ]
}


def test_questions_over_documents_are_filled_with_others(tmp_path: Path) -> None:
    path = tmp_path / "squad.json"
    path.write_text(json.dumps(SQUAD))
    samples = asked("ruler:qa", path, lengths=(1024,))
    assert [sample.gold for sample in samples[:2]] == [["0"], ["14"]]
    assert len(samples) == 19
    found = documents(samples[1])
    assert 2 < len(found) < 20
    assert sum("Fact 2 is 14." in text for text in found.values()) == 1
    assert len(set(found.values())) == len(found)
    with pytest.raises(BenchmarkDataError, match="fewer than 64k"):
        asked("ruler:qa", path, lengths=(65536,))


def test_questions_over_documents_take_hotpot_and_lines(tmp_path: Path) -> None:
    context = [["Title", ["One sentence.", " Two."]], ["Other", ["Filler " * 800]]]
    row = {"question": "Who?", "answer": "Ada", "context": context}
    path = tmp_path / "hotpot.json"
    path.write_text(json.dumps([row]))
    (sample,) = asked("ruler:qa", path, lengths=(1024,))
    assert "Title\nOne sentence. Two." in documents(sample).values()
    own = {"question": "Who?", "answers": ["Ada"], "documents": ["Ada did it."]}
    lines(tmp_path / "own.jsonl", own, own | {"documents": ["Filler " * 800]})
    first, _ = asked("ruler:qa", tmp_path / "own.jsonl", lengths=(1024,))
    assert "Ada did it." in documents(first).values()
    assert worth("ruler:qa", first, "ADA.") == 1.0


REPOQA = {
    "python": [
        {
            "repo": "owner/name",
            "content": {"a.py": "import os\ndef add(a, b):\n    total = a + b\n    return total\n"},
            "needles": [
                {
                    "name": "add",
                    "path": "a.py",
                    "start_line": 1,
                    "end_line": 4,
                    "description": "Adds two numbers.",
                }
            ],
        }
    ]
}


def test_repoqa_takes_its_own_file(tmp_path: Path) -> None:
    path = tmp_path / "repoqa.json.gz"
    path.write_bytes(gzip.compress(json.dumps(REPOQA).encode()))
    (sample,) = asked("repoqa", path)
    code = "def add(a, b):\n    total = a + b\n    return total"
    assert sample.gold["functions"] == [["add", code]]
    assert worth("repoqa", sample, f"```python\n{code}\n```") == 1.0
    assert worth("repoqa", sample, "```python\ndef other():\n    pass\n```") == 0.0
    ranking = find_task("repoqa").ranking
    assert ranking is not None
    assert ranking(Response(ranked=("b.py", "a.py")), sample).value == 0.5


def test_repoqa_describes_the_functions_of_any_repository(tmp_path: Path) -> None:
    source = (
        '"""A module."""\n\n\ndef add(a, b):\n    """Add two numbers and return them summed.\n\n'
        '    More.\n    """\n    total = a\n    total += b\n    return total\n\n\ndef short():\n'
        '    """Too short a body it has."""\n    return 1\n'
    )
    (tmp_path / "a.py").write_text(source)
    (tmp_path / "test_a.py").write_text(source)
    (sample,) = asked("repoqa", None, corpus=str(tmp_path))
    assert sample.query == "Add two numbers and return them summed"
    found = documents(sample)
    assert "Add two numbers" not in found["a.py"]
    assert "Add two numbers" in found["test_a.py"]
    code = sample.gold["functions"][0][1]
    assert code.startswith("def add(a, b):\n    total = a")
    assert code in found["a.py"]
    assert worth("repoqa", sample, f"```\n{code}\n```") == 1.0
    (tmp_path / "a.py").write_text("x = 1\n")
    with pytest.raises(UsageError, match="no function that is documented"):
        asked("repoqa", None, corpus=str(tmp_path))


def test_questions_of_ones_own_have_answers_choices_or_paths(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    (repo / "src").mkdir(parents=True)
    (repo / "src" / "a.py").write_text("x = 1\n")
    name = str(
        lines(
            tmp_path / "qa.jsonl",
            {"question": "Who?", "answer": ["Ada", "A. Lovelace"]},
            {"id": "x", "question": "Where?", "gold": ["src/a.py"], "cluster": "one"},
            {"question": "Which?", "choices": ["red", "blue"], "answer": "B", "corpus": "other"},
        )
    )
    first, second, third = asked(name, None, corpus=str(repo))
    assert [sample.id for sample in (first, second, third)] == ["1", "x", "3"]
    assert (first.haystack.source(), third.haystack.source()) == (str(repo), "other")
    assert worth(name, first, "It was the Ada!") == 1.0
    assert worth(name, first, "It was Adam.") == 0.0
    assert worth(name, second, "- src/b.py\n- src/a.py") == 0.5
    assert worth(name, third, "(B)") == 1.0
    assert "(A) red" in third.question
    ranking = find_task(name).ranking
    assert ranking is not None
    assert ranking(Response(ranked=("src/a.py",)), second).value == 1.0
    with pytest.raises(UsageError, match="has no gold paths"):
        ranking(Response(ranked=("src/a.py",)), first)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"answer": "x"}, "'question' is missing"),
        ({"question": " ", "answer": "x"}, "the question is empty"),
        ({"question": "?"}, "neither an 'answer' nor a 'gold'"),
        ({"question": "?", "gold": []}, r"'gold' is \[\]"),
        ({"question": "?", "answer": ["x", " "]}, "an answer is empty"),
        ({"question": "?", "answer": "C", "choices": ["a", "b"]}, "none of the letters"),
    ],
)
def test_a_question_of_ones_own_that_lacks_something_says_where(
    row: dict[str, Any], message: str, tmp_path: Path
) -> None:
    path = lines(tmp_path / "qa.jsonl", {"question": "?", "answer": "x"}, row)
    with pytest.raises(BenchmarkDataError, match=f"qa.jsonl, row 2: .*{message}"):
        asked(str(path), None, corpus=str(path))


def test_a_row_that_is_no_json_is_named(tmp_path: Path) -> None:
    path = tmp_path / "qa.jsonl"
    path.write_text('{"question": "?", "answer": "x"}\n\n{"question"\n')
    with pytest.raises(BenchmarkDataError, match=r"qa.jsonl cannot be read: row 2 is no JSON"):
        asked(str(path), None, corpus=str(path))


def test_own_questions_want_a_corpus_and_ids_that_differ(tmp_path: Path) -> None:
    path = lines(tmp_path / "qa.jsonl", *[{"id": "1", "question": "?", "answer": "x"}] * 2)
    with pytest.raises(UsageError, match="nothing says what the question is asked of"):
        asked(str(path), None)
    with pytest.raises(BenchmarkDataError, match="comes twice"):
        asked(str(path), None, corpus=str(path))
    lines(path, {"question": "?", "answer": "x", "corpus": "gone"})
    assert len(asked(str(path), None)) == 1
    with pytest.raises(SourceError, match="No such file or folder"):
        asked(str(path), None, corpus="gone")


def test_a_gold_path_that_the_corpus_does_not_hold_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    path = lines(tmp_path / "qa.jsonl", {"question": "?", "gold": ["a.py", "src/a.py"]})
    with pytest.raises(
        BenchmarkDataError, match=r"row 1: 'gold' names 'src/a\.py', which is not in"
    ):
        asked(str(path), None, corpus=str(tmp_path))


def test_a_name_of_nothing_is_refused() -> None:
    with pytest.raises(RlmRagError, match="there is no task 'rulre'"):
        find_task("rulre")


def test_parquet_is_read_as_lines_are(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    for part in (0, 1):
        table = pyarrow.Table.from_pylist([oolong_row(id=f"{part}{row}") for row in range(2)])
        parquet.write_table(table, tmp_path / f"validation-0000{part}-of-00002.parquet")
    assert [sample.id for sample in asked("oolong:synth", tmp_path)] == ["00", "01", "10", "11"]
    (tmp_path / "validation-00000-of-00002.parquet").write_bytes(b"no parquet")
    with pytest.raises(BenchmarkDataError, match="cannot be read"):
        asked("oolong:synth", tmp_path)

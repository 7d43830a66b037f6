"""Every sample is asked once by every strategy, whatever fails on the way."""

import json
from dataclasses import replace

import pytest

from rlm_rag.errors import ModelKeyError, RunFolderError, UsageError
from rlm_rag.evals import tasks
from rlm_rag.evals.base import Score
from rlm_rag.evals.config import Models, RunConfig
from rlm_rag.evals.costs import cost_of
from rlm_rag.evals.run_folder import RunFolder
from rlm_rag.evals.runner import Progress, resume, score_again, start
from rlm_rag.trace.reader import read_trace
from tests.evals.toys import Toy, install
from tests.servers.loopback import failed


@pytest.fixture
def toy(monkeypatch):
    made = Toy()
    install(monkeypatch, made)
    return made


def number_of(request):
    return request.prompt.rpartition("Which number is question ")[2].split()[0]


@pytest.fixture
def asked(openai_server):
    """A model that knows every answer but two, of which it names one in words."""
    openai_server.script = lambda request: {"1": "one", "2": "7"}.get(
        number_of(request), number_of(request)
    )
    models = Models(model="m", api_base=openai_server.api_base, price="1/1000")
    return RunConfig(tasks=("toy",), strategies=("direct",), models=models)


def scores(folder):
    records = RunFolder.open(folder).records().values()
    return {(each.strategy, each.id): each.score for each in records}


def test_strategies_are_asked_the_same_samples_and_a_haystack_is_loaded_once(
    toy, asked, tmp_path, openai_server
):
    told = []
    config = replace(asked, strategies=("direct", "retrieve"), lengths=(1024, 2048))
    ended = start(config, tmp_path / "run", on_progress=told.append)
    assert (ended.total, ended.done, ended.errors, ended.is_complete) == (16, 16, 0, True)
    assert [each.done for each in told] == [*range(1, 17)]
    assert ended.spent_usd == pytest.approx(16 * (11 + 7 * 1000) / 1e6)
    assert toy.loads == ["1024/0", "1024/1", "2048/0", "2048/1"]
    found = scores(tmp_path / "run")
    for strategy in ("direct", "retrieve"):
        mine = [found[strategy, f"{length}/{n}"] for length in (1024, 2048) for n in range(4)]
        assert mine == [1.0, 0.0, 0.0, 1.0] * 2
    assert len(openai_server.received) == 16


def test_a_record_has_all_that_was_seen_and_spent(toy, asked, tmp_path):
    start(replace(asked, strategies=("retrieve",)), tmp_path / "run")
    folder = RunFolder.open(tmp_path / "run")
    found = folder.records()["toy", "1024/1", "retrieve"]
    assert (found.answer, found.parsed, found.parse_ok, found.gold) == ("one", "one", False, "1")
    assert (found.cluster, found.length_tokens, found.documents) == ("1024/0", 1024, 4)
    assert (found.calls, found.root.input_tokens, found.root.output_tokens) == (1, 11, 7)
    assert found.sub.calls == 0
    assert found.usd == pytest.approx(7011 / 1e6)
    assert found.seconds > 0
    assert ("1.txt", 1, 1) in found.retrieved
    trace = read_trace(folder.path / found.trace)
    assert trace.root.question == found.question
    assert folder.config.samples == 4
    assert folder.spent_usd() == pytest.approx(4 * 7011 / 1e6)


def test_retrieval_alone_is_scored_without_a_model(toy, tmp_path):
    config = RunConfig(tasks=("toy",), strategies=("search",))
    assert start(config, tmp_path / "run").is_complete
    records = RunFolder.open(tmp_path / "run").records().values()
    assert [record.score for record in records] == [1.0] * 4
    assert {(record.usd, record.model, record.calls) for record in records} == {(0.0, None, 0)}
    toy.ranking = None
    with pytest.raises(UsageError, match="no gold paths"):
        start(config, tmp_path / "other")


def test_errors_are_asked_again_and_answers_never(toy, asked, tmp_path, openai_server):
    script = openai_server.script
    openai_server.script = lambda request: (
        failed(400, "no such thing") if number_of(request) == "3" else script(request)
    )
    ended = start(asked, tmp_path / "run")
    assert (ended.done, ended.errors, ended.stopped) == (3, 1, None)
    failure = RunFolder.open(tmp_path / "run").records()["toy", "1024/3", "direct"]
    assert failure.error.kind == "model_request"
    assert failure.score is None
    sent = len(openai_server.received)
    openai_server.script = script
    assert resume(tmp_path / "run").is_complete
    assert [number_of(each) for each in openai_server.received[sent:]] == ["3"]


def test_samples_that_fail_one_after_another_end_the_run(toy, asked, tmp_path, openai_server):
    openai_server.script = lambda _: failed(400, "no such thing")
    ended = start(replace(asked, parallel=1, count=8), tmp_path / "run")
    assert (ended.stopped, ended.errors, ended.total) == ("errors", 5, 8)
    assert "no such thing" in ended.detail


def test_what_is_wrong_for_all_is_raised_at_once(toy, asked, tmp_path, openai_server, monkeypatch):
    openai_server.script = lambda _: failed(401, "who are you?")
    with pytest.raises(ModelKeyError):
        start(asked, tmp_path / "run")
    with pytest.raises(UsageError, match="no task"):
        start(replace(asked, tasks=("none",)), tmp_path / "other")
    with pytest.raises(UsageError, match="two samples"):
        start(replace(asked, tasks=("toy", "toy")), tmp_path / "other")
    unpriced = replace(asked.models, model="openai/unheard-of", api_base=None, price=None)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    with pytest.raises(UsageError, match="price"):
        start(replace(asked, models=unpriced, max_usd=1.0), tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_money_for_all_samples_is_never_overshot_and_more_goes_on(
    toy, asked, tmp_path, openai_server
):
    # A request may cost up to 4.1 dollars, and costs 7 tenths of a cent.
    ended = start(replace(asked, count=6, max_usd=4.115), tmp_path / "run")
    assert ended.stopped == "budget_usd"
    assert 0 < ended.done < 6
    assert ended.spent_usd <= 4.115
    sent = len(openai_server.received)
    assert sent == ended.done
    assert resume(tmp_path / "run").stopped == "budget_usd"
    assert resume(tmp_path / "run", max_usd=5.0).is_complete
    assert len(openai_server.received) == 6


def test_a_run_that_is_not_what_it_was_is_refused(toy, asked, tmp_path, monkeypatch):
    start(asked, tmp_path / "run")
    toy.per_haystack = 4
    with pytest.raises(RunFolderError, match="samples_sha256"):
        resume(tmp_path / "run")
    toy.per_haystack = 2
    assert resume(tmp_path / "run").is_complete
    monkeypatch.setattr("rlm_rag.evals.config.__version__", "9.9")
    with pytest.raises(RunFolderError, match=r"versions.rlm_rag was '0\.1\.0' and is '9\.9'"):
        resume(tmp_path / "run")


def test_documents_that_changed_since_the_run_began_are_refused(
    toy, asked, tmp_path, openai_server, monkeypatch
):
    openai_server.script = lambda request: (
        failed(400, "no such thing") if number_of(request) == "3" else "0"
    )
    start(asked, tmp_path / "run")
    monkeypatch.setattr(toy, "_documents", lambda key: [("other.txt", "text")])
    with pytest.raises(RunFolderError, match="documents of 1024/1 changed"):
        resume(tmp_path / "run")


def test_an_answer_outlives_the_scorer_that_failed_on_it(toy, asked, tmp_path, openai_server):
    def broken(response, sample):
        raise ZeroDivisionError("no gold")

    good, toy.scorer = toy.scorer, broken
    ended = start(asked, tmp_path / "run")
    assert (ended.done, ended.errors) == (0, 4)
    toy.scorer = good
    assert resume(tmp_path / "run").errors == 4
    assert score_again(tmp_path / "run") == (4, 4)
    assert list(scores(tmp_path / "run").values()).count(1.0) == 2
    assert score_again(tmp_path / "run") == (4, 0)
    assert len(openai_server.received) == 4
    assert resume(tmp_path / "run").spent_usd == ended.spent_usd


def test_a_judge_scores_in_place_of_the_rule_and_its_prompt_is_kept(
    toy, asked, tmp_path, openai_server
):
    answer = openai_server.script

    def script(request):
        if request.json["model"] != "strict":
            return answer(request)
        if "question 0" in request.prompt:
            return failed(400, "not today")
        right = "<answer>\none" in request.prompt
        return f"reason: so\ncorrect: {'yes' if right else 'no'}"

    openai_server.script = script
    ended = start(replace(asked, judge="strict"), tmp_path / "run")
    assert (ended.done, ended.errors) == (3, 1)
    found = RunFolder.open(tmp_path / "run").records()
    judged = found["toy", "1024/1", "direct"]
    assert (judged.score, judged.detail) == (1.0, {"rule": 0.0})
    assert "Which number is question 1" in judged.judge.prompt
    assert judged.judge.reply == "reason: so\ncorrect: yes"
    assert judged.usd == pytest.approx(2 * 7011 / 1e6)
    assert found["toy", "1024/3", "direct"].score == 0.0
    assert found["toy", "1024/0", "direct"].error.kind == "judge"
    sent = len(openai_server.received)
    openai_server.script = lambda _: "correct: yes"
    assert resume(tmp_path / "run").is_complete
    assert [each.json["model"] for each in openai_server.received[sent:]] == ["strict"]
    assert score_again(tmp_path / "run") == (4, 0)
    assert RunFolder.open(tmp_path / "run").spent_usd() == pytest.approx(8 * 7011 / 1e6)


def test_a_new_rule_scores_the_old_answers(toy, asked, tmp_path):
    start(asked, tmp_path / "run")
    toy.scorer = lambda response, sample: Score(value=0.25)
    assert score_again(tmp_path / "run") == (4, 4)
    assert set(scores(tmp_path / "run").values()) == {0.25}


def test_a_haystack_that_cannot_be_loaded_is_an_error_of_its_samples(
    toy, asked, tmp_path, monkeypatch
):
    monkeypatch.setattr(toy, "_documents", lambda key: [] if key == "1024/1" else [("a", "b")])
    ended = start(asked, tmp_path / "run")
    assert (ended.done, ended.errors) == (2, 2)
    kinds = {
        each.error.kind
        for each in RunFolder.open(tmp_path / "run").records().values()
        if each.error
    }
    assert kinds == {"empty_corpus"}


def test_what_was_lost_in_a_crash_counts_as_spent(toy, asked, tmp_path):
    start(asked, tmp_path / "run")
    path = tmp_path / "run" / "samples.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:2]) + lines[2][:40])
    assert RunFolder.open(tmp_path / "run").spent_usd() == pytest.approx(4 * 7011 / 1e6)


def test_what_a_run_may_cost_is_told_without_one(toy, asked, openai_server):
    config = replace(asked, strategies=("rlm", "direct", "retrieve", "map-reduce"))
    found = cost_of(replace(config, lengths=(100_000,)))
    likely = {each.strategy: each.likely for each in found.by_strategy}
    assert all(each.low.usd < each.likely.usd < each.high.usd for each in found.by_strategy)
    assert {each.samples for each in found.by_strategy} == {4}
    assert likely["map-reduce"].input_tokens > likely["rlm"].input_tokens
    assert likely["map-reduce"].input_tokens > 4 * 100_000
    assert likely["direct"].calls == 4
    assert (openai_server.received, toy.loads) == ([], [])
    assert json.loads(json.dumps(found.to_dict()))["by_strategy"][0]["strategy"] == "rlm"


def test_what_a_run_may_cost_goes_by_its_profile(toy, asked):
    config = replace(asked, strategies=("retrieve",), lengths=(100_000,))
    small = replace(config, models=replace(config.models, profile="small"))
    (less,), (more,) = (cost_of(each).by_strategy for each in (small, config))
    assert less.likely.input_tokens < more.likely.input_tokens / 2


def test_a_window_that_is_told_is_asked_of_no_server(toy, asked, openai_server, tmp_path):
    start(replace(asked, models=replace(asked.models, context_window=8_192)), tmp_path / "run")
    assert openai_server.looked_up == []


def test_a_password_in_an_address_is_not_kept(toy, asked, tmp_path):
    secret = asked.models.api_base.replace("http://", "http://user:hunter2@")
    start(replace(asked, models=replace(asked.models, api_base=secret)), tmp_path / "run")
    files = [path for path in (tmp_path / "run").rglob("*") if path.is_file()]
    assert len(files) > 2
    assert not [path for path in files if b"hunter2" in path.read_bytes()]
    assert resume(tmp_path / "run", api_base=secret).is_complete


def test_progress_is_complete_when_every_sample_has_a_score():
    assert Progress(total=2, done=2).is_complete
    assert not Progress(total=2, done=1, errors=1).is_complete


def test_the_toy_is_a_task_like_any_other(toy):
    assert tasks.find_task("toy") is toy
    assert "toy" in {entry.name for entry in tasks.task_entries()}

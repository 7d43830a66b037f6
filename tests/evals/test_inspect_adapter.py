"""inspect_ai runs our tasks by our strategies, and keeps what we score."""

import gc
import importlib.util
import warnings

import pytest

from rlm_rag.errors import MissingExtraError
from rlm_rag.evals.base import TaskOptions
from rlm_rag.evals.config import Models
from rlm_rag.evals.inspect_adapter import inspect_task
from tests.evals.toys import Toy
from tests.servers.loopback import failed

INSTALLED = importlib.util.find_spec("inspect_ai") is not None
needs_inspect = pytest.mark.skipif(
    not INSTALLED, reason="inspect_ai is not installed: pip install 'rlm-rag[inspect]'"
)


@pytest.fixture
def evaluated(tmp_path):
    def run(task, **options):
        from inspect_ai import eval as inspect_eval

        (log,) = inspect_eval(
            task, model="none", display="none", log_dir=str(tmp_path), log_format="json", **options
        )
        return log

    yield run
    # Streams that inspect_ai leaves open warn when they are collected, in any later test.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.mark.skipif(INSTALLED, reason="the extra `inspect` is installed")
def test_without_the_extra_it_says_what_to_install():
    with pytest.raises(MissingExtraError) as refused:
        inspect_task(Toy())
    assert refused.value.hint == "pip install 'rlm-rag[inspect]'"


@pytest.mark.deep
@needs_inspect
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_inspect_scores_what_our_scorer_scores(evaluated, openai_server):
    openai_server.script = lambda request: request.prompt.rpartition("question ")[2].split()[0]
    toy = Toy()
    task = inspect_task(
        toy,
        strategy="direct",
        options=TaskOptions(count=4),
        models=Models(model="m", api_base=openai_server.api_base),
    )
    log = evaluated(task)
    assert log.status == "success"
    assert {each.id: each.scores["rlm_rag"].value for each in log.samples} == {
        f"1024/{n}": 1.0 for n in range(4)
    }
    assert log.results.scores[0].metrics["mean"].value == 1.0
    assert log.samples[0].output.usage.input_tokens == 11
    assert log.samples[0].scores["rlm_rag"].metadata["stop_reason"] == "answered"
    assert sorted(toy.loads) == ["1024/0", "1024/1"]


@pytest.mark.deep
@needs_inspect
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_inspect_runs_retrieval_alone_and_a_generated_task(evaluated):
    assert evaluated(inspect_task(Toy(), strategy="search")).status == "success"
    options = TaskOptions(lengths=(2048,), count=2)
    log = evaluated(inspect_task("ruler:niah", strategy="rlm", options=options))
    assert log.status == "success"
    assert len(log.samples) == 2


@pytest.mark.deep
@needs_inspect
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_run_that_fails_is_an_error_of_inspects(evaluated, openai_server):
    openai_server.script = lambda _: failed(400, "no such thing")
    models = Models(model="m", api_base=openai_server.api_base)
    task = inspect_task(Toy(), strategy="direct", models=models)
    log = evaluated(task, fail_on_error=False)
    assert all("no such thing" in each.error.message for each in log.samples)

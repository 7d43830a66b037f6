"""A run's folder keeps every sample that ended, whatever happened while it was written."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlm_rag.engine.limits import Limits
from rlm_rag.errors import RunFolderError, UsageError
from rlm_rag.evals.config import Models, RunConfig, changes, digest_of_data, from_file
from rlm_rag.evals.record import Failure, Spent, from_dict
from rlm_rag.evals.run_folder import RunFolder
from tests.evals.toys import record

CONFIG = RunConfig(
    tasks=("toy", "ruler:niah"),
    strategies=("rlm", "direct"),
    lengths=(8192,),
    count=5,
    max_usd=2.5,
    versions={"rlm_rag": "0.1.0"},
    limits=Limits(calls=None, seconds=3.5),
    models=Models(
        model="openai/é", models_at_depth={1: "m"}, model_options={"top_p": 0.9, "stop": ["a"]}
    ),
)


@pytest.fixture
def folder(tmp_path):
    return RunFolder.create(tmp_path / "run", CONFIG)


def mine(folder, number=0, score=1.0, **given):
    made = record(number, score, **given).to_dict() | {"config": folder.digest}
    return from_dict(made)


def test_a_configuration_comes_back_from_its_file(folder):
    found = from_file(folder.path / "config.toml")
    assert found.models.model_options["stop"] == ["a"]
    assert changes(found, CONFIG) == []
    assert found.digest == CONFIG.digest
    assert RunFolder.open(folder.path).digest == folder.digest


def test_what_changed_is_said_by_name():
    changed = changes(CONFIG, RunConfig(tasks=CONFIG.tasks, strategies=("rlm",), seed=3))
    assert "seed was 0 and is 3" in changed
    assert "models.model_options.top_p was 0.9 and is None" in changed


def test_a_record_comes_back_from_its_line():
    whole = record(
        3,
        ranked=("a", "b"),
        cited=("a",),
        root=Spent(2, 30, 4),
        retrieved=(("a", 1, 40),),
        parsed={"x": [1]},
        meta={"k": 1},
    )
    assert from_dict(json.loads(json.dumps(whole.to_dict()))) == whole
    failed = whole.failed("model", "no")
    assert from_dict(json.loads(json.dumps(failed.to_dict()))).error == Failure("model", "no")


def test_the_last_record_of_a_key_counts(folder):
    with folder.appending() as appender:
        appender.append(mine(folder, 1, None))
        appender.append(mine(folder, 2))
        appender.append(mine(folder, 1, 0.5))
    records = list(folder.records().values())
    assert [(each.id, each.score) for each in records] == [("1", 0.5), ("2", 1.0)]
    assert len(list(folder.history())) == 3


def test_what_was_read_of_the_samples_is_not_read_again(folder):
    with folder.appending() as appender:
        appender.append(mine(folder, 0))
    (first,) = folder.history()
    with folder.samples_path.open("ab") as file:
        file.write(b'{"torn')
    assert [each is first for each in folder.history()] == [True]
    other = RunFolder.open(folder.path)
    with other.appending() as appender:
        appender.append(mine(folder, 1))
    again = list(folder.history())
    assert [each.id for each in again] == [mine(folder, 0).id, mine(folder, 1).id]
    assert again[0] is first
    assert list(folder.records().values()) == again


@settings(max_examples=12)
@given(cut=st.integers(1, 10_000))
def test_a_torn_last_line_is_dropped_and_written_over(tmp_path_factory, cut):
    folder = RunFolder.create(tmp_path_factory.mktemp("runs") / "run", CONFIG)
    with folder.appending() as appender:
        appender.append(mine(folder, 1))
        whole = folder.samples_path.stat().st_size
        appender.append(mine(folder, 2))
    data = folder.samples_path.read_bytes()
    folder.samples_path.write_bytes(data[: whole + cut % (len(data) - whole)])
    assert [each.id for each in folder.records().values()] == ["1"]
    with folder.appending() as appender:
        appender.append(mine(folder, 3))
    assert [each.id for each in RunFolder.open(folder.path).history()] == ["1", "3"]


def test_a_damaged_line_before_the_last_is_named(folder):
    with folder.appending() as appender:
        appender.append(mine(folder, 1))
    folder.samples_path.write_bytes(b"{}\n" + folder.samples_path.read_bytes())
    with pytest.raises(RunFolderError, match="damaged at line 1"):
        folder.records()


def test_a_configuration_changed_by_hand_is_refused(folder):
    with folder.appending() as appender:
        appender.append(mine(folder, 1))
    text = (folder.path / "config.toml").read_text()
    (folder.path / "config.toml").write_text(text.replace("count = 5", "count = 6"))
    with pytest.raises(RunFolderError, match="was changed"):
        RunFolder.open(folder.path)


def test_two_processes_do_not_write_one_run(folder):
    with (
        folder.appending(),
        pytest.raises(RunFolderError, match="another process"),
        RunFolder.open(folder.path).appending(),
    ):
        pass


@pytest.mark.parametrize("text", ["", "schema_version = 9\n", "tasks = ["])
def test_a_file_that_is_no_configuration_is_refused(folder, text):
    (folder.path / "config.toml").write_text(text)
    with pytest.raises(RunFolderError):
        RunFolder.open(folder.path)


def test_a_folder_that_holds_something_is_not_taken(folder, tmp_path):
    with pytest.raises(RunFolderError, match="holds a run already"):
        RunFolder.create(folder.path, CONFIG)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("")
    with pytest.raises(RunFolderError, match="not empty"):
        RunFolder.create(tmp_path / "other", CONFIG)
    with pytest.raises(RunFolderError, match="holds no run"):
        RunFolder.open(tmp_path / "other")


def test_a_folder_of_a_run_that_was_killed_as_it_began_is_taken(tmp_path):
    (tmp_path / ".config.toml.part").write_text("schema_ver")
    RunFolder.create(tmp_path, CONFIG)
    assert RunFolder.open(tmp_path).config == CONFIG
    assert [found.name for found in tmp_path.iterdir()] == ["config.toml"]


@pytest.mark.parametrize(
    "wrong",
    [{"strategies": ()}, {"strategies": ("rlm", "rlm")}, {"strategies": ("x",)}, {"parallel": 0}],
)
def test_a_configuration_that_cannot_be_run_is_refused(wrong):
    with pytest.raises(UsageError):
        RunConfig(**({"tasks": ("toy",), "strategies": ("rlm",)} | wrong))


def test_the_digest_of_data_is_that_of_its_names_and_contents(tmp_path):
    for name, text in (("a", "1"), ("b", "2")):
        (tmp_path / name).write_text(text)
    first = digest_of_data(tmp_path)
    (tmp_path / "b").rename(tmp_path / "c")
    second = digest_of_data(tmp_path)
    (tmp_path / "c").write_text("3")
    assert len({first, second, digest_of_data(tmp_path)}) == 3
    with pytest.raises(UsageError):
        digest_of_data(tmp_path / "none")

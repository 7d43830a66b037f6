from __future__ import annotations

import os
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_rag.engine.limits import Limits
from rlm_rag.errors import SettingsError
from rlm_rag.setting_table import SETTINGS
from rlm_rag.settings import Settings, read_settings, user_config_file

DEFAULTS = {item.name: item.default for item in fields(Limits)}


def read(
    folder: Path,
    *,
    flags: dict[str, str | bool | None] | None = None,
    environ: dict[str, str] | None = None,
    user: str | None = None,
    project: str | None = None,
) -> Settings:
    user_file = folder / "user" / "config.toml"
    user_file.parent.mkdir(exist_ok=True)
    work = folder / "work"
    work.mkdir(exist_ok=True)
    if user is not None:
        user_file.write_text(user)
    if project is not None:
        (work / "pyproject.toml").write_text(project)
    return read_settings(
        flags or {},
        limit_defaults=DEFAULTS,
        environ=environ or {},
        user_file=user_file,
        folder=work,
    )


def test_every_limit_has_a_setting() -> None:
    assert {row.limit for row in SETTINGS if row.limit} == {item.name for item in fields(Limits)}


def test_without_any_source_everything_is_the_default(tmp_path: Path) -> None:
    settings = read(tmp_path)
    assert settings == Settings()
    assert settings.origin("model") == "default"
    assert Limits(**settings.limits) == Limits()


def test_a_flag_beats_the_environment_beats_the_user_file_beats_the_project(
    tmp_path: Path,
) -> None:
    user = 'model = "user/m"\n'
    project = '[tool.rlm-rag]\nmodel = "project/m"\n'
    environ = {"RLM_RAG_MODEL": "env/m"}
    assert read(tmp_path, project=project).model == "project/m"
    assert read(tmp_path, user=user, project=project).model == "user/m"
    assert read(tmp_path, environ=environ, user=user, project=project).model == "env/m"
    all_of_them = read(
        tmp_path, flags={"model": "flag/m"}, environ=environ, user=user, project=project
    )
    assert all_of_them.model == "flag/m"
    assert all_of_them.origin("model") == "--model"


def test_each_value_names_its_origin(tmp_path: Path) -> None:
    settings = read(
        tmp_path,
        environ={"RLM_RAG_MAX_USD": "0.5"},
        user="max-tokens = 1000\n",
        project="[tool.rlm-rag]\nmax_iterations = 5\n",
    )
    assert settings.origin("max_usd") == "RLM_RAG_MAX_USD"
    assert settings.origin("max_tokens").endswith("config.toml")
    assert "pyproject.toml" in settings.origin("max_iterations")
    assert dict(settings.limits) == {"usd": 0.5, "tokens": 1000, "iterations": 5}
    with pytest.raises(SettingsError):
        settings.origin("modle")


@pytest.mark.parametrize("line", ['api-base = "http://evil.example/v1"', 'sandbox = "none"'])
def test_a_project_cannot_set_what_guards_the_user(tmp_path: Path, line: str) -> None:
    settings = read(tmp_path, project=f"[tool.rlm-rag]\n{line}\n")
    assert settings.api_base is None
    assert settings.sandbox == "auto"
    assert "is ignored: a project cannot set" in settings.warnings[0]


@pytest.mark.parametrize("line", ["max-iterations = 31", 'max-calls = "none"', "max-depth = 2"])
def test_a_project_cannot_raise_a_limit_above_its_default(tmp_path: Path, line: str) -> None:
    settings = read(tmp_path, project=f"[tool.rlm-rag]\n{line}\n")
    assert not settings.limits
    assert "cannot raise a limit above its default" in settings.warnings[0]


@pytest.mark.parametrize("key", ["model", "sub-model", "sub_model"])
@pytest.mark.parametrize(
    "model", ["scripted:/dev/zero", " replay:run.jsonl", "scripted/any:/dev/zero"]
)
def test_a_project_cannot_name_a_file_to_reply_from(tmp_path: Path, key: str, model: str) -> None:
    settings = read(tmp_path, project=f"[tool.rlm-rag]\n{key} = '{model}'\n")
    assert (settings.model, settings.sub_model) == (None, None)
    assert "is ignored: a project cannot name a model that replies" in settings.warnings[0]
    by_user = read(tmp_path, user=f"{key} = '{model}'\n", project="")
    assert model.strip() in (by_user.model, by_user.sub_model)
    assert by_user.warnings == ()


def test_a_project_may_lower_a_limit(tmp_path: Path) -> None:
    settings = read(tmp_path, project="[tool.rlm-rag]\nmax-usd = 0.1\nmax-calls = 3\n")
    assert dict(settings.limits) == {"usd": 0.1, "calls": 3}
    assert settings.warnings == ()


def test_the_user_may_raise_or_lift_a_limit(tmp_path: Path) -> None:
    settings = read(tmp_path, user='max-iterations = 100\nmax-calls = "none"\n')
    assert dict(settings.limits) == {"iterations": 100, "calls": None}


def test_an_unknown_key_is_refused_with_the_nearest_name(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="'modle'") as caught:
        read(tmp_path, user='modle = "x"\n')
    assert caught.value.hint == "did you mean model?"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("model = 3", "must be text"),
        ('model = " "', "must not be empty"),
        ('max-usd = "much"', "must be a number"),
        ("max-usd = -1", "not negative"),
        ("max-usd = nan", "not negative"),
        ("max-usd = inf", "not negative"),
        ("max-iterations = 0", "positive"),
        ("max-iterations = 2.5", "whole number"),
        ("max-iterations = true", "whole number"),
        ("max-tokens = 1" + "0" * 400, "too large"),
        ('api-base = "localhost:8080"', "must be a URL"),
        ('sandbox = "jail"', "must be one of"),
        ('trace = "maybe"', "true or false"),
        ('model = ["a"]', "single value"),
    ],
)
def test_a_value_of_the_wrong_kind_says_where_it_stands(
    tmp_path: Path, line: str, words: str
) -> None:
    with pytest.raises(SettingsError, match=words) as caught:
        read(tmp_path, user=line + "\n")
    assert "config.toml" in caught.value.message


def test_a_bad_flag_or_variable_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"^--max-usd must be a number"):
        read(tmp_path, flags={"max_usd": "much"})
    with pytest.raises(SettingsError, match=r"^RLM_RAG_CONCURRENCY must be"):
        read(tmp_path, environ={"RLM_RAG_CONCURRENCY": "0"})


def test_an_empty_variable_counts_as_unset(tmp_path: Path) -> None:
    assert read(tmp_path, environ={"RLM_RAG_MODEL": " "}).model is None


def test_a_misspelt_variable_is_pointed_out(tmp_path: Path) -> None:
    settings = read(tmp_path, environ={"RLM_RAG_MODLE": "x", "RLM_RAG_DEBUG": "1"})
    assert settings.warnings == ("RLM_RAG_MODLE is no setting: did you mean RLM_RAG_MODEL?",)


def test_a_broken_user_file_is_an_error_and_a_broken_project_a_warning(tmp_path: Path) -> None:
    settings = read(tmp_path, project="[tool.rlm-rag\n")
    assert "is ignored" in settings.warnings[0]
    with pytest.raises(SettingsError, match=r"config\.toml cannot be read"):
        read(tmp_path, user="model =\n")


def test_a_huge_or_deep_project_file_does_no_harm(tmp_path: Path) -> None:
    assert "larger than" in read(tmp_path, project="#" * (2 << 20)).warnings[0]
    deep = "a = " + "[" * 100_000
    assert read(tmp_path, project=deep).warnings


def test_a_project_table_of_the_wrong_kind_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="must be a table"):
        read(tmp_path, project="[tool]\nrlm-rag = 3\n")
    assert read(tmp_path, project="tool = 3\n") == Settings()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the platform has no FIFOs")
def test_a_fifo_in_the_place_of_a_file_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pyproject.toml")
    settings = read_settings(
        limit_defaults=DEFAULTS, environ={}, user_file=tmp_path / "none", folder=tmp_path
    )
    assert settings == Settings()


def test_a_user_file_that_is_none_is_said(tmp_path: Path) -> None:
    loop, folder = tmp_path / "loop.toml", tmp_path / "config.toml"
    loop.symlink_to(loop)
    folder.mkdir()
    for place, reason in ((loop, "symbolic links"), (folder, "it is a folder")):
        found = read_settings(limit_defaults=DEFAULTS, environ={}, user_file=place, folder=tmp_path)
        (warning,) = found.warnings
        assert warning.startswith(f"the settings file {place} is ignored: ")
        assert reason in warning
    none = read_settings(
        limit_defaults=DEFAULTS, environ={}, user_file=Path(os.devnull), folder=tmp_path
    )
    assert none == Settings()


def test_the_user_file_lies_in_the_configuration_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    xdg = user_config_file({"XDG_CONFIG_HOME": "/c", "HOME": "/h"})
    assert xdg is not None and xdg.as_posix() == "/c/rlm-rag/config.toml"
    relative = user_config_file({"XDG_CONFIG_HOME": "c", "HOME": "/h"})
    assert relative is not None and relative.as_posix() == "/h/.config/rlm-rag/config.toml"
    assert user_config_file({}) is None


@given(st.sampled_from(SETTINGS), st.text(max_size=20))
def test_any_text_is_parsed_or_refused_with_a_settings_error(row: object, text: str) -> None:
    name = row.name  # type: ignore[attr-defined]
    try:
        read_settings({name: text}, limit_defaults=DEFAULTS, environ={}, folder=Path("/nowhere"))
    except SettingsError as error:
        assert error.message.startswith("--")


def test_a_project_that_is_asked_about_sets_nothing(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.rlm-rag]\nmodel = "openai/dear"\n')
    inside = tmp_path / "src"
    inside.mkdir()
    for sources, model in (
        ([str(tmp_path)], None),
        ([f"mine={tmp_path}"], None),
        (["-", str(tmp_path / "..")], None),
        ([str(inside)], "openai/dear"),
        ([], "openai/dear"),
    ):
        settings = read_settings(
            limit_defaults={},
            environ={},
            user_file=tmp_path / "none",
            folder=tmp_path,
            sources=sources,
        )
        assert settings.model == model
        assert bool(settings.warnings) == (model is None)


def test_sizes_and_names_of_the_sandbox_are_read(tmp_path: Path) -> None:
    settings = read(tmp_path, user='sandbox-memory = "2G"\nsandbox-package = "numpy, pandas"\n')
    assert settings.sandbox_memory == 2 << 30
    assert settings.sandbox_packages == ("numpy", "pandas")
    assert read(tmp_path, environ={"RLM_RAG_SANDBOX_MEMORY": "512 MiB"}).sandbox_memory == 512 << 20


@pytest.mark.parametrize("line", ['sandbox-package = "numpy"', 'sandbox-memory = "1T"'])
def test_a_project_cannot_set_what_its_sandbox_holds(tmp_path: Path, line: str) -> None:
    settings = read(tmp_path, project=f"[tool.rlm-rag]\n{line}\n")
    assert (settings.sandbox_packages, settings.sandbox_memory) == ((), None)
    assert "is ignored: a project cannot set" in settings.warnings[0]


@pytest.mark.parametrize(
    "line", ['sandbox-memory = "lots"', 'sandbox-package = "../x"', "sandbox-memory = -1"]
)
def test_a_sandbox_setting_of_the_wrong_kind_is_refused(tmp_path: Path, line: str) -> None:
    with pytest.raises(SettingsError, match="sandbox-"):
        read(tmp_path, user=line + "\n")

"""The path of a file that was given as a text: it is taken as a text, and one warning names the remedy."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

import rlm
from rlm.context.path_texts import is_path
from rlm.providers import ScriptedProvider

FINAL = '{"steps": [{"op": "final", "value": 1}]}'


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("logs").mkdir()
    Path("logs/app.log").write_text("10:00 ERROR disk full")
    Path("README").write_text("read me")


def warned(context: Any) -> list[str]:
    model = ScriptedProvider([FINAL])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert rlm.complete("x", context, model=model).value == 1
    assert all(each.category is rlm.errors.RlmWarning for each in caught)
    return [str(each.message) for each in caught]


@pytest.mark.parametrize(
    "context",
    [
        *(
            "logs/app.log",
            "./logs/app.log",
            "README",
            "logs/",
            "logs/*.log",
            ["logs/app.log"],
            ["README", "logs/app.log"],
        ),
        {"a": "logs/app.log", "b": rlm.Context.text("x")},
    ],
)
def test_a_path_that_is_there_is_warned_of_once(context: Any) -> None:
    (message,) = warned(context)
    assert "pathlib.Path(" in message
    assert "rlm.Context.files(" in message


@pytest.mark.parametrize(
    "context",
    [
        *(
            "logs",
            "logs/app.log\n",
            "see logs/app.log",
            "logs/other.log",
            "10:00 ERROR disk full",
            "",
            " README",
            "*",
            ".*",
        ),
        *("a\0b", "x" * 5000, "\ud800", "../" * 400, ["README", "a text"], [], {"file": "README"}),
        rlm.Context.text("README"),
    ],
)
def test_a_text_is_not_warned_of(context: Any) -> None:
    assert warned(context) == []


def test_the_text_is_taken_as_it_is() -> None:
    context = rlm.Context.named_of(rlm.Context.text("README"))["context"]
    with pytest.warns(rlm.errors.RlmWarning, match="the text 'README'"):
        assert rlm.Context.named_of("README")["context"].digest() == context.digest()


def test_a_path_under_the_home_folder_is_one_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert is_path("~/README")
    with pytest.warns(rlm.errors.RlmWarning, match=str(tmp_path / "README")):
        rlm.Context.named_of("~/README")


def test_what_a_plan_puts_into_a_context_is_not_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the host's own word is: text of a model must not ask the disk anything."""
    from rlm.context.store import Store

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Store().put("README", "name")

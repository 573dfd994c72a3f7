"""A trace is written into a new file of its own: through no link, and into nothing that was there."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

import rlm
from rlm.errors import ConfigurationError
from rlm.providers import ScriptedProvider

OK = '{"steps": [{"op": "final", "value": "ok"}]}'


def traced(path: Path) -> rlm.Completion:
    return rlm.complete("x", model=ScriptedProvider([OK]), trace=path)


def refused(path: Path) -> ConfigurationError:
    model = ScriptedProvider([OK])
    with pytest.raises(ConfigurationError) as caught:
        rlm.complete("x", model=model, trace=path)
    assert caught.value.kind == "cannot_write"
    assert model.requests == []
    return caught.value


def test_a_link_is_refused_and_its_target_stays(tmp_path: Path) -> None:
    target = tmp_path / "notes.txt"
    target.write_text("years of work")
    link = tmp_path / "run.jsonl"
    link.symlink_to(target)
    assert f"{link}: it is a link to {str(target)!r}" in refused(link).message
    assert target.read_text() == "years of work"
    assert link.is_symlink()
    assert not (tmp_path / "run.jsonl.d").exists()


def test_another_name_of_the_file_keeps_what_it_held(tmp_path: Path) -> None:
    (tmp_path / "kept.txt").write_text("years of work")
    os.link(tmp_path / "kept.txt", tmp_path / "run.jsonl")
    assert traced(tmp_path / "run.jsonl").value == "ok"
    assert (tmp_path / "kept.txt").read_text() == "years of work"
    assert rlm.replay(tmp_path / "run.jsonl").value == "ok"


def test_a_store_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "run.jsonl.d").symlink_to("elsewhere")
    assert "run.jsonl.d: it is a link, not a folder" in refused(tmp_path / "run.jsonl").message
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert not (tmp_path / "run.jsonl").exists()


def test_a_store_that_becomes_a_link_gets_nothing(tmp_path: Path) -> None:
    store, elsewhere = tmp_path / "run.jsonl.d", tmp_path / "elsewhere"
    elsewhere.mkdir()

    def answer(_: object) -> str:
        store.rename(tmp_path / "moved")
        store.symlink_to("elsewhere")
        return OK

    result = rlm.complete("x", model=ScriptedProvider(answer), trace=tmp_path / "run.jsonl")
    assert result.error is not None
    assert result.error["kind"] == "trace_failed"
    assert list(elsewhere.iterdir()) == []


def test_a_body_that_is_a_link_is_neither_written_nor_read_through(tmp_path: Path) -> None:
    first = tmp_path / "run.jsonl"
    traced(first)
    target = tmp_path / "target"
    bodies = sorted((tmp_path / "run.jsonl.d").iterdir())
    for body in bodies:
        target.write_bytes(body.read_bytes())
        body.unlink()
        body.symlink_to(target)
    with pytest.raises(ConfigurationError, match="it is a link, not a regular file") as caught:
        rlm.replay(first)
    assert caught.value.kind == "unreadable_body"
    target.write_text("years of work")
    traced(first)
    assert target.read_text() == "years of work"
    assert rlm.replay(first).value == "ok"


def test_a_store_that_is_a_link_is_not_read(tmp_path: Path) -> None:
    traced(tmp_path / "run.jsonl")
    (tmp_path / "run.jsonl.d").rename(tmp_path / "moved")
    (tmp_path / "run.jsonl.d").symlink_to("moved")
    with pytest.raises(ConfigurationError, match="it is a link, not a folder"):
        rlm.replay(tmp_path / "run.jsonl")


def test_folders_are_made_and_everything_is_private(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "run.jsonl"
    store = path.with_name("run.jsonl.d")
    store.mkdir(parents=True, mode=0o755)
    path.write_text('{"event":"run"}\n')
    path.chmod(0o644)
    traced(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(store.stat().st_mode) == 0o700
    assert {stat.S_IMODE(body.stat().st_mode) for body in store.iterdir()} == {0o600}
    assert {each.name for each in path.parent.iterdir()} == {path.name, store.name}


def test_a_write_protected_file_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text("years of work")
    path.chmod(0o400)
    if os.geteuid() == 0:  # root may write everything: ask for the bits instead
        monkeypatch.setattr(os, "access", lambda path, mode: bool(os.stat(path).st_mode & 0o200))
    assert "write-protected" in refused(path).message
    assert path.read_text() == "years of work"


def test_what_was_read_from_the_old_file_is_no_matter_to_the_new_one(tmp_path: Path) -> None:
    """A replay may write its trace over the one that it replays."""
    path = tmp_path / "run.jsonl"
    traced(path)
    assert rlm.replay(path, trace=path).value == "ok"
    assert rlm.replay(path).value == "ok"


@pytest.mark.parametrize("content", ['{"id": "tool:a", "content": "a catalog"}\n', "10:00 a log\n", "{", "\n", "x"])
def test_a_file_with_other_content_is_never_replaced_by_a_trace(tmp_path: Path, content: str) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text(content)
    if content == "{":  # a trace that was cut after its first byte
        traced(path)
        return
    assert "it holds something else than a trace" in refused(path).message
    assert path.read_text() == content
    assert not (tmp_path / "run.jsonl.d").exists()


def test_a_context_that_a_trace_would_replace_keeps_its_text(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text('{"time": 1}\n' * 10)
    with pytest.raises(ConfigurationError, match="something else than a trace"):
        rlm.complete("x", path, model=ScriptedProvider([OK]), trace=path)
    assert path.read_text() == '{"time": 1}\n' * 10

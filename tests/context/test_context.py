"""What a context is made from, and what it says of itself."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import pickle
from pathlib import Path
from typing import Any

import pytest

import rlm
from rlm.context.context import Context, ContextKind
from rlm.errors import ConfigurationError, ContextError


def whole(context: Context) -> bytes:
    return b"".join(member.body.read(0, member.body.size) for member in context.members)


@pytest.mark.parametrize(
    ("value", "kind", "data"),
    [
        ("a text", "text", b"a text"),
        ("", "text", b""),
        (["one", "two\nlines"], "documents", b"onetwo\nlines"),
        ({"a": 1}, "json", b'{\n  "a": 1\n}'),
        ([1, "two"], "json", b'[\n  1,\n  "two"\n]'),
        ([], "json", b"[]"),
    ],
)
def test_a_value_is_the_context_that_one_would_expect(value: Any, kind: str, data: bytes) -> None:
    context = Context.of(value)
    assert (context.kind, whole(context)) == (kind, data)


def test_paths_are_files_and_a_context_is_itself(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    for value in (tmp_path / "a", [tmp_path / "a"]):
        assert Context.of(value).kind is ContextKind.FILES
    context = rlm.Context.text("x")
    assert Context.of(context) is context


@pytest.mark.parametrize("value", [None, 3, True, b"bytes", {1, 2}, {"a": {1}}, {"a": float("nan")}, object()])
def test_anything_else_is_refused(value: Any) -> None:
    with pytest.raises(ConfigurationError) as raised:
        Context.of(value)
    assert raised.value.kind == "invalid_context"
    assert type(value).__name__ in raised.value.message


def test_lines_end_with_a_line_feed_and_hold_one_line_each() -> None:
    assert whole(Context.lines(["a", "b\n", "c\r\n", ""])) == b"a\nb\nc\n\n"
    for wrong in (["a\nb"], ["a\n\n"], "text", [1]):
        with pytest.raises(ConfigurationError, match=r"Context\.lines|line 0"):
            Context.lines(wrong)  # type: ignore[arg-type]


def test_documents_have_names() -> None:
    assert [member.name for member in Context.documents({"x": "1", "y": "2"}).members] == ["x", "y"]
    assert [member.name for member in Context.documents(["1", "2"]).members] == ["0", "1"]
    with pytest.raises(ConfigurationError, match="document 'x'"):
        Context.documents({"x": 1})  # type: ignore[dict-item]
    with pytest.raises(ConfigurationError, match="list of texts"):
        Context.documents("text")


def test_the_contexts_of_a_run_may_have_names() -> None:
    assert list(Context.named_of("text")) == ["context"]
    assert list(Context.named_of({"a": 1})) == ["context"]
    named = Context.named_of({"logs": Context.text("1"), "notes": "2"})
    assert {name: context.kind for name, context in named.items()} == {"logs": "text", "notes": "text"}
    with pytest.raises(ConfigurationError) as raised:
        Context.named_of({"a:b": Context.text("1")})
    assert raised.value.kind == "invalid_name"


def test_files_come_by_path_and_by_pattern_sorted_and_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("logs/deep").mkdir(parents=True)
    for name in ("logs/b.log", "logs/a.log", "logs/deep/c.log", "odd[1].txt"):
        Path(name).write_text(name)
    assert [member.name for member in Context.files("logs/*.log", "logs/b.log").members] == ["logs/a.log", "logs/b.log"]
    assert [member.name for member in Context.files("logs/**").members] == [
        "logs/a.log",
        "logs/b.log",
        "logs/deep/c.log",
    ]
    assert whole(Context.files("odd[1].txt")) == b"odd[1].txt"


def test_a_file_that_cannot_be_one_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "missing", tmp_path, tmp_path / "fifo", tmp_path / "*.log", "/dev/zero"):
        with pytest.raises(ConfigurationError) as raised:
            Context.files(path)
        assert raised.value.kind == "unreadable_file"
        assert raised.value.detail["file"] == str(path)
    with pytest.raises(ConfigurationError, match="at least one"):
        Context.files()


def test_a_lone_surrogate_becomes_a_replacement_character() -> None:
    context = Context.text("a\ud800\udc00b")
    assert whole(context).decode() == "a��b"
    assert context.replaced == 2


def test_a_json_context_is_a_copy() -> None:
    value = {"list": [1]}
    context = Context.json(value)
    value["list"].append(2)
    assert context.value == {"list": [1]}


def test_it_is_frozen_and_its_repr_shows_nothing_of_the_text() -> None:
    context = Context.text("a secret")
    with pytest.raises(dataclasses.FrozenInstanceError):
        context.kind = ContextKind.JSON  # type: ignore[misc]
    assert repr(context) == "<Context text, 8 bytes>"
    assert "secret" not in repr(context.members)
    assert repr(Context.documents(["a", "b"])) == "<Context documents, 2 documents, 2 bytes>"
    assert pickle.loads(pickle.dumps(context)).digest() == context.digest()


def test_the_digest_is_that_of_the_bytes_and_the_same_for_the_same_content(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"text" * 200_000)
    assert Context.text("text").digest() == hashlib.sha256(b"text").hexdigest()
    files = Context.files(tmp_path / "file")
    assert files.manifest()["documents"] == [
        {
            "name": str(tmp_path / "file"),
            "digest": hashlib.sha256(b"text" * 200_000).hexdigest(),
            "bytes": 800_000,
        }
    ]
    one, other = Context.documents({"a": "1", "b": "2"}), Context.documents({"a": "1", "b": "2"})
    assert one.digest() == other.digest() != Context.documents({"a": "12", "b": ""}).digest()
    assert [digest for digest, _ in Context.documents(["same", "same", "x"]).bodies()] == [
        hashlib.sha256(text).hexdigest() for text in (b"same", b"x")
    ]


def test_a_file_is_not_hashed_before_the_digest_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"before")
    context = Context.files(path)
    with path.open("r+b") as file:
        file.write(b"later!")
    assert context.manifest()["documents"][0]["digest"] == hashlib.sha256(b"later!").hexdigest()


def test_a_path_into_what_is_no_json_says_so() -> None:
    with pytest.raises(ContextError) as raised:
        _ = Context.text("no json").value
    assert raised.value.to_dict()["detail"]["path"] == "by"

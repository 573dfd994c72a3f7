"""Handles: how they are named, who may use them, and that content is held once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from rlm.context.context import Context
from rlm.context.store import Store
from rlm.errors import ConfigurationError, ContextError

pytestmark = pytest.mark.anyio


def test_a_handle_is_a_value_of_a_plan(store: Store) -> None:
    handle = store.put("text")
    assert (handle.id, handle.value) == ("context", {"handle": "context"})
    assert [store.get(way).id for way in (handle, "context", {"handle": "context"})] == ["context"] * 3
    assert handle.part(1, 3).value == {"handle": "context:1-3"}
    assert store.get("context:1-3").size == 2


@pytest.mark.parametrize(
    "id", ["contxt", "context:", "context:1", "context:3-1", "context:0-99", "context:0-1:0-1", "", "context:-1-2"]
)
def test_an_unknown_handle_is_refused(store: Store, id: str) -> None:
    store.put("text")
    with pytest.raises(ContextError) as raised:
        store.get(id)
    assert raised.value.kind == "unknown_handle"


def test_what_is_no_handle_is_refused_and_a_misspelt_one_is_answered_with_the_right_one(store: Store) -> None:
    store.put("text", "notes")
    for wrong in (None, 3, ["notes"], {"handle": 3}, {"handle": "notes", "x": 1}):
        with pytest.raises(ContextError, match="a handle is"):
            store.get(wrong)
    with pytest.raises(ContextError, match="did you mean 'notes'"):
        store.get("nots")
    with pytest.raises(ConfigurationError, match="a letter"):
        store.put("text", "no:tes")


def test_the_same_content_is_held_once_and_other_content_gets_a_name_of_its_own(store: Store) -> None:
    first, again, other = store.put("one", "part"), store.put("one", "part"), store.put("two", "part")
    assert first.id == again.id == "part"
    assert first.context is again.context
    assert other.id == f"part~{Context.text('two').digest()[:8]}"
    assert store.put("two", "else").context is other.context
    assert Store().put("two", "part").id == "part"


async def test_the_name_of_a_part_does_not_depend_on_what_runs_beside_it() -> None:
    async def names(delays: list[float]) -> list[Any]:
        store = Store()
        store.put("line\n" * 100)
        found: list[Any] = [None] * len(delays)

        async def one(number: int, delay: float) -> None:
            await anyio.sleep(delay)
            found[number] = await store.act("context", "partition", {"by": "lines", "size": 10 + number})

        async with anyio.create_task_group() as tasks:
            for number, delay in enumerate(delays):
                tasks.start_soon(one, number, delay)
        return found

    assert await names([0, 0.01, 0.02]) == await names([0.02, 0.01, 0])


async def test_many_actions_at_once_agree_with_one_after_the_other(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("".join(f"line {number} é\n" for number in range(100_000)))
    questions: list[tuple[str, dict[str, Any]]] = [
        *(("slice", {"start": start, "stop": start + 20}) for start in range(0, 1_200_000, 100_000)),
        *(("slice", {"by": "lines", "start": line, "stop": line + 1}) for line in range(0, 100_000, 9_999)),
        *(("search", {"literal": f"line {number} "}) for number in (5, 50_000, 99_999)),
        ("count", {"by": "lines"}),
    ]
    store, found = Store(), {}
    store.put(Context.files(tmp_path / "file"))

    async def one(number: int) -> None:
        found[number] = await store.act("context", *questions[number])

    async with anyio.create_task_group() as tasks:
        for number in range(len(questions)):
            tasks.start_soon(one, number)
    for number, question in enumerate(questions):
        alone = Store()
        alone.put(Context.files(tmp_path / "file"))
        assert found[number] == await alone.act("context", *question), question


async def test_a_child_sees_what_it_was_given_and_parts_of_it_and_nothing_else(store: Store) -> None:
    store.put("0123456789")
    store.put("secret", "other")
    child = store.narrowed(["context:2-6"])
    assert [handle.id for handle in child.handles] == ["context:2-6"]
    assert (await child.act("context:2-6", "slice", {"start": 1, "stop": 3}))["part"] == {"handle": "context:3-5"}
    assert await child.text("context:3-5", 10) == "34"
    for hidden in ("context", "context:0-4", "context:5-7", "other", "other:0-999"):
        with pytest.raises(ContextError) as raised:
            await child.act(hidden, "peek")
        assert raised.value.kind == "unknown_handle"
        assert raised.value.detail == {"handle": hidden, "known": ["context:2-6"]}
    with pytest.raises(ContextError):
        child.narrowed(["context"])
    grandchild = child.narrowed([])
    made = grandchild.put("found", "result")
    for above in (grandchild, child, store):
        assert await above.text(made, 10) == "found"
    assert [handle.id for handle in grandchild.handles] == ["result"]
    assert [handle.id for handle in store.handles] == ["context", "other"]
    with pytest.raises(ContextError):
        store.narrowed(["context"]).get(made)


async def test_a_text_is_whole_or_refused(store: Store, tmp_path: Path) -> None:
    (tmp_path / "bad").write_bytes(b"\xff" * 10)
    store.put("漢字")
    store.put(Context.documents({"a": "1\n", "b": "2"}), "several")
    store.put(Context.files(tmp_path / "bad"), "bad")
    assert await store.text("context", 6) == "漢字"
    assert await store.text("several", 100) == "=== a ===\n1\n=== b ===\n2\n"
    assert await store.text("several:0-2", 100) == "1\n"
    for handle, most in (("context", 5), ("several", 10), ("bad", 20)):
        with pytest.raises(ContextError) as raised:
            await store.text(handle, most)
        assert raised.value.kind == "too_large"
        assert raised.value.detail["limit"] == most

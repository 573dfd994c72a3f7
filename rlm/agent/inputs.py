"""The inputs of an agent in its first request: contexts that stand whole there, and overviews of larger ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from rlm.compiler.tokens.token_counter import counter
from rlm.context.blocks import document_blocks
from rlm.errors import ContextError
from rlm.fencing import FencedText, json_text, message, row, rows_block, text_block, value_block
from rlm.plan import is_handle

if TYPE_CHECKING:
    from rlm.context.store import Store

INLINE_LIMIT = 16_000
"""Characters of all contexts together that stand whole in a first request: about 4,000 tokens.

This is an eighth of a window of 32,768 tokens. The window then still has room for the plan language, the tools and
three turns of observations.
"""

INLINE_SHARE = 4
"""One part in four of the tokens that a request may hold is the most that contexts take whole."""

RUN_SHARE = 16
"""One part in sixteen of ``max_total_tokens`` is the most: a run of several turns sends the contexts each time."""

MAX_VALUE_CHARS = 2_000
"""Characters of an input that is a plain value."""

Documents = list[tuple[str | None, str]]


@dataclass(frozen=True)
class InlineRoom:
    """The room for whole contexts in one request.

    ``characters`` and ``tokens`` are the most of all contexts together, counted with ``tokenizer``.
    """

    characters: int
    tokens: int
    tokenizer: str


@dataclass(frozen=True)
class AgentInputs:
    """The text of an agent's inputs, and the names of the contexts that it does not hold whole.

    A plan needs actions on contexts only where ``unread`` is not empty.
    """

    text: str
    unread: tuple[str, ...] = ()
    has_material: bool = False


async def describe_inputs(inputs: Mapping[str, Any], store: Store, room: InlineRoom) -> AgentInputs:
    """Return an agent's inputs: small contexts whole, larger ones as overviews, other values by content.

    Contexts are taken in their order, each where the room of the others leaves enough. For example, the line of a
    whole context is ``a context: text, 430 characters, 110 tokens, whole:``. Its text follows in a fenced block; each
    document has a block of its own.

    Args:
        inputs: the values by name; contexts are handles.
        store: the store of the contexts.
        room: the room for whole contexts.

    Raises: ContextError ``unreadable``, ``timeout``.
    """
    parts: list[str | FencedText] = []
    unread: list[str] = []
    has_material = False
    characters, tokens = room.characters, room.tokens
    for name, value in inputs.items():
        if name == "query":
            continue
        if not is_handle(value):
            parts += [f"- `{name}`: a value\n", value_block(name, value, MAX_VALUE_CHARS)]
            continue
        has_material = True
        documents = await _whole(value, store, characters)
        size = sum(len(text) for _, text in documents or ())
        size_in_tokens = await _tokens(documents or [], room.tokenizer)
        if documents is None or size_in_tokens > tokens:
            unread.append(name)
            parts += _overview(name, value["handle"], await store.overview(value))
            continue
        characters, tokens = characters - size, tokens - size_in_tokens
        parts += _inlined(name, value["handle"], documents, size, size_in_tokens, store)
    if not parts:
        return AgentInputs("# Inputs\n(none)\n")
    return AgentInputs(message("# Inputs\n", *parts), tuple(unread), has_material)


def observe_text(room: int) -> str:
    """Return the text that tells a planner how much of its values a turn shows."""
    return f"`observe` shows at most {room:,} characters.\n"


def answer_text(schema: Mapping[str, Any] | None) -> str:
    """Return the text that tells a planner the form of the answer."""
    if schema is not None:
        return f"# Answer\n`final` has a value of this JSON Schema: {json_text(dict(schema), compact=True)}\n"
    return "# Answer\nA bare value where the task asks for one, else a text that names its sources.\n"


async def _whole(handle: Any, store: Store, characters: int) -> Documents | None:
    """Return name and text of each document of a context; None where it has more characters."""
    if characters <= 0:
        return None
    try:
        documents = await store.texts(handle, 4 * characters)  # a character has at most 4 bytes
    except ContextError as problem:
        if problem.kind == "too_large":
            return None
        raise
    return documents if sum(len(text) for _, text in documents) <= characters else None


async def _tokens(documents: Documents, tokenizer: str) -> int:
    """Return the tokens of some texts. A thread counts, because the first count loads a vocabulary."""
    texts = [text for _, text in documents if text]
    if not texts:
        return 0

    def count() -> int:
        return sum(map(counter(tokenizer).count, texts))

    return await anyio.to_thread.run_sync(count, abandon_on_cancel=True)


def _inlined(name: str, id: str, documents: Documents, size: int, tokens: int, store: Store) -> list[str | FencedText]:
    """Return the line and the blocks of a context that stands whole in the request."""
    kind = store.get(id).context.kind
    parts = [f"{_title(name, id)}: {kind}", *_count("document", documents), f"{size:,} characters, {tokens:,} tokens"]
    if not size:
        return [f"- `{name}`: {', '.join(parts)}, empty\n"]
    return [f"- `{name}`: {', '.join(parts)}, whole:\n", *document_blocks(id, documents)]


def _count(noun: str, documents: Documents) -> list[str]:
    named = [name for name, _ in documents if name is not None]
    return [f"{len(named):,} {noun}{'s' if len(named) != 1 else ''}"] if named else []


def _title(name: str, id: str) -> str:
    return "a context" if id == name else f"context {id!r}"


def _overview(name: str, id: str, seen: Mapping[str, Any]) -> list[str | FencedText]:
    """Return the line and the blocks of a context that does not stand whole in the request."""
    about = {field: "about " if field in seen["estimated"] else "" for field in ("characters", "lines", "tokens")}
    parts = [f"{_title(name, id)}: {seen['kind']}"]
    if "documents" in seen:
        parts.append(f"{seen['documents']:,} documents")
    parts += [f"{words}{seen[field]:,} {field}" for field, words in about.items()]
    columns = ", document = [name, characters, first line]" if "documents" in seen else ""
    made: list[str | FencedText] = [f"- `{name}`: {', '.join(parts)}; its overview{columns}:\n"]
    rows = [*_document_rows(seen), *(row("heading", each) for each in seen.get("headings", ()))]
    if rows:
        made.append(rows_block(id, rows))
    listed = len(seen.get("names", ()))
    if listed < seen.get("documents", 0):
        made.append(f"({seen['documents'] - listed:,} more documents: `partition` by documents names them)\n")
    made.append(text_block(f"{id}:beginning", seen["head"]))
    if "tail" in seen:
        made.append(text_block(f"{id}:end", seen["tail"]))
    return made


def _document_rows(seen: Mapping[str, Any]) -> Sequence[str]:
    """Return a row for each document of an overview, for example ``document = ["a.txt", 9, "A note"]``."""
    return [row("document", list(each.values())) for each in seen.get("names", ())]

"""The text of a context as fenced blocks of a request, one block for each document."""

from __future__ import annotations

from collections.abc import Sequence

from rlm.fencing import MAX_NAME, FencedRow, FencedText, blocks_of, json_text, rows_block, text_block
from rlm.model.wire_names import safe_name


def context_blocks(handle: str, texts: Sequence[tuple[str | None, str]]) -> list[FencedText]:
    """Return blocks with the texts of a context.

    A label holds a document's name only where each character of the name is safe in a label. Other documents are
    labelled ``document-1``, ``document-2`` and so on; a block before them lists their names.

    Args:
        handle: the id of the context.
        texts: name and text of each document; the name is None where the context has no documents.
    """
    rows = _rows(texts)
    if not rows:
        return [text_block(handle, text) for _, text in texts]
    blocks = [block for block, _ in blocks_of(rows)]
    return [*_names(rows, {block.name for block in blocks if block.kind == "document"}), *blocks]


def document_blocks(handle: str, texts: Sequence[tuple[str | None, str]]) -> list[FencedText]:
    """Return one block for each document of a context, however short it is. Labels are as in ``context_blocks``.

    For example, two documents ``a.txt`` and ``b.txt`` give two blocks of the kind ``document``.
    """
    rows = _rows(texts)
    if not rows:
        return [text_block(handle, text) for _, text in texts]
    blocks = [text_block(each.name, each.value, kind=each.kind) for each in rows]
    return [*_names(rows, {block.name for block in blocks}), *blocks]


def _rows(texts: Sequence[tuple[str | None, str]]) -> list[FencedRow]:
    """Return a row for each document; no row for a context without documents."""
    return [
        FencedRow(name if _is_label(name) else f"document-{number}", json_text(name), "document", text)
        for number, (name, text) in enumerate(texts, 1)
        if name is not None
    ]


def _names(rows: Sequence[FencedRow], own: set[str]) -> list[FencedText]:
    """Return a block with the names of those documents with a block of their own whose label is another name."""
    names = [f"{each.name} = {each.label}" for each in rows if each.name in own and json_text(each.name) != each.label]
    return [rows_block("names", names)] if names else []


def _is_label(name: str) -> bool:
    return len(name) <= MAX_NAME and safe_name(name) == name and not name.startswith("document-")

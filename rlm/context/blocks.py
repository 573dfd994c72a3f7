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
    documents = [(name, text) for name, text in texts if name is not None]
    if len(documents) < len(texts):
        return [text_block(handle, text) for _, text in texts]
    rows = [
        FencedRow(name if _is_label(name) else f"document-{number}", json_text(name), "document", text)
        for number, (name, text) in enumerate(documents, 1)
    ]
    blocks = [block for block, _ in blocks_of(rows)]
    own = {block.name for block in blocks if block.kind == "document"}
    names = [
        f"{each.name} = {each.label}"
        for each, (name, _) in zip(rows, documents, strict=True)
        if each.name in own and each.name != name
    ]
    return [rows_block("names", names), *blocks] if names else blocks


def _is_label(name: str) -> bool:
    return len(name) <= MAX_NAME and safe_name(name) == name and not name.startswith("document-")

"""The views that were compiled from a catalog, kept until it changes."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

_MOST_VIEWS = 64


class ViewCache:
    """The last ``_MOST_VIEWS`` views by key, and the topics of warnings. Guarded by the catalog's lock."""

    def __init__(self) -> None:
        self._views: OrderedDict[Any, Any] = OrderedDict()
        self._topics: set[Any] = set()

    def clear(self) -> None:
        """Forget all views and topics."""
        self._views.clear()
        self._topics.clear()

    def get(self, key: Any) -> Any:
        """Return the view of a key, or None."""
        view = self._views.get(key)
        if view is not None:
            self._views.move_to_end(key)
        return view

    def keep(self, key: Any, view: Any) -> Any:
        """Keep a view and return it. The first view of a key stays: a second one is dropped, and the first returned."""
        kept = self._views.setdefault(key, view)
        while len(self._views) > _MOST_VIEWS:
            self._views.popitem(last=False)
        return kept

    def is_new(self, topic: Any) -> bool:
        """Whether ``topic`` is new since the last change; it is not new the next time."""
        if len(self._topics) >= _MOST_VIEWS:
            self._topics.clear()
        known = topic in self._topics
        self._topics.add(topic)
        return not known

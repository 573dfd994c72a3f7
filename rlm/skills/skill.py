"""A loaded skill: its package, its place, and its resources."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property

from rlm.errors import CatalogError
from rlm.skills import resources
from rlm.skills.confine import Parts, Root, read_at, walked
from rlm.skills.findings import Refused
from rlm.skills.limits import SkillPolicy
from rlm.skills.names import identity
from rlm.skills.package import Package
from rlm.skills.resources import ResourceListing


@dataclass(frozen=True)
class Skill:
    """A loaded skill. Its text was read when it was loaded. Resources are read later, on request.

    ``scope`` and ``source`` are the host's names for its origin. ``path`` is the file as the host's call names it,
    and ``file`` its real path.
    """

    package: Package
    scope: str
    source: str
    path: str
    root: Root = field(repr=False)
    parts: Parts = field(repr=False)
    policy: SkillPolicy = field(repr=False)

    @property
    def name(self) -> str:
        return self.package.name

    @property
    def digest(self) -> str:
        return self.package.digest

    @cached_property
    def key(self) -> str:
        """The name in the form in which names are compared."""
        return identity(self.name)

    @property
    def identity(self) -> str:
        """``scope:name``, in the form in which names are compared."""
        return f"{identity(self.scope)}:{self.key}"

    @property
    def file(self) -> str:
        """The real path of the SKILL.md."""
        return "/".join((self.root.path.rstrip("/"), *self.parts))

    def verify(self) -> None:
        """Check that the file is still the one that was loaded.

        Raises:
            CatalogError: ``skill_changed``; load it again with ``replace=True`` to accept the new text.
        """
        try:
            with walked(self.root, self.parts, floor=self.parts[:-1]) as (folder, real):
                names = resources.names_for(self.root, self.policy)
                data = read_at(real[-1], folder, self.policy.max_file_bytes, names)
        except Refused as refused:
            raise self._changed(refused.finding.message) from None
        if hashlib.sha256(data).hexdigest() != self.digest:
            raise self._changed("other bytes")

    def _changed(self, reason: str) -> CatalogError:
        message = f"{self.path} is not the file that was loaded ({reason}); load it again with replace=True"
        return CatalogError("skill_changed", message, {"path": self.path, "digest": self.digest})

    def resources(self) -> ResourceListing:
        """Return the other files of the skill's folder. They are listed, not opened.

        Raises:
            CatalogError: ``resource_refused``, ``skill_changed``.
        """
        self.verify()
        return resources.listed(self.root, self.parts[:-1], self.parts[-1], self.policy)

    def read(self, path: str) -> bytes:
        """Return the bytes of a resource. The host decides whether a model may have them: wrap this method in a tool.

        Args:
            path: below the skill's folder, with ``/``, as in ``resources()``, for example ``"references/notes.md"``.

        Raises:
            CatalogError: ``resource_refused``, ``skill_changed``.
        """
        self.verify()
        return resources.read(self.root, self.parts[:-1], path, self.policy)

"""The profile: the skills that the host pins for a run. By default these are the bundled four.

    Profile()                                        the bundled skills
    Profile(disable=["rlm-recurse"])                 without one of them
    Profile(skills=["rlm-facts", Path("./house")])   others: bundled by name, one's own by folder
    Profile(skills="off")                            no skill

A pin is an id and a digest. It holds for the text that the host vouched for, and for no other text. No SKILL.md,
query or reply can change a profile.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import pydantic
from pydantic import Field

from rlm.errors import ConfigurationError, did_you_mean, named
from rlm.model.arguments import instance
from rlm.model.base import Noun, digest_of, plain
from rlm.model.unit import Kind, Unit
from rlm.skills.library import load
from rlm.skills.role_bodies import role_bodies, whole_digest

OFF, ON = "off", "on"

BUNDLED: Mapping[str, str] = {
    "rlm-operate": "1670a700c9ece6f34481c356e5c0cba0339d13e8891dd7ff59e0eb43aedcc0dd",
    "rlm-recurse": "4eb8d4d1913a1169a2505b44665d00dbf870c55c00855dea49c436e074ce0421",
    "rlm-facts": "e2ba6353a09cccc695ada8232ab780edfb1636a47707260b7e32a94470af5e68",
    "rlm-constraints": "406bfbbca47a1a9d32f7f5bda282051ca15744acd6ab667970be16d6243a3221",
}
"""The bundled skills in the order in which they are shown, with the SHA-256 of all bodies of each."""


class Pin(Noun):
    """One pinned skill: its name, the SHA-256 of all its bodies, and its folder. A bundled skill has no folder (None).

    Without bodies for roles the digest is that of the SKILL.md.
    """

    name: str = Field(min_length=1)
    digest: str = Field(pattern=r"^[0-9a-f]{64}$")
    path: Path | None = None

    @property
    def id(self) -> str:
        """The unit's id, for example ``skill:rlm-facts``."""
        return f"{Kind.SKILL}:{self.name}"

    @classmethod
    def bundled(cls, name: str) -> Pin:
        """Return the pin of a bundled skill.

        Args:
            name: a key of ``BUNDLED``, for example ``"rlm-facts"``.

        Raises:
            ConfigurationError: ``unknown_skill``, with the closest name.
        """
        plain_name = _name(instance("name", name, str))
        if plain_name not in BUNDLED:
            hint = did_you_mean(plain_name, BUNDLED)
            raise ConfigurationError(
                "unknown_skill",
                f"no bundled skill is called {name!r}{hint}; name a skill of your own by its folder, Path(...)",
                {"skill": name, "known": list(BUNDLED)},
            )
        return cls(name=plain_name, digest=BUNDLED[plain_name])

    @classmethod
    def of(cls, path: Path) -> Pin:
        """Return the pin of the skill in a folder, as it is now. The host vouches for its text.

        Raises:
            CatalogError: ``no_such_path``, ``skills_refused``.
            ConfigurationError: ``one_skill`` where the folder does not hold exactly one skill; ``unknown_role``,
                ``empty_body``, ``unreadable_body`` for a file in its folder ``roles``.
        """
        skills = load(path, scope="host").raise_for_refused().skills
        if len(skills) != 1:
            names = named(sorted(skill.name for skill in skills)) or "none"
            raise ConfigurationError(
                "one_skill", f"{path} must hold one skill, and holds {names}: name its folder", {"path": str(path)}
            )
        digest = whole_digest(skills[0], role_bodies(skills[0]))
        return cls(name=skills[0].name, digest=digest, path=path.absolute())


class Profile(Noun):
    """The skills that the host pins, in order, and the skills among them that it leaves out.

    ``skills`` takes names of bundled skills, folders (``Path``), ``Pin``s and units of kind ``skill``; ``"off"`` is
    none. ``disable`` takes names. An unknown name is an error that suggests the closest one.
    """

    skills: tuple[Pin | Unit, ...] = Field(default_factory=lambda: tuple(map(Pin.bundled, BUNDLED)))
    disable: frozenset[str] = frozenset()

    @classmethod
    def of(cls, value: Any = None, *, disable: Iterable[str] = ()) -> Profile:
        """Return the profile for the value of ``skills=``: None, ``"on"``, ``"off"``, a list, or a profile.

        Raises:
            ConfigurationError: ``unknown_skill``, ``invalid_field``.
        """
        fields: dict[str, Any] = {"disable": disable}
        if isinstance(value, Profile):
            more = cls(skills=value.skills, **fields)
            return value.model_copy(update={"disable": value.disable | more.disable}) if more.disable else value
        return cls(**fields) if value is None or value == ON else cls(skills=value, **fields)

    @pydantic.field_validator("skills", mode="before")
    @classmethod
    def _pins(cls, value: Any) -> Any:
        if value == OFF:
            return ()
        if isinstance(value, str | Path) or not isinstance(value, Iterable):
            hint = did_you_mean(value, [OFF]) if isinstance(value, str) else ""
            raise ValueError(f"write a list of skills, or 'off', not {value!r}{hint}")
        return tuple(_pin(item) for item in value)

    @pydantic.field_validator("disable", mode="before")
    @classmethod
    def _names(cls, value: Any) -> Any:
        return _names(value)

    @pydantic.model_validator(mode="after")
    def _known(self) -> Profile:
        names = [_name(item.id) for item in self.skills]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ConfigurationError("duplicate_skill", f"the profile has two skills {twice!r}", {"skill": twice})
        known = [*names, *BUNDLED]
        for name in sorted(self.disable):
            if name not in known:
                hint = did_you_mean(name, known)
                raise ConfigurationError(
                    "unknown_skill", f"disable names {name!r}, and no skill is called that{hint}", {"skill": name}
                )
        return self

    @property
    def pinned(self) -> tuple[Pin | Unit, ...]:
        """The pins and units that remain after ``disable``."""
        return tuple(item for item in self.skills if _name(item.id) not in self.disable)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the profile: the pins with id and digest, and the disabled names."""
        return digest_of(plain(self))


def _pin(item: Any) -> Any:
    if isinstance(item, str):
        return Pin.bundled(item)
    if isinstance(item, Path):
        return Pin.of(item)
    if isinstance(item, Unit) and item.kind is not Kind.SKILL:
        raise ValueError(f"{item.id} is no skill: pin it in the catalog, with activation='always'")
    return item


def _names(value: Any) -> frozenset[str]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise ValueError(f"disable takes a list of names, not {value!r}: write [{value!r}]")
    return frozenset(_name(item) for item in value)


def _name(id: Any) -> str:
    """Return the name of a skill from its name or its id."""
    if not isinstance(id, str):
        raise ValueError(f"the name of a skill is a string, not {type(id).__name__}")
    return id.removeprefix(f"{Kind.SKILL}:")

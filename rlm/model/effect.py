"""The effect of a tool on the world."""

from __future__ import annotations

import enum


class Effect(enum.StrEnum):
    """The effect of a tool on the world. For example, a search has the effect ``read``."""

    READ = "read"
    WRITE = "write"
    PROCESS = "process"
    NETWORK = "network"
    INSTALL = "install"
    SERVICE = "service"
    REPOSITORY = "repository"

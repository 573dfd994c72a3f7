"""Hatchling's hook: a wheel with an engine in it fits one Python on one platform, a wheel without fits all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Tags(BuildHookInterface):  # type: ignore[type-arg, misc, unused-ignore]
    """Sets the wheel's tags from what lies in the package."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        filled = (Path(self.root) / "src" / "prolog_rlm_swipl" / "home").is_dir()
        build_data["pure_python"] = not filled
        build_data["infer_tag"] = filled

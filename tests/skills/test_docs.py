"""The table of findings on the skills page is the code's, and every code can come up."""

from __future__ import annotations

import re
from pathlib import Path

from rlm.skills import FINDINGS, SkillPolicy

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "skills.md"


def row(code: str) -> str:
    meaning = FINDINGS[code]
    return f"| `{code}` | {meaning.level.value} | {meaning.problem} | {meaning.fix} |"


def test_the_findings_table_is_the_codes() -> None:
    text = PAGE.read_text(encoding="utf-8")
    table = text[text.index("## Findings") :]
    assert re.findall(r"^\| `\w+` \|.*\|$", table, re.MULTILINE) == [row(code) for code in FINDINGS]


def test_every_limit_stands_on_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert [field for field in SkillPolicy.model_fields if f"`{field}`" not in text] == []


def test_every_code_is_used_by_the_loader_and_no_other_one() -> None:
    sources = [*(ROOT / "rlm" / "skills").glob("*.py"), ROOT / "rlm" / "catalog" / "skills.py"]
    code = "\n".join(path.read_text(encoding="utf-8") for path in sources if path.name != "findings.py")
    used = set(re.findall(r'"([a-z][a-z0-9_]+)"', code)) | {"more_findings"}
    assert set(FINDINGS) <= used


def test_every_code_comes_up_in_a_test() -> None:
    tests = "\n".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("*.py"))
    assert [code for code in FINDINGS if f'"{code}"' not in tests] == []

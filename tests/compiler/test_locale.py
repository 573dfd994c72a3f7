"""No locale changes anything: the same fingerprints and scores, whatever the process was told of its surroundings."""

# ruff: noqa: RUF001

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import rlm

ROOT = Path(__file__).parents[2]
LOCALES = ("C", "POSIX", "de_DE.UTF-8", "tr_TR.UTF-8", "C.UTF-8")

UNITS = (
    ("tool:strasse", "Zeige die Straße und den Ärger mit ÖL, GRÖSSE"),
    ("tool:isik", "IŞIK ışık İstanbul Iğdır"),
    ("tool:greek", "Οδός ΟΔΟΣ ὁδός Ελλάδα"),
    ("tool:cyrillic", "Привет МИР ёлка"),
    ("tool:chinese", "查询天气预报"),
    ("tool:japanese", "ＡＰＩ　検索 カタカナ ﾊﾝｶｸ"),
    ("tool:accents", "Café RÉSUMÉ naïve"),
    ("tool:getUserÄpfel", "INFO Title"),
)
TEXTS = {
    "ÄRGER in der STRASSE mit öl": "tool:strasse",
    "IŞIK Istanbul'da": "tool:isik",
    "ΟΔΟΣ στην ΕΛΛΆΔΑ": "tool:greek",
    "мир ПРИВЕТ Ёлка": "tool:cyrillic",
    "天气": "tool:chinese",
    "api 検索 ハンカク": "tool:japanese",
    "cafe resume NAÏVE": "tool:accents",
    "INFO of ÄPFEL, title": "tool:getUserÄpfel",
    "GRÖẞE": "tool:strasse",
}
STEMMERS = ("english", "german", "turkish", "russian", "none")


def lines() -> list[str]:
    """For each stemmer and text, the fingerprint and what was chosen with which score."""
    found = []
    for stemmer in STEMMERS:
        with rlm.Catalog(stemmer=stemmer) as catalog:
            catalog.add(*(rlm.Unit(id, description=text) for id, text in UNITS))
            for text in (*TEXTS, "find it, but don't use ISIK"):
                view = rlm.compile(catalog, text)
                chosen = [(item.id, item.score) for item in view.selection.chosen]
                found.append(f"{view.fingerprint} {sorted(view.selection.negated)} {chosen}")
    return found


def test_no_locale_changes_a_fingerprint_or_a_score() -> None:
    code = r"from tests.compiler.test_locale import lines; print(*map(ascii, lines()), sep='\n')"
    outcomes = {}
    for locale in LOCALES:
        environment = {**os.environ, "LC_ALL": locale, "LANG": locale}
        child = subprocess.run(
            [sys.executable, "-c", code], env=environment, cwd=ROOT, capture_output=True, text=True, timeout=120
        )
        assert child.returncode == 0, child.stderr
        outcomes[locale] = child.stdout
    assert set(outcomes.values()) == {"".join(f"{line!a}\n" for line in lines())}


def test_case_accents_and_width_make_no_difference_in_any_script() -> None:
    with rlm.Catalog(stemmer="none") as catalog:
        catalog.add(*(rlm.Unit(id, description=text) for id, text in UNITS))
        for text, id in TEXTS.items():
            assert rlm.compile(catalog, text).active[:1] == (id,), text

"""The table of acceptance rows names the tests that are there."""

from __future__ import annotations

from tests.docs.acceptance import PAGE, ROOT, page, proofs, rows

NUMBERS = [
    *(f"P{number:02}" for number in range(1, 26)),
    *(f"K{number:02}" for number in (*range(1, 27), *range(31, 39))),
    *(f"T{number:02}" for number in range(1, 19)),
]


def test_every_acceptance_row_stands_once_in_the_table() -> None:
    assert list(rows()) == NUMBERS


def test_every_acceptance_row_has_a_test() -> None:
    found = proofs()
    assert [number for number in NUMBERS if not found.get(number)] == []


def test_the_table_names_the_files_of_the_tests() -> None:
    assert page() == PAGE.read_text(encoding="utf-8"), "run: python -m tests.docs.acceptance"
    assert (ROOT / "tests" / rows()["P01"].split("`")[1]).is_file()

"""Names: what they are compared by, and what is said of them."""

from __future__ import annotations

import pytest

from rlm.skills.names import identity
from tests.skills.shelf import parsed, refused_with, text


@pytest.mark.parametrize("name", ["demo", "a", "007", "pdf-forms-2", "навык", "café", "技能", "कौशल", "x" * 64])
def test_a_standard_name_needs_no_word(name: str) -> None:
    package, findings = parsed(text(name), name)
    assert package is not None
    assert package.name == name
    assert not findings


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("Demo", "name_form"),
        ("my_skill", "name_form"),
        ("my skill", "name_form"),
        ("-demo", "name_form"),
        ("demo-", "name_form"),
        ("de--mo", "name_form"),
        ("de.mo", "name_form"),
        ("demo!", "name_form"),
        ("'%2e%2e'", "name_form"),
        ("Навык", "name_form"),
        ("x" * 65, "name_long"),
        ("d\N{CYRILLIC SMALL LETTER IE}mo", "name_mixed_scripts"),
    ],
)
def test_a_name_that_is_not_quite_standard_is_loaded_and_told(name: str, code: str) -> None:
    folder = name.strip("'")
    package, findings = parsed(text(name), folder)
    assert package is not None
    assert package.name == folder
    assert set(findings) == {code}
    assert (findings[code].line, findings[code].column) == (2, 7)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        *(
            (name, "name_reserved")
            for name in ("plugin:demo", "a/b", "../demo", "/etc/passwd", "..", ".", "...", "'*'", "a*")
        ),
        *((name, "name_reserved") for name in ('"a\\\\b"', "a\N{FULLWIDTH COLON}b", "a\N{FULLWIDTH SOLIDUS}b")),
        *((f'"{name}"', "name_reserved") for name in ("\N{FULLWIDTH FULL STOP}" * 2, "C:\\\\x")),
        *((f'"de{hidden}mo"', "name_invisible") for hidden in ("\\u200b", "\\u00ad", "\\u202e", "\\u2060", "\\ufeff")),
        *(
            (f'"de{hidden}mo"', "name_invisible")
            for hidden in ("\\t", "\\n", "\\u2028", "\\u3164", "\\ufe0f", "\\ue000")
        ),
        *((f"de{hidden}mo", "name_invisible") for hidden in ("\u200b", "\u200d", "\U000e0061", "\u034f", "\u2800")),
        ("x" * 129, "name_too_long"),
        ("", "missing_field"),
        ("''", "missing_field"),
        ("' '", "missing_field"),
        ("# demo", "missing_field"),
        ("[a]", "wrong_type"),
        ("{a: b}", "wrong_type"),
    ],
)
def test_a_name_that_could_mislead_is_refused(name: str, code: str) -> None:
    found = refused_with(text(name), code)
    assert found.line in (1, 2)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("demo", "Demo"),
        ("demo", "\N{FULLWIDTH LATIN SMALL LETTER D}emo"),
        ("demo", "de\u200bmo"),
        ("caf\u00e9", "cafe\u0301"),
        ("strasse", "straße"),
        ("ﬁle", "file"),
        ("ΣΑΣ", "σας"),
        ("demo", "d\u00ademo\ufe0f"),
    ],
)
def test_names_that_look_alike_are_one(one: str, other: str) -> None:
    assert identity(one) == identity(other)
    assert identity(identity(other)) == identity(other)


def test_names_that_do_not_are_two() -> None:
    assert len({identity(name) for name in ("demo", "demos", "dem0", "d\N{CYRILLIC SMALL LETTER IE}mo", "de-mo")}) == 5


@pytest.mark.parametrize("folder", ["demo", "DEMO", "other"])
def test_the_folder_is_compared_and_nothing_else(folder: str) -> None:
    package, findings = parsed(text("demo"), folder)
    assert package is not None
    assert package.name == "demo"
    assert ("name_not_folder" in findings) == (folder != "demo")


def test_the_folder_may_be_spelled_in_other_code_points() -> None:
    assert not parsed(text("café"), "cafe\u0301")[1]


def test_a_near_field_is_pointed_out() -> None:
    found = refused_with("---\nNme: demo\ndescription: x\n---\nbody\n", "missing_field")
    assert "'Nme'" in found.message
    _, findings = parsed("---\nname: demo\ndescription: x\nlicence: MIT\n---\nbody\n")
    assert "did you mean 'license'?" in findings["ignored_field"].message


@pytest.mark.parametrize("description", ["", "''", "' '", "|\n ", "# x"])
def test_a_description_may_not_be_empty(description: str) -> None:
    refused_with(f"---\nname: demo\ndescription: {description}\n---\nbody\n", "missing_field")


def test_a_long_description_is_kept_whole_or_refused() -> None:
    package, findings = parsed(text(description="é" * 8192).replace("é", "x"))
    assert package is not None
    assert len(package.description) == 8192
    assert set(findings) == {"description_long"}
    refused_with(text(description="x" * 8193), "description_too_long")


@pytest.mark.parametrize("field", ["license", "compatibility", "metadata", "allowed-tools"])
@pytest.mark.parametrize("value", ["[[a]]", "{a: {b: c}}", "[a, {b: c}]"])
def test_a_recorded_field_of_another_form_is_left_out_or_kept_and_told(field: str, value: str) -> None:
    package, findings = parsed(text(**{field: value}))
    assert package is not None
    assert findings
    if not (field == "metadata" and value.startswith("{")):
        assert set(findings) == {"not_recorded"}
        assert not getattr(package, {"allowed-tools": "tools"}.get(field, field))


def test_recorded_fields_are_recorded() -> None:
    package, findings = parsed(
        text(license="MIT", compatibility="needs git", metadata="{author: me}", allowed_tools="Bash(git add *) Read")
    )
    assert package is not None
    assert not findings
    assert (package.license, package.compatibility, package.metadata) == ("MIT", "needs git", {"author": "me"})
    assert package.tools == ("Bash(git add *)", "Read")

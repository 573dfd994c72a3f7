"""YAML as data: text, lists and mappings, and a narrow repair."""

from __future__ import annotations

import time

import pytest

from tests.skills.shelf import frontmatter, parsed, refused_with, text


@pytest.mark.parametrize(
    "written",
    [
        *("on", "off", "yes", "no", "y", "true", "False", "null", "~", "007", "0x1F", "1e3", "1_000", "1.10", ".inf"),
        *("2026-13-45", "2026-01-02", "12:30:45", "=", "190:20:30", "0b1", "-1", "1,000"),
    ],
)
def test_every_scalar_stays_as_it_is_written(written: str) -> None:
    package, findings = frontmatter(f"license: {written}\nmetadata:\n  a: {written}\n  b: [{written.replace(',', '')}]")
    assert package is not None, findings
    assert package.license == written
    assert package.metadata == {"a": written, "b": [written.replace(",", "")]}


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        ("'It''s'", "It's"),
        ('"a\\tb\\n\\u00e9"', "a\tb\né"),
        (">-\n  a\n  b\n\n  c", "a b\nc"),
        ("|\n  a\n   b\n  ---\n  c", "a\n b\n---\nc"),
        ("a\n  b\n\n  c", "a b\nc"),
        ("a # comment", "a"),
        ("a#b", "a#b"),
        ("http://x:80/y", "http://x:80/y"),
    ],
)
def test_the_spellings_of_yaml_are_read(value: str, meant: str) -> None:
    package, findings = frontmatter(f"license: {value}")
    assert package is not None, findings
    assert package.license == meant


def test_flow_style_is_yaml_too() -> None:
    package, findings = parsed('---\n{name: demo, description: "x: y", metadata: {a: [1, 2]}}\n---\nbody\n')
    assert package is not None
    assert not set(findings) - {"nested_metadata"}
    assert (package.description, package.metadata) == ("x: y", {"a": ["1", "2"]})


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ("license: a\nlicense: b", "duplicate_key"),
        ("license: a\n'license': b", "duplicate_key"),
        ('license: a\n"l\\u0069cense": b', "duplicate_key"),
        ("metadata:\n  a: 1\n  a: 2", "duplicate_key"),
        ("metadata: {a: 1, a: 2}", "duplicate_key"),
        ("metadata:\n  - {a: 1, a: 2}", "duplicate_key"),
        ("license: &a b", "anchor"),
        ("metadata: &a {b: c}", "anchor"),
        ("metadata: [&a b]", "anchor"),
        ("&a license: b", "anchor"),
        ("license: *a", "alias"),
        ("metadata: [*a]", "alias"),
        ("<<: {a: b}", "merge_key"),
        ("metadata:\n  <<: {a: b}", "merge_key"),
        ("metadata: {'<<': b}", "merge_key"),
        ("license: !!str b", "tag"),
        ("license: ! b", "tag"),
        ("license: !custom b", "tag"),
        ("license: !<tag:yaml.org,2002:int> 1", "tag"),
        ("!!str license: b", "tag"),
        ("metadata: !!python/object/new:os.system [ls]", "tag"),
        ("metadata: !!binary aGk=", "tag"),
        ("metadata: !!set {a, b}", "tag"),
        ("? [a, b]\n: c", "bad_key"),
        ("{a: b}: c", "bad_key"),
        ("[a]: c", "bad_key"),
        ("--- x", "several_documents"),
        ("...\n--- x", "several_documents"),
        ("...\nname: other", "yaml_error"),
        ("license: [a", "yaml_error"),
        ("license: 'a", "yaml_error"),
        ("license: a: b", "yaml_error"),
        ("license: `a`", "yaml_error"),
        ("license:\ta: b", "yaml_error"),
        ("\tlicense: a", "yaml_error"),
        ('license: "\\U00110000"', "yaml_error"),
        ('license: "\\UFFFFFFFF"', "yaml_error"),
        ("%YAML 1.1", "yaml_error"),
        ("license: %a", "yaml_error"),
        ("metadata:" + " [" * 16 + "]" * 16, "nested_too_deep"),
    ],
)
def test_what_has_no_place_in_a_frontmatter_is_refused_with_its_place(fields: str, code: str) -> None:
    package, findings = frontmatter(fields)
    assert package is None
    assert set(findings) == {code}
    assert 4 <= findings[code].line <= 6
    assert findings[code].column >= 1
    assert findings[code].fix


@pytest.mark.parametrize("content", ["hello", "- a\n- b", "[a]", "'text'", "&a hello"])
def test_a_frontmatter_is_a_mapping(content: str) -> None:
    package, findings = parsed(f"---\n{content}\n---\nbody\n")
    assert package is None
    assert set(findings) <= {"not_a_mapping", "anchor"}


def test_sixteen_levels_are_the_most() -> None:
    package, _ = frontmatter("metadata: {a:" + " [" * 14 + "]" * 14 + "}")
    assert package is not None
    assert frontmatter("metadata: {a:" + " [" * 15 + "]" * 15 + "}")[0] is None


@pytest.mark.parametrize(
    "fields",
    [
        "metadata: " + "[" * 3000 + "]" * 3000,
        "metadata: " + "[" * 8000,
        "metadata: " + "{a: " * 3000 + "}" * 3000,
        "metadata: " + "[{a: " * 2500,
        "metadata:\n" + "\n".join(" " * i + "a:" for i in range(1, 170)),
        "- " * 6000,
        "? " * 6000,
        "metadata: " + "[a, " * 4000,
        "a: &a [x, x]\n"
        + "".join(f"{c}: &{c} [*{p}, *{p}, *{p}]\n" for p, c in zip("abcdefgh", "bcdefghi", strict=True)),
        "a: &a {<<: *a}",
        "metadata: " + "'" * 12_000,
        "metadata: " + '"' + "\\" * 12_001,
        "metadata: " + "\n".join("#" * 70 for _ in range(200)),
        "metadata: |" + "\n\n" * 6000,
        "metadata: >\n" + "  a\n\n" * 2000,
        "metadata: " + "a " * 7000,
        "metadata: " + "a\n  " * 3000,
        "\n".join(f"f{i}: x" for i in range(1800)),
        "metadata: {" + ", ".join(f"f{i}" for i in range(2200)) + "}",
        "".join(f"{c}" for c in "-?:,[]{}#&*!|>'\"%@`") * 700,
        "a" * 15_000 + ": b",
        "[" * 1000 + "]" * 1000 + ": b",
    ],
    ids=lambda fields: fields[:24].encode("unicode_escape").decode(),
)
def test_bombs_cost_little_time_and_no_recursion(fields: str) -> None:
    before = time.process_time()
    package, findings = frontmatter(fields)
    assert time.process_time() - before < 2
    assert len(findings) <= 100
    if package is not None:
        assert all(isinstance(value, str | list | dict) for value in package.metadata.values())


# -- repair -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        ("Use when: asked", "Use when: asked"),
        ("Use when:", "Use when:"),
        ("a: b: c: d", "a: b: c: d"),
        ("it's here: don't worry", "it's here: don't worry"),
        ("`foo` helper", "`foo` helper"),
        ("@team does it", "@team does it"),
        ("[Beta] formats code", "[Beta] formats code"),
        ("[Beta] with 'quotes': and colon", "[Beta] with 'quotes': and colon"),
        ("First: part\n  second part", "First: part second part"),
        ("First part\n  second: part   \n    third", "First part second: part third"),
        ('Says: \\n and "x" # 12', 'Says: \\n and "x" # 12'),
        ("one: two   ", "one: two"),
        ("odd:\u2028 end: x", "odd:\u2028 end: x"),
    ],
)
def test_a_plain_description_that_is_no_yaml_is_repaired_and_told(value: str, meant: str) -> None:
    package, findings = parsed(f"---\nname: demo\ndescription: {value}\nlicense: MIT\n---\nbody\n")
    assert package is not None, findings
    assert package.description == meant
    assert package.license == "MIT"
    assert set(findings) == {"repaired"}
    assert (findings["repaired"].line, findings["repaired"].column) == (3, 14)


@pytest.mark.parametrize(
    "value",
    [
        *("[a, b]", "[]", "{a: b}", "a:b", "http://x", "'a: b'", '"a: b"', ">\n  a: b", "|\n  @a"),
        *("a `b` c", "a @b", "a [b]"),
    ],
)
def test_what_is_yaml_is_never_repaired(value: str) -> None:
    _, findings = parsed(f"---\nname: demo\ndescription: {value}\n---\nbody\n")
    assert "repaired" not in findings


@pytest.mark.parametrize(
    "value",
    [
        *("{Beta} formats", "*bold* text", "&and more: x", "!important: x", "%d: x", "'a' and b: c", '"a" and: b'),
        *("- a: b", "? a: b", "> a: b", "| a: b", "#a: b\n  c: d", ", a: b", "] a: b"),
        "[Beta] text\n\ttabbed: line",
        "x: y\n\n  after a blank: line",
    ],
)
def test_nothing_else_is_guessed(value: str) -> None:
    package, findings = parsed(f"---\nname: demo\ndescription: {value}\n---\nbody\n")
    assert package is None
    assert "repaired" not in findings


def test_other_fields_and_deeper_ones_are_not_repaired() -> None:
    for fields in ("license: a: b", "metadata:\n  description: a: b"):
        package, findings = frontmatter(fields)
        assert package is None
        assert "yaml_error" in findings


def test_a_repair_does_not_hide_another_error() -> None:
    found = refused_with("---\nname: demo\ndescription: a: b\nlicense: [x\n---\nbody\n", "yaml_error")
    assert found.line == 3
    refused_with("---\nname: demo\ndescription: a: b\ndescription: c: d\n---\nbody\n", "duplicate_key")
    refused_with("---\nname: demo\ndescription: a: b\nlicense: &a x\n---\nbody\n", "anchor")


def test_a_repair_changes_no_text_that_stands_in_quotes() -> None:
    package, findings = parsed('---\nname: demo\nlicense: "x\ndescription: a: b"\n---\nbody\n')
    assert package is None
    assert "repaired" not in findings


def test_a_repaired_name_is_checked_like_any_other() -> None:
    package, findings = parsed("---\nname: a: b\ndescription: x\n---\nbody\n")
    assert package is None
    assert {"repaired", "name_reserved"} <= set(findings)


def test_a_comment_that_may_be_text_is_told_and_left_out() -> None:
    package, findings = parsed(text(description="Fix issue #12 # 3"))
    assert package is not None
    assert package.description == "Fix issue"
    assert "#12 # 3" in findings["comment_in_value"].message
    assert not parsed(text(description='"Fix issue #12" # really'))[1]
    assert not parsed(text(description="Fix issue#12"))[1]

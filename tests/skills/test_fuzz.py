"""The reader under arbitrary bytes and under nearly valid files: our own findings, no hang, nothing made up.

About 30 seconds each on two cores; ``read_package`` is the whole way from bytes to a package.
"""

from __future__ import annotations

import hashlib
import time

import hypothesis
import pytest
from hypothesis import strategies as st

from rlm.skills import FINDINGS, Level, SkillPolicy, read_package
from rlm.skills.names import RESERVED, is_invisible

POLICY = SkillPolicy()
SECONDS = 2.0
"""Of processor time for one file of at most some ten KiB; ordinary ones take less than a millisecond."""

SETTINGS = hypothesis.settings(
    deadline=None,
    database=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow, hypothesis.HealthCheck.large_base_example],
)


def holds(data: bytes, folder: str = "demo") -> None:
    """Everything that must be true of what comes of any bytes at all."""
    before = time.process_time()
    package, findings = read_package(data, folder, POLICY)
    assert time.process_time() - before < SECONDS
    lines = data.count(b"\n") + data.count(b"\r") + 1
    assert len(findings) <= 100
    for found in findings:
        assert found.code in FINDINGS
        assert 0 <= found.line <= lines + 1
        assert found.column >= 0
        assert found.message
        assert found.message.isprintable()
        assert len(found.message) < 1000
    assert (package is None) == any(found.level is Level.ERROR for found in findings)
    if package is None:
        return
    assert package.digest == hashlib.sha256(data).hexdigest()
    assert package.name
    assert package.description == package.description.strip() != ""
    assert not [c for c in package.name if c in RESERVED or is_invisible(c)]
    assert is_text((package.license, package.compatibility, package.metadata, package.tools))
    text = data.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    assert text.endswith(package.body)
    assert "---" in text[: len(text) - len(package.body)]
    if package.sections:
        assert "".join(section.text for section in package.sections) == package.body


def is_text(value: object, depth: int = 0) -> bool:
    """Text, or lists and mappings of it, and nothing else."""
    if isinstance(value, dict):
        return depth <= 16 and all(isinstance(key, str) and is_text(item, depth + 1) for key, item in value.items())
    if isinstance(value, list | tuple):
        return depth <= 16 and all(is_text(item, depth + 1) for item in value)
    return type(value) is str and bool(value.encode("utf-8") or True)


# -- arbitrary bytes --------------------------------------------------------------------------------

VALID = b"---\nname: demo\ndescription: A demo.\nmetadata:\n  a: [b, 'c']\n---\n# Body\nDo it.\n"
pieces = st.binary(max_size=12) | st.sampled_from(
    [
        b"---\n",
        b"\r",
        b"\xef\xbb\xbf",
        b"\xff\xfe",
        b"\0",
        b": ",
        b"- ",
        b"&a ",
        b"*a",
        b"!!",
        b"[",
        b"{",
        b"|\n",
        b"'",
        b'"\\',
    ],
)


@hypothesis.settings(SETTINGS, max_examples=10_000)
@hypothesis.given(
    st.binary(max_size=300)
    | st.tuples(st.integers(0, len(VALID)), st.integers(0, 30), st.lists(pieces, max_size=4).map(b"".join)).map(
        lambda change: VALID[: change[0]] + change[2] + VALID[change[0] + change[1] :]
    )
    | st.binary(max_size=120).map(lambda inside: b"---\nname: demo\ndescription: x\n" + inside + b"\n---\nbody")
)
def test_arbitrary_bytes_are_a_package_or_a_finding(data: bytes) -> None:
    holds(data)


# -- nearly valid files -----------------------------------------------------------------------------

PLAIN = "\u2028\u2029\x85\ufeff\u200b\u202e\ue000\t#:-'\"`@[]{}&*!|>%?,=~\\é技🚀ab "
words = (
    st.sampled_from(
        [
            *(
                "demo",
                "x",
                "Use when: asked",
                "`foo` bar",
                "[Beta] x",
                "@x",
                "it's",
                "a # b",
                "true",
                "null",
                "007",
                "---",
            ),
            *(
                "'quoted'",
                '"a\\u0041\\n"',
                '"\\ud800"',
                '"\\x00"',
                "&a b",
                "*a",
                "!!str x",
                "!x y",
                "|",
                ">-",
                "<<",
                "...",
            ),
            *(
                "[a, b]",
                "{a: b}",
                "{a: {b: [c]}}",
                "[" * 20,
                "- a",
                "? a",
                "%TAG",
                "a:",
                ": a",
                "",
                "plugin:demo",
                "../x",
            ),
            *("http://a:1/b", "\u2028---\u2028", "caf\u0065\u0301", "x" * 1100, "a: b: c", "{", "}", "]", "'", '"'),
        ]
    )
    | st.text(st.sampled_from(PLAIN), max_size=14)
    | st.text(st.characters(codec="utf-8"), max_size=3)
)
keys = st.sampled_from(
    [
        *("name", "description", "license", "metadata", "allowed-tools", "compatibility", "disable-model-invocation"),
        *(
            "hooks",
            "always",
            "'name'",
            '"na\\u006de"',
            "<<",
            "? name",
            "&k name",
            "!!str name",
            "Name",
            "na me",
            "- name",
        ),
    ]
)
indents = st.sampled_from([*[""] * 6, " ", "  ", "\t", "        "])
value = st.lists(words, min_size=1, max_size=3).map(" ".join)
line = st.builds("{}{}:{}{}".format, indents, keys, st.sampled_from([*[" "] * 6, "", "\t", "  "]), value) | st.builds(
    "{}{}".format, indents, value
)
fence = st.sampled_from([*["---"] * 24, "--- ", "---\t", "----", "--", " ---", "...", "--- x", "\u2028---"])
end = st.sampled_from(["\n", "\n", "\r\n", "\r"])
start = st.sampled_from([*[b""] * 9, b"\xef\xbb\xbf", b"\xef\xbb\xbf\xef\xbb\xbf", b"\xff\xfe"])


@st.composite
def nearly_valid(draw: st.DrawFn) -> bytes:
    """A file by the grammar of a SKILL.md whose every part may be a little wrong."""
    fields = draw(st.lists(line, max_size=4))
    if draw(st.integers(0, 3)):
        fields = ["name: demo", "description: A demo.", *fields]
    parts = [draw(fence), *fields, draw(fence), *draw(st.lists(value | fence, max_size=4))]
    return draw(start) + draw(end).join(parts).encode("utf-8", "replace")


@hypothesis.settings(SETTINGS, max_examples=4_000)
@hypothesis.given(nearly_valid(), st.sampled_from(["demo", "", "..", "D\u200bemo", "\udcff"]))
def test_nearly_valid_files_are_a_package_or_a_finding(data: bytes, folder: str) -> None:
    holds(data, folder)


@pytest.mark.parametrize("data", [b"", VALID, VALID.replace(b"\n", b"\r"), b"\xef\xbb\xbf" + VALID, b"---\n" * 5000])
def test_the_check_of_the_fuzz_holds_for_files_that_are_known(data: bytes) -> None:
    holds(data)

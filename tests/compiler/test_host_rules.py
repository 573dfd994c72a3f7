"""A host's own rules as the compiler holds them: read once, named rightly, kept by the view, forgotten in the end."""

from __future__ import annotations

import gc
import os
import re
import shutil
import sys
from pathlib import Path

import pytest

import rlm
from rlm.compiler import rules
from rlm.errors import ConfigurationError, RlmError
from rlm.resources import prolog_dir
from rlm.symbolic.engine import engine
from tests.support.bare import asked

VETO = "veto(tool(git_diff), _, 'not today').\n"
BROKEN = "veto(tool(git_diff), _, 'not today') :- shell(ls).\n"

_opened: list[str] = []
_listening = False


def _heard(event: str, args: tuple[object, ...]) -> None:
    if _listening and event == "open":
        _opened.append(str(args[0]))


sys.addaudithook(_heard)


@pytest.fixture
def catalog():
    units = [rlm.Unit("tool:git_diff", description="Show what changed in git"), rlm.Unit("tool:clock")]
    with rlm.Catalog(units) as made:
        yield made


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "policy.pl"
    path.write_text(VETO)
    return path


def under(catalog: rlm.Catalog, file: object, text: str = "what changed in git") -> rlm.CompiledContext:
    return rlm.compile(catalog, text, policy=rlm.Policy(rules=file))  # type: ignore[arg-type]


def forgotten(handle: int) -> bool:
    return not engine().call("rules_forget", {"rules": handle})["forgotten"]


# -- the right name, and every word --------------------------------------------------------------------


def test_a_copy_is_known_by_its_own_name(catalog, tmp_path):
    failing = "veto(tool(git_diff), Turn, 'x') :- text(Turn, T), atom_length(T, N), N > T.\n"
    first, second = tmp_path / "first.pl", tmp_path / "second.pl"
    first.write_text(failing)
    shutil.copy(first, second)
    for path in (first, second):
        with pytest.raises(RlmError) as raised:
            under(catalog, path)
        assert path.name in str(raised.value.to_dict())


def test_warnings_are_told_by_the_view_however_often_it_is_compiled(catalog, tmp_path):
    path = tmp_path / "policy.pl"
    path.write_text(VETO + "unused(1).\n")
    for text in ("what changed in git", "git diff"):
        (warning,) = under(catalog, path, text).warnings
        assert warning.startswith(f"{path}, line 2, column 1: ")
    assert warning in str(under(catalog, path).explain())
    assert under(catalog, path).to_dict()["warnings"] == [warning]


# -- what is no file of rules --------------------------------------------------------------------------


def test_a_pipe_is_not_waited_for_and_a_device_not_read(catalog, tmp_path):
    pipe = tmp_path / "pipe.pl"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/zero"), tmp_path):
        with pytest.raises(ConfigurationError, match="not a regular file") as raised:
            under(catalog, path)
        assert raised.value.kind == "host_rules"


@pytest.mark.parametrize("path", ["a\0b.pl", "no/such/file.pl", "x" * 5000])
def test_a_name_that_names_nothing(catalog, path):
    with pytest.raises(ConfigurationError) as raised:
        under(catalog, path)
    assert raised.value.kind == "host_rules"


def test_a_file_is_read_up_to_the_limit_of_the_rules_themselves(catalog, file):
    most = re.search(r"^most_bytes\(([\d_]+)\)\.", (prolog_dir() / "rlm_host_read.pl").read_text(), re.M)
    assert most is not None
    assert int(most[1].replace("_", "")) == rules.MOST_BYTES
    file.write_text(VETO + "%" * (rules.MOST_BYTES - len(VETO)))
    assert under(catalog, file).active == ()
    file.write_text(VETO + "%" * (rules.MOST_BYTES - len(VETO) + 1))
    with pytest.raises(ConfigurationError, match="262,144"):
        under(catalog, file)


def test_what_is_no_utf_8(catalog, file):
    file.write_bytes(b"veto(tool(git_diff), _, '\xff').\n")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        under(catalog, file)


# -- read once, and kept ---------------------------------------------------------------------------------


def test_one_compile_reads_the_file_once(catalog, file):
    global _listening
    _opened.clear()
    _listening = True
    try:
        under(catalog, file)
    finally:
        _listening = False
    assert _opened.count(str(file)) == 1


@pytest.mark.parametrize("what", ["changed", "broken", "gone"])
def test_a_view_answers_by_the_rules_that_it_was_compiled_with(catalog, file, what):
    view = under(catalog, file)
    {
        "changed": lambda: file.write_text("veto(tool(clock), _, 'no clock').\n"),
        "broken": lambda: file.write_text(BROKEN),
        "gone": file.unlink,
    }[what]()
    again = view.recompile(text="show the git change")
    assert again.explain("tool:git_diff").reasons[0].kind == "vetoed"
    blocker = view.what_if("tool:git_diff").blocker
    assert blocker is not None
    assert blocker.kind == "vetoed"
    assert view.what_if("tool:clock").changes == ({"select": "tool:clock"},)
    assert view.recompile() is view


def test_a_rule_may_say_anything(catalog, file, tmp_path):
    file.write_text("veto(tool(git_diff), _, null).\n")
    view = under(catalog, file, "the clock")
    assert str(view.explain("tool:git_diff")).splitlines()[1] == "  - a rule of the host keeps it out: null"
    assert "a rule of the host keeps it out: null" in asked(view.save(tmp_path / "s.rlm"), "why(tool(git_diff))")


def test_a_changed_file_is_another_policy(catalog, file):
    before = under(catalog, file)
    assert under(catalog, file) is before
    file.write_text("veto(tool(clock), _, 'no clock').\n")
    after = under(catalog, file)
    assert (before.active, after.active) == ((), ("tool:git_diff",))
    assert before.fingerprint != after.fingerprint


def test_rules_are_forgotten_when_neither_a_view_nor_the_latest_few_hold_them(catalog, file):
    view = under(catalog, file)
    handle = view._material.host_rules.handle
    for number in range(rules._MOST_LOADED):
        file.write_text(f"{VETO}% {number}\n")
        rules.load_rules(file)
    assert len(rules._loaded) == rules._MOST_LOADED
    assert view.recompile(text="git").active == ()  # still there: the view has it
    del view
    catalog.add(rlm.Unit("tool:other"))  # drops the views that the catalog keeps
    gc.collect()
    assert forgotten(handle)

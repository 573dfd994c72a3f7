"""A saved compile, asked in a bare ``swipl`` without Python: the same words as in Python."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import rlm
from rlm.errors import ConfigurationError
from tests.plunit import swipl
from tests.support.bare import FACE, FIRST_LINE, asked, atom, bare, sealed, typed

Saved = tuple[rlm.CompiledContext, Path]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Saved:
    """A compile in which nearly everything happens that can happen to a unit."""

    def tool(name: str, description: str, **fields: Any) -> rlm.Unit:
        return rlm.Unit(f"tool:{name}", description=description, **fields)

    catalog = rlm.Catalog(
        [
            tool("git_diff", "Show what changed", requires=("tool:vault",), suggests=("tool:spelling",)),
            tool("vault", "Lock the repository"),
            tool("spelling", "Spell a word"),
            tool("git_push", "Push a git branch that changed"),
            tool("git_old_diff", "Show what changed the old way"),
            tool("git_diff3", "Show what changed in git three ways", supersedes=("tool:git_old_diff",)),
            tool("hg_diff", "Show what changed on a git branch", conflicts=("tool:git_diff",)),
            tool("deploy", "Deploy what changed", requires_capability="deploy"),
            tool("release", "Release what changed on a branch", requires=("tool:deploy",)),
            tool("wiki", "Search the wiki for what changed"),
            tool("weather", "Forecast of rain"),
            tool("calculate", "Evaluate a sum"),
            tool("offline", "Show what changed in archives", available=False),
            tool("secret", "What changed inside", visible=False),
            tool("slow", "Show what changed on a branch, slowly"),
            tool("slower", "Show what changed on a branch, slowly"),
            tool("slack", "Post to a channel"),
            rlm.Unit("skill:review", description="How to review", triggers=(rlm.Trigger(value="review"),)),
            rlm.Unit("instruction:house", content="Be brief.", activation="always"),
            rlm.Unit("mcp_tool:hub/create_issue", description="Open an issue", examples=("file a bug",)),
            rlm.Unit("resource:naïve 'quotes' \\ done", description='Straße, "branch" and 変更'),
            *(tool(f"filler_{n}", f"Another branch, number {n}") for n in range(8)),
        ]
    )
    policy = rlm.Policy(
        denied={"tool:git_p*"},
        disabled={"tool:filler_7"},
        capabilities={"tool:*", "mcp_tool:*"},
        selected={"tool:calculate"},
        candidate_limit=5,
        floor=0.36,
        relative_floor=0.1,
        budget=270,
    )
    view = rlm.compile(
        catalog,
        "review what changed on my git branch, but do not use the wiki",
        policy=policy,
        needs=["open an issue"],
        history=["will there be rain"],
    )
    return view, view.save(tmp_path_factory.mktemp("session") / "it's a session.rlm")


def ids(view: rlm.CompiledContext) -> list[str]:
    return sorted(unit.id for unit in view._snapshot.units.values())


def test_it_names_the_active_units_in_order(saved: Saved) -> None:
    view, file = saved
    printed = asked(file, "forall(active(U), (writeq(U), nl))")
    units = [re.fullmatch(r"(\w+)\((.*)\)", line) for line in printed.splitlines()]
    assert [f"{unit[1]}:{unit[2].replace(',', '/')}" for unit in units if unit] == list(view.active)


def test_every_unit_is_explained_in_the_same_words_as_in_python(saved: Saved) -> None:
    view, file = saved
    goal = "forall(member(U, [{}]), (why(U), format('~n')))"
    printed = asked(file, goal.format(", ".join(atom(id) for id in ids(view))))
    expected = {id: str(view.explain(id)).replace("packed out:", "packed_out:", 1) for id in ids(view)}
    said = dict(zip(ids(view), printed.split("\n\n"), strict=False))
    assert said == expected


def test_the_case_has_nearly_every_reason(saved: Saved) -> None:
    """Else the comparison above would compare little."""
    view, _ = saved
    kinds = {reason.kind.value for id in ids(view) for reason in view.explain(id).reasons}
    assert {
        *("pinned", "trigger", "lexical", "need", "history", "dependency_of", "suggested_by", "denied", "disabled"),
        *("capability_missing", "dependency_out", "negated", "unavailable", "superseded_by", "conflict_with"),
        *("over_candidate_limit", "below_floor", "no_evidence", "packed_out", "selected_by_host"),
    } <= kinds
    assert {view.state(id).value for id in ids(view)} == {"active", "packed_out", "rejected", "hidden"}


@pytest.mark.parametrize(
    "name", ["git_push", "deploy", "release", "wiki", "slack", "offline", "filler_7", "hg_diff", "slower", "secret"]
)
def test_what_would_show_a_unit_is_what_python_says(saved: Saved, name: str) -> None:
    view, file = saved
    policy = view.policy.model_copy(update={"budget": 100_000})  # tokens are not counted there
    change = rlm.compile(
        view._catalog, view.turn.text, policy=policy, needs=view.turn.needs, history=view.turn.history
    ).what_if(f"tool:{name}")
    printed = asked(file, f"what_if({atom(f'tool:{name}')})").strip()
    if change.blocker is None:
        would, _, listed = printed.partition(": ")
        assert would == f"tool:{name} would be chosen"
        assert listed == str(change).partition(": ")[2]
    else:
        assert printed == str(change).replace("can change shows", "can change here shows")


def unit(name: str, **fields: Any) -> rlm.Unit:
    return rlm.Unit(f"tool:{name}", description=f"The {name} thing", **fields)


def test_a_requirement_two_steps_away_is_found_and_the_changes_stand_in_pythons_order(tmp_path: Path) -> None:
    units = [unit("a", requires=["tool:b"]), unit("b", requires=["tool:c"]), unit("c", requires_capability="c")]
    policy = rlm.Policy(capabilities={"tool:*"}, denied={"tool:c"})
    view = rlm.compile(rlm.Catalog(units), "nothing of it", policy=policy)
    change = view.what_if("tool:a")
    assert [*change.changes] == [{"undeny": "tool:c"}, {"grant": "c"}, {"select": "tool:a"}]
    printed = asked(view.save(tmp_path / "s.rlm"), "what_if(tool(a))").strip()
    assert printed == str(change).replace("would be shown", "would be chosen")


def test_what_a_rule_of_the_host_vetoed_stays_vetoed(tmp_path: Path) -> None:
    rules = tmp_path / "policy.pl"
    rules.write_text("veto(tool(b), _, 'not today').\n")
    units = [unit("a", requires=["tool:b"]), unit("b"), unit("c", requires=["tool:a"])]
    view = rlm.compile(rlm.Catalog(units), "nothing of it", policy=rlm.Policy(rules=rules))
    file = view.save(tmp_path / "s.rlm")
    for name in ("a", "b", "c"):
        printed = asked(file, f"what_if(tool({name}))")
        assert printed.startswith(f"nothing that the host can change here shows tool:{name}: "), printed
        assert view.what_if(f"tool:{name}").blocker is not None
    assert asked(file, "what_if(tool(a))").strip() == str(view.what_if("tool:a")).replace(
        "can change shows", "can change here shows"
    )


def test_nothing_that_is_printed_commands_a_terminal(tmp_path: Path) -> None:
    need = "search\x1b[31m\x9b2J\u202ethings\nand\x00more"
    view = rlm.compile(rlm.Catalog([unit("a", examples=("search",))]), "the thing", needs=[need, "thing\x07"])
    printed = asked(view.save(tmp_path / "s.rlm"), "why(tool(a))")
    assert printed.rstrip("\n") == str(view.explain("tool:a"))
    assert all(char.isprintable() or char == "\n" for char in printed)
    assert "\\x7\\" in printed


def test_why_not_says_both(saved: Saved) -> None:
    _, file = saved
    printed = asked(file, "why_not(tool(git_push))")
    assert printed.startswith("tool:git_push is rejected:\n  - the host denied it\n")
    assert printed.endswith("tool:git_push would be chosen: undeny tool:git_push\n")
    assert asked(file, "why_not(tool(git_diff))") == asked(file, "why(tool(git_diff))")


def test_reasons_are_data_too(saved: Saved) -> None:
    view, file = saved
    printed = asked(
        file, "explained(tool(git_push), State, [First|_]), get_dict(kind, First, Kind), print(State-Kind), nl"
    )
    assert printed == "rejected-denied\n"
    first = view.explain("tool:git_push").reasons[0]
    assert first.kind.value == "denied"


def test_help_tells_what_can_be_asked(saved: Saved) -> None:
    done = bare("help")
    assert (done.returncode, done.stderr) == (0, "")
    for predicate in ("open_session(", "active(", "why(", "why_not(", "what_if("):
        assert predicate in done.stdout


def test_answers_leave_no_choice_behind(saved: Saved) -> None:
    _, file = saved
    goals = ["why(tool(git_diff))", "why_not(tool(weather))", "what_if(tool(weather))", "what_if(tool(git_push), _)"]
    goals += ["explained(tool(weather), _, _)", "help"]
    checks = [
        f"(call_cleanup({goal}, Done = true), Done == true -> true ; print(left({goal})), halt(3))" for goal in goals
    ]
    asked(file, *checks)


@pytest.mark.parametrize("question", ["active(_)", "why(tool(x))", "what_if(tool(x))"])
def test_without_a_session_there_is_an_error(question: str) -> None:
    done = bare(question)
    assert done.returncode != 0
    assert "open_session/1 was not called" in done.stderr


def test_an_unknown_unit_fails(saved: Saved) -> None:
    _, file = saved
    done = bare(f"open_session({atom(file)})", "why(tool(zzz))")
    assert done.returncode != 0
    assert "no unit tool:zzz\n" in done.stderr


@pytest.mark.parametrize(
    ("unit", "told"),
    [
        ("tool(git_dif)", "no unit tool:git_dif; did you mean tool(git_diff)?"),
        ("tool(wheather)", "no unit tool:wheather; did you mean tool(weather)?"),
        ("slcak", "no unit slcak; did you mean tool(slack)?"),
        ("'tool:gitdiff'", "no unit tool:gitdiff; did you mean tool(git_diff)?"),
        ("tol(slack)", "no unit tol:slack; did you mean tool(slack)?"),
        ("skill(slack)", "no unit skill:slack; did you mean tool(slack)?"),
        ("tool(create_isue)", "no unit tool:create_isue; did you mean mcp_tool(hub,create_issue)?"),
        ("mcp_tool(create_issue)", "no unit mcp_tool:create_issue; did you mean mcp_tool(hub,create_issue)?"),
        ("tool(zzz)", "no unit tool:zzz"),
        ("tool(f(x))", "a unit is wanted, such as tool(git_diff), not tool(f(x))"),
        ("'\\e[31m'", "no unit \\x1b\\[31m"),
    ],
)
def test_a_misspelt_unit_is_one_line_with_the_closest_one(saved: Saved, unit: str, told: str) -> None:
    _, file = saved
    questions = [
        f"why({unit})",
        f"why_not({unit})",
        f"what_if({unit})",
        f"what_if({unit}, _)",
        f"explained({unit}, _, _)",
    ]
    said, complained = typed(f"open_session({atom(file)})", *questions)
    assert complained.splitlines() == [told] * len(questions)
    assert said.split() == ["true.", *["false."] * len(questions)]


@pytest.mark.parametrize("unit", ["git_diff", '"tool:git_diff"', "'tool:git_diff'", 'tool("git_diff")'])
def test_what_can_mean_one_unit_only_is_that_unit(saved: Saved, unit: str) -> None:
    view, file = saved
    assert asked(file, f"why({unit})").rstrip("\n") == str(view.explain("tool:git_diff"))


def test_a_name_with_its_server_will_do(saved: Saved) -> None:
    view, file = saved
    expected = str(view.explain("mcp_tool:hub/create_issue"))
    assert asked(file, "why(create_issue)", "why('hub/create_issue')") == f"{expected}\n" * 2


def test_a_name_that_two_units_have_is_not_guessed_at(tmp_path: Path) -> None:
    units = [rlm.Unit("skill:diff", description="x"), rlm.Unit("tool:diff", description="x")]
    file = rlm.compile(rlm.Catalog(units), "nothing").save(tmp_path / "s.rlm")
    said, complained = typed(f"open_session({atom(file)})", "why(diff)")
    assert complained == "diff may be skill(diff) or tool(diff)\n"
    assert said.split() == ["true.", "false."]


def test_a_person_gets_one_line_for_a_mistake_and_no_tracer(saved: Saved, tmp_path: Path) -> None:
    """A second mistake used to end in the tracer, which took the next lines for its own commands."""
    _, file = saved
    missing, other = tmp_path / "missing.rlm", tmp_path / "s.txt"
    broken = tmp_path / "broken.rlm"
    broken.write_text(sealed(f"{FIRST_LINE}halt.\n"))
    said, complained = typed(
        "why(tool(slack))",
        *[f"open_session({atom(missing)})"] * 2,
        f"open_session({atom(other)})",
        f"open_session({atom(broken)})",
        "X is foo + 1",
        f"open_session({atom(file)})",
        "format('still here~n')",
    )
    assert "still here\ntrue." in said
    lines = [line.removeprefix("ERROR: Unhandled exception: ") for line in complained.splitlines()]
    assert lines == [
        "no session is open: open_session/1 was not called",
        *[f"there is no file {missing}"] * 2,
        f"no session: the name of {other} does not end in .rlm",
        "no session, line 2: this is no term of one",
        "is/2: Arithmetic: `foo/0' is not a function",
    ]


def test_a_program_that_loads_the_rules_keeps_its_own_flags(tmp_path: Path) -> None:
    program = tmp_path / "program.pl"
    program.write_text(f":- use_module({atom(FACE)}).\n")
    flags = "forall(member(F, [debug_on_error, backtrace]), (current_prolog_flag(F, V), print(V), nl))"
    done = swipl("-g", flags, "-g", "halt", program)
    assert done.stdout == swipl("-g", flags, "-g", "halt").stdout


def test_a_session_takes_the_place_of_the_one_before(saved: Saved, tmp_path: Path) -> None:
    _, file = saved
    other = rlm.compile(rlm.Catalog([rlm.Unit("tool:a", description="alone")]), "alone").save(tmp_path / "b.rlm")
    assert asked(file, f"open_session({atom(other)})", "forall(active(U), (print(U), nl))") == "tool(a)\n"


def test_the_same_compile_gives_the_same_file_that_only_its_owner_reads(saved: Saved, tmp_path: Path) -> None:
    view, file = saved
    again = view.save(tmp_path / "again.rlm")
    assert again.read_bytes() == file.read_bytes()
    assert again.stat().st_mode & 0o077 == 0


def test_another_suffix_is_refused_when_saving(saved: Saved, tmp_path: Path) -> None:
    view, _ = saved
    with pytest.raises(ConfigurationError) as caught:
        view.save(tmp_path / "s.pl")
    assert caught.value.kind == "wrong_suffix"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "place",
    ["nowhere/s.rlm", "folder.rlm", "file/s.rlm", "a\0b.rlm", f"{'a' * 252}.rlm", "/proc/s.rlm"],
    ids=["no folder", "a folder", "a file for a folder", "a NUL", "a long name", "a read-only place"],
)
def test_what_cannot_be_written_is_our_error_with_the_path(saved: Saved, tmp_path: Path, place: str) -> None:
    view, _ = saved
    (tmp_path / "folder.rlm").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationError) as caught:
        view.save(tmp_path / place)
    assert (caught.value.kind, caught.value.detail) == ("cannot_write", {"path": str(tmp_path / place)})
    assert f"cannot write {tmp_path / place}: " in caught.value.message
    assert ".new" not in caught.value.message
    assert sorted(file.name for file in tmp_path.iterdir()) == ["file", "folder.rlm"]


def test_the_longest_name_that_a_file_may_have_can_be_saved(saved: Saved, tmp_path: Path) -> None:
    view, file = saved
    assert view.save(tmp_path / f"{'a' * 251}.rlm").read_bytes() == file.read_bytes()


def test_a_refused_file_leaves_the_session_before_it_open(saved: Saved, tmp_path: Path) -> None:
    view, file = saved
    bad = tmp_path / "bad.rlm"
    bad.write_text(sealed(f"{FIRST_LINE}floor(300).\nhalt.\n"))
    printed = asked(
        file, f"catch(open_session({atom(bad)}), error(_, _), true)", "aggregate_all(count, active(_), N), print(N)"
    )
    assert printed == str(len(view.active))


@pytest.mark.parametrize("format", ["2", "4", "'3'", "null"])
def test_a_file_of_another_version_is_told_in_one_line_before_anything_of_it_is_read(
    tmp_path: Path, format: str
) -> None:
    other = tmp_path / "other.rlm"
    other.write_text(f"session({format},'f','english').\nfuture(term).\n")
    (line,) = typed(f"open_session({atom(other)})")[1].strip().splitlines()
    assert f"its format is {format}, and this version reads 3 only; compile and save it anew" in line


def test_a_real_file_of_the_format_before_is_no_raw_error(saved: Saved, tmp_path: Path) -> None:
    _, file = saved
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    older = tmp_path / "older.rlm"
    kept = [line for line in lines if not line.startswith(("input('withheld'", "input('abstain'"))]
    assert len(kept) == len(lines) - 2
    older.write_text("".join(kept).replace("session(3,", "session(2,", 1), encoding="utf-8")
    done = bare(f"open_session({atom(older)})")
    assert done.returncode != 0
    assert "get_dict" not in done.stderr
    assert "its format is 2" in done.stderr

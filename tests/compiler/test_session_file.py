"""A saved compile, asked in a bare ``swipl`` without Python; and files that only look like one."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

import rlm
from rlm import resources
from rlm.errors import ConfigurationError
from tests.plunit import swipl

FACE = resources.prolog_dir() / "rlm.pl"

Saved = tuple[rlm.CompiledContext, Path]


def bare(*goals: str) -> subprocess.CompletedProcess[str]:
    """Run goals, one after the other, in a Prolog that knows of no Python; the first that raises or fails ends it."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "LANG": "C.UTF-8"}
    words = [word for goal in goals for word in ("-g", goal)]
    return swipl(*words, "-g", "halt", FACE, env=environment)


def asked(file: Path, *goals: str) -> str:
    """What the goals print about a session."""
    done = bare(f"open_session({atom(file)})", *goals)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def atom(value: object) -> str:
    return "'" + str(value).replace("\\", "\\\\").replace("'", "\\'") + "'"


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Saved:
    """A compile in which nearly everything happens that can happen to a unit."""

    def tool(name: str, description: str, **fields: Any) -> rlm.Unit:
        return rlm.Unit(f"tool:{name}", description=description, **fields)

    catalog = rlm.Catalog(
        [
            tool("git_diff", "Show what changed", requires=("tool:vault",), suggests=("tool:spelling",)),
            tool("vault", "Lock the repository"),
            tool("spelling", "Check the spelling"),
            tool("git_push", "Push a git branch that changed"),
            tool("git_old_diff", "Show what changed the old way"),
            tool("git_diff3", "Show what changed in git three ways", supersedes=("tool:git_old_diff",)),
            tool("hg_diff", "Show what changed on a branch", conflicts=("tool:git_diff",)),
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
        budget=300,
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
        said = [f"{what} {value}" for each in change.changes for what, value in each.items()]
        assert sorted(listed.split(", and ")) == sorted(said)
    else:
        assert printed == str(change).replace("can change shows", "can change here shows")


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


def test_an_unknown_unit_is_an_error(saved: Saved) -> None:
    _, file = saved
    done = bare(f"open_session({atom(file)})", "why(tool(nosuch))")
    assert done.returncode != 0
    assert "tool(nosuch)" in done.stderr


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


# -- files that only look like a session ------------------------------------------------------------

FIRST = "session(1,'f','english').\n"

# what follows the first line; what the refusal must name
HOSTILE = {
    "a directive": (":- shell('touch MARK').\n", "2"),
    "an initialization": (":- initialization(shell('touch MARK')).\n", "2"),
    "a query": ("?- shell('touch MARK').\n", "2"),
    "a clause": ("active(a,full,1,[]) :- shell('touch MARK').\n", "2"),
    "a call as data": ("unit('tool:a',shell('touch MARK')).\n", "2"),
    "a call inside a list": ("unit('tool:a',[1,[shell('touch MARK')]]).\n", "2"),
    "a dict that would be evaluated": ("unit('tool:a',_{a:1}.put(shell('touch MARK'))).\n", "2"),
    "a module's goal": ("user:unit('tool:a',[]).\n", "2"),
    "an unknown term": (f"{FIRST}assertz(foo).\n", "3"),
    "another arity": ("unit('tool:a').\n", "2"),
    "an atom": ("halt.\n", "2"),
    "a variable": ("X.\n", "2"),
    "a variable inside": ("unit('tool:a',[X]).\n", "2"),
    "an operator of its own": (":- op(700,xfx,===>).\n", "2"),
    "an operator that is not there": ("unit('tool:a',a===>b).\n", "2"),
    "a broken term": ("unit('tool:a',[1,2).\n", "2"),
    "no end": ("unit('tool:a',[1,2])", "2"),
    "a partial list": ("unit('tool:a',[1|2]).\n", "2"),
    "a cycle": ("@(unit('tool:a',X),[X=[X]]).\n", "2"),
    "a deep list": (f"unit('tool:a',{'[' * 40}{']' * 40}).\n", "2"),
    "a very deep list": (f"unit('tool:a',{'[' * 1_000_000}{']' * 1_000_000}).\n", ""),
    "a very deep term": (f"unit('tool:a',{'f(' * 1_000_000}x{')' * 1_000_000}).\n", ""),
    "a term expansion": ("term_expansion(a,b).\n", "2"),
    "an include": (":- include('/etc/passwd').\n", "2"),
    "an encoding": (":- encoding(octet).\n", "2"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_what_is_not_in_the_grammar_is_refused_and_never_run(tmp_path: Path, case: str) -> None:
    text, line = HOSTILE[case]
    mark, file = tmp_path / "executed", tmp_path / "s.rlm"
    file.write_text(FIRST + text.replace("MARK", str(mark)))
    done = bare(f"catch(open_session({atom(file)}), E, (print_message(error, E), halt(7)))", "halt(8)")
    assert done.returncode == 7, f"exit {done.returncode}\n{done.stderr[-2000:]}"
    assert not mark.exists()
    assert done.stdout == ""
    if line:
        assert re.search(rf"line\({line}\)|:{line}:\d+|, line {line}\b", done.stderr), done.stderr[-2000:]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("s.pl", FIRST),
        ("s.rlm.pl", FIRST),
        ("s", FIRST),
        ("empty.rlm", ""),
        ("late.rlm", f"floor(300).\n{FIRST}"),
        ("future.rlm", "session(2,'f','english').\n"),
        ("binary.rlm", "\x00\x01\x02"),
    ],
)
def test_what_is_no_session_is_refused(tmp_path: Path, name: str, content: str) -> None:
    file = tmp_path / name
    file.write_text(content)
    done = bare(f"catch(open_session({atom(file)}), error(_, _), halt(7))", "halt(8)")
    assert (done.returncode, done.stdout) == (7, "")


def test_a_file_that_is_too_large_is_refused_unread(tmp_path: Path) -> None:
    file = tmp_path / "s.rlm"
    with file.open("wb") as hole:
        hole.truncate(300 * 1024 * 1024)
    done = bare(f"catch(open_session({atom(file)}), error(E, _), (print(E), halt(7)))")
    assert done.returncode == 7
    assert "size(314572800)" in done.stdout


def test_a_refused_file_leaves_the_session_before_it_open(saved: Saved, tmp_path: Path) -> None:
    view, file = saved
    bad = tmp_path / "bad.rlm"
    bad.write_text(f"{FIRST}floor(300).\nhalt.\n")
    printed = asked(
        file, f"catch(open_session({atom(bad)}), error(_, _), true)", "aggregate_all(count, active(_), N), print(N)"
    )
    assert printed == str(len(view.active))


@pytest.mark.parametrize(
    "lines",
    [
        "active('no id at all',full,1,[]).\n",
        "unit('tool:a',[1,2,3]).\nactive('tool:a',full,1,[]).\n",
        "unit('tool:a',5).\nrejected('tool:a',[[[kind,denied]]]).\n",
        "unit('tool:a',[]).\nactive('tool:a',full,1,[[[kind,shell]]]).\n",
        "input(capabilities,5).\nunit('tool:a',[]).\n",
        "input(rules,'/etc/passwd').\nunit('tool:a',[]).\n",
    ],
)
def test_nonsense_inside_the_grammar_is_an_error_when_it_is_asked(tmp_path: Path, lines: str) -> None:
    file = tmp_path / "s.rlm"
    file.write_text(FIRST + lines)
    goals = ("active(_)", "why(tool(a))", "what_if(tool(a))", "explained(tool(a), _, _)")
    for goal in goals:
        done = bare(f"open_session({atom(file)})", f"catch(ignore({goal}), error(_, _), true)", "halt(5)")
        assert done.returncode == 5, done.stderr

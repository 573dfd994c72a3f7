"""K37: resources are inert. They are listed when asked for, read when asked for, and never run."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies as st

import rlm
from rlm.errors import CatalogError
from rlm.skills import Skill, SkillPolicy, load
from tests.skills.shelf import text, write

SECRET = b"zq-outside-qz"
_events: list[tuple[str, str]] | None = None


def _hook(event: str, args: tuple[object, ...]) -> None:
    if _events is not None:
        first = args[0] if args else ""
        _events.append((event, first if isinstance(first, str) else ""))


sys.addaudithook(_hook)


@contextmanager
def audited() -> Iterator[list[tuple[str, str]]]:
    """Everything that this process does which Python tells its audit hooks."""
    global _events
    _events = []
    try:
        yield _events
    finally:
        _events = None


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    write(folder, "demo", text(body="Run it: !`touch pwned`. See @references/notes.md and $ARGUMENTS.\n"))
    demo = folder / "demo"
    (demo / "references").mkdir()
    (demo / "scripts").mkdir()
    (demo / "references" / "notes.md").write_text("inside")
    script = demo / "scripts" / "run.sh"
    script.write_text("#!/bin/sh\ntouch pwned\n")
    script.chmod(0o755)
    (demo / "__init__.py").write_text("open('pwned', 'w')\n")
    (demo / "conftest.py").write_text("open('pwned', 'w')\n")
    (tmp_path / "secret.txt").write_bytes(SECRET)
    return folder


@pytest.fixture
def skill(root: Path) -> Skill:
    return load(root)["demo"]


RUNNING = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.spawn", "exec", "import")


def test_k37_loading_opens_the_skills_file_and_nothing_else_and_runs_nothing(root: Path) -> None:
    load(root)
    with audited() as events:
        library = load(root)
    opened = [path for event, path in events if event == "open"]
    assert set(opened) == {str(root.resolve()), "demo", "SKILL.md"}
    assert not [event for event in events if event[0] in RUNNING]
    assert not list(root.rglob("pwned"))
    assert "!`touch pwned`" in library["demo"].package.body


def test_k37_registering_and_compiling_open_nothing_of_it_either(root: Path) -> None:
    catalog = rlm.Catalog()
    catalog.add_skills(root)
    rlm.compile(catalog, "a demo")
    with audited() as events:
        view = rlm.compile(catalog, "another demo")
    assert view.active == ("skill:demo",)
    assert not [path for event, path in events if event == "open" and "demo" in path]
    (data, _) = view.messages("openai")["messages"]
    assert data["content"].count("Run it: !`touch pwned`. See @references/notes.md and $ARGUMENTS.") == 1


def test_k37_a_resource_is_read_when_it_is_asked_for_and_then_only_that_one(skill: Skill) -> None:
    with audited() as events:
        assert skill.read("references/notes.md") == b"inside"
    opened = [path for event, path in events if event == "open"]
    assert opened[-1] == "notes.md"
    assert set(opened) == {skill.root.path, "demo", "SKILL.md", "references", "notes.md"}
    assert not [event for event in events if event[0] in RUNNING]


def test_k37_listing_reads_no_file(skill: Skill) -> None:
    with audited() as events:
        listing = skill.resources()
    assert [resource.path for resource in listing.files] == [
        "__init__.py",
        "conftest.py",
        "references/notes.md",
        "scripts/run.sh",
    ]
    assert listing.complete
    assert {path for event, path in events if event == "open"} <= {
        skill.root.path,
        "demo",
        "SKILL.md",
        "references",
        "scripts",
    }


def test_1103_resources_are_listed_up_to_the_limit_and_marked_as_incomplete(root: Path) -> None:
    folder = root / "demo" / "assets"
    folder.mkdir()
    for number in range(1099):
        (folder / f"{number:04d}.txt").write_bytes(b"")
    first = load(root)["demo"].resources()
    assert (len(first.files), first.complete) == (256, False)
    assert first == load(root)["demo"].resources()
    whole = load(root, policy=SkillPolicy(max_resources=2000))["demo"].resources()
    assert (len(whole.files), whole.complete) == (1103, True)
    exactly = load(root, policy=SkillPolicy(max_resources=1103))["demo"].resources()
    assert (len(exactly.files), exactly.complete) == (1103, True)


def test_what_is_no_file_of_the_skills_own_is_left_out_of_the_list(root: Path, tmp_path: Path, skill: Skill) -> None:
    os.mkfifo(root / "demo" / "pipe")
    (root / "demo" / "out").symlink_to(tmp_path)
    (root / "demo" / "loop").symlink_to(".")
    listing = skill.resources()
    assert not {resource.path for resource in listing.files} & {"pipe", "out", "loop"}
    assert not listing.complete


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "path",
    [
        *("../../secret.txt", "/etc/passwd", "references/../../../secret.txt", "..", ".", "", "/", "references/"),
        *("references//notes.md", "./references/notes.md", "references\\notes.md", "..\\..\\secret.txt", "a\0b"),
        *("out/secret.txt", "secret-link", "secret-absolute", "pipe", "references", "nothing", "~/x", "\ud800"),
        *("references/notes.md/x", "x" * 300, "C:/x", "%2e%2e/%2e%2e/secret.txt", "loop/" * 12 + "pipe"),
    ],
)
def test_k36_no_path_leads_out_of_the_skills_folder(root: Path, tmp_path: Path, skill: Skill, path: str) -> None:
    demo = root / "demo"
    (demo / "out").symlink_to(tmp_path)
    (demo / "secret-link").symlink_to("../../secret.txt")
    (demo / "secret-absolute").symlink_to(tmp_path / "secret.txt")
    (demo / "loop").symlink_to(".")
    os.mkfifo(demo / "pipe")
    with pytest.raises(CatalogError) as problem:
        skill.read(path)
    assert problem.value.kind == "resource_refused"
    assert problem.value.detail["code"]
    assert str(problem.value.to_dict()).isprintable()


def test_k36_a_neighbours_resources_are_not_the_skills(root: Path, skill: Skill) -> None:
    write(root, "other")
    (root / "other" / "own.txt").write_text("of the other")
    (root / "demo" / "borrowed").symlink_to("../other/own.txt")
    (root / "demo" / "near").symlink_to("references/notes.md")
    with pytest.raises(CatalogError) as problem:
        skill.read("borrowed")
    assert problem.value.detail["code"] == "link_out"
    assert skill.read("near") == b"inside"


def test_a_resource_over_the_limit_is_refused_and_not_cut(root: Path) -> None:
    (root / "demo" / "big.bin").write_bytes(b"x" * 2001)
    skill = load(root, policy=SkillPolicy(max_resource_bytes=2000))["demo"]
    with pytest.raises(CatalogError) as problem:
        skill.read("big.bin")
    assert problem.value.detail["code"] == "file_too_big"


def test_a_skill_whose_file_changed_gives_no_resources_until_it_is_loaded_again(root: Path, skill: Skill) -> None:
    write(root, "demo", text(body="Other text.\n"))
    for ask in (lambda: skill.read("references/notes.md"), skill.resources, skill.verify):
        with pytest.raises(CatalogError) as problem:
            ask()
        assert problem.value.kind == "skill_changed"
        assert "replace=True" in problem.value.message
    assert load(root)["demo"].read("references/notes.md") == b"inside"


@hypothesis.settings(max_examples=400, deadline=None, suppress_health_check=list(hypothesis.HealthCheck))
@hypothesis.given(
    st.lists(
        st.sampled_from(["..", ".", "", "references", "notes.md", "out", "up", "demo", "secret.txt", "/", "a"]),
        max_size=8,
    ).map("/".join)
    | st.text(max_size=20)
)
def test_k36_whatever_path_is_asked_for_nothing_outside_is_read(
    tmp_path_factory: pytest.TempPathFactory, path: str
) -> None:
    folder = _place(tmp_path_factory)
    skill = load(folder / "root")["demo"]
    try:
        data = skill.read(path)
    except CatalogError as problem:
        data = b"inside" if problem.kind == "resource_refused" else b""
    assert data.startswith((b"inside", b"---"))


_made: list[Path] = []


def _place(factory: pytest.TempPathFactory) -> Path:
    """A folder with a skill, its resources, and links in and out; made once."""
    if not _made:
        folder = factory.mktemp("paths")
        write(folder / "root", "demo")
        (folder / "root" / "demo" / "references").mkdir()
        (folder / "root" / "demo" / "references" / "notes.md").write_text("inside")
        (folder / "root" / "demo" / "out").symlink_to(folder)
        (folder / "root" / "demo" / "references" / "up").symlink_to("..")
        (folder / "secret.txt").write_bytes(SECRET)
        _made.append(folder)
    return _made[0]

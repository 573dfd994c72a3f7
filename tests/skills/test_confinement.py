"""K36: loading and reading are confined to the skill's own folder, whatever lies or happens there."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rlm.errors import CatalogError
from rlm.skills import Entry, Finding, Skill, SkillPolicy, SkillVerdict, load
from rlm.skills.confine import read_at
from rlm.skills.findings import Refused
from tests.skills.shelf import text, write

SECRET = "zq-the-secret-outside-qz"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A skill outside of the root, and a file with a secret."""
    folder = tmp_path / "outside"
    write(folder, "demo", text("demo", SECRET, SECRET))
    (folder / "secret.txt").write_text(SECRET)
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


def only(root: Path, **options: Any) -> Entry:
    (entry,) = load(root, **options).entries
    return entry


def refused(root: Path) -> Finding:
    """The one finding for which the only entry is refused."""
    entry = only(root)
    assert entry.verdict is SkillVerdict.REFUSED
    assert entry.skill is None
    assert SECRET not in str(entry)
    (found,) = entry.findings
    return found


def loaded(root: Path, name: str = "demo") -> Skill:
    return load(root)[name]


# -- links ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("absolute", [True, False])
def test_k36_a_link_to_a_file_outside_is_refused_with_the_remedy(root: Path, outside: Path, absolute: bool) -> None:
    target = outside / "demo" / "SKILL.md"
    (root / "demo").mkdir()
    (root / "demo" / "SKILL.md").symlink_to(target if absolute else os.path.relpath(target, root / "demo"))
    found = refused(root)
    assert found.code == "link_out"
    assert "copy" in found.fix
    assert "add the link's target" in found.fix


@pytest.mark.parametrize("absolute", [True, False])
def test_k36_a_link_to_a_folder_outside_is_refused_with_the_remedy(root: Path, outside: Path, absolute: bool) -> None:
    target = outside / "demo"
    (root / "demo").symlink_to(target if absolute else os.path.relpath(target, root))
    found = refused(root)
    assert found.code == "link_out"
    assert "add the link's target" in found.fix


@pytest.mark.parametrize(
    "target", ["/", "/proc/self/cwd", "/proc/self/root", "/dev/fd/0", "../..", "..", "../root/../outside/demo"]
)
def test_k36_no_roundabout_way_out(root: Path, outside: Path, target: str) -> None:
    (root / "demo").symlink_to(target)
    for entry in load(root).entries:
        assert entry.verdict is SkillVerdict.REFUSED
        assert SECRET not in str(entry)


def test_k36_a_link_to_a_link_to_the_outside_is_refused(root: Path, outside: Path) -> None:
    (root / ".hop").symlink_to(outside)
    (root / "demo").symlink_to(".hop/demo")
    assert refused(root).code == "link_out"


def test_k36_a_root_with_a_longer_sister_is_not_mistaken_for_her(tmp_path: Path, root: Path) -> None:
    write(tmp_path / "root-of-others", "demo", text("demo", SECRET))
    (root / "demo").symlink_to(tmp_path / "root-of-others" / "demo")
    assert refused(root).code == "link_out"


def test_links_that_lead_nowhere_or_in_circles_are_refused(root: Path) -> None:
    (root / "a").symlink_to("b")
    (root / "b").symlink_to("a")
    (root / "gone").symlink_to("nothing")
    (root / "c").mkdir()
    (root / "c" / "SKILL.md").symlink_to("SKILL.md")
    (root / "d").mkdir()
    (root / "d" / "SKILL.md").symlink_to("other.md")
    entries = load(root).entries
    assert {Path(entry.path).relative_to(root).parts[0] for entry in entries} == {"a", "b", "c", "d", "gone"}
    assert {found.code for entry in entries for found in entry.findings} == {"link_broken"}


def test_links_inside_the_root_are_followed_by_hand_and_counted_once(root: Path) -> None:
    write(root, "demo")
    write(root, ".store/kept/SKILL.md".removesuffix("/SKILL.md"), text("kept"))
    (root / "again").symlink_to("demo")
    (root / "kept").symlink_to(root / ".store" / "kept")
    (root / "self").symlink_to(".")
    library = load(root)
    assert sorted(skill.name for skill in library.skills) == ["demo", "kept"]
    assert library["kept"].file == str(root.resolve() / ".store" / "kept" / "SKILL.md")


def test_a_file_may_link_to_its_neighbour_but_not_beyond_its_own_folder(root: Path) -> None:
    write(root, "demo", file="TEXT.md")
    (root / "demo" / "SKILL.md").symlink_to("TEXT.md")
    assert only(root).verdict is SkillVerdict.LOADED
    (root / "shared.md").write_text(text("other"))
    (root / "other").mkdir()
    (root / "other" / "SKILL.md").symlink_to("../shared.md")
    told = {Path(entry.path).parent.name: entry for entry in load(root).entries}
    assert [found.code for found in told["other"].findings] == ["link_out"]


def test_the_root_itself_may_be_a_link_and_is_resolved_once(tmp_path: Path, root: Path, outside: Path) -> None:
    write(root, "demo")
    (root / "demo" / "notes.txt").write_text("inside")
    link = tmp_path / "link"
    link.symlink_to(root)
    skill = loaded(link)
    link.unlink()
    link.symlink_to(outside)
    assert skill.read("notes.txt") == b"inside"


# -- other than regular files -----------------------------------------------------------------------


def fifo(path: Path) -> None:
    os.mkfifo(path)


def bound_socket(path: Path) -> None:
    with contextlib.chdir(path.parent), socket.socket(socket.AF_UNIX) as made:
        made.bind(path.name)


def folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.timeout(20)
@pytest.mark.parametrize(("make", "said"), [(fifo, "a FIFO"), (bound_socket, "a socket"), (folder, "a folder")])
def test_k36_only_regular_files_are_read(root: Path, make: Callable[[Path], None], said: str) -> None:
    (root / "demo").mkdir()
    make(root / "demo" / "SKILL.md")
    found = refused(root)
    assert found.code == "not_a_file"
    assert said in found.message


@pytest.mark.timeout(20)
@pytest.mark.parametrize("name", ["zero", "null", "tty"])
def test_k36_a_device_is_not_even_opened(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    device = os.open("/dev", os.O_RDONLY | os.O_DIRECTORY)
    try:
        monkeypatch.setattr(os, "open", never)
        with pytest.raises(Refused) as problem:
            read_at(name, device, 1000)
    finally:
        monkeypatch.undo()
        os.close(device)
    assert problem.value.finding.code == "not_a_file"
    assert "a device" in problem.value.finding.message


def never(*_: object, **__: object) -> Any:
    raise AssertionError("this must not be called")


@pytest.mark.timeout(20)
def test_a_fifo_that_the_host_names_does_not_hang(root: Path) -> None:
    os.mkfifo(root / "SKILL.md")
    assert [found.code for found in only(root / "SKILL.md").findings] == ["not_a_file"]
    os.mkfifo(root / "pipe")
    assert [found.code for found in only(root / "pipe").findings] == ["wrong_file_name"]


def test_a_file_over_the_limit_is_not_read(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(root, "demo")
    with path.open("ab") as file:
        file.truncate(12 * 1024 * 1024)
    monkeypatch.setattr(os, "read", never)
    found = refused(root)
    assert found.code == "file_too_big"
    assert "12,582,912 bytes" in found.message


def test_a_file_that_grows_while_it_is_read_is_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(root, "demo")
    real = os.read

    def growing(descriptor: int, count: int) -> bytes:
        with path.open("ab") as file:
            file.write(b"x" * 4000)
        return real(descriptor, min(count, 1000))

    monkeypatch.setattr(os, "read", growing)
    (entry,) = load(root, policy=SkillPolicy(max_file_bytes=5000)).entries
    assert [found.code for found in entry.findings] == ["file_too_big"]


# -- what is exchanged between a check and an opening -----------------------------------------------


@contextlib.contextmanager
def swapped_before(name: str, swap: Callable[[], object]) -> Iterator[list[str]]:
    """The first real ``os.open`` of this name happens right after ``swap``."""
    real = os.open
    done: list[str] = []

    def opening(path: Any, *args: Any, **options: Any) -> int:
        if path == name and not done:
            done.append(name)
            swap()
        return real(path, *args, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "open", opening)
        yield done
    assert done, f"{name} was never opened"


def replaced(path: Path, make: Callable[[Path], object]) -> Callable[[], None]:
    def swap() -> None:
        os.rename(path, path.with_name(path.name + ".before"))
        make(path)

    return swap


@pytest.mark.timeout(20)
@pytest.mark.parametrize("made", ["link", "fifo", "folder", "socket", "nothing"])
def test_k36_a_file_exchanged_between_check_and_open_is_refused(root: Path, outside: Path, made: str) -> None:
    path = write(root, "demo")
    make: dict[str, Callable[[Path], object]] = {
        "link": lambda path: path.symlink_to(outside / "demo" / "SKILL.md"),
        "fifo": os.mkfifo,
        "folder": os.mkdir,
        "socket": bound_socket,
        "nothing": lambda path: None,
    }
    with swapped_before("SKILL.md", replaced(path, make[made])):
        found = refused(root)
    assert found.code in ("swapped", "not_a_file", "unreadable")


def test_k36_a_folder_exchanged_for_a_link_is_refused(root: Path, outside: Path) -> None:
    write(root, "demo")
    with swapped_before("demo", replaced(root / "demo", lambda path: path.symlink_to(outside / "demo"))):
        entries = load(root).entries
    assert [entry.verdict for entry in entries] == [SkillVerdict.REFUSED]
    assert SECRET not in str(entries)


def test_k36_a_folder_exchanged_after_it_was_opened_changes_nothing(root: Path, outside: Path) -> None:
    write(root, "demo", text("demo", "inside"))
    with swapped_before("SKILL.md", replaced(root / "demo", lambda path: path.symlink_to(outside / "demo"))):
        entry = only(root)
    assert entry.skill is not None
    assert entry.skill.package.description == "inside"


def test_k36_a_link_exchanged_for_one_that_leads_out_is_refused(root: Path, outside: Path) -> None:
    write(root, "demo", file="TEXT.md")
    (root / "demo" / "SKILL.md").symlink_to("TEXT.md")
    real = os.readlink

    def reading(path: Any, **options: Any) -> Any:
        target = real(path, **options)
        os.unlink(root / "demo" / "TEXT.md")
        os.symlink(outside / "secret.txt", root / "demo" / "TEXT.md")
        return target

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "readlink", reading)
        entry = only(root)
    assert entry.verdict is SkillVerdict.REFUSED
    assert SECRET not in str(entry)


@pytest.mark.timeout(60)
def test_k36_under_a_steady_race_nothing_of_the_outside_is_ever_read(tmp_path: Path, root: Path, outside: Path) -> None:
    """One thread exchanges the file and the folder for links as fast as it can, another one loads."""
    write(root, "demo", text("demo", "inside", "inside"))
    (root / "demo" / "notes.txt").write_text("inside")
    skill = loaded(root)
    file, folder = root / "demo" / "SKILL.md", root / "demo"
    stop = threading.Event()

    def exchange() -> None:
        while not stop.is_set():
            for path, target in ((file, outside / "demo" / "SKILL.md"), (folder, outside / "demo")):
                aside, link = tmp_path / "aside", tmp_path / "link"
                link.symlink_to(target)
                os.rename(path, aside)
                os.rename(link, path)
                os.unlink(path)
                os.rename(aside, path)

    exchanger = threading.Thread(target=exchange)
    exchanger.start()
    try:
        for _ in range(300):
            for entry in load(root).entries:
                assert SECRET not in str(entry)
            with contextlib.suppress(CatalogError):
                assert skill.read("notes.txt") == b"inside"
    finally:
        stop.set()
        exchanger.join()
    assert only(root).verdict is SkillVerdict.LOADED


# -- a root that is not what it was -----------------------------------------------------------------


def test_another_folder_in_the_place_of_the_root_is_refused(tmp_path: Path, root: Path, outside: Path) -> None:
    write(root, "demo")
    skill = loaded(root)
    os.rename(root, tmp_path / "moved")
    for make in (lambda: os.symlink(outside, root), lambda: os.mkdir(root)):
        make()
        with pytest.raises(CatalogError) as problem:
            skill.read("secret.txt")
        assert problem.value.kind == "skill_changed"
        root.unlink() if root.is_symlink() else root.rmdir()


@pytest.mark.parametrize("path", ["nothing", "nothing/at/all"])
def test_a_path_that_is_not_there_is_the_hosts_mistake(root: Path, path: str) -> None:
    with pytest.raises(CatalogError) as problem:
        load(root / path)
    assert problem.value.kind == "no_such_path"


def test_strange_names_of_folders_are_shown_in_plain_letters(root: Path) -> None:
    for name in (b"\xff\xfe", b"a\nb", b"\x1b[31mred", "e\u202evil".encode()):
        folder = os.fsencode(root) + b"/" + name
        os.mkdir(folder)
        Path(os.fsdecode(folder), "SKILL.md").write_text(text("demo"))
    entries = load(root).entries
    assert len(entries) == 4
    assert all(entry.path.isprintable() and entry.path.encode() for entry in entries)
    assert all(found.message.isprintable() for entry in entries for found in entry.findings)


def test_folders_and_names_have_limits(root: Path) -> None:
    for number in range(12):
        write(root, f"skill-{number:02d}")
    few = load(root, policy=SkillPolicy(max_folders=6))
    assert len(few.skills) == 5
    assert [found.code for entry in few.refused for found in entry.findings] == ["too_many"]
    none = load(root, policy=SkillPolicy(max_names=11))
    assert [found.code for entry in none.entries for found in entry.findings] == ["too_many"]


def test_depth_is_counted_from_the_root(root: Path) -> None:
    write(root, "a/b/c")
    assert load(root, policy=SkillPolicy(max_depth=3)).skills
    library = load(root, policy=SkillPolicy(max_depth=2))
    assert [found.code for entry in library.entries for found in entry.findings] == ["folder_too_deep"]


def test_a_single_file_and_a_single_folder_can_be_named(root: Path) -> None:
    path = write(root, "demo")
    for given in (path, path.parent, root):
        entry = only(given)
        assert entry.verdict is SkillVerdict.LOADED
        assert entry.path == str(path)
        assert entry.skill is not None
        assert entry.skill.source == "local:demo/SKILL.md"


def test_an_empty_folder_is_told(root: Path) -> None:
    entry = only(root)
    assert (entry.path, entry.verdict, entry.findings[0].code) == (str(root), SkillVerdict.REFUSED, "no_skill")

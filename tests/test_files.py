"""One opener for every file: what is no plain file is refused at once, by each door, with an error that names it."""

from __future__ import annotations

import ast
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import rlm
from rlm import files
from rlm.errors import FileError, RlmError
from rlm.evaluation.evaluate import read_questions
from rlm.mining.relations import calls_of_traces
from rlm.providers import ScriptedProvider
from rlm.trace.writer import Record

SECONDS = 30.0
"""No refusal takes longer, the first start of the engine included."""

TERABYTE = 1 << 40

FINAL = '{"steps": [{"op": "final", "value": 1}]}'


def fifo(path: Path) -> None:
    os.mkfifo(path)


def folder(path: Path) -> None:
    path.mkdir()


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(TERABYTE)


def socket_file(path: Path) -> None:
    import socket

    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


def missing(path: Path) -> None:
    """Nothing is there."""


def dangling(path: Path) -> None:
    path.symlink_to("nowhere")


def loop(path: Path) -> None:
    path.symlink_to(path.name)


def closed(path: Path) -> None:
    """A file of the kernel that has no reader's right, or no data without waiting."""
    path.symlink_to("/proc/self/mem")


BAD = (fifo, folder, endless, sparse, socket_file, missing, dangling, loop, closed)
"""What may stand where a file is wanted."""


def within(action: Callable[[], Any]) -> Any:
    """What an action does, which must end by itself in ``SECONDS``."""
    came: list[Any] = []

    def run() -> None:
        try:
            came.append(action())
        except BaseException as problem:  # noqa: BLE001 - the test looks at it
            came.append(problem)

    thread = threading.Thread(target=run, daemon=True)
    started = time.monotonic()
    thread.start()
    thread.join(SECONDS)
    assert came, f"it hangs after {time.monotonic() - started:.1f} s"
    return came[0]


def asked(**options: Any) -> rlm.Completion:
    return rlm.complete("x", model=ScriptedProvider([FINAL]), **options)


def recorded(place: Path) -> Path:
    path = place / "run.jsonl"
    asked(trace=path)
    return path


def replayed(path: Path) -> Any:
    """A replay of a trace whose first body is the file at ``path``."""
    trace = recorded(path.parent)
    host = json.loads(trace.read_text().splitlines()[0])["host"]
    body = path.parent / "run.jsonl.d" / host
    body.unlink()
    if os.path.lexists(path):
        path.rename(body)
    return rlm.replay(trace)


DOORS: dict[str, tuple[str, str, Callable[[Path], Any]]] = {
    "catalog": ("tools.jsonl", "catalog", lambda path: rlm.Catalog().add_file(path)),
    "relations": ("relations.jsonl", "catalog", lambda path: rlm.Catalog().add_relations(path)),
    "rules": ("rules.pl", "configuration", lambda path: rlm.compile(rlm.Catalog(), "x", policy=rlm.Policy(rules=path))),
    "context": ("app.log", "configuration", lambda path: rlm.Context.files(path)),
    "instruction": ("AGENTS.md", "configuration", lambda path: asked(instruction_files=[path])),
    "mcp": ("mcp.json", "configuration", lambda path: rlm.load_mcp_config(path)),
    "questions": ("queries.jsonl", "catalog", lambda path: read_questions(path, rlm.Catalog())),
    "trace": ("run.jsonl", "configuration", lambda path: Record(path)),
    "replay": ("run.jsonl", "configuration", lambda path: rlm.replay(path)),
    "body": ("body", "configuration", replayed),
}


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.__name__)
@pytest.mark.parametrize("door", DOORS)
def test_every_door_refuses_what_is_no_plain_file_and_names_it(door: str, bad: Any, tmp_path: Path) -> None:
    name, phase, enter = DOORS[door]
    path = tmp_path / name
    bad(path)
    problem = within(lambda: enter(path))
    assert isinstance(problem, RlmError), problem
    assert problem.phase == phase
    assert (path.name if door != "body" else "run.jsonl.d") in problem.message
    assert len(problem.message) < 500


@pytest.mark.parametrize("bad", [bad for bad in BAD if bad not in (missing, dangling, loop)], ids=lambda b: b.__name__)
def test_a_folder_of_traces_with_something_odd_in_it_is_read_without_it(
    bad: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bad(tmp_path / "a.jsonl")
    (tmp_path / "b.jsonl").write_text('{"event": "tool", "tool": "tool:x"}\n')
    assert within(lambda: list(calls_of_traces(tmp_path))) == [["tool:x"]]
    assert "a.jsonl is left out" in caplog.text


# -- the opener itself --------------------------------------------------------------------------------


def test_a_link_is_followed_unless_it_may_not_be_one(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"text")
    (tmp_path / "link").symlink_to("file")
    assert files.read(tmp_path / "link", 4) == b"text"
    with pytest.raises(FileError, match="it is a link, not a regular file") as caught:
        files.read(tmp_path / "link", 4, follow=False)
    assert (caught.value.phase, caught.value.kind) == ("file", "not_a_file")


def test_the_limit_holds_for_the_bytes_that_come_and_not_for_the_size(tmp_path: Path) -> None:
    """A file of /proc says that it has no bytes."""
    assert os.stat("/proc/self/status").st_size == 0
    assert files.read("/proc/self/status", 65_536).startswith(b"Name:")
    with pytest.raises(FileError, match="more than 10 bytes"):
        files.read("/proc/self/status", 10)
    (tmp_path / "file").write_bytes(b"x" * 11)
    with pytest.raises(FileError, match="11 bytes, more than 10"):
        files.read(tmp_path / "file", 10)
    assert files.read(tmp_path / "file", 11) == b"x" * 11


def test_a_file_that_does_not_say_its_size_is_no_context() -> None:
    with pytest.raises(RlmError, match="does not say its size"):
        rlm.Context.files("/proc/self/status")


def test_what_was_exchanged_after_the_look_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_text("x")
    looked, real = os.stat(path), os.stat
    path.unlink()
    os.mkfifo(path)
    monkeypatch.setattr(os, "stat", lambda name, **more: looked if name == path else real(name, **more))
    problem = within(lambda: files.read(path, 10))
    assert isinstance(problem, FileError)
    assert problem.why == "it is a FIFO, not a regular file"


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for number, bad in enumerate(BAD):
        bad(tmp_path / str(number))
        with pytest.raises(FileError):
            files.read(tmp_path / str(number), 10)
        with pytest.raises(FileError):
            list(files.lines(tmp_path / str(number), 10, 10))
        if bad is not missing:
            with pytest.raises(FileError):
                files.write(tmp_path / str(number), [b"x"]) if bad is not sparse else files.mapped("/dev/null")
    assert len(os.listdir("/proc/self/fd")) == before


def test_lines_are_the_lines_of_a_binary_file_and_bounded(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for data in (b"", b"\n", b"a", b"a\r\nb\rc\n\nd", b"x\x0by\x1c\x85\n" * 3, b"y" * (3 * files.PIECE) + b"\nz"):
        path.write_bytes(data)
        with path.open("rb") as file:
            assert list(files.lines(path, 10**8, 10**8)) == list(file)
    with pytest.raises(FileError, match="a line has more than"):
        list(files.lines(path, 10**8, files.PIECE))


# -- writing ------------------------------------------------------------------------------------------


def test_a_new_file_is_private_whole_or_not_there(tmp_path: Path) -> None:
    def broken() -> Iterator[bytes]:
        yield b"half"
        raise KeyError("mine")

    with pytest.raises(KeyError):
        files.write(tmp_path / "file", broken())
    with pytest.raises(KeyError):
        files.write_once(tmp_path, "file", broken())
    assert list(tmp_path.iterdir()) == []
    files.write(tmp_path / "file", [b"whole"])
    files.write_once(tmp_path, "other", [b"whole"])
    files.write_once(tmp_path, "other", [b"again"])
    for name in ("file", "other"):
        assert (tmp_path / name).read_bytes() == b"whole"
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("door", ["trace", "session", "plot"])
@pytest.mark.parametrize("bad", [fifo, folder, endless, dangling, loop], ids=lambda bad: bad.__name__)
def test_nothing_is_written_into_what_is_no_plain_file(door: str, bad: Any, tmp_path: Path) -> None:
    from rlm.cli.eval import _draw

    path = tmp_path / {"trace": "run.jsonl", "session": "s.rlm", "plot": "p.svg"}[door]
    bad(path)
    mode = os.lstat(path).st_mode
    doors: dict[str, Callable[[], Any]] = {
        "trace": lambda: asked(trace=path),
        "session": lambda: rlm.compile(rlm.Catalog(), "x").save(path),
        "plot": lambda: _draw(path, "<svg/>"),
    }
    problem = within(doors[door])
    assert isinstance(problem, rlm.errors.ConfigurationError), problem
    assert problem.kind == "cannot_write"
    assert str(path) in problem.message
    assert os.lstat(path).st_mode == mode
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


# -- nothing is opened elsewhere ----------------------------------------------------------------------

OPENERS = frozenset(
    {
        *(
            "open",
            "fdopen",
            "read_text",
            "read_bytes",
            "write_text",
            "write_bytes",
            "touch",
            "mmap",
            "memmap",
            "mkstemp",
        ),
        *("fromfile", "loadtxt", "genfromtxt", "from_file", "from_pretrained", "NamedTemporaryFile", "TemporaryFile"),
        *("copy", "copyfile", "copy2", "copytree", "move", "FileIO", "ZipFile", "is_zipfile", "getline", "getlines"),
        *("open_code", "openat", "mknod", "creat", "truncate", "sendfile", "splice", "copy_file_range"),
    }
)
"""Names of calls that open a file. ``open`` and ``copy`` without arguments are methods of something else."""

ALLOWED = {
    "files.py": "the opener",
    "skills/confine.py": "folders, one component at a time",
    "tools/child.py": "the two pipes of an isolated call",
    "providers/llama.py": "a nameless file for what the local model's process says of itself",
    "batches/worker.py": "the pipe of a worker process",
    "providers/llama_child.py": "the pipe of the local model's process",
}


def openings(source: str) -> list[tuple[int, str]]:
    """The lines of a module on which a file is opened, and by what; the null device is none."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        function = node.func
        name = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
        owner = ast.unparse(function.value) if isinstance(function, ast.Attribute) else ""
        bare = not (node.args or node.keywords)
        if owner in ("files", "Catalog") or (bare and name in ("open", "copy")) or "os.devnull" in ast.unparse(node):
            continue
        if name in OPENERS or (name == "load" and owner in ("json", "np", "tomllib", "pickle", "yaml")):
            found.append((node.lineno, ast.unparse(function)))
    return found


def test_no_other_module_opens_a_file() -> None:
    root = Path(rlm.__file__).parent
    modules = {str(path.relative_to(root)): path for path in sorted(root.rglob("*.py"))}
    assert len(modules) > 150
    assert modules.keys() >= ALLOWED.keys()
    found = {name: openings(path.read_text("utf-8")) for name, path in modules.items()}
    assert {name for name, calls in found.items() if calls and name not in ALLOWED} == set(), {
        name: calls for name, calls in found.items() if calls and name not in ALLOWED
    }


@pytest.mark.parametrize(
    "source",
    [
        *("open('a')", "os.open(path, 0)", "path.open('rb')", "path.read_text()", "Path('x').read_bytes()"),
        *("json.load(file)", "np.load(path)", "io.open(x)", "p.write_text('x')", "Tokenizer.from_file(x)"),
    ],
)
def test_the_look_for_openings_sees_them(source: str) -> None:
    assert openings(source)

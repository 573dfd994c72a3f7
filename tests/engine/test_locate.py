"""Finding SWI-Prolog: in which order, and in which words when there is none."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from rlm.errors import EngineError
from rlm.symbolic import locate
from tests.engine.conftest import ROOT, Run

Fake = Callable[..., Path]


@pytest.fixture(autouse=True)
def forgotten() -> None:
    locate._probe.cache_clear()


@pytest.fixture
def system_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RLM_SWIPL", raising=False)
    monkeypatch.setattr(locate, "_bundled", lambda: None)


def with_janus(**environment: str) -> dict[str, str]:
    """The environment of a process that finds ``janus_swi`` on its path, as if it were installed by itself."""
    bundled = locate._bundled()
    folders = [str(ROOT)] if bundled is None else [str(ROOT), str(bundled.janus.parent)]
    return {"PYTHONPATH": os.pathsep.join(folders), **environment}


@pytest.fixture
def fake(tmp_path: Path) -> Fake:
    def write(name: str = "swipl", version: str = "90209", home: str = "/nowhere", threads: str = "yes") -> Path:
        program = tmp_path / name
        said = f'PLBASE="{home}";\nPLVERSION="{version}";\nPLTHREADS="{threads}";\nPLLIBSWIPL="/nowhere/libswipl.so";'
        program.write_text(f"#!/bin/sh\ncat <<'END'\n{said}\nEND\n")
        program.chmod(0o755)
        return program

    return write


def failure() -> EngineError:
    with pytest.raises(EngineError) as caught:
        locate.find()
    return caught.value


def test_the_variable_comes_first(monkeypatch: pytest.MonkeyPatch, fake: Fake) -> None:
    program = fake("other", version="90310", home="/some/home")
    monkeypatch.setenv("RLM_SWIPL", str(program))
    found = locate.find()
    assert found == locate.Installation(program, (9, 3, 10), Path("/some/home"), Path("/nowhere/libswipl.so"))
    assert found.version_text == "9.3.10"


def test_then_the_checkouts_own_and_then_the_path(
    monkeypatch: pytest.MonkeyPatch, system_only: None, fake: Fake, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    on_path = fake()
    checkout = tmp_path / "checkout"
    monkeypatch.setattr(locate, "__file__", str(checkout / "rlm" / "symbolic" / "locate.py"))
    assert locate.find().swipl == on_path
    own = checkout / ".swipl" / "bin"
    own.mkdir(parents=True)
    fake().rename(own / "swipl")
    assert locate.find().swipl == own / "swipl"


def test_a_variable_that_names_nothing_is_an_error_and_no_fallback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLM_SWIPL", "/no/such/swipl")
    error = failure()
    assert error.kind == "prolog_missing"
    assert "/no/such/swipl" in error.message


def test_a_program_that_is_no_prolog(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "swipl"
    program.write_text("#!/bin/sh\necho hello; exit 3\n")
    program.chmod(0o755)
    monkeypatch.setenv("RLM_SWIPL", str(program))
    error = failure()
    assert error.kind == "prolog_missing"
    assert "hello" in error.message


@pytest.mark.parametrize(
    ("version", "said"), [("90004", "9.0.4"), ("80402", "8.4.2"), ("100000", "10.0.0"), ("100001", "10.0.1")]
)
def test_unsupported_versions_are_named(monkeypatch: pytest.MonkeyPatch, fake: Fake, version: str, said: str) -> None:
    monkeypatch.setenv("RLM_SWIPL", str(fake(version=version)))
    error = failure()
    assert error.kind == "prolog_unsupported"
    assert said in error.message
    assert error.detail["version"] == said


def test_one_without_threads_is_refused(monkeypatch: pytest.MonkeyPatch, fake: Fake) -> None:
    monkeypatch.setenv("RLM_SWIPL", str(fake(threads="")))
    assert failure().kind == "prolog_unsupported"


@pytest.mark.parametrize("version", ["90200", "90209", "100002"])
def test_supported_versions(monkeypatch: pytest.MonkeyPatch, fake: Fake, version: str) -> None:
    monkeypatch.setenv("RLM_SWIPL", str(fake(version=version)))
    assert locate.find().version >= (9, 2, 0)


@pytest.mark.parametrize(
    ("platform", "release", "command"),
    [
        ("linux", {"ID": "debian", "VERSION_ID": "13"}, "apt-get install swi-prolog-nox"),
        ("linux", {"ID": "debian", "VERSION_ID": "12"}, "./bootstrap"),
        ("linux", {"ID": "ubuntu", "VERSION_ID": "24.04"}, "./bootstrap"),
        ("linux", {}, "10.0.2 and later"),
        ("darwin", {}, "brew install swi-prolog"),
        ("win32", {}, "swi-prolog.org"),
    ],
)
def test_the_command_of_the_platform(
    monkeypatch: pytest.MonkeyPatch, platform: str, release: dict[str, str], command: str
) -> None:
    monkeypatch.setattr(locate.sys, "platform", platform)
    monkeypatch.setattr(locate, "_linux_release", lambda: release)
    assert command in locate.how_to_install()
    assert "conda" not in locate.how_to_install()  # it brings versions that are refused


REPORT = "print(kind(engine))"


def test_without_prolog_the_library_still_imports(python: Run) -> None:
    done = python("import rlm\n" + REPORT, env={"RLM_SWIPL": "/no/such/swipl"})
    assert done.stdout == "prolog_missing\n"


def test_another_version_than_janus_was_built_for(python: Run, fake: Fake) -> None:
    done = python(REPORT, env=with_janus(RLM_SWIPL=str(fake(version="90399"))))
    assert done.stdout == "janus_unusable\n"


def test_a_home_that_is_not_there(python: Run, fake: Fake) -> None:
    locate._probe.cache_clear()
    number = "".join(f"{part:02}" for part in locate.find().version).lstrip("0")
    done = python(
        "try: engine()\nexcept EngineError as error: print(error.kind, error.message)",
        env=with_janus(RLM_SWIPL=str(fake(version=number, home="/no/such/home"))),
    )
    assert done.stdout.startswith("janus_unusable")
    assert "/no/such/home" in done.stdout


def test_janus_not_installed(python: Run) -> None:
    done = python(
        """
        from rlm.symbolic import locate
        bundled = locate._bundled()
        locate._bundled = lambda: None
        if bundled is not None:  # its program stands for the system's
            locate._system = lambda: locate._probe(bundled.swipl)
        class Blocker:
            def find_spec(self, name, path=None, target=None):
                if name == "janus_swi":
                    raise ModuleNotFoundError(name)
        sys.meta_path.insert(0, Blocker())
        print(kind(engine))
        sys.modules["janus_swi"] = None
        print(kind(engine))
        """
    )
    assert done.stdout == "janus_missing\n" * 2


def test_an_extension_that_cannot_be_loaded(python: Run, tmp_path: Path) -> None:
    done = python(
        f"""
        import importlib.machinery
        from rlm.symbolic import locate
        found = locate.find()
        locate._system = lambda: locate._probe(found.swipl)
        package = Path({str(tmp_path)!r}, "janus_swi"); package.mkdir()
        (package / "__init__.py").write_text("")
        sys.path.insert(0, {str(tmp_path)!r})
        print(kind(engine))
        (package / ("_swipl" + importlib.machinery.EXTENSION_SUFFIXES[0])).write_text("no library")
        print(kind(engine))
        """
    )
    assert done.stdout == "janus_unusable\n" * 2


def test_a_second_try_succeeds_once_prolog_is_there(python: Run) -> None:
    done = python(
        """
        os.environ["RLM_SWIPL"] = "/no/such/swipl"
        print(kind(engine))
        del os.environ["RLM_SWIPL"]
        print(engine().call("ping", "now"))
        """
    )
    assert done.stdout == "prolog_missing\nnow\n"

"""Makes the engine's wheel from a folder that engine/fetch filled. Called by engine/build, in its tools' environment.

    python assemble.py SOURCE OUTPUT     SOURCE: from engine/fetch; OUTPUT: the folder for the wheel

Steps: copy SWI-Prolog without what prolog-rlm has no use for, index and compile its libraries, build Janus against it,
lay it out as a package, make the wheel, and have auditwheel take in the shared libraries under names of their own.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
JANUS = "janus-swi==1.5.3"

LIBRARIES_OUT = (
    "INDEX.pl",
    "backcomp.pl",
    "build",
    "check_installation.pl",
    "explain.pl",
    "git.pl",
    "help.pl",
    "http",
    "iri_scheme",
    "lynx",
    "prolog_pack.pl",
    "protobufs",
    "qpforeign.pl",
    "semweb",
    "theme",
    "threadutil.pl",
    "url.pl",
)
"""Of the main library: other dialects, building packs, help pages and the web."""

EXTENSIONS_IN = ("clib", "clpqr", "http", "libedit", "nlp", "plunit", "utf8proc")
CLIB_OUT = ("cgi.pl", "crypt.pl", "mallocinfo.pl", "prolog_server.pl", "syslog.pl", "udp_broadcast.pl", "uuid.pl")
HTTP_IN = ("json.pl",)
"""Of the web's libraries only JSON: the rest would bring OpenSSL and a server."""

FOREIGN_IN = (
    "double_metaphone",
    "files",
    "hashstream",
    "isub",
    "json",
    "libedit4pl",
    "md54pl",
    "memfile",
    "porter_stem",
    "process",
    "prolog_stream",
    "readutil",
    "rlimit",
    "sched",
    "sha4pl",
    "snowball",
    "socket",
    "streaminfo",
    "time",
    "uid",
    "unicode4pl",
    "unix",
    "uri",
)


BIGNUMS = """
    (current_prolog_flag(bounded, false) -> true ; halt(1)),
    (current_prolog_flag(gmp_version, _) -> write('GMP') ; write('LibBF'))
"""


def main(source: Path, output: Path) -> None:
    """Make the wheel and print its path."""
    with tempfile.TemporaryDirectory(prefix="engine-") as folder:
        project = Path(folder) / "project"
        package = project / "src" / "prolog_rlm_swipl"
        shutil.copytree(HERE / "src" / "prolog_rlm_swipl", package, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("pyproject.toml", "tags.py", "README.md"):
            shutil.copy(HERE / name, project)
        shutil.copy(HERE.parent / "LICENSE", project)
        libraries = [path for path in source.glob("**/lib/*-linux-gnu") if path.is_dir()]
        environment = {name: value for name, value in os.environ.items() if name not in ("SWI_HOME_DIR", "SWIPL")}
        environment["LD_LIBRARY_PATH"] = os.pathsep.join(map(str, libraries))

        home = package / "home"
        program = copy_home(source / "usr" / "lib" / "swi-prolog", home)
        index_libraries(program, home, environment)
        janus = build_janus(program, libraries, package, Path(folder))
        shutil.rmtree(home / "include")
        compile_libraries(program, home, janus, environment)
        finish_package(source, project, program, environment)
        wheel = make_wheel(project, output, environment)
    print(wheel)


def run(*command: str | Path, env: dict[str, str] | None = None) -> str:
    """The output of a command; its errors are shown, and its failure ends this process."""
    done = subprocess.run([str(word) for word in command], env=env, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(
            f"engine/build: {' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
        )
    return done.stdout


def copy_home(original: Path, home: Path) -> Path:
    """Copy SWI-Prolog's home without what is left out; returns its program."""
    shutil.copytree(original / "library", home / "library", ignore=left_out(original / "library"))
    shutil.copytree(original / "include", home / "include")
    for name in ("boot.prc", "swipl.home"):
        shutil.copy(original / name, home)
    for folder in (path.parent for path in (original / "lib").glob("*/readutil.so")):
        (home / "lib" / folder.name).mkdir(parents=True)
        for name in FOREIGN_IN:
            shutil.copy(folder / f"{name}.so", home / "lib" / folder.name)
    (program,) = (original / "bin").glob("*/swipl")
    copied = home / "bin" / program.parent.name / "swipl"
    copied.parent.mkdir(parents=True)
    shutil.copy(program, copied)
    shutil.copy(original / "bin" / "swipl.home", home / "bin")
    # Another allocator, for programs of many threads. In a Python process it is not in use either.
    run("patchelf", "--remove-needed", "libtcmalloc_minimal.so.4", copied)
    return copied


def left_out(library: Path):  # type: ignore[no-untyped-def]  # shutil's callback
    """What ``shutil.copytree`` shall not copy of the library."""

    def ignore(folder: str, names: list[str]) -> list[str]:
        place = Path(folder).relative_to(library).parts
        out = [name for name in names if name.endswith((".qlf", ".md", ".db")) or name == "INDEX.pl"]
        if not place:
            out += [name for name in names if name in LIBRARIES_OUT]
        elif place == ("dialect",):
            out += [name for name in names if name != "swi"]
        elif place == ("ext",):
            out += [name for name in names if name not in EXTENSIONS_IN]
        elif place == ("ext", "clib"):
            out += [name for name in names if name in CLIB_OUT]
        elif place == ("ext", "http", "http"):
            out += [name for name in names if name not in HTTP_IN]
        return out

    return ignore


def index_libraries(program: Path, home: Path, env: dict[str, str]) -> None:
    """Make the indexes from which procedures are loaded at their first call."""
    folders = [home / "library", *sorted(path for path in (home / "library" / "ext").rglob("*") if path.is_dir())]
    indexed = [str(folder) for folder in folders if list(folder.glob("*.pl"))]
    goal = "forall((current_prolog_flag(argv, Folders), '$member'(F, Folders)), make_library_index(F, ['*.pl']))"
    run(program, "-q", "-f", "none", "-g", goal, "-t", "halt", "--", *indexed, env=env)


def build_janus(program: Path, libraries: list[Path], package: Path, folder: Path) -> Path:
    """Build Janus for this Python against the new engine; returns its package, which lies in ``_vendor``."""
    linked = folder / "linked"
    linked.mkdir()
    for path in (found for library in libraries for found in library.glob("lib*.so.*")):
        (linked / path.name).symlink_to(path)
    (linked / "libswipl.so").symlink_to(linked / "libswipl.so.9")
    launcher = folder / "bin" / "swipl"
    launcher.parent.mkdir()
    launcher.write_text(f'#!/bin/sh\nLD_LIBRARY_PATH={linked} exec {program} "$@"\n')
    launcher.chmod(0o755)
    environment = dict(os.environ, SWIPL=str(launcher), LIBRARY_PATH=str(linked), CFLAGS="-O2 -g0")
    environment["PATH"] = f"{launcher.parent}{os.pathsep}{environment['PATH']}"
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-cache-dir", "--no-deps", "--no-build-isolation"]
    run(*pip, "--no-binary", "janus-swi", "--wheel-dir", folder, JANUS, env=environment)
    (wheel,) = folder.glob("janus_swi-*.whl")
    vendor = package / "_vendor"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(vendor, [name for name in names if re.fullmatch(r"janus_swi/.*\.(py|pl|so|pyd)", name)])
        (text,) = (archive.read(name) for name in names if name.endswith("/licenses/LICENSE"))
    (vendor / "LICENSE-janus_swi").write_bytes(text)
    return vendor / "janus_swi"


def compile_libraries(program: Path, home: Path, janus: Path, env: dict[str, str]) -> None:
    """Compile the libraries in use, and put Janus's own among them."""
    run(program, "-q", "-f", "none", HERE / "compile.pl", "--", HERE.parent / "prolog", env=env)
    # janus.pl asks, while it is compiled, whether Python is there: so it is compiled as Python loads it first.
    with tempfile.TemporaryDirectory(prefix="janus-") as folder:
        copy = Path(shutil.copytree(janus, Path(folder) / "janus_swi"))
        start = copy / "__init__.py"
        start.write_text(start.read_text().replace('"--no-signals"', '"-Dqcompile=auto", "--no-signals"'))
        run(sys.executable, "-c", "import janus_swi", env={**env, "SWI_HOME_DIR": str(home), "PYTHONPATH": folder})
        for name in ("janus.pl", "janus.qlf"):
            shutil.copy(copy / name, home / "library")
    (janus / "janus.pl").unlink()


def finish_package(source: Path, project: Path, program: Path, env: dict[str, str]) -> None:
    """Add the launcher, the licences, and the list of what is inside."""
    package = project / "src" / "prolog_rlm_swipl"
    launcher = package / "bin" / "swipl"
    launcher.parent.mkdir()
    shutil.copy(HERE / "launcher.sh", launcher)
    launcher.chmod(0o755)
    licences = project / "licenses"
    licences.mkdir()
    packages = (source / "packages.txt").read_text().split("\n")
    for name in (line.split()[0] for line in packages if line):
        shutil.copy(source / "usr" / "share" / "doc" / name / "copyright", licences / f"{name}.txt")
    shutil.move(package / "_vendor" / "LICENSE-janus_swi", licences / "janus_swi.txt")
    version = run(program, "-q", "-f", "none", "-g", "current_prolog_flag(version, V), print(V)", "-t", "halt", env=env)
    number = int(version)
    state = {
        "swi_prolog": f"{number // 10_000}.{number // 100 % 100}.{number % 100}",
        "janus": JANUS.partition("==")[2],
        "bignums": run(program, "-q", "-f", "none", "-g", BIGNUMS, "-t", "halt", env=env),
        "packages": ", ".join(line for line in packages if line),
    }
    (package / "build.json").write_text(json.dumps(state, indent=1) + "\n", encoding="utf-8")


def make_wheel(project: Path, output: Path, env: dict[str, str]) -> Path:
    """Make the wheel and give it its libraries; returns its path in ``output``."""
    raw, repaired = project / "raw", project / "repaired"
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", raw, project)
    (wheel,) = raw.glob("*.whl")
    repair = [sys.executable, "-m", "auditwheel", "repair", "--strip", "--wheel-dir", repaired]
    run(*repair, wheel, env=env)
    (wheel,) = repaired.glob("*.whl")
    output.mkdir(parents=True, exist_ok=True)
    name, _, *tags = wheel.name.split("-")
    for older in output.glob(f"{name}-*-{tags[0]}-{tags[1]}-*.whl"):
        older.unlink()
    return Path(shutil.copy(wheel, output))


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve())

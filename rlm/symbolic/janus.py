"""The only importer of ``janus_swi``: what would end the process is looked at before it can.

Prolog aborts when its home is missing or belongs to another version, so library and home are compared
first, through ``ctypes``, where a mistake is an exception. For the same reason Prolog is initialised here
and not by the import: with that home, without signal handlers, and without the user's ``init.pl``.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.machinery
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import cast

from rlm.errors import EngineError
from rlm.imports import sigint_waits, whole
from rlm.symbolic import locate

_SYSTEM_VERSION = 1  # PL_VERSION_SYSTEM of SWI-Prolog.h

_argv: ctypes.Array[ctypes.c_char_p] | None = None  # Prolog keeps pointing at it


def load() -> ModuleType:
    """The module ``janus_swi``, with Prolog initialised in this process; the calling thread becomes its ``main``.

    Raises:
        EngineError: ``prolog_missing``, ``prolog_unsupported``, ``janus_missing`` or ``janus_unusable``.
    """
    already = sys.modules.get("janus_swi")
    if already is not None:
        return already
    installation = locate.find()
    package = installation.janus or _package()
    with whole(), sigint_waits():  # a Ctrl-C in the middle would leave half a Prolog
        if sys.platform != "win32":
            _initialise(_library(package, installation), package, installation)
        try:
            if installation.janus is not None:
                return _import_apart(installation.janus)
            import janus_swi  # type: ignore[import-untyped, unused-ignore]

            return cast(ModuleType, janus_swi)
        except Exception as problem:  # noqa: BLE001 - whatever the import of an extension can say
            raise _unusable(f"{type(problem).__name__}: {problem}", installation) from None


def _package() -> Path:
    try:
        spec = importlib.util.find_spec("janus_swi")
    except (ImportError, ValueError):
        spec = None
    if spec is None or not spec.submodule_search_locations:
        raise EngineError(
            "janus_missing",
            "the Python package janus_swi is not installed: pip install --no-cache-dir 'prolog-rlm[system-swipl]' "
            "(it is compiled, so a C compiler and swipl must be on PATH)",
        )
    return Path(spec.submodule_search_locations[0])


def _import_apart(package: Path) -> ModuleType:
    """Import the bundled engine's ``janus_swi`` from its folder, which is on no path that others search."""
    spec = importlib.machinery.PathFinder.find_spec("janus_swi", [str(package.parent)])
    if spec is None or spec.loader is None:
        raise ImportError(f"{package} is no Python package")
    module = importlib.util.module_from_spec(spec)
    sys.modules["janus_swi"] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules["janus_swi"]
        raise
    return module


def _library(package: Path, installation: locate.Installation) -> ctypes.CDLL:
    """The extension, loaded but not yet started, once it is sure that starting it is safe."""
    extensions = [package / f"_swipl{suffix}" for suffix in importlib.machinery.EXTENSION_SUFFIXES]
    extension = next((path for path in extensions if path.is_file()), None)
    if extension is None:
        raise _unusable(f"{package} has no extension for this Python", installation)
    try:
        library = ctypes.CDLL(str(extension), mode=ctypes.RTLD_GLOBAL)
    except OSError as problem:
        raise _unusable(str(problem), installation) from None
    linked = locate.version_of(library.PL_version_info(_SYSTEM_VERSION))
    if linked != installation.version:
        raise _unusable(f"it is linked with SWI-Prolog {'.'.join(map(str, linked))}", installation)
    if not (installation.home / "boot.prc").is_file():
        raise _unusable(f"{installation.home} has no boot.prc", installation)
    return library


def _initialise(library: ctypes.CDLL, package: Path, installation: locate.Installation) -> None:
    global _argv
    words = ["swipl", "-q", "-f", "none", "-g", "true", "--no-signals", f"--home={installation.home}"]
    if installation.janus is None:  # the bundled engine has janus.pl among its libraries
        words += ["-p", f"library={package}"]
    _argv = (ctypes.c_char_p * (len(words) + 1))(*(word.encode() for word in words), None)
    if not library.PL_is_initialised(None, None):
        library.PL_initialise(len(words), _argv)


def _unusable(why: str, installation: locate.Installation) -> EngineError:
    detail = {"swipl": str(installation.swipl), "version": installation.version_text, "home": str(installation.home)}
    if installation.janus is not None:
        remedy = f"Install it again: pip install --force-reinstall --no-cache-dir {locate.BUNDLE}"
        return EngineError("janus_unusable", f"the package {locate.BUNDLE} does not work: {why}. {remedy}", detail)
    return EngineError(
        "janus_unusable",
        f"the Python package janus_swi does not fit {installation.swipl} (SWI-Prolog "
        f"{installation.version_text}): {why}. Install it again with that swipl first on PATH: "
        "pip install --force-reinstall --no-cache-dir janus-swi",
        detail,
    )

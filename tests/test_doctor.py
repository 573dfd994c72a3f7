"""The doctor: it sees what is there, says how to get what is not, and survives what kills others."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path

import pytest

from rlm.cli import doctor
from rlm.compiler.tokens import vocabulary
from rlm.compiler.tokens.vocabulary import VOCABULARIES, _package_data
from rlm.symbolic import locate


def test_a_working_installation_is_ok() -> None:
    state = doctor.report()
    assert state["ok"], state["missing"]
    assert state["prolog"]["works"]
    assert state["prolog"]["error"] is None
    assert state["versions"]["swi_prolog"].count(".") == 2
    assert state["vocabularies"]["o200k_base"]["exact"]
    assert state["local_model"]["available"], state["local_model"]
    assert Path(state["paths"]["rules"]).is_dir()
    assert {"local", "offline", "semantic", "mcp"} <= set(state["extras"])
    json.dumps(state)


def test_it_says_which_engine_runs_and_why(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    found = locate.find()
    state = doctor.report()
    assert (state["prolog"]["engine"], state["prolog"]["reason"]) == (found.kind, found.reason)
    doctor.show(state)
    printed = capsys.readouterr().out
    assert doctor.ENGINES[found.kind] in printed
    assert found.reason in printed
    monkeypatch.setenv("RLM_SWIPL", str(found.swipl))
    assert doctor.report()["prolog"]["reason"] == "RLM_SWIPL names it"


def test_a_missing_prolog_is_told_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RLM_SWIPL", "/nowhere/swipl")
    state = doctor.report()
    assert not state["ok"]
    assert state["prolog"]["error"]["kind"] == "prolog_missing"
    doctor.show(state)
    printed = capsys.readouterr().out
    assert "Missing: SWI-Prolog" in printed
    assert locate.how_to_install() in printed


def test_what_is_missing_is_told_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("RLM_LOCAL_MODEL", "/nowhere/model.gguf")
    monkeypatch.setattr(doctor, "installed", lambda package: None if package in ("mcp", "wordllama") else "1")
    doctor.show(doctor.report())
    printed = capsys.readouterr().out
    assert printed.count("pip install 'prolog-rlm[mcp]'") == 1
    assert printed.count("pip install 'prolog-rlm[semantic]'") == 1
    assert printed.count("/nowhere/model.gguf") == 1


def test_a_prolog_that_kills_its_process_does_not_kill_the_doctor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_TRY", "import os; os.abort()")
    state = doctor.report()
    assert not state["ok"]
    assert state["prolog"]["error"]["detail"] == {"returncode": -6}


def test_without_a_vocabulary_counts_are_said_to_be_estimates(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(doctor.importlib.util, "find_spec", lambda name: None)
    state = doctor.report()
    assert state["vocabularies"]["o200k_base"] == {"source": "estimate", "exact": False}
    assert any("offline" in thing["get"] and not thing["needed"] for thing in state["missing"])


def test_tiktokens_own_cache_comes_first_and_a_damaged_file_in_it_counts_for_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    for name, known in VOCABULARIES.items():
        packed = _package_data("bpe_openai", f"data/{name}.tiktoken.gz")
        assert packed is not None
        cached = tmp_path / hashlib.sha1(known.url.encode()).hexdigest()
        cached.write_bytes(gzip.decompress(packed)[: -1 if name == "cl100k_base" else None])
    found = doctor.report()["vocabularies"]
    assert found["o200k_base"] == {"source": "tiktoken's cache", "exact": True}
    assert found["cl100k_base"] == {"source": "bpe-openai", "exact": True}


def test_a_damaged_vocabulary_alone_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(vocabulary, "_package_data", lambda package, path: b"\x1f\x8b damaged")
    (tmp_path / hashlib.sha1(VOCABULARIES["cl100k_base"].url.encode()).hexdigest()).touch()
    state = doctor.report()
    assert state["vocabularies"]["cl100k_base"] == {"source": "estimate", "exact": False}
    assert any("offline" in thing["get"] and not thing["needed"] for thing in state["missing"])


def test_a_local_model_that_is_no_file_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLM_LOCAL_MODEL", "/nowhere/model.gguf")
    model = doctor.report()["local_model"]
    assert not model["available"]
    assert "/nowhere/model.gguf" in model["why"]

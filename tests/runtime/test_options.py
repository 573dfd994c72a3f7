"""The host's word: what is wrong with it is said before anything is sent, and by name."""

from __future__ import annotations

import re
import time

import pytest

import rlm
from rlm.agent.options import Options
from rlm.agent.toolbox import Toolbox
from rlm.errors import ConfigurationError
from rlm.model.plan import PlanError
from rlm.providers import ScriptedProvider
from tests.runtime.actors import final, observe, plan

WRONG = [
    ({"tools": 5}, "tools"),
    ({"tools": "f"}, "tools"),
    ({"tools": [5]}, "neither a function"),
    ({"tool_registry": 5}, "Registry"),
    ({"bindings": [len]}, "bindings"),
    ({"catalog": 5}, "catalog"),
    ({"policy": 5}, "policy"),
    ({"prompt_compile_mode": "compield"}, "compiled"),
    ({"prompt_compile_options": {"sensros": {}}}, "sensor"),
    ({"prompt_compile_options": {"policy": rlm.Policy()}}, "policy"),
    ({"signals": {"x": object()}}, "signals"),
    ({"needs": "x"}, "needs"),
    ({"sensor": 5}, "a Sensor is wanted"),
    ({"prompt_compile_options": {"sensor": 5}}, "a Sensor is wanted"),
    ({"needs": ["\ud800"]}, "needs"),
    ({"skills": "of"}, "off"),
    ({"disable": [5]}, "disable"),
    ({"child_policy": 5}, "child_policy"),
    ({"budget": {"time_limti": 5}}, "time_limit"),
    ({"budget": 5}, "budget"),
    ({"instruction": 5}, "instruction"),
    ({"instruction_files": "AGENTS.md"}, "instruction_files"),
    ({"schema": {"type": "nonsense"}}, "schema"),
    ({"schema": {"$ref": "http://127.0.0.1:1/x"}}, "schema"),
    ({"schema": "string"}, "schema"),
    ({"authority": 5}, "authority"),
    ({"approve": 5}, "approve"),
    ({"prices": {"m": 5}}, "prices"),
    ({"retry": 5}, "retry"),
    ({"cancel": 5}, "CancelToken"),
    ({"trace": "run.txt"}, "jsonl"),
    ({"redact": 5}, "redact"),
    ({"on_event": 5}, "on_event"),
    ({"max_repairs": "x"}, "max_repairs"),
    ({"temperature": 5}, "temperature"),
    ({"seed": "x"}, "seed"),
    ({"modle": "x"}, "model"),
]


@pytest.mark.parametrize(("options", "named"), WRONG, ids=lambda value: re.sub(r" at 0x\w+", "", str(value))[:40])
def test_a_wrong_option_is_named_before_anything_is_sent(options, named):
    script = ScriptedProvider([plan(final(1))])
    with pytest.raises(ConfigurationError, match=named):
        rlm.complete("x", model=script, **options)
    assert script.requests == []


@pytest.mark.parametrize("query", [5, "", " ", "lone \ud800 surrogate"])
def test_a_query_that_is_none_is_refused_with_a_trace_and_without(query, tmp_path):
    for trace in ({}, {"trace": tmp_path / "run.jsonl"}):
        with pytest.raises(ConfigurationError):
            rlm.complete(query, model=ScriptedProvider([]), **trace)


@pytest.mark.parametrize("given", [5, None, "final", []])
def test_what_is_no_plan_is_a_plan_error(given):
    with pytest.raises(PlanError):
        rlm.run_plan(given)


def test_a_plan_may_be_its_list_of_steps():
    assert rlm.run_plan([final(1)]).unwrap() == 1


def test_what_the_host_needs_is_evidence_for_every_compile_however_it_is_said():
    assert Options.of(needs=["a"], prompt_compile_options={"needs": ["b"]}).first_needs == ("a", "b")
    catalog = rlm.Catalog()
    catalog.add(rlm.Unit("instruction:zebra", description="How zebras are counted.", content="By stripes."))
    for options in ({"needs": ["count zebras"]}, {"prompt_compile_options": {"needs": ["count zebras"]}}):
        script = ScriptedProvider([plan(observe("x", needs=["nothing of the kind"])), plan(final(1))])
        rlm.complete("unrelated", model=script, catalog=catalog, **options).unwrap()
        assert [b"By stripes." in body for body in script.bodies] == [True, True]
    catalog.destroy()


def test_five_thousand_tools_are_no_work_to_speak_of():
    made = [rlm.tool(effect="read", name=f"tool_{number}")(lambda: 1) for number in range(5000)]
    started = time.process_time()
    box = Toolbox(made, {})
    assert time.process_time() - started < 0.2
    assert len(box.all) == 5000
    with pytest.raises(ConfigurationError, match="twice"):
        Toolbox([*made, made[77]], {})

"""P01-P25 where they speak of a run: what the planner sees, and that showing is not executing."""

from __future__ import annotations

import json

import pytest

import rlm
from rlm.errors import BudgetError, ConfigurationError
from rlm.providers.scripted import ScriptedProvider
from tests.acceptance.shelf import REVIEW, UNRELATED, git_diff, project_search
from tests.runtime.actors import Cast, final, model, observe, plan, provider, tool, var
from tests.support.loopback import Loopback, stalls

DONE = plan(final("done"))
DIFF = '"base"'
SEARCH = '"pattern"'


def completed(server: Loopback, wire: str, query: str = REVIEW, script: object = DONE, **options: object):
    server.script(script)
    options.setdefault("tools", [git_diff, project_search])
    return rlm.complete(query, model=provider(server, wire), **options)


def schemas(server: Loopback, at: int = -1) -> list[str]:
    """The tools whose schemas stand in the instructions or data of a request."""
    shown = server.requests[at].system_text + server.requests[at].user_text
    return [name for name in ("git_diff", "project_search") if f"## {name}\n" in shown]


def test_p01_the_request_shows_what_the_query_needs(server, wire):
    result = completed(server, wire)
    assert schemas(server) == ["git_diff"]
    assert "project_search" not in server.requests[0].all_text
    assert result.executable_only == ()
    assert result.prompt_projection.tool_count == 1


def test_p02_a_hidden_tool_stays_executable(server, wire):
    completed(server, wire, UNRELATED)
    assert schemas(server) == []
    result = rlm.run_plan(
        json.loads(plan(tool("project_search", "x", pattern="a"), final(var("x")))), tools=[git_diff, project_search]
    )
    assert result.unwrap() == "20 places of a"


def test_p03_all_tools_come_through_the_same_compiler(server, wire):
    compiled = completed(server, wire, UNRELATED)
    every = completed(server, wire, UNRELATED, prompt_compile_mode="all_tools")
    assert schemas(server) == ["git_diff", "project_search"]
    assert type(every.prompt_projection) is type(compiled.prompt_projection)
    assert every.prompt_projection.fingerprint != compiled.prompt_projection.fingerprint


@pytest.mark.parametrize("mode", ["compiled", "all_tools"])
def test_p04_what_is_not_granted_is_absent_in_either_mode(server, wire, mode):
    policy = rlm.Policy(capabilities={"tool:project_search"})
    completed(server, wire, policy=policy, prompt_compile_mode=mode)
    assert "git_diff" not in server.requests[0].all_text


def test_p06_p07_schemas_are_called_active_and_stand_once(server, wire):
    completed(server, wire)
    said = server.requests[0]
    assert "# Active tool schemas\n" in said.system_text
    assert "Registered" not in said.all_text
    assert said.all_text.count(git_diff.description) == 1
    assert (said.system_text + said.user_text).count(DIFF) == 1
    assert "tools" not in said.json


def _fails(server):
    return "no plan, ever"


@pytest.mark.parametrize("how", ["p08_success", "p08_planner_failure", "p09_timeout", "p10_cancellation"])
def test_p08_p09_p10_an_ephemeral_catalog_is_gone(server, wire, how):
    before = rlm.Catalog.living()
    if how == "p08_success":
        assert completed(server, wire).status == "ok"
    elif how == "p08_planner_failure":
        result = completed(server, wire, script="no plan, ever")
        assert (result.status, result.error["kind"]) == ("failed", "no_valid_plan")
    elif how == "p09_timeout":
        result = completed(server, wire, script=stalls(), budget={"time_limit": 0.3})
        assert (result.status, result.error["kind"]) == ("partial", "timeout")
    else:
        token = rlm.CancelToken()
        server.script(lambda request: (token.cancel(), DONE)[1])
        result = rlm.complete(REVIEW, model=provider(server, wire), tools=[git_diff], cancel=token)
        assert (result.status, result.error["kind"]) == ("partial", "cancelled")
    assert rlm.Catalog.living() == before


def test_p11_a_catalog_of_the_host_is_used_as_it_is(server, wire):
    with rlm.Catalog() as catalog:
        catalog.add_tools([git_diff])
        revision, ids = catalog.revision, set(catalog.units)
        result = completed(server, wire, "find text in files of the project", catalog=catalog, tools=[project_search])
        assert (catalog.revision, set(catalog.units), catalog.destroyed) == (revision, ids, False)
        assert "project_search" not in server.requests[0].all_text
        assert result.executable_only == ("tool:project_search",)


def test_p12_other_units_reach_the_request(server, wire):
    with rlm.Catalog(
        [rlm.Unit("instruction:git", description="How to review a git change", content="Mind the tests.")]
    ) as c:
        completed(server, wire, catalog=c, tools=[])
    assert "Mind the tests." in server.requests[0].all_text


def test_p13_what_cannot_fit_fails_before_anything_is_sent(server, wire):
    with rlm.Catalog([rlm.Unit("instruction:long", content="word " * 9000, activation="always")]) as catalog:
        result = completed(server, wire, catalog=catalog, tools=[], policy=rlm.Policy(budget=4000))
    assert (result.status, result.error["phase"], result.error["kind"]) == ("failed", "budget", "over_budget")
    assert result.error["detail"]["missing_tokens"] > 0
    assert server.requests == []
    with pytest.raises(BudgetError):
        result.unwrap()


def test_p18_a_model_cannot_name_a_hidden_tool(server, wire):
    calls = []

    @rlm.tool(effect="read")
    def secret_vault(key: str) -> str:
        """Open the vault of the bank."""
        calls.append(key)
        return key

    lines = iter([plan(tool("secret_vault", "x", key="k"), final(var("x"))), DONE])
    result = completed(server, wire, script=lambda _: next(lines), tools=[git_diff, secret_vault])
    assert result.unwrap() == "done"
    assert calls == []
    assert "secret_vault" not in json.dumps(server.requests[0].json)
    assert "tool_not_visible" in server.requests[1].user_text or "secret_vault" in server.requests[1].user_text
    host = rlm.run_plan(json.loads(plan(tool("secret_vault", "x", key="k"), final(var("x")))), tools=[secret_vault])
    assert (host.unwrap(), calls) == ("k", ["k"])


def test_p18_the_schema_of_the_reply_lists_the_callable_tools_only(server):
    completed(server, "openai")
    schema = json.dumps(server.requests[0].json["response_format"])
    assert '"git_diff"' in schema
    assert "project_search" not in schema


def test_p19_an_unknown_mode_fails_before_any_request(server, wire):
    with pytest.raises(ConfigurationError) as raised:
        completed(server, wire, prompt_compile_mode="everything")
    assert raised.value.kind == "invalid_prompt_compile_mode"
    assert server.requests == []


def test_p20_bindings_are_executable_only(server, wire):
    def hidden_helper(x: int) -> int:
        """Review the git change of the working tree."""
        return x + 1

    result = completed(server, wire, bindings={"hidden_helper": hidden_helper}, authority="allow")
    assert "hidden_helper" not in server.requests[0].all_text
    assert result.executable_only == ("tool:hidden_helper",)
    done = rlm.run_plan(
        json.loads(plan(tool("hidden_helper", "x", x=1), final(var("x")))),
        bindings={"hidden_helper": hidden_helper},
        authority="allow",
    )
    assert done.unwrap() == 2


def test_p21_the_result_carries_the_projection_and_nothing_hidden(server, wire):
    result = completed(server, wire)
    assert result.prompt_projection.active_units[-1] == "tool:git_diff"
    text = json.dumps(result.to_dict())
    assert result.to_dict()["type"] == "completion"
    assert "project_search" not in text
    assert "handler" not in text
    assert len(result.prompt_projection.fingerprint) == 64


def test_p24_words_of_a_model_or_a_user_select_nothing(server, wire):
    words = 'set selected=["tool:project_search"], denied=["tool:git_diff"], activation always, mode all_tools'
    lines = iter([plan(observe(words, needs=[words])), DONE])
    completed(
        server,
        wire,
        f"{REVIEW}. {words}",
        script=lambda _: next(lines),
        policy=rlm.Policy(capabilities={"tool:git_diff"}),
    )
    assert schemas(server, 0) == schemas(server, 1) == ["git_diff"]


def test_p17_stateless_compiles_show_hide_and_show(server, wire):
    for query, there in ((REVIEW, ["git_diff"]), (UNRELATED, []), (REVIEW, ["git_diff"])):
        completed(server, wire, query)
        assert schemas(server) == there


def test_a_need_brings_a_tool_on_the_next_turn(server, wire):
    lines = iter([plan(observe("x", needs=["find text in the files of a project"])), DONE])
    completed(server, wire, script=lambda _: next(lines))
    assert "project_search" not in schemas(server, 0)
    assert "project_search" in schemas(server, 1)


def test_k20_outside_a_run_the_callers_messages_and_nothing_else(server, wire):
    server.script("fine")
    said = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "hello"}]
    assert rlm.chat(said, model=provider(server, wire)) == "fine"
    request = server.requests[0]
    assert request.system_text == "Be kind."
    assert request.user_text == "hello"
    assert set(request.json) <= {"model", "messages", "system", "max_tokens", "max_completion_tokens"}


@pytest.mark.parametrize("kind", ["async", "sync"])
def test_k20_inside_a_run_a_handlers_request_carries_the_permanent_context(server, wire, kind):
    if kind == "async":

        @rlm.tool(effect="read")
        async def ask_someone(question: str) -> str:
            """Ask somebody a question about a git change review."""
            return await rlm.achat([{"role": "user", "content": question}])

    else:

        @rlm.tool(effect="read")
        def ask_someone(question: str) -> str:
            """Ask somebody a question about a git change review."""
            return rlm.chat([{"role": "user", "content": question}])

    planner = [plan(tool("ask_someone", "x", question="why?"), final(var("x")))]
    server.script(Cast(planner=planner, guest="because"))
    result = rlm.complete(REVIEW, model=provider(server, wire), tools=[ask_someone], instruction="Mind the gap.")
    assert result.unwrap() == "because"
    inner = server.requests[1]
    assert inner.user_text == "why?"
    assert inner.system_text.count("## skill:rlm-operate\n") == 1
    assert inner.system_text.count("Mind the gap.") == 1
    assert result.usage.model_calls == 2
    assert result.usage.total_tokens == server.tokens_in + server.tokens_out


def test_k20_reduce_by_a_model_carries_it(server, wire):
    step = {"op": "reduce", "over": ["a", "b"], "with": "model", "prompt": "Join them.", "bind": "x"}
    server.script(Cast(planner=[plan(step, final(var("x")))], leaf="ab"))
    assert rlm.complete("x", model=provider(server, wire)).unwrap() == "ab"
    assert server.requests[1].system_text.count("## skill:rlm-operate\n") == 1


def test_a_run_without_a_model_says_so():
    with pytest.raises(ConfigurationError) as raised:
        rlm.complete("x")
    assert raised.value.kind == "no_model"


def test_a_misspelt_option_is_an_error_that_suggests():
    with pytest.raises(ConfigurationError, match="did you mean 'budget'"):
        rlm.complete("x", model=ScriptedProvider([]), bugdet={})
    with pytest.raises(ConfigurationError, match="budget="):
        rlm.complete("x", model=ScriptedProvider([]), timeout=3)


def test_a_leaf_that_must_follow_a_schema_is_asked_again(server):
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    server.script(
        Cast(
            planner=[plan(model("count", "x", schema=schema), final(var("x", "n")))], leaf=['{"n": "two"}', '{"n": 2}']
        )
    )
    assert rlm.complete("x", model=provider(server, "openai")).unwrap() == 2
    assert "does not follow the schema" in server.requests[2].user_text


def test_a_catalog_brings_the_handlers_of_its_tools_and_a_tool_that_is_given_again_goes_before(server):
    with rlm.Catalog() as catalog:
        catalog.add_tools([git_diff, project_search])
        steps = plan(tool("git_diff", "d"), final(var("d")))
        server.script([steps, steps])
        assert rlm.complete(REVIEW, model=provider(server, "openai"), catalog=catalog).unwrap() == "diff against main"

        @rlm.tool(effect="read", name="git_diff", description=git_diff.description)
        def another(base: str = "main") -> str:
            return "the host's other one"

        result = rlm.complete(REVIEW, model=provider(server, "openai"), catalog=catalog, tools=[another])
        assert result.unwrap() == "the host's other one"

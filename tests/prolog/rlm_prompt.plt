:- encoding(utf8).
:- use_module(library(plunit)).
:- use_module('../../prolog/rlm_prompt').

:- begin_tests(rlm_prompt).

with_tools(Goal) :-
    setup_call_cleanup(
        ( prompt_catalog_create(C),
          prompt_catalog_register(C, _{unit: tool(git_diff), description: 'Show what changed in git'}, _{}),
          prompt_catalog_register(C, _{unit: tool(project_search), description: 'Search a project'}, _{}) ),
        call(Goal, C),
        prompt_catalog_destroy(C)).

active(Input, Options, Active, C) :-
    prompt_compile(C, Input, Options, Compiled),
    get_dict(active, Compiled, Active).

test(p01_compile, A == [tool(git_diff)]) :- with_tools(active(_{text: 'review my git change'}, _{}, A)), !.
test(p03_all_tools, A == [tool(git_diff), tool(project_search)]) :-
    with_tools(active(_{text: 'review my git change'}, _{mode: all_tools}, A)), !.
test(p04_no_capability, A == []) :-
    with_tools(active(_{text: 'review my git change'}, _{capabilities: []}, A)), !.
test(p16_pinned, A == [tool(house)]) :-
    with_tools(pinned(A)), !.

pinned(A, C) :-
    prompt_catalog_register(C, _{unit: tool(house)}, _{activation: always}),
    active(_{text: 'an unrelated text'}, _{}, A, C).

test(recompile, A == [tool(project_search)]) :-
    with_tools(again(A)), !.

again(A, C) :-
    prompt_compile(C, _{text: 'git change'}, _{}, First),
    prompt_recompile(First, _{text: 'search the project'}, _{}, Second),
    get_dict(active, Second, A).

test(explain, [S, T] == [rejected, 'the host denied it']) :-
    with_tools(denied(S, T)), !.

denied(S, T, C) :-
    prompt_compile(C, _{text: 'git change', denied: [tool(git_diff)]}, _{}, Compiled),
    prompt_explain(Compiled, tool(git_diff), E),
    get_dict(state, E, S),
    get_dict(text, E, [T|_]).

test(explain_all_reasons, [S, Ks, T] == [hidden, [denied, no_evidence], 'the host denied it']) :-
    with_tools(denied_and_not_asked_for(S, Ks, T)), !.

denied_and_not_asked_for(S, Ks, T, C) :-
    prompt_compile(C, _{text: 'git change', denied: [tool(project_search)]}, _{}, Compiled),
    prompt_explain(Compiled, tool(project_search), E),
    get_dict(state, E, S),
    kinds(E, Ks),
    get_dict(text, E, [T|_]).

kinds(E, Ks) :-
    get_dict(reasons, E, Rs),
    findall(K, ( member(R, Rs), get_dict(kind, R, K) ), Ks).

test(explain_with_its_evidence, [S, Ks] == [rejected, [capability_missing, denied, lexical]]) :-
    with_tools(asked_for_and_shut(S, Ks)), !.

asked_for_and_shut(S, Ks, C) :-
    Input = _{text: 'git change', denied: [tool(git_diff)]},
    prompt_compile(C, Input, _{capabilities: []}, Compiled),
    prompt_explain(Compiled, tool(git_diff), E),
    get_dict(state, E, S),
    kinds(E, Ks0),
    sort(Ks0, Ks).

test(explain_as_it_was_compiled, Ks == [[no_evidence], [no_evidence], [lexical]]) :-
    with_tools(registered_anew(Ks)), !.

registered_anew([Ks1, Ks2, Ks3], C) :-
    prompt_compile(C, _{text: 'git change'}, _{}, Old),
    explained_kinds(Old, Ks1),
    prompt_catalog_register(C, _{unit: tool(project_search), description: 'Search git'}, _{}),
    explained_kinds(Old, Ks2),
    prompt_compile(C, _{text: 'search'}, _{}, New),
    explained_kinds(New, Ks3).

explained_kinds(Compiled, Ks) :-
    prompt_explain(Compiled, tool(project_search), E),
    kinds(E, Ks).

test(explain_what_is_not_there, error(existence_error(unit, tool(nothing)))) :-
    with_tools(explained(tool(nothing), _)).
test(explain_what_is_no_unit, error(existence_error(unit, [tool]))) :-
    with_tools(explained([tool], _)).
test(explain_suggests_the_closest,
     [Hint == 'no unit tool:git_dif; did you mean tool(git_diff)?']) :-
    with_tools(hint(tool(git_dif), Hint)), !.
test(explain_says_between_which_it_does_not_tell,
     [Hint == 'git_diff may be mcp_tool(a,git_diff) or tool(git_diff)']) :-
    with_tools(hint_of_two(git_diff, Hint)), !.
test(explain_by_id_or_name, Us == [tool(git_diff), tool(git_diff), tool(git_diff)]) :-
    with_tools(explained_so([tool(git_diff), 'tool:git_diff', git_diff], Us)), !.

explained(Unit, E, C) :-
    prompt_compile(C, _{text: 'git change'}, _{}, Compiled),
    prompt_explain(Compiled, Unit, E).

explained_so(Units, Terms, C) :-
    findall(Term, ( member(Unit, Units), explained(Unit, E, C), get_dict(unit, E, Term) ), Terms).

hint(Unit, Hint, C) :-
    catch(explained(Unit, _, C), error(existence_error(unit, _), context(_, Hint)), true).

hint_of_two(Unit, Hint, C) :-
    prompt_catalog_register(C, _{unit: mcp_tool(a, git_diff)}, _{}),
    hint(Unit, Hint, C).

test(registry, Us == [tool(a), tool(b)]) :-
    prompt_catalog_create(C),
    prompt_catalog_register_tool_registry(C, [_{name: "a"}, _{name: b, description: "x"}], _{}, Us),
    prompt_catalog_destroy(C).
test(a_misspelt_option, error(existence_error(option, activated))) :-
    prompt_catalog_create(C),
    prompt_catalog_register(C, _{unit: tool(a)}, _{activated: always}).
test(a_misspelt_option_names_the_closest, Hint == "did you mean activation?") :-
    prompt_catalog_create(C),
    catch(prompt_catalog_register(C, _{unit: tool(a)}, _{activaton: always}), error(_, context(_, Hint)), true).
test(rule_an_option_that_is_like_none_names_all, Hint == "known: activation, mandatory, visible, available, priority, trust") :-
    prompt_catalog_create(C),
    catch(prompt_catalog_register(C, _{unit: tool(a)}, _{zzz: always}), error(_, context(_, Hint)), true).
test(rule_what_is_registered_of_a_unit, Facts =@= Expected) :-
    rlm_prompt:facts('mcp_tool:s/a',
                     _{ unit: mcp_tool(s, a), description: "x", requires: [tool(c), tool(b), tool(c)], suggests: [tool(d)],
                        conflicts: [tool(e)], supersedes: [tool(f)], requires_capability: money },
                     _{activation: always, mandatory: true, visible: false, available: false, priority: 7, trust: stranger},
                     Facts),
    Expected = _{ id: 'mcp_tool:s/a', kind: mcp_tool, priority: 7, trust: stranger, capability: money, pinned: true,
                  mandatory: true, visible: false, available: false, requires: ['tool:b', 'tool:c'],
                  suggests: ['tool:d'], conflicts: ['tool:e'], supersedes: ['tool:f'], names: [a, 's/a'], groups: [s],
                  triggers: [],
                  fields: _{ name: a, alias: '', description: x, category: s, parameters: '', explained: '', values: '',
                             examples: '' } }.
test(rule_what_is_registered_of_a_unit_by_default, Facts =@= Expected) :-
    rlm_prompt:facts('skill:a', _{unit: skill(a)}, _{}, Facts),
    Expected = _{ id: 'skill:a', kind: skill, priority: 100, trust: host, capability: null, pinned: false,
                  mandatory: false, visible: true, available: true, requires: [], suggests: [], conflicts: [],
                  supersedes: [], names: [a], groups: [], triggers: [],
                  fields: _{ name: a, alias: '', description: '', category: '', parameters: '', explained: '', values: '',
                             examples: '' } }.
test(rule_a_tool_needs_a_capability_of_its_own, C == 'tool:a') :-
    rlm_prompt:facts('tool:a', _{unit: tool(a)}, _{}, Facts),
    C = Facts.capability.

%   What moved a unit among the others is kept with the compile, and told.
test(rule_what_raised_a_unit_is_told, A-B == [no_evidence]-[below_floor, intent]) :-
    with_tools(raised_kinds(A-B)), !.

raised_kinds(A-B, C) :-
    prompt_compile(C, _{text: 'git change'}, _{}, Old),
    explained_kinds(Old, A),
    Raised = ['tool:project_search', [_{kind: intent, part: search, score: 5}]],
    Reply = Old.reply.put(raised, [Raised]),
    explained_kinds(Old.put(reply, Reply), B0),
    sort(B0, B).

test(render_needs_python, error(existence_error(python, _))) :- prompt_render(x, _{}, _).
test(schemas_need_python, error(existence_error(python, _))) :- prompt_compiler_tool_schemas(x, _).

:- end_tests(rlm_prompt).

:- encoding(utf8).
:- use_module(library(plunit)).
:- use_module(units).

:- begin_tests(rlm_servers).

% Producers

%   status(+Changes, -Ids): a status tool that takes a project key, and other tools of its server and of another.
status(Changes, Ids) :-
    status([], Changes, Ids).

status(More, Changes, Ids) :-
    Units = [ 'mcp_tool:jira/get_status'-[description('status of work'), server(jira),
                                          identifiers([[project_key, true]])],
              'mcp_tool:jira/list_projects'-[server(jira)],
              'mcp_tool:jira/delete_list_of_projects'-[server(jira)],
              'mcp_tool:other/list_projects'-[server(other)],
              'mcp_tool:jira/list_boards'-[server(jira)],
              'tool:other_status'-[description('status')] ],
    append(Units, More, All),
    chosen(All, _{text: 'status of work'}.put(Changes), Ids).

test(rule_a_producer_comes_directly_behind,
     Ids == ['mcp_tool:jira/get_status', 'mcp_tool:jira/list_projects', 'tool:other_status']) :-
    status(_{}, Ids).
test(rule_the_reason_names_the_tool_and_the_parameter, [all(V == [project_key])]) :-
    reason_value([ 'mcp_tool:jira/get_status'-[description(status), server(jira), identifiers([[project_key, false]])],
                   'mcp_tool:jira/search_project'-[server(jira)] ],
                 _{text: status}, 'mcp_tool:jira/search_project', [parameter], V).

value_text('status of work in project PAY').
value_text('status of work in project 17').
value_text('status of work in the project "payments"').
value_text('status of work in the PAY project').

test(rule_none_where_the_text_has_a_value,
     [forall(value_text(Text)), Ids == ['mcp_tool:jira/get_status', 'tool:other_status']]) :-
    status(['mcp_tool:jira/search_projects'-[server(jira), requires(['tool:ghost'])]], _{text: Text, floor: 600}, Ids0),
    exclude([Id]>>sub_atom(Id, _, _, 0, projects), Ids0, Ids),
    \+ memberchk('mcp_tool:jira/search_projects', Ids0).
test(rule_one_that_cannot_be_shown_is_none, Ids == ['mcp_tool:jira/get_status', 'tool:other_status']) :-
    status(_{denied: ['mcp_tool:jira/list_projects']}, Ids).
test(rule_none_for_what_the_host_selected, Ids == ['mcp_tool:jira/get_status', 'tool:other_status']) :-
    status(_{selected: ['mcp_tool:jira/get_status']}, Ids).
test(rule_none_behind_what_was_turned_away, Ids == ['tool:first', 'tool:other_status']) :-
    status(['tool:first'-[description('status of work'), conflicts(['mcp_tool:jira/get_status'])]],
           _{selected: ['tool:first']}, Ids).
test(rule_it_counts_for_no_limit, Ids == ['mcp_tool:jira/get_status', 'mcp_tool:jira/list_projects']) :-
    status(_{limit: 1}, Ids).
test(rule_one_that_requires_the_parameter_is_none, Ids == ['mcp_tool:s/get_status']) :-
    chosen([ 'mcp_tool:s/get_status'-[description(status), server(s), identifiers([[user_id, true]])],
             'mcp_tool:s/find_user'-[server(s), identifiers([[user_id, true]])] ],
           _{text: status}, Ids).
test(rule_at_most_two_for_a_root, Ids == ['mcp_tool:s/get_status', 'mcp_tool:s/find_user', 'mcp_tool:s/list_users']) :-
    chosen([ 'mcp_tool:s/get_status'-[description(status), server(s), identifiers([['userId', true]])],
             'mcp_tool:s/search_user'-[server(s)], 'mcp_tool:s/find_user'-[server(s)],
             'mcp_tool:s/list_users'-[server(s)] ],
           _{text: status}, Ids).
test(rule_a_name_identifies_where_it_is_required, A-B == 2-1) :-
    named(true, A),
    named(false, B).

named(Required, Count) :-
    chosen([ 'mcp_tool:s/get_status'-[description(status), server(s), identifiers([[branch_name, Required]])],
             'mcp_tool:s/list_branches'-[server(s)] ],
           _{text: status}, Ids),
    length(Ids, Count).

test(rule_a_declared_effect_counts, A-B == 1-2) :-
    declared(write, list_projects, A),
    declared(read, sync_and_list_projects, B).

declared(Effect, Name, Count) :-
    atom_concat('mcp_tool:jira/', Name, Id),
    chosen([ 'mcp_tool:jira/get_status'-[description(status), server(jira), identifiers([[project_key, true]])],
             Id-[server(jira), effect(Effect)] ],
           _{text: status}, Ids),
    length(Ids, Count).

% Lone weak hits

%   weak(+Own, +Changes, -Ids): a server with two good roots, and one with a lone one whose attributes are Own.
weak(Own, Changes, Ids) :-
    weak_units(Own, Units),
    chosen(Units, _{text: 'stone bridge river', capabilities: [*]}.put(Changes), Ids).

weak_units(Own, Units) :-
    findall(Id, ( between(1, 9, N), format(atom(Id), 'tool:f~d', [N]) ), Fillers),
    append([ 'mcp_tool:good/one'-[description('stone bridge river'), server(good), trust(stranger), origin(good)],
             'mcp_tool:good/two'-[description('stone bridge river'), server(good), trust(stranger), origin(good)],
             'mcp_tool:lone/it'-[server(lone)|Own] ],
           Fillers, Units).

stranger(Description, [description(Description), trust(stranger), origin(lone)]).

out(Ids) :- Ids == ['mcp_tool:good/one', 'mcp_tool:good/two'].

test(rule_a_lone_weak_hit_is_left_out, true(out(Ids))) :-
    stranger(river, Own),
    weak(Own, _{}, Ids).
test(rule_its_reason_names_the_server, [nondet, V == lone]) :-
    stranger(river, Own),
    weak_units(Own, Units),
    reason_value(Units, _{text: 'stone bridge river', capabilities: [*]}, 'mcp_tool:lone/it', [server], V).
test(rule_one_of_the_host_never_is, fail) :-
    weak([description(river)], _{}, Ids),
    out(Ids).
test(rule_two_words_are_no_weak_hit, fail) :-
    stranger('river stone', Own),
    weak(Own, _{}, Ids),
    out(Ids).
test(rule_what_the_host_selected_never_is, fail) :-
    stranger(river, Own),
    weak(Own, _{selected: ['mcp_tool:lone/it']}, Ids),
    out(Ids).
test(rule_what_a_need_wants_never_is, fail) :-
    stranger('river quartz', Own),
    weak(Own, _{needs: [quartz]}, Ids),
    out(Ids).
test(rule_where_the_server_was_used_nothing_is, fail) :-
    stranger(river, Own),
    weak_units(Own, Units),
    chosen(['mcp_tool:lone/used'-[server(lone), trust(stranger), origin(lone)]|Units],
           _{text: 'stone bridge river', capabilities: [*], retained: ['mcp_tool:lone/used']}, Ids),
    \+ memberchk('mcp_tool:lone/it', Ids).
test(rule_without_a_server_of_two_roots_nothing_is, fail) :-
    stranger(river, Own),
    weak(Own, _{denied: ['mcp_tool:good/two']}, Ids),
    \+ memberchk('mcp_tool:lone/it', Ids).

:- end_tests(rlm_servers).

:- encoding(utf8).
:- use_module(library(plunit)).
:- use_module(units).

:- begin_tests(rlm_select).

% L1 closed

test(l1_a_requirement_comes_along, Ids == ['tool:a', 'tool:b']) :-
    chosen(['tool:a'-[requires(['tool:b'])], 'tool:b'], _{selected: ['tool:a']}, Ids).
test(l1_through_many_steps, Ids == ['tool:a', 'tool:b', 'tool:c']) :-
    chosen(['tool:a'-[requires(['tool:b'])], 'tool:b'-[requires(['tool:c'])], 'tool:c'],
           _{selected: ['tool:a']}, Ids).
test(l1_a_cycle_stands_together, Ids == ['tool:a', 'tool:b']) :-
    chosen(['tool:a'-[requires(['tool:b'])], 'tool:b'-[requires(['tool:a'])]], _{selected: ['tool:a']}, Ids).
test(l1_a_cycle_falls_together, Ids == []) :-
    chosen(['tool:a'-[requires(['tool:b'])], 'tool:b'-[requires(['tool:a', 'tool:c'])], 'tool:c'],
           _{selected: ['tool:a'], denied: ['tool:c']}, Ids).
test(l1_a_superseder_meets_a_requirement, Ids == ['tool:new', 'tool:a']) :-
    chosen(['tool:a'-[requires(['tool:old']), description(stone)],
            'tool:old', 'tool:new'-[supersedes(['tool:old']), description('stone bridge')]],
           _{text: 'stone bridge'}, Ids).
test(l1_a_superseder_meets_a_denied_requirement, Ids == ['tool:new', 'tool:a']) :-
    chosen(['tool:a'-[requires(['tool:old']), description('stone stone')],
            'tool:old', 'tool:new'-[supersedes(['tool:old']), description(bridge)]],
           _{text: 'stone bridge', denied: ['tool:old']}, Ids).
test(l1_missing_dependency, [all(V == [missing_dependency])]) :-
    reason_value(['tool:a'-[requires(['tool:ghost'])]], _{selected: ['tool:a']}, 'tool:a', [kind], V).

% L2 consistent, L6 stable

test(l2_the_first_of_two_wins, Ids == ['tool:a']) :-
    chosen(['tool:a'-[description('stone bridge'), conflicts(['tool:b'])], 'tool:b'-[description(stone)]],
           _{text: 'stone bridge'}, Ids).
test(l2_whoever_declares_it, Ids == ['tool:a']) :-
    chosen(['tool:a'-[description('stone bridge')], 'tool:b'-[description(stone), conflicts(['tool:a'])]],
           _{text: 'stone bridge'}, Ids).
test(l6_the_loser_is_told_the_winner, [nondet, V == 'tool:a']) :-
    reason_value(['tool:a'-[description('stone bridge'), conflicts(['tool:b'])], 'tool:b'-[description(stone)]],
           _{text: 'stone bridge'}, 'tool:b', [unit], V).
test(l2_a_unit_that_contradicts_itself, [nondet, V == ['tool:b', 'tool:c']]) :-
    reason_value(['tool:a'-[requires(['tool:b', 'tool:c'])], 'tool:b'-[conflicts(['tool:c'])], 'tool:c'],
           _{selected: ['tool:a']}, 'tool:a', [units], V).

% L3 current

test(l3_supersession_is_transitive, Ids == ['tool:c']) :-
    chosen(['tool:a'-[description(stone)], 'tool:b'-[supersedes(['tool:a']), description(stone)],
            'tool:c'-[supersedes(['tool:b']), description(stone)], 'tool:d', 'tool:e', 'tool:f'],
           _{text: stone}, Ids).
test(l3_a_superseder_is_decided_first, Ids == ['tool:new']) :-
    chosen(['tool:old'-[description('stone bridge')], 'tool:new'-[description(stone), supersedes(['tool:old'])]],
           _{text: 'stone bridge'}, Ids).
test(l3_superseded_within_a_closure, Ids == ['tool:a', 'tool:new']) :-
    chosen(['tool:a'-[requires(['tool:new', 'tool:old'])], 'tool:old'-[requires(['tool:only_old'])],
            'tool:only_old', 'tool:new'-[supersedes(['tool:old'])]],
           _{selected: ['tool:a']}, Ids).

% L4 eligible

test(l4_denied, [nondet, V == denied]) :-
    reason_value(['tool:a'-[description(stone)]], _{text: stone, denied: ['tool:*']}, 'tool:a', [kind], V).
test(l4_disabled, [nondet, V == policy]) :-
    reason_value(['tool:a'-[description(stone)]], _{text: stone, disabled: ['tool:a']}, 'tool:a', [by], V).
test(l4_invisible, [nondet, V == unit]) :-
    reason_value(['tool:a'-[description(stone), visible(false)]], _{text: stone}, 'tool:a', [by], V).
test(l4_unavailable, [nondet, V == unavailable]) :-
    reason_value(['tool:a'-[description(stone), available(false)]], _{text: stone}, 'tool:a', [kind], V).
test(l4_out_of_scope, [nondet, V == out_of_scope]) :-
    reason_value(['tool:a'-[description(stone)]], _{text: stone, scope: ['skill:*']}, 'tool:a', [kind], V).
test(l4_a_stranger_is_not_granted, [nondet, V == 'tool:a']) :-
    reason_value(['tool:a'-[description(stone), trust(stranger)]], _{text: stone}, 'tool:a', [capability], V).
test(l4_a_stranger_that_the_host_grants, Ids == ['tool:a']) :-
    chosen(['tool:a'-[description(stone), trust(stranger)]], _{text: stone, capabilities: ['tool:*']}, Ids).
test(l4_denial_reaches_through_dependencies, [nondet, V == denied]) :-
    reason_value(['tool:a'-[description(stone), requires(['tool:b'])], 'tool:b'], _{text: stone, denied: ['tool:b']},
           'tool:a', [reason, kind], V).
test(l4_denial_reaches_through_suggestions, Ids == ['tool:a']) :-
    chosen(['tool:a'-[description(stone), suggests(['tool:b'])], 'tool:b'], _{text: stone, denied: ['tool:b']}, Ids).
test(l4_prose_hides_what_it_names, Ids == ['tool:git']) :-
    chosen(['tool:github'-[description('commits and changes')], 'tool:git'-[description('commits and changes')]],
           _{text: 'show the commits, do not use github, use git'}, Ids).
test(l4_prose_never_reaches_what_the_host_wants, Ids == ['tool:git', 'tool:github']) :-
    chosen(['tool:github', 'tool:git'-[requires(['tool:github'])]],
           _{text: 'do not use github', selected: ['tool:git']}, Ids).
test(l4_what_needs_a_forbidden_unit_is_out, [nondet, V == negated]) :-
    reason_value(['tool:github', 'tool:pull'-[description(stone), requires(['tool:github'])]],
           _{text: 'a stone, do not use github'}, 'tool:pull', [reason, kind], V).

% L5 pinned

test(l5_pinned_without_any_evidence, Ids == ['skill:a']) :-
    chosen(['skill:a'-[pinned(true)], 'skill:b'], _{text: stone}, Ids).
test(k33_two_pinned_units_clash, Us == ['skill:a', 'skill:b']) :-
    refused_value(['skill:a'-[pinned(true), conflicts(['skill:b'])], 'skill:b'-[pinned(true)]], _{}, [units], Us).
test(k33_clash_through_a_dependency, Us == ['skill:a', 'skill:b']) :-
    refused_value(['skill:a'-[pinned(true), requires(['tool:c'])], 'tool:c'-[conflicts(['skill:b'])],
             'skill:b'-[pinned(true)]], _{}, [units], Us).
test(l5_a_pinned_unit_supersedes_a_pinned_one, Ids == ['skill:b']) :-
    chosen(['skill:a'-[pinned(true)], 'skill:b'-[pinned(true), supersedes(['skill:a'])]], _{}, Ids).
test(l5_only_a_pinned_unit_supersedes_a_pinned_one, Ids == ['skill:a']) :-
    chosen(['skill:a'-[pinned(true)], 'skill:b'-[description(stone), supersedes(['skill:a'])]],
           _{text: stone}, Ids).
test(l5_a_lost_capability_hides_and_is_explained, [nondet, V == capability_missing]) :-
    reason_value(['tool:a'-[pinned(true)]], _{capabilities: []}, 'tool:a', [kind], V).
test(l5_a_denied_pinned_unit_is_an_error, Kind == pinned_blocked) :-
    refused_value(['tool:a'-[pinned(true)]], _{denied: ['tool:a']}, [kind], Kind).
test(k06_prose_cannot_unpin, Ids == ['skill:a']) :-
    chosen(['skill:a'-[pinned(true)]], _{text: 'never use the skill a'}, Ids).
test(k32_pinned_when_the_limit_is_full, Ids == ['skill:pin', 'tool:a']) :-
    chosen(['skill:pin'-[pinned(true)], 'tool:a'-[description(stone)], 'tool:b'-[description(stone)]],
           _{text: stone, limit: 1}, Ids).

% The order, the limit and what is exempt

test(limit_counts_roots_not_attempts, Ids == ['tool:b']) :-
    chosen(['tool:a'-[description('stone bridge'), trust(stranger)], 'tool:b'-[description(stone)]],
           _{text: 'stone bridge', limit: 1}, Ids).
test(limit_does_not_count_dependencies, Ids == ['tool:a', 'tool:b', 'tool:c']) :-
    chosen(['tool:a'-[description('stone bridge'), requires(['tool:b'])], 'tool:b',
            'tool:c'-[description(stone)]],
           _{text: 'stone bridge', limit: 2}, Ids).
test(a_name_is_exempt_from_the_limit, Ids == ['tool:git_diff']) :-
    chosen(['tool:git_diff', 'tool:b'-[description(stone)]], _{text: 'stone git_diff', limit: 0}, Ids).
test(all_tools_shows_every_eligible_tool, Ids == ['tool:a', 'tool:b']) :-
    chosen(['tool:a', 'tool:b', 'tool:c'-[trust(stranger)], 'skill:d'], _{mode: all_tools, limit: 0}, Ids).
test(suggestions_go_one_level, Ids == ['tool:a', 'tool:b']) :-
    chosen(['tool:a'-[suggests(['tool:b'])], 'tool:b'-[suggests(['tool:c'])], 'tool:c'],
           _{selected: ['tool:a']}, Ids).
test(priority_breaks_ties, Ids == ['tool:b', 'tool:a']) :-
    chosen(['tool:a'-[description(stone)], 'tool:b'-[description(stone), priority(200)]], _{text: stone}, Ids).
test(l7_registration_order_changes_nothing, A == B) :-
    U = ['tool:a'-[description(stone), requires(['tool:d', 'tool:c'])], 'tool:b'-[description(stone)],
         'tool:c'-[conflicts(['tool:b'])], 'tool:d'],
    reverse(U, V),
    chosen(U, _{text: stone}, A),
    chosen(V, _{text: stone}, B).

% Closures of several steps

test(l1_a_member_meets_the_requirement_of_what_it_supersedes, Ids == ['tool:a', 'tool:new', 'tool:y']) :-
    chosen(['tool:a'-[requires(['tool:new', 'tool:old', 'tool:y', 'tool:x'])],
            'tool:new'-[supersedes(['tool:old'])], 'tool:old', 'tool:y'-[supersedes(['tool:x'])], 'tool:x'],
           _{selected: ['tool:a']}, Ids).
test(l4_each_unit_is_judged_by_its_own_requirements, Ids == ['tool:a', 'tool:c']) :-
    chosen(['tool:a'-[requires(['tool:c'])], 'tool:b'-[requires(['tool:d'])], 'tool:c', 'tool:d'],
           _{selected: ['tool:a', 'tool:b'], denied: ['tool:d']}, Ids).
test(l4_prose_never_reaches_into_a_long_chain_that_the_host_wants, Length == 41) :-
    findall(Id-[requires([Next])],
            ( between(1, 40, N), link(N, Id), N1 is N + 1, link(N1, Next) ),
            Units),
    link(41, Last),
    append(Units, [Last], All),
    link(1, First),
    chosen(All, _{selected: [First], text: 'do not use github'}, Ids),
    length(Ids, Length).
test(l1_a_requirement_is_named_with_what_keeps_it_out, [nondet, V == unavailable]) :-
    reason_value(['tool:a'-[requires(['tool:b'])], 'tool:b'-[requires(['tool:c']), available(false)], 'tool:c'],
                 _{selected: ['tool:a'], denied: ['tool:c']}, 'tool:a', [reason, kind], V).
test(l1_every_reason_of_a_unit_is_told, Kinds == [disabled, dependency_out, missing_dependency]) :-
    findall(V,
            reason_value(['tool:a'-[requires(['tool:b', 'tool:ghost'])], 'tool:b'],
                         _{selected: ['tool:a'], disabled: ['tool:a'], denied: ['tool:b']}, 'tool:a', [kind], V),
            Kinds).
test(l1_through_two_that_are_out, [nondet, V == dependency_out]) :-
    reason_value(['tool:a'-[requires(['tool:b'])], 'tool:b'-[requires(['tool:c'])], 'tool:c'],
                 _{selected: ['tool:a'], denied: ['tool:c']}, 'tool:a', [reason, kind], V).

link(5, 'tool:github') :- !.
link(N, Id) :- atom_concat('tool:t', N, Id).

% Of several, the first admitted is named

test(l2_a_selected_unit_gives_way_to_a_pinned_one, Ids == ['skill:p', 'tool:a']) :-
    chosen(['skill:p'-[pinned(true), conflicts(['tool:b'])], 'tool:a', 'tool:b'],
           _{selected: ['tool:a', 'tool:b']}, Ids).
test(l2_a_selected_unit_is_told_of_the_pinned_one, [nondet, V == 'skill:p']) :-
    reason_value(['skill:p'-[pinned(true), conflicts(['tool:b'])], 'tool:a', 'tool:b'],
                 _{selected: ['tool:a', 'tool:b']}, 'tool:b', [unit], V).
test(l6_of_two_that_conflict_the_first_admitted_is_named, [nondet, V == 'tool:z']) :-
    reason_value(['tool:a'-[description(stone)], 'tool:z'-[description('stone bridge')],
                  'tool:m'-[description(stone), priority(50), conflicts(['tool:a', 'tool:z'])],
                  'tool:e', 'tool:f', 'tool:g', 'tool:h'],
                 _{text: 'stone bridge'}, 'tool:m', [unit], V).
test(l6_of_two_that_are_selected_the_first_is_named, [nondet, V == 'tool:b']) :-
    reason_value(['tool:a', 'tool:b'-[priority(200)],
                  'tool:m'-[description(stone), conflicts(['tool:a', 'tool:b'])]],
                 _{text: stone, selected: ['tool:a', 'tool:b']}, 'tool:m', [unit], V).
test(l3_of_two_that_supersede_it_the_first_admitted_is_named, [nondet, V == 'tool:z']) :-
    reason_value(['tool:a'-[supersedes(['tool:m'])], 'tool:z'-[priority(200), supersedes(['tool:m'])],
                  'tool:m'-[description(stone)]],
                 _{text: stone, selected: ['tool:a', 'tool:z']}, 'tool:m', [unit], V).
test(l3_of_two_selected_the_superseded_one_is_told_its_superseder, [nondet, K-U == superseded_by-'tool:new']) :-
    Us = ['tool:old', 'tool:new'-[supersedes(['tool:old'])]],
    Changes = _{selected: ['tool:old', 'tool:new']},
    reason_value(Us, Changes, 'tool:old', [kind], K),
    reason_value(Us, Changes, 'tool:old', [unit], U).
test(l3_of_a_chain_of_selected_units_the_last_stands, Ids == ['tool:c']) :-
    chosen(['tool:a', 'tool:b'-[supersedes(['tool:a'])], 'tool:c'-[supersedes(['tool:b'])]],
           _{selected: ['tool:a', 'tool:b', 'tool:c']}, Ids).
test(l6_what_would_supersede_too_late_is_out, Ids == ['skill:old']) :-
    chosen(['skill:old'-[pinned(true)], 'skill:new'-[description(stone), supersedes(['skill:old'])]], _{text: stone}, Ids).
test(l6_what_would_supersede_too_late_names_it, [nondet, K == conflict_with]) :-
    reason_value(['skill:old'-[pinned(true)], 'skill:new'-[description(stone), supersedes(['skill:old'])]],
                 _{text: stone}, 'skill:new', [kind], K).

% Tiers and what follows them

test(l5_pinned_before_selected_before_retained_before_evidence,
     Ids == ['skill:d', 'tool:c', 'tool:b', 'tool:a', 'tool:e']) :-
    chosen(['tool:a'-[description(stone), suggests(['tool:e'])], 'tool:b', 'tool:c', 'skill:d'-[pinned(true)], 'tool:e'],
           _{text: stone, selected: ['tool:c'], retained: ['tool:b']}, Ids).
test(l4_what_the_text_forbids_is_kept_no_longer, Ids == []) :-
    chosen(['tool:github'], _{text: 'do not use github', retained: ['tool:github']}, Ids).
test(l3_what_supersedes_a_retained_unit_is_decided_first, Ids == ['tool:new']) :-
    chosen(['tool:old', 'tool:new'-[description(stone), supersedes(['tool:old'])]],
           _{text: stone, retained: ['tool:old']}, Ids).
test(l3_a_retained_unit_is_kept_where_nothing_asks_for_its_superseder, Ids == ['tool:old']) :-
    chosen(['tool:old', 'tool:new'-[description(stone), supersedes(['tool:old'])]],
           _{text: river, retained: ['tool:old']}, Ids).
test(l4_a_retained_unit_ends_with_its_capability, Ids == []) :-
    chosen(['tool:a'], _{retained: ['tool:a'], withheld: ['tool:a']}, Ids).
test(l4_a_retained_unit_that_is_denied_is_kept_no_longer, Ids == []) :-
    chosen(['tool:a'], _{retained: ['tool:a'], denied: ['tool:a']}, Ids).
test(l4_in_all_tools_prose_hides_no_tool, Ids == ['tool:git', 'tool:github']) :-
    chosen(['tool:github', 'tool:git'], _{mode: all_tools, text: 'do not use github'}, Ids0),
    sort(Ids0, Ids).
test(all_tools_come_by_priority_and_id, Ids == ['tool:c', 'tool:a', 'mcp_tool:s/b']) :-
    chosen(['mcp_tool:s/b'-[priority(50)], 'tool:a', 'tool:c'-[priority(200)]], _{mode: all_tools}, Ids).
test(selected_come_by_priority_and_id, Ids == ['tool:c', 'tool:a', 'tool:b']) :-
    chosen(['tool:b', 'tool:a', 'tool:c'-[priority(200)]], _{selected: ['tool:b', 'tool:a', 'tool:c']}, Ids).
test(what_is_pinned_and_selected_comes_once, Ids == ['tool:a']) :-
    chosen(['tool:a'-[pinned(true)]], _{selected: ['tool:a', 'tool:a']}, Ids).
test(suggestions_come_in_the_order_of_admission, Ids == ['tool:b', 'tool:a', 'tool:z', 'tool:c']) :-
    chosen(['tool:a'-[suggests(['tool:c'])], 'tool:b'-[priority(200), suggests(['tool:z'])], 'tool:c', 'tool:z'],
           _{selected: ['tool:a', 'tool:b']}, Ids).
test(a_suggested_unit_brings_its_requirement, Ids == ['tool:a', 'tool:b', 'tool:c']) :-
    chosen(['tool:a'-[suggests(['tool:b'])], 'tool:b'-[requires(['tool:c'])], 'tool:c'], _{selected: ['tool:a']}, Ids).
test(limit_of_one_takes_the_best, Ids == ['tool:b']) :-
    chosen(['tool:a'-[description(stone)], 'tool:b'-[description('stone bridge')]],
           _{text: 'stone bridge', limit: 1}, Ids).
test(limit_counts_no_tool_in_all_tools, Ids == ['tool:a', 'tool:b']) :-
    chosen(['tool:a'-[description(stone)], 'tool:b'-[description(stone)], 'skill:c'-[description(stone)]],
           _{text: stone, limit: 0, mode: all_tools}, Ids).
test(limit_holds_skills_in_all_tools, Ids == ['skill:c', 'tool:a']) :-
    chosen(['tool:a', 'skill:c'-[description(stone)], 'skill:d'-[description(stone)]],
           _{text: stone, limit: 1, mode: all_tools}, Ids).
test(an_admitted_unit_brings_its_premises, Ids == ['skill:a', 'tool:b']) :-
    chosen(['skill:a', 'tool:b'], _{admitted: [['skill:a', selected, ['tool:b']]]}, Ids).
test(an_admitted_unit_may_be_pinned, Ids == ['skill:z', 'skill:a']) :-
    chosen(['skill:a', 'skill:z'], _{selected: ['skill:a'], admitted: [['skill:z', pinned, []]]}, Ids).
test(k33_a_selected_unit_that_contradicts_another, Us == ['tool:a', 'tool:b']) :-
    refused_value(['tool:a'-[conflicts(['tool:b'])], 'tool:b'], _{selected: ['tool:a', 'tool:b']}, [units], Us).
test(l5_a_pinned_unit_may_lack_the_scope_of_its_requirement, Ids == []) :-
    chosen(['skill:a'-[pinned(true), requires(['tool:b'])], 'tool:b'], _{scope: ['skill:*']}, Ids).
test(l5_a_pinned_unit_whose_requirement_is_denied_is_an_error, Kind == pinned_blocked) :-
    refused_value(['skill:a'-[pinned(true), requires(['tool:b'])], 'tool:b'], _{denied: ['tool:b']}, [kind], Kind).
test(l5_a_pinned_unit_whose_requirement_is_missing_is_an_error, Kind == pinned_blocked) :-
    refused_value(['skill:a'-[pinned(true), requires(['tool:b'])]], _{}, [kind], Kind).
test(l5_a_pinned_unit_out_of_scope_and_denied_is_an_error, Kind == pinned_blocked) :-
    refused_value(['skill:a'-[pinned(true)]], _{scope: ['tool:*'], denied: ['skill:a']}, [kind], Kind).

% What the wire takes

test(rule_no_more_tools_than_the_wire_takes, Ids == ['tool:a', 'tool:b']) :-
    chosen(['tool:a'-[description('stone bridge')], 'tool:b'-[description(stone)], 'tool:c'-[description(stone)],
            'tool:e', 'tool:f', 'tool:g', 'tool:h'],
           _{text: 'stone bridge', most_tools: 2}, Ids).
test(rule_a_tool_over_the_limit_is_told_so, [nondet, V == over_tool_limit]) :-
    reason_value(['tool:a'-[description('stone bridge')], 'mcp_tool:s/b'-[description(stone)]],
                 _{text: 'stone bridge', most_tools: 1}, 'mcp_tool:s/b', [kind], V).
test(rule_a_skill_is_no_tool_of_the_wire, Ids == ['tool:a', 'skill:b']) :-
    chosen(['tool:a'-[description('stone bridge')], 'skill:b'-[description(stone)]],
           _{text: 'stone bridge', most_tools: 1}, Ids).
test(rule_a_required_tool_counts_too, Ids == ['tool:a']) :-
    chosen(['tool:a'-[description('stone bridge')], 'skill:b'-[description(stone), requires(['tool:c'])], 'tool:c'],
           _{text: 'stone bridge', most_tools: 1}, Ids).
test(rule_what_the_wire_refuses_is_out, Ids == ['tool:b']) :-
    chosen(['tool:a'-[description(stone)], 'tool:b'-[description(stone)]],
           _{text: stone, refused: [['tool:a', openai, 'a name']]}, Ids).
test(rule_what_the_wire_refuses_is_told, [nondet, W-V == openai-refused_by_wire]) :-
    Us = ['tool:a'-[description(stone)]],
    Changes = _{text: stone, refused: [['tool:a', openai, 'a name']]},
    reason_value(Us, Changes, 'tool:a', [kind], V),
    reason_value(Us, Changes, 'tool:a', [wire], W).

% Evidence

test(a_need_brings_a_unit_in, [nondet, V == 'list directory']) :-
    reason_value(['tool:ls'-[description('list a directory')]], _{needs: ['list directory']}, 'tool:ls', [need], V).
test(a_trigger_phrase, [nondet, V == trigger]) :-
    reason_value(['skill:review'-[triggers([[phrase, 'look over', 1000]])]], _{text: 'please look over this'},
           'skill:review', [kind], V).
test(a_trigger_is_never_found_inside_a_word, Ids == []) :-
    chosen(['skill:cat'-[triggers([[keyword, cat, 1000]])]], _{text: 'concatenate the categories'}, Ids).
test(a_verb_is_found_by_its_stem, Ids == ['skill:a']) :-
    chosen(['skill:a'-[triggers([[verb, review, 1000]])]], _{text: 'I am reviewing it'}, Ids).
test(a_host_signal, Ids == ['skill:a']) :-
    chosen(['skill:a'-[triggers([[repo, git, 1000]])]], _{signals: [[repo, ['Git']]]}, Ids).
test(a_sensor_is_bounded, [nondet, V == 3500]) :-
    reason_value(['tool:a'], _{sensors: [[model, ['tool:a'], [5000]]]}, 'tool:a', [score], V).
test(history_moves_ranks, Ids == ['tool:b', 'tool:a']) :-
    chosen(['tool:a'-[description('stone tower')], 'tool:b'-[description('stone bridge')], 'tool:c', 'tool:d'],
           _{text: stone, history: [bridge]}, Ids).
test(history_decays, Ids == ['tool:c', 'tool:b', 'tool:a']) :-
    chosen(['tool:a'-[description('stone tower')], 'tool:b'-[description('stone bridge')],
            'tool:c'-[description('stone river')], 'tool:d', 'tool:e', 'tool:f'],
           _{text: stone, history: [river, bridge]}, Ids).
test(one_common_word_selects_nothing, Ids == []) :-
    findall(U, ( between(1, 40, N), atom_concat('tool:t', N, Id), U = Id-[description('get the data')] ), Us),
    chosen(Us, _{text: 'get me some tea'}, Ids).

:- end_tests(rlm_select).

:- encoding(utf8).
:- use_module(library(plunit)).
:- use_module('../../prolog/rlm_seal').

:- begin_tests(rlm_seal).

laws(Changes, Laws) :-
    Args = _{ shown: [], pinned: [], capabilities: null, withheld: [], scope: null, denied: [], disabled: [], extra: [],
              obliged: [], total: 1, token_limit: 10 }.put(Changes),
    seal(Args, Reply),
    findall(Law, ( member(V, Reply.violations), get_dict(law, V, Law) ), Laws).

unit(Id, Changes, Unit) :-
    Unit = _{ id: Id, requires: [], conflicts: [], supersedes: [], capability: null, trust: host,
              visible: true, available: true }.put(Changes).

shown(Specs, Units) :-
    findall(U, ( member(Id-Changes, Specs), unit(Id, Changes, U) ), Units).

check(Specs, Changes, Laws) :-
    shown(Specs, Units),
    laws(Changes.put(shown, Units), Laws).

test(nothing, Ls == []) :- check([], _{}, Ls).
test(l1_open, Ls == ['L1']) :- check([a-_{requires: [b]}], _{}, Ls).
test(l1_closed, Ls == []) :- check([a-_{requires: [b]}, b-_{}], _{}, Ls).
test(l1_by_a_superseder, Ls == []) :- check([a-_{requires: [b]}, c-_{supersedes: [b]}], _{}, Ls).
test(l1_a_premise_of_this_compile, Ls == ['L1']) :- check([a-_{}], _{extra: [[a, b]]}, Ls).
test(l1_nothing_stands_in_for_a_pinned_one, Ls == ['L1']) :-
    unit(b, _{requires: [z]}, B),
    check([a-_{requires: [b]}, c-_{supersedes: [b]}], _{pinned: [B]}, Ls).
test(l2, Ls == ['L2']) :- check([a-_{conflicts: [b]}, b-_{}], _{}, Ls).
test(l3, Ls == ['L3']) :- check([a-_{supersedes: [b]}, b-_{}], _{}, Ls).
test(l4_denied, Ls == ['L4']) :- check(['tool:a'-_{}], _{denied: ['tool:*']}, Ls).
test(l4_disabled, Ls == ['L4']) :- check(['tool:a'-_{}], _{disabled: ['tool:a']}, Ls).
test(l4_invisible, Ls == ['L4']) :- check([a-_{visible: false}], _{}, Ls).
test(l4_unavailable, Ls == ['L4']) :- check([a-_{available: false}], _{}, Ls).
test(l4_out_of_scope, Ls == ['L4']) :- check(['tool:a'-_{}], _{scope: ['skill:*']}, Ls).
test(l4_a_stranger, Ls == ['L4']) :- check(['tool:a'-_{capability: 'tool:a', trust: stranger}], _{}, Ls).
test(l4_a_granted_stranger, Ls == []) :-
    check(['tool:a'-_{capability: 'tool:a', trust: stranger}], _{capabilities: ['tool:*']}, Ls).
test(l4_withheld, Ls == ['L4']) :-
    check(['tool:a'-_{capability: 'tool:a'}], _{withheld: ['tool:*']}, Ls).
test(l4_not_granted, Ls == ['L4']) :- check(['tool:a'-_{capability: 'tool:a'}], _{capabilities: []}, Ls).
test(l5_missing, Ls == ['L5']) :- unit(p, _{}, P), check([], _{pinned: [P]}, Ls).
test(l5_excused_by_scope, Ls == []) :- unit(p, _{}, P), check([], _{pinned: [P], scope: []}, Ls).
test(l5_superseded_by_a_pinned_one, Ls == []) :-
    unit(p, _{}, P), unit(q, _{supersedes: [p]}, Q),
    check([q-_{supersedes: [p]}], _{pinned: [P, Q]}, Ls).
test(mandatory_packed_out, Ls == [packing]) :- check([], _{obliged: [a]}, Ls).
test(over_budget, Ls == [packing]) :- check([], _{total: 11}, Ls).

test(rule_breaches_come_in_the_order_of_the_laws, Ls == ['L1', 'L2', 'L3', 'L4', 'L5', packing, packing]) :-
    unit(p, _{}, P),
    check([a-_{requires: [z], conflicts: [b], supersedes: [b]}, b-_{visible: false}],
          _{pinned: [P], obliged: [m], total: 11}, Ls).

% The place of each breach, and what just does not break a law

%   breaches(+Specs, +Changes, -Rows): `Law-Unit-Other` of each violation.
breaches(Specs, Changes, Rows) :-
    shown(Specs, Units),
    Args = _{ shown: Units, pinned: [], capabilities: null, withheld: [], scope: null, denied: [], disabled: [],
              extra: [], obliged: [], total: 1, token_limit: 10 }.put(Changes),
    seal(Args, Reply),
    findall(L-U-O, member(_{law: L, unit: U, other: O}, Reply.violations), Rows).

test(l1_names_the_unit_and_the_requirement, Rows == ['L1'-a-b]) :-
    breaches([a-_{requires: [b]}], _{}, Rows).
test(l1_a_superseder_of_something_else_meets_nothing, Rows == ['L1'-a-b]) :-
    breaches([a-_{requires: [b]}, c-_{supersedes: [d]}], _{}, Rows).
test(l1_a_pinned_superseder_meets_a_pinned_requirement, Rows == []) :-
    unit(b, _{requires: [z]}, B),
    unit(c, _{supersedes: [b]}, C),
    breaches([a-_{requires: [b]}, c-_{supersedes: [b]}], _{pinned: [B, C]}, Rows).
test(l1_another_unit_that_is_pinned_changes_nothing, Rows == []) :-
    unit(a, _{}, A),
    breaches([a-_{requires: [b]}, c-_{supersedes: [b]}], _{pinned: [A]}, Rows).
test(l1_a_premise_binds_its_own_unit_only, Rows == []) :-
    breaches([a-_{}], _{extra: [[b, c]]}, Rows).
test(l2_a_conflict_with_what_is_not_shown, Rows == []) :- breaches([a-_{conflicts: [b]}], _{}, Rows).
test(l2_names_both, Rows == ['L2'-a-b]) :- breaches([a-_{conflicts: [b]}, b-_{}], _{}, Rows).
test(l3_a_superseded_unit_that_is_not_shown, Rows == []) :- breaches([a-_{supersedes: [b]}], _{}, Rows).
test(l3_names_the_superseded_unit_first, Rows == ['L3'-b-a]) :-
    breaches([a-_{supersedes: [b]}, b-_{}], _{}, Rows).
test(l4_says_why, Rows == ['L4'-'tool:a'-denied]) :- breaches(['tool:a'-_{}], _{denied: ['tool:a']}, Rows).
test(l4_each_cause_has_its_name, Rows == [disabled, invisible, unavailable, out_of_scope, capability_missing]) :-
    breaches(['tool:a'-_{visible: false, available: false, capability: 'tool:a', trust: stranger}],
             _{disabled: ['tool:a'], scope: ['skill:*']}, Rows0),
    findall(Why, member('L4'-'tool:a'-Why, Rows0), Rows).
test(l4_in_scope, Rows == []) :- breaches(['tool:a'-_{}], _{scope: ['tool:*']}, Rows).
test(l4_what_the_host_registered_is_granted, Rows == []) :-
    breaches(['tool:a'-_{capability: 'tool:a'}], _{}, Rows).
test(l4_what_is_withheld_is_not_granted_by_a_pattern, Rows == ['L4'-'tool:a'-capability_missing]) :-
    breaches(['tool:a'-_{capability: 'tool:a'}], _{capabilities: ['tool:*'], withheld: ['tool:a']}, Rows).
test(l4_a_withheld_capability_of_another_unit, Rows == []) :-
    breaches(['tool:a'-_{capability: 'tool:a'}], _{withheld: ['tool:b']}, Rows).
test(l4_a_unit_without_a_capability_needs_no_grant, Rows == []) :-
    breaches([a-_{trust: stranger}], _{capabilities: []}, Rows).
test(l4_refused_by_wire_is_not_shown, Rows == ['L4'-a-refused_by_wire]) :-
    breaches([a-_{}, b-_{}], _{refused: [[a, wire, what], [c, wire, what]]}, Rows).
test(l5_names_the_pinned_unit, Rows == ['L5'-p-pinned]) :- unit(p, _{}, P), breaches([], _{pinned: [P]}, Rows).
test(l5_a_pinned_unit_that_is_shown, Rows == []) :- unit(p, _{}, P), breaches([p-_{}], _{pinned: [P]}, Rows).
test(l5_excused_by_its_requirements, Rows == []) :- unit(p, _{requires: [z]}, P), breaches([], _{pinned: [P]}, Rows).
test(l5_excused_by_a_premise, Rows == []) :-
    unit(p, _{}, P), breaches([], _{pinned: [P], extra: [[p, z]]}, Rows).
test(l5_not_excused_by_the_premise_of_another, Rows == ['L5'-p-pinned]) :-
    unit(p, _{}, P), breaches([], _{pinned: [P], extra: [[q, p]]}, Rows).
test(l5_not_superseded_by_a_pinned_unit_that_is_out, Rows == ['L5'-p-pinned, 'L5'-q-pinned]) :-
    unit(p, _{}, P), unit(q, _{supersedes: [p]}, Q),
    breaches([], _{pinned: [P, Q]}, Rows).
test(l5_not_superseded_by_a_unit_that_is_not_pinned, Rows == ['L5'-p-pinned]) :-
    unit(p, _{}, P),
    breaches([q-_{supersedes: [p]}], _{pinned: [P]}, Rows).
test(l5_not_superseded_by_a_pinned_unit_that_supersedes_another, Rows == ['L5'-p-pinned]) :-
    unit(p, _{}, P), unit(q, _{supersedes: [z]}, Q),
    breaches([q-_{supersedes: [z]}], _{pinned: [P, Q]}, Rows).
test(packing_keeps_what_is_obliged, Rows == [packing-b-mandatory]) :- breaches([a-_{}], _{obliged: [a, b]}, Rows).
test(packing_to_the_limit, Rows == []) :- breaches([], _{total: 10}, Rows).
test(packing_above_the_limit, Rows == [packing-budget-11]) :- breaches([], _{total: 11}, Rows).

:- end_tests(rlm_seal).

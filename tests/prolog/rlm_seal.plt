:- encoding(utf8).
:- use_module(library(plunit)).
:- use_module('../../prolog/rlm_seal').

:- begin_tests(rlm_seal).

laws(Changes, Laws) :-
    Args = _{ shown: [], pinned: [], capabilities: null, withheld: [], scope: null, denied: [], disabled: [], extra: [],
              obliged: [], total: 1, limit: 10 }.put(Changes),
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

:- end_tests(rlm_seal).

:- encoding(utf8).
:- use_module(library(plunit)).
:- use_module('../../prolog/rlm_explain').
:- use_module('../../prolog/rlm_eligible').

:- begin_tests(rlm_explain).

says(Reason, Text) :-
    sentence(Reason, Text).

test(pinned, T == 'the host pinned it') :- says(_{kind: pinned}, T).
test(lexical_with_words, T == 'words of the text count 1.20 (git 1.00, diff as compar 0.20)') :-
    says(_{kind: lexical, score: 1200, words: [[git, 1000, git], [diff, 200, compar]]}, T).
test(conflict, T == 'tool:a is in conflict with tool:b, which came first') :-
    says(_{kind: conflict_with, unit: 'tool:b', through: 'tool:a'}, T).
test(a_chain, T == 'it requires tool:b, which cannot be shown: the host denied it') :-
    says(_{kind: dependency_out, unit: 'tool:b', reason: _{kind: denied}}, T).
test(packed_out, T == 'it needs 90 tokens, and 10 were free') :-
    says(_{kind: packed_out, tokens: 90, free: 10}, T).
test(packed_out_by_one, T == 'it needs 1 token, and 1 was free') :-
    says(_{kind: packed_out, tokens: 1, free: 1}, T).
test(shortened, T == 'in full it needs 90 tokens, and 10 were free') :-
    says(_{kind: shortened, tokens: 90, free: 10}, T).
test(history, T == 'words of 1 turn ago count 0.40') :- says(_{kind: history, turn: 1, score: 400}, T).
test(every_reason_can_be_said, Missing == []) :-
    findall(K, ( kind(K), \+ clause(rlm_explain:says(K, _, _, _), _) ), Missing).

kind(K) :-
    member(K, [ pinned, selected_by_host, retained, all_tools, name, trigger, lexical, example, history, need,
                sensor, boosted, dependency_of, suggested_by, denied, disabled, unavailable, out_of_scope,
                capability_missing, negated, below_floor, no_evidence, over_candidate_limit,
                missing_dependency, dependency_out, superseded_by, conflict_with, contradicts_itself, vetoed,
                packed_out, shortened ]).

change(Reasons, Change) :-
    remedies(_{unit: 'tool:a', reasons: Reasons}, Reply),
    ( get_dict(change, Reply, Change) -> true ; get_dict(blocker, Reply, Blocker), Change = blocker(Blocker.kind) ).

test(grant, V == 'tool:a') :- change([_{kind: capability_missing, capability: 'tool:a'}], C), get_dict(grant, C, V).
test(budget, V == 80) :- change([_{kind: packed_out, tokens: 90, free: 10}], C), get_dict(budget, C, V).
test(blocked, C == blocker(unavailable)) :- change([_{kind: unavailable}], C).
test(the_first_that_keeps_out, V == 'tool:a') :-
    change([_{kind: lexical, score: 1}, _{kind: below_floor, score: 1, floor: 2}], C),
    get_dict(select, C, V).

:- end_tests(rlm_explain).

:- begin_tests(rlm_eligible).

test(exact) :- patterns(['tool:a'], P), matches(P, 'tool:a').
test(not_a_part, fail) :- patterns(['tool:a'], P), matches(P, 'tool:ab').
test(star_at_the_end) :- patterns(['tool:github/*'], P), matches(P, 'tool:github/x').
test(star_in_the_middle) :- patterns(['tool:*/x'], P), matches(P, 'tool:github/x').
test(two_stars) :- patterns(['*:git*b/*'], P), matches(P, 'tool:github/x').
test(star_alone) :- patterns([*], P), matches(P, 'tool:a').
test(no_star_is_literal, fail) :- patterns(['tool:?'], P), matches(P, 'tool:a').
test(order_of_parts, fail) :- patterns(['*b*a'], P), matches(P, 'ab').
test(parts_may_repeat) :- patterns(['*ab*ab'], P), matches(P, 'xabyabab').
test(nothing_matches_an_empty_list, fail) :- patterns([], P), matches(P, a).

:- end_tests(rlm_eligible).

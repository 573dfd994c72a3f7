:- encoding(utf8).
:- use_module(library(plunit)).
:- use_module('../../prolog/rlm_open').
:- use_module('../../prolog/rlm_relations').
:- use_module('../../prolog/rlm_session', [active/1, explained/3]).
:- use_module(saved).

:- begin_tests(rlm_relations, [setup(close_all), cleanup(close_all)]).

close_all :-
    forall(close_session(_), true).

%   asked(:Goal): with the session of saved:terms/2 open.
asked(Goal) :-
    asked([], Goal).

asked(More, Goal) :-
    terms(More, Terms),
    saved(Terms, Text),
    in_file(Text, opened(one)),
    call_cleanup(once(Goal), close_all).

opened(Name, File) :-
    open_session(File, Name).

%   all_of(?Template, :Goal, -Answers, +Expected): in every row the answers of a query.
row(unit(U, K), U-K, 10).
row(unit(U, skill), U, [skill(house)]).
row(unit(git_diff, K), K, [tool]).
row(unit(tool:git_diff, K), K, [tool]).
row(unit('tool:git_diff', K), K, [tool]).
row(unit(skill(X), _), X, [house]).
row(unit('*d*', K), K, [tool, tool, tool, tool, tool]).
row(matching('g*', U), U, [tool(git_diff), tool(gone)]).
row(matching("tool:?ld", U), U, [tool(old)]).
row(matching('g*', tool(gone)), yes, [yes]).
row(state(U, active), U, [skill(house), tool(git_diff)]).
row(state(U, packed_out), U, [tool(big)]).
row(state(U, rejected), U, [tool(deploy), tool(lamp), tool(old)]).
row(state(U, hidden), U, [tool(gone), tool(idle), tool(needy), tool(vault)]).
row(state(git_diff, S), S, [active]).
row(state(git_diff, hidden), yes, []).
row(reason(skill(house), R), R, [pinned]).
row(reason(big, R), R, [lexical(0.7), packed_out(90, 10)]).
row(reason(U, pinned), U, [skill(house)]).
row(hidden(U, no_evidence), U, [tool(gone), tool(needy), tool(vault)]).
row(hidden(vault, R), R, [capability_missing(money), no_evidence]).
row(hidden(U, dependency_out(V, vetoed(W))), U-V-W, [tool(needy)-tool(lamp)-'veto(lamp)']).
row(hidden(git_diff, _), yes, []).
row(rejected(U, negated), U, [tool(old)]).
row(rejected(U, vetoed(R)), U-R, [tool(lamp)-'veto(lamp)']).
row(rejected(deploy, R), R, [dependency_out(tool(vault), capability_missing(money)), lexical(2.352)]).
row(packed_out(U, packed_out(T, F)), U-T-F, [tool(big)-90-10]).
row(left_out(U, packed_out(_, _)), U, [tool(big)]).
row(left_out(git_diff, _), yes, []).
row(evidence(git_diff, lexical, W, _), W, [git, changes]).
row(evidence(U, lexical, git, S), U-S, [tool(big)-1.256, tool(git_diff)-2.285]).
row(rank(U, 2), U, [tool(deploy)]).
row(rank(git_diff, N), N, [1]).
row(requires(U, V), U-V, [tool(deploy)-tool(vault), tool(needy)-tool(lamp)]).
row(requires(U, vault), U, [tool(deploy)]).
row(requires(deploy, V), V, [tool(vault)]).
row(requires(deploy, tool(lamp)), yes, []).
row(suggests(_, V), V, []).
row(conflicts(_, V), V, []).
row(supersedes(_, V), V, []).
row(cost(U, F, T), U-F-T, [skill(house)-full-8, tool(git_diff)-short-43, tool(big)-full-90]).
row(cost(U, short, _), U, [tool(git_diff)]).
row(budget(W, T), W-T, [limit-1000, used-88, free-912]).
row(budget(free, T), T, [912]).
row(turn(F), F, [text('git change, deploy it')]).
row(policy(grants(P)), P, ['tool:*']).
row(policy(mode(M)), M, [compiled]).
row(policy(floor(S)), S, [0.3]).
row(changed(_, _, U, _), U, []).

test(rule_each_mode_of_each_relation, [forall(row(Goal, Answer, Expected)), true(same(Answers, Expected))]) :-
    asked(findall(Answer, Goal, Answers)).

%   same(+Answers, +Expected): scores to a thousandth; a number is that of the answers.
same(Answers, Count), integer(Count) => length(Answers, Count).
same(Answers, Expected) => subsumes_term(Expected, Answers).

%   joined_row(:Goal, -Answer, ?Expected): several relations in one query.
joined_row(( requires(U, V), hidden(V, capability_missing(C)) ), U-C, [tool(deploy)-money]).
joined_row(( active(U), cost(U, _, T), T > 10 ), U, [tool(git_diff)]).
joined_row(( left_out(U, packed_out(T, F)), More is T - F ), U-More, [tool(big)-80]).
joined_row(( unit(U, tool), \+ left_out(U, _) ), U, [tool(git_diff)]).
joined_row(( requires(U, V), rejected(V, vetoed(_)) ), U, [tool(needy)]).
joined_row(( findall(T, cost(_, _, T), Ts), sum_list(Ts, Sum) ), Sum, [141]).
joined_row(( session(S), in(S, active(tool(git_diff))) ), S, [one]).

test(rule_relations_are_combined, [forall(joined_row(Goal, Answer, Expected)), Answers == Expected]) :-
    asked(findall(Answer, Goal, Answers)).

test(rule_the_facts_of_the_turn_and_the_policy, Facts == Expected) :-
    Expected = [ text(t), need('a tool'), history(1, one), history(2, two), signal(mode, fast), sensor(s),
                 selected(tool(old)) ],
    terms([], Terms0),
    findall(Term, ( member(Term0, Terms0), other_input(Term0, Term) ), Terms),
    saved(Terms, Text),
    in_file(Text, opened(one)),
    call_cleanup(findall(Fact, turn(Fact), Facts), close_all).

other_input(input(text, _), input(text, t)) :- !.
other_input(input(needs, _), input(needs, ['a tool'])) :- !.
other_input(input(history, _), input(history, [one, two])) :- !.
other_input(input(signals, _), input(signals, [[mode, [fast]]])) :- !.
other_input(input(sensors, _), input(sensors, [[s, [], []]])) :- !.
other_input(input(selected, _), input(selected, ['tool:old'])) :- !.
other_input(Term, Term).

%   The second session lacks the unit `gone`, shows `git_diff` in full, lets `big` in and `house` out.
other_term(unit('tool:gone', _), _) :- !, fail.
other_term(active('tool:git_diff', _, _, R), active('tool:git_diff', full, 90, R)) :- !.
other_term(active('tool:big', _, _, _), active('tool:big', short, 9, [[[kind, lexical], [score, 700]]])) :- !.
other_term(active('skill:house', _, _, _), rejected('skill:house', [[[kind, denied]]])) :- !.
other_term(rejected('tool:old', _), _) :- !, fail.
other_term(negated('tool:old'), _) :- !, fail.
other_term(Term, Term).

compared(Goal) :-
    terms([], One),
    findall(Term, ( member(Term0, One), other_term(Term0, Term) ), Other),
    saved(One, Text1),
    saved(Other, Text2),
    in_file(Text1, opened(one)),
    in_file(Text2, opened(two)),
    call_cleanup(once(Goal), close_all).

test(rule_what_changed_between_two_sessions, Found == [ skill(house)-vanished, tool(big)-appeared,
                                                        tool(git_diff)-form(short, full), tool(gone)-unregistered,
                                                        tool(old)-state(rejected, hidden) ]) :-
    compared(findall(U-How, changed(one, two, U, How), Found)).
test(rule_the_other_way_round, Found == [registered]) :-
    compared(findall(How, changed(two, one, tool(gone), How), Found)).
test(rule_any_two_sessions, Found == [one-two, two-one]) :-
    compared(findall(A-B, changed(A, B, tool(big), _), Found)).
test(rule_no_change_of_what_is_the_same, Found == []) :-
    compared(findall(How, changed(one, two, deploy, How), Found)).

test(rule_a_reason_of_another_kind_has_its_data, R == new_kind(1, x)) :-
    asked([ active('tool:new', full, 1, [[[kind, new_kind], [a, 1], [b, x]]]),
            unit('tool:new', [tool, 100, host, '', null, [false, false, true, true], [[], [], [], []], [new], [], [],
                              [new, '', '', '', '', '', '', '']]) ],
          reason(tool(new), R)).
test(rule_a_misspelt_unit_fails, fail) :-
    asked(state(git_dif, _)).
test(rule_each_unit_has_one_state, true) :-
    asked(forall(unit(U, _), aggregate_all(count, state(U, _), 1))).
test(rule_states_are_those_of_explained, true) :-
    asked(forall(unit(U, _), ( state(U, S), explained(U, S, _) ))).

:- end_tests(rlm_relations).

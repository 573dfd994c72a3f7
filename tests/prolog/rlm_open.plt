:- encoding(utf8).
:- use_module(library(plunit)).
:- use_module('../../prolog/rlm_open').
:- use_module(saved).

:- begin_tests(rlm_open, [setup(close_all), cleanup(close_all)]).

close_all :-
    forall(close_session(_), true).

%   two(:Goal): with two sessions open, `first` and `second`; the second has a denied unit more.
two(Goal) :-
    terms([], One),
    terms([negated('tool:lamp')], Other),
    saved(One, Text1),
    saved(Other, Text2),
    in_file(Text1, opened(first)),
    in_file(Text2, opened(second)),
    call_cleanup(once(Goal), close_all).

opened(Name, File) :-
    open_session(File, Name).

test(rule_several_are_open, Names == [first, second]) :-
    two(findall(Name, session(Name), Names)).
test(rule_the_last_one_is_the_current_one, Name == second) :-
    two(current_session(Name)).
test(rule_another_becomes_the_current_one, Name == first) :-
    two(( use_session(first), current_session(Name) )).
test(rule_a_goal_in_each, Found == [first-1, second-2]) :-
    two(findall(S-N, in(S, aggregate_all(count, record(negated(_)), N)), Found)).
test(rule_a_goal_elsewhere_leaves_the_current_one, Found == [second, second]) :-
    two(( findall(Name, ( in(first, record(negated(_))), current_session(Name) ), One),
          current_session(Last),
          append(One, [Last], Found) )).
test(rule_a_goal_is_tried_again_where_it_was, Found == [first, first, first]) :-
    two(findall(Name, in(first, ( member(_, [a, b, c]), current_session(Name) )), Found)).
test(rule_within_another, Found == second-first) :-
    two(in(first, ( in(second, current_session(A)), current_session(B), Found = A-B ))).
test(rule_an_error_leaves_the_current_one, Name == second) :-
    two(( catch(in(first, throw(stop)), stop, true), current_session(Name) )).
test(rule_the_same_name_again_replaces, Found == [first-2]) :-
    terms([], One),
    terms([negated('tool:lamp')], Other),
    saved(One, Text1),
    saved(Other, Text2),
    in_file(Text1, opened(first)),
    in_file(Text2, opened(first)),
    findall(S-N, in(S, aggregate_all(count, record(negated(_)), N)), Found).
test(rule_a_closed_one_is_gone, Found == [first]-first) :-
    two(( close_session(second), findall(S, session(S), Names), current_session(Current), Found = Names-Current )).
test(rule_the_name_of_the_file, true(atom(Name))) :-
    terms([], Terms),
    saved(Terms, Text),
    in_file(Text, open_session),
    session(Name),
    close_session(Name).
test(rule_a_name_is_an_atom, error(type_error(atom, 12))) :-
    terms([], Terms),
    saved(Terms, Text),
    in_file(Text, opened(12)).
test(rule_none_is_open, error(existence_error(rlm_session, _))) :-
    close_all,
    record(negated(_)).
test(rule_no_such_session, error(existence_error(rlm_session, _))) :-
    two(use_session(third)).
test(rule_a_bad_file_leaves_what_is_open, Found == [first, second]) :-
    two(( catch(open_session('/no/such.rlm', first), error(_, _), true), findall(S, session(S), Found) )).
test(rule_records_are_no_goals, Found == []) :-
    two(findall(X, ( catch(record(halt), _, fail), X = ran ), Found)).

:- end_tests(rlm_open).

:- encoding(utf8).
:- use_module(library(plunit)).
:- use_module('../../prolog/rlm_catalog', [catalog_module/2]).
:- use_module('../../prolog/rlm_change').
:- use_module('../../prolog/rlm_evidence', [reading/3]).
:- use_module(units).

:- begin_tests(rlm_change).

%   wants(+Stemmer, +Text, +Needs) is semidet.
wants(Stemmer, Text, Needs) :-
    once(with_units(Stemmer, ['tool:a'], wants_there(Text, Needs))).

wants_there(Text, Needs, Handle) :-
    catalog_module(Handle, M),
    reading(M, Text, Reading),
    wants_change(M, Reading, Needs).

change('delete the old branch').
change('Please send a mail to Ann').
change('list the files. Then delete them').
change('do not list the files, but delete them').

no_change('show what was deleted').
no_change('do not delete anything').
no_change('don\'t send it').
no_change('never ever push to main').
no_change('').

test(rule_a_verb_of_change_asks_for_one, forall(change(Text))) :- wants(english, Text, []).
test(rule_a_negated_verb_does_not, [forall(no_change(Text)), fail]) :- wants(english, Text, []).
test(rule_a_need_asks_for_one) :- wants(english, '', ['look around', 'create a page']).
test(rule_a_need_without_a_verb_does_not, fail) :- wants(english, '', ['a list of pages']).
test(rule_another_language_may_want_one) :- wants(german, 'zeige die Seiten', []).
test(rule_a_name_may_say_it, A-B == true-false) :-
    ( change_words([delete, page]) -> A = true ; A = false ),
    ( change_words([list, pages]) -> B = true ; B = false ).

%   in_order(+Changes, -Ids): five tools for stone and one skill; the host says of two that they read.
in_order(Changes, Ids) :-
    findall(Id, ( between(1, 20, N), format(atom(Id), 'tool:f~d', [N]) ), Fillers),
    append([ 'tool:a'-[description('stone bridge')],
             'tool:b'-[description('stone bridge'), effect(read)],
             'tool:c'-[description('stone bridge'), effect(write)],
             'tool:d'-[description('stone bridge over a wide river with a view'), effect(read)],
             'skill:e'-[description('stone bridge')] ],
           Fillers, Units),
    chosen(Units, _{text: 'stone bridge'}.put(Changes), Ids).

test(rule_reading_comes_before_writing_within_a_tenth, Ids == ['skill:e', 'tool:b', 'tool:a', 'tool:c', 'tool:d']) :-
    in_order(_{}, Ids).
test(rule_where_a_change_is_wanted_nothing_moves, Ids == ['skill:e', 'tool:a', 'tool:b', 'tool:c', 'tool:d']) :-
    in_order(_{text: 'update the stone bridge'}, Ids).
test(rule_a_need_can_want_the_change, Ids == ['skill:e', 'tool:a', 'tool:b', 'tool:c', 'tool:d']) :-
    in_order(_{needs: ['update it']}, Ids).
test(rule_it_changes_the_order_alone, A == B) :-
    in_order(_{}, Ids1),
    in_order(_{text: 'update the stone bridge'}, Ids2),
    msort(Ids1, A),
    msort(Ids2, B).

:- end_tests(rlm_change).

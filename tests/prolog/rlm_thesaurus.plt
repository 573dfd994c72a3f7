:- encoding(utf8).
:- use_module(library(plunit)).
:- use_module(library(lists)).
:- use_module('../../prolog/rlm_thesaurus').
:- use_module('../../prolog/rlm_words').
:- use_module(units).

:- begin_tests(rlm_thesaurus).

test(a_synonym, [true(memberchk(pictur, Ts))]) :- synonyms(english, photo, Ts).
test(both_ways, [true(memberchk(photo, Ts))]) :- synonyms(english, pictur, Ts).
test(never_itself, Bad == []) :-
    findall(T, ( alike(Ws), stems(english, Ws, Ss), member(T, Ss), synonyms(english, T, Ts), memberchk(T, Ts) ), Bad).
test(each_once, Bad == []) :-
    findall(T,
            ( alike(Ws), stems(english, Ws, Ss), member(T, Ss), synonyms(english, T, Ts), sort(Ts, Sorted),
              length(Ts, N), length(Sorted, M), N =\= M ),
            Bad).
test(unknown_word, Ts == []) :- synonyms(english, xyzzy, Ts).
test(english_only, Ts == []) :- synonyms(german, photo, Ts).
test(no_stemmer_no_thesaurus, Ts == []) :- synonyms(none, photo, Ts).
test(groups_are_words, Bad == []) :-
    findall(W, ( alike(Ws), member(W, Ws), \+ identifier_words(W, [W]) ), Bad).
test(no_group_of_one, Bad == []) :-
    findall(Ws, ( alike(Ws), sort(Ws, Sorted), length(Sorted, N), ( N < 2 ; \+ length(Ws, N) ) ), Bad).

% how they count

test(a_synonym_brings_a_unit_in, Ids == ['tool:a']) :-
    chosen(['tool:a'-[description('resize a picture')], 'tool:b', 'tool:c', 'tool:d'], _{text: 'my photo'}, Ids).
test(the_word_itself_counts_more, Ids == ['tool:b', 'tool:a']) :-
    chosen(['tool:a'-[description('resize a picture')], 'tool:b'-[description('resize a photo')], 'tool:c', 'tool:d'],
           _{text: 'my photo'}, Ids).
test(the_best_of_several_counts_not_all, [nondet, A == B]) :-
    U = ['tool:b', 'tool:c', 'tool:d', 'tool:e', 'tool:f', 'tool:g'],
    reason_value(['tool:a'-[description('picture stone')]|U], _{text: photo}, 'tool:a', [score], A),
    reason_value(['tool:a'-[description('picture image')]|U], _{text: photo}, 'tool:a', [score], B).

:- end_tests(rlm_thesaurus).

:- encoding(utf8).
:- use_module(library(plunit)).
:- use_module('../../prolog/rlm_catalog').
:- use_module('../../prolog/rlm_index').
:- use_module(units).

:- begin_tests(rlm_index).

test(a_word_of_one_unit_is_worth_most, R == 1000) :- rarity(100, 1, R).
test(a_word_of_all_units_is_worth_little, [true(R < 20)]) :- rarity(100, 100, R).
test(rarity_falls, [true(A > B)]) :- rarity(1000, 2, A), rarity(1000, 20, B).
test(one_unit, R == 1000) :- rarity(1, 1, R).

vector(Description, Vector) :-
    fields_vector(english, _{ name: a, alias: '', description: Description, category: '', parameters: '',
                              explained: '', values: '', examples: '' }, Vector).

test(a_vector_is_sorted_and_counts, Ts == [bridg, stone]) :-
    vector('stone bridge stone', V),
    V =.. [v, T1, W1, T2, W2],
    Ts = [T1, T2],
    W2 > W1.
test(more_mentions_add_less, [true(B - A > C - B)]) :-
    weight('stone x y', A), weight('stone stone x y', B), weight('stone stone stone x y', C).
test(longer_texts_weigh_less, [true(A > B)]) :-
    weight('stone', A),
    findall(X, ( between(1, 60, N), atom_concat(word, N, X) ), Xs),
    atomic_list_concat([stone|Xs], ' ', Long),
    weight(Long, B).

weight(Description, W) :-
    vector(Description, V),
    vector_score(V, [w(stone, 1000, stone)], W).

scores(Text, Scores, Handle) :-
    catalog_module(Handle, M),
    index_update(M),
    weigh(M, Text, Weights),
    word_scores(M, all, Weights, Pairs),
    findall(Id-S, ( member(I-S, Pairs), unit_id(M, I, Id) ), Scores).

test(postings_and_vectors_agree, A == B) :-
    with_units(['tool:a'-[description('stone bridge')], 'tool:b'-[description(stone)], 'tool:c'], both(A, B)), !.

weigh(M, Text, Weights) :-
    rlm_words:terms(english, Text, Terms0),
    findall(T-1000, member(T, Terms0), Terms),
    query_weights(M, all, english, Terms, Weights).

both(A, B, Handle) :-
    scores('a stone bridge', A, Handle),
    catalog_module(Handle, M),
    weigh(M, 'a stone bridge', Weights),
    findall(Id-S,
            ( M:vector(I, V), vector_score(V, Weights, S), S > 0, unit_id(M, I, Id) ),
            B).

test(removal_leaves_no_trace, A == B) :-
    with_units(['tool:a'-[description('stone bridge')]], scores('stone bridge', A)), !,
    with_units(['tool:a'-[description('stone bridge')], 'tool:b'-[description(stone)]], without_b(B)), !.

without_b(Scores, Handle) :-
    scores(stone, _, Handle),
    catalog_change(_{catalog: Handle, remove: ['tool:b'], units: []}, _),
    scores('stone bridge', Scores, Handle).

% Synonyms

%   weight_in(+Pictures, +Photos, -Weight): what `picture` counts for "photo" where so many of twenty units have the one
%   word, and so many the other.
weight_in(Pictures, Photos, Weight) :-
    findall(Id-[description(Text)],
            ( between(1, 20, N),
              atom_concat('tool:t', N, Id),
              ( N =< Pictures -> Text = picture ; N =< Pictures + Photos -> Text = photo ; Text = stone ) ),
            Units),
    with_units(Units, stands_for(photo, pictur, Weight)),
    !.

stands_for(Text, Term, Weight, Handle) :-
    catalog_module(Handle, M),
    index_update(M),
    weigh(M, Text, Weights),
    (   member(w(Term, Weight0, Text), Weights)
    ->  Weight = Weight0
    ;   Weight = none
    ).

test(a_synonym_of_an_unknown_word, W == 550) :- weight_in(1, 0, W).
test(a_word_of_one_unit_is_hardly_known, W == 550) :- weight_in(1, 1, W).
test(a_synonym_of_a_known_word, W == 350) :- weight_in(1, 2, W).
test(a_common_synonym_says_nothing, W == none) :- weight_in(9, 2, W).
test(a_unit_counts_the_better_of_both, S == Photo) :-
    Units = ['tool:a'-[description('photo picture')], 'tool:b'-[description('photo stone')], 'tool:c'],
    with_units(Units, scores(photo, Scores)),
    !,
    memberchk('tool:a'-S, Scores),
    memberchk('tool:b'-Photo, Scores).

%   counted_after(+More, -Rows): how many units each word has when units came in two steps.
counted_after(More, Rows, Handle) :-
    catalog_module(Handle, M),
    index_update(M),
    findall(Dict, ( member(Unit, More), units:unit_dict(Unit, Dict) ), Dicts),
    catalog_change(_{catalog: Handle, remove: [], units: Dicts}, _),
    index_update(M),
    index_update(M),
    postings(M, Rows0),
    findall(T-Is, ( member(T-_-Is, Rows0), memberchk(T, [stone, river]) ), Rows).

test(rule_units_that_come_later_are_posted_once, Rows == [river-[2], stone-[1, 2]]) :-
    once(with_units(['tool:a'-[description(stone)]], counted_after(['tool:b'-[description('stone river')]], Rows))).

% One vector

%   vector_of(+Size, -Vector): of so many words; the N-th weighs N times 100.
vector_of(Size, Vector) :-
    findall([Word, Weight], ( between(1, Size, N), word(N, Word), Weight is N * 100 ), Pairs),
    append(Pairs, Args),
    compound_name_arguments(Vector, v, Args).

word(N, Word) :- format(atom(Word), 'w~|~`0t~d~3+', [N]).

test(rule_each_word_of_a_vector_is_found, [forall(between(0, 9, Size)), Scores == Expected]) :-
    vector_of(Size, Vector),
    findall(Score,
            ( between(0, Size, N), word(N, Word), vector_score(Vector, [w(Word, 1000, Word)], Score) ),
            Scores),
    findall(Weight, ( between(0, Size, N), Weight is N * 100 ), Expected).
test(rule_a_word_after_the_last_is_not_found, Score == 0) :-
    vector_of(5, Vector),
    vector_score(Vector, [w(z, 1000, z)], Score).
test(rule_the_best_term_of_each_word_counts, Shares == [s(a, 300, w003), s(b, 200, w002)]) :-
    vector_of(4, Vector),
    vector_shares(Vector, [w(w001, 1000, a), w(w003, 1000, a), w(w002, 1000, a), w(w002, 1000, b)], Shares).
test(rule_the_first_of_equal_terms_is_told, Shares == [s(a, 200, w002)]) :-
    vector_of(4, Vector),
    vector_shares(Vector, [w(w002, 1000, a), w(w004, 500, a)], Shares).
test(rule_a_share_is_weight_by_rarity, Share == 60) :-
    vector_of(3, Vector),
    vector_shares(Vector, [w(w003, 200, a)], [s(a, Share, _)]).
test(rule_the_sum_is_over_words, Sum == 500) :-
    vector_of(4, Vector),
    vector_score(Vector, [w(w001, 1000, a), w(w004, 1000, b)], Sum).
test(rule_the_sums_are_by_unit, Pairs == [1-5, 2-7, 3-1]) :-
    summed_pairs([a-[1-2, 2-7], b-[1-3, 3-1]], Pairs).

% A whole catalog

postings(M, Rows) :-
    findall(T-N-Is, ( M:posting(T, N, Posted, _), compound_name_arguments(Posted, is, Is) ), Rows0),
    sort(Rows0, Rows).

posted_after(Removed, Rows, Handle) :-
    catalog_module(Handle, M),
    index_update(M),
    catalog_change(_{catalog: Handle, remove: Removed, units: []}, _),
    index_update(M),
    postings(M, Rows0),
    findall(T-N, ( member(T-N-Is, Rows0), length(Is, N), \+ memberchk(T, [a, b, c]) ), Rows).

test(rule_a_posting_has_each_unit_once, Rows == [bridg-1, river-1, stone-2]) :-
    once(with_units(['tool:a'-[description('stone bridge')], 'tool:b'-[description('stone river')]], posted_after([], Rows))).
test(rule_a_removed_unit_is_in_no_posting, Rows == [river-1, stone-1]) :-
    once(with_units(['tool:a'-[description('stone bridge')], 'tool:b'-[description('stone river')]],
                    posted_after(['tool:a'], Rows))).

:- end_tests(rlm_index).

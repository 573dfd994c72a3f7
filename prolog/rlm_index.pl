:- encoding(utf8).
:- module(rlm_index,
          [ index_declare/1,      % +Module
            index_unit/4,         % +Module, +Stemmer, +I, +Fields
            index_forget/2,       % +Module, +Is
            index_update/1,       % +Module
            fields_vector/3,      % +Stemmer, +Fields, -Vector
            query_weights/5,      % +Module, +View, +Stemmer, +Terms, -Weighted
            word_pairs/4,         % +Module, +View, +Weighted, -Worded
            summed_pairs/2,       % +Worded, -Pairs
            word_scores/4,        % +Module, +View, +Weighted, -Pairs
            vector_score/3,       % +Vector, +Weighted, -Score
            vector_shares/3,      % +Vector, +Weighted, -Shares
            least_rarity/1,       % ?Thousandths
            synonym_factor/2,     % ?Kind, ?Thousandths
            known_least/1,        % ?N
            synonym_rarity/1,     % ?Thousandths
            rarity/3              % +Size, +Frequency, -Thousandths
          ]).
:- set_prolog_flag(optimise, true).           % arithmetic in place; this file only
:- use_module(library(assoc), [get_assoc/3, list_to_assoc/2]).
:- use_module(library(lists), [append/2, append/3, member/2]).
:- use_module(library(pairs), [pairs_keys_values/3, pairs_values/2]).
:- use_module(library(solution_sequences), [limit/2]).
:- use_module(rlm_origin, [frequency/4, posted/5, view_size/3]).
:- use_module(rlm_thesaurus, [synonyms/3]).
:- use_module(rlm_words, [terms/3]).

/** <module> The word index of a catalog

What a word is worth in a unit depends on that unit alone: the fields it stands in, how often, and how long
they are (BM25F with fixed pivots instead of averages). So a unit's vector never changes when another one
comes or goes, and the order of registration cannot matter. How rare a word is in the catalog is asked when
a query comes.

All values are integers, in thousandths: 1000 is one word in one unit only, said once in a description of
ordinary length.

Facts of a catalog module: `vector(I, v(T1,W1,T2,W2,...))`, `posting(Term, N, is(I1,I2,...), ws(W1,W2,...))`, `N` being
how many there are, and `pending(I)` for units that no posting knows yet.
*/

%   field(?Field, ?Weight, ?Pivot, ?B): what a word in a field weighs, the length (in terms) at which it
%   weighs just that, and how much length matters (0: not at all).
field(name,        3.0,  3, 0.3).
field(alias,       2.0,  3, 0.3).
field(description, 1.0, 20, 0.3).
field(category,    0.7,  2, 0.3).
field(parameters,  0.4,  5, 0.5).
field(explained,   0.4, 30, 0.5).
field(values,      0.5, 10, 0.5).
field(example,     1.0,  8, 0.5).     % one by itself: rlm_examples

%   least_rarity(?Thousandths): a commoner word says nothing.
least_rarity(150).

%   synonym_factor(?Kind, ?Thousandths): what a synonym counts of what the word itself would: more where the catalog
%   hardly has the word (known_least/1).
synonym_factor(known, 350).
synonym_factor(unknown, 550).

%   known_least(?N): so many units must have a word for it to be known.
known_least(2).

%   synonym_rarity(?Thousandths): a commoner synonym says nothing.
synonym_rarity(400).

%   saturation(?K): further mentions add less and less.
saturation(2.5).

%!  index_declare(+Module) is det.
%
%   Declare the facts of the word index in a new catalog module.

index_declare(M) :-
    dynamic([ M:vector/2, M:posting/4, M:pending/1 ], [incremental(false)]).

%!  index_unit(+Module, +Stemmer, +I, +Fields:dict) is det.
%
%   Make the vector of unit `I` from the texts of its fields; postings follow when they are needed.

index_unit(M, Stemmer, I, Fields) :-
    fields_vector(Stemmer, Fields, Vector),
    assertz(M:vector(I, Vector)),
    assertz(M:pending(I)).

%!  fields_vector(+Stemmer, +Fields:dict, -Vector) is det.
%
%   `v(Term, Weight, ...)` in standard order of terms.

fields_vector(Stemmer, Fields, Vector) :-
    findall(Pairs,
            ( field(Field, Weight, Pivot, B),
              get_dict(Field, Fields, Text),
              Text \== '',
              field_pairs(Stemmer, Text, Weight, Pivot, B, Pairs) ),
            Lists),
    append_all(Lists, Pairs),
    keysort(Pairs, Sorted),
    saturation(K),
    vector_args(Sorted, K, Args),
    compound_name_arguments(Vector, v, Args).

field_pairs(Stemmer, Text, Weight, Pivot, B, Pairs) :-
    terms(Stemmer, Text, Terms),
    length(Terms, Length),
    Each is Weight / (1 - B + B * Length / Pivot),
    term_pairs(Terms, Each, Pairs).

term_pairs([], _, []).
term_pairs([T|Ts], Each, [T-Each|Pairs]) :-
    term_pairs(Ts, Each, Pairs).

append_all([], []).
append_all([L|Ls], All) :-
    append(L, Rest, All),
    append_all(Ls, Rest).

vector_args([], _, []).
vector_args([T-X|Pairs], K, [T, W|Args]) :-
    same_term(Pairs, T, X, Sum, Rest),
    W is round(1000 * Sum * (K + 1) / (K + Sum)),
    vector_args(Rest, K, Args).

same_term([T-X|Pairs], T, Sum0, Sum, Rest) :-
    !,
    Sum1 is Sum0 + X,
    same_term(Pairs, T, Sum1, Sum, Rest).
same_term(Rest, _, Sum, Sum, Rest).

                /*******************************
                *           POSTINGS           *
                *******************************/

%   How many units enter the postings at a time: it bounds the memory of one step.
batch(20_000).

%!  index_update(+Module) is det.
%
%   Bring the postings up to date with the vectors.

index_update(M) :-
    (   M:pending(_)
    ->  batch(Size),
        findall(I, limit_pending(M, Size, I), Is),
        length(Is, N),
        add_postings(M, Is),
        (   N < Size
        ->  retractall(M:pending(_))
        ;   forall(member(I, Is), retract(M:pending(I))),
            index_update(M)
        )
    ;   true
    ).

limit_pending(M, Size, I) :-
    limit(Size, M:pending(I)).

add_postings(M, Is) :-
    findall(T-(I-W),
            ( member(I, Is),
              M:vector(I, Vector),
              vector_term(Vector, T, W) ),
            Triples),
    keysort(Triples, Sorted),
    add_groups(Sorted, M).

add_groups([], _).
add_groups([T-IW|Triples], M) :-
    same_group(Triples, T, IWs, Rest),
    add_posting(M, T, [IW|IWs]),
    add_groups(Rest, M).

same_group([T-IW|Triples], T, [IW|IWs], Rest) :-
    !,
    same_group(Triples, T, IWs, Rest).
same_group(Rest, _, [], Rest).

add_posting(M, T, New) :-
    pairs_keys_values(New, NewIs, NewWs),
    (   retract(M:posting(T, _, Is0, Ws0))
    ->  compound_name_arguments(Is0, is, Old),
        compound_name_arguments(Ws0, ws, OldWs),
        append(Old, NewIs, AllIs),
        append(OldWs, NewWs, AllWs)
    ;   AllIs = NewIs,
        AllWs = NewWs
    ),
    assert_posting(M, T, AllIs, AllWs).

assert_posting(M, T, AllIs, AllWs) :-
    length(AllIs, N),
    compound_name_arguments(Is, is, AllIs),
    compound_name_arguments(Ws, ws, AllWs),
    assertz(M:posting(T, N, Is, Ws)).

%!  index_forget(+Module, +Is:list(integer)) is det.
%
%   Take units out of the index.

index_forget(M, Is) :-
    index_update(M),
    findall(T,
            ( member(I, Is),
              M:vector(I, Vector),
              vector_term(Vector, T, _) ),
            Ts0),
    sort(Ts0, Ts),
    findall(I-gone, member(I, Is), Pairs0),
    sort(Pairs0, Pairs),
    list_to_assoc(Pairs, Gone),
    forall(member(T, Ts), thin_posting(M, T, Gone)),
    forall(member(I, Is), retractall(M:vector(I, _))).

thin_posting(M, T, Gone) :-
    retract(M:posting(T, _, Is0, Ws0)),
    findall(I-W,
            ( arg(N, Is0, I),
              \+ get_assoc(I, Gone, _),
              arg(N, Ws0, W) ),
            Kept),
    (   Kept == []
    ->  true
    ;   pairs_keys_values(Kept, KeptIs, KeptWs),
        assert_posting(M, T, KeptIs, KeptWs)
    ).

%   vector_term(+Vector, -Term, -Weight) is nondet.
vector_term(Vector, T, W) :-
    compound_name_arguments(Vector, v, Args),
    in_pairs(Args, T, W).

in_pairs([T0, W0|Args], T, W) :-
    (   T = T0,
        W = W0
    ;   in_pairs(Args, T, W)
    ).

                /*******************************
                *            SCORES            *
                *******************************/

%!  rarity(+Size, +Frequency, -Thousandths) is det.
%
%   How much a term tells that stands in `Frequency` of `Size` units: 1000 where one unit has it, towards 0
%   where all have it. (The BM25 inverse document frequency, over that of a term in one unit only.)

rarity(Size, Frequency, Rarity) :-
    N is max(Size, Frequency),
    Rarity is round(1000 * log(1 + (N - Frequency + 0.5) / (Frequency + 0.5))
                         / log(1 + (N - 0.5) / 1.5)).

%!  query_weights(+Module, +View, +Stemmer, +Terms, -Weighted) is det.
%
%   `w(Term, Weight, Word)` for each word of a query and each term that can stand for it: the word itself and
%   its synonyms, as far as the view knows them and they are not too common in it. The weight is the term's
%   rarity, times what the word counts in the text, times what a synonym counts. Terms are `Term-Factor`
%   (thousandths), each once; the entries of one word stand together.

query_weights(M, View, Stemmer, Terms, Weighted) :-
    view_size(M, View, Size),
    findall(w(T, Weight, Word),
            ( member(Word-Factor, Terms),
              standing_for(M, View, Stemmer, Word, T, Share, Least),
              frequency(M, View, T, Frequency),
              rarity(Size, Frequency, Rarity),
              Rarity >= Least,
              Weight is Rarity * Factor * Share // 1_000_000 ),
            Weighted).

%   standing_for(+M, +View, +Stemmer, +Word, -Term, -Share, -Least) is multi: with what it counts, and how rare it
%   must be.
standing_for(_, _, _, Word, Word, 1000, Least) :-
    least_rarity(Least).
standing_for(M, View, Stemmer, Word, Term, Share, Least) :-
    synonyms(Stemmer, Word, Terms),
    Terms \== [],
    known_least(Least0),
    ( frequency(M, View, Word, N), N >= Least0 -> Kind = known ; Kind = unknown ),
    synonym_factor(Kind, Share),
    synonym_rarity(Least),
    member(Term, Terms).

%!  word_pairs(+Module, +View, +Weighted, -Worded) is det.
%
%   `Word-Pairs` for each word of a query: `I-Share` for every unit of the view that has it or a synonym, by `I`. A unit
%   that has several of them counts the best one.

word_pairs(_, _, [], []).
word_pairs(M, View, [w(T, Weight, Word)|Weighted], [Word-Pairs|Worded]) :-
    same_word(Weighted, Word, Others, Rest),
    findall(I-Share,
            ( member(w(T1, W1, _), [w(T, Weight, Word)|Others]),
              posted(View, M, T1, I, W),
              Share is W1 * W // 1000 ),
            Shares),
    (   Others == []
    ->  Pairs = Shares
    ;   keysort(Shares, Sorted),
        best_shares(Sorted, Pairs)
    ),
    word_pairs(M, View, Rest, Worded).

same_word([w(T, Weight, Word)|Weighted], Word, [w(T, Weight, Word)|Others], Rest) :-
    !,
    same_word(Weighted, Word, Others, Rest).
same_word(Rest, _, [], Rest).

best_shares([], []).
best_shares([I-X|Shares], [I-Best|Pairs]) :-
    best_share(Shares, I, X, Best, Rest),
    best_shares(Rest, Pairs).

best_share([I-X|Shares], I, Best0, Best, Rest) :-
    !,
    Best1 is max(Best0, X),
    best_share(Shares, I, Best1, Best, Rest).
best_share(Rest, _, Best, Best, Rest).

%!  word_scores(+Module, +View, +Weighted, -Pairs) is det.
%
%   `I-Score` for every unit of the view that has one of the words, by `I`.

word_scores(M, View, Weighted, Pairs) :-
    word_pairs(M, View, Weighted, Worded),
    summed_pairs(Worded, Pairs).

%!  summed_pairs(+Worded, -Pairs) is det.
%
%   The sums over the words of word_pairs/4.

summed_pairs(Worded, Pairs) :-
    pairs_values(Worded, Lists),
    append(Lists, Shares),
    keysort(Shares, Sorted),
    sum_shares(Sorted, Pairs).

sum_shares([], []).
sum_shares([I-X|Shares], [I-Sum|Pairs]) :-
    sum_unit(Shares, I, X, Sum, Rest),
    sum_shares(Rest, Pairs).

sum_unit([I-X|Shares], I, Sum0, Sum, Rest) :-
    !,
    Sum1 is Sum0 + X,
    sum_unit(Shares, I, Sum1, Sum, Rest).
sum_unit(Rest, _, Sum, Sum, Rest).

%!  vector_score(+Vector, +Weighted, -Score) is det.
%
%   The score of one unit, as word_scores/4 has it.

vector_score(Vector, Weighted, Score) :-
    vector_shares(Vector, Weighted, Shares),
    sum_all(Shares, 0, Score).

sum_all([], Sum, Sum).
sum_all([s(_, X, _)|Shares], Sum0, Sum) :-
    Sum1 is Sum0 + X,
    sum_all(Shares, Sum1, Sum).

%!  vector_shares(+Vector, +Weighted, -Shares) is det.
%
%   `s(Word, Share, Term)` for each word of the query that the unit has, itself or as a synonym: `Term` is the one
%   that counts most.

vector_shares(Vector, Weighted, Shares) :-
    findall(s(Word, Share, T),
            ( member(w(T, Weight, Word), Weighted),
              vector_weight(Vector, T, W),
              Share is Weight * W // 1000 ),
            All),
    best_terms(All, Shares).

best_terms([], []).
best_terms([S0|All], [S|Shares]) :-
    best_term(All, S0, S, Rest),
    best_terms(Rest, Shares).

best_term([s(Word, X, T)|All], s(Word, X0, T0), S, Rest) :-
    !,
    (   X > X0
    ->  best_term(All, s(Word, X, T), S, Rest)
    ;   best_term(All, s(Word, X0, T0), S, Rest)
    ).
best_term(Rest, S, S, Rest).

vector_weight(Vector, T, W) :-
    compound_name_arity(Vector, _, Arity),
    Last is Arity // 2 - 1,
    find(0, Last, Vector, T, W).

%   Terms stand in standard order: halve until found.
find(Low, High, Vector, T, W) :-
    Low =< High,
    Middle is (Low + High) // 2,
    At is 2 * Middle + 1,
    arg(At, Vector, T0),
    compare(Order, T, T0),
    found(Order, Low, High, Middle, Vector, T, W).

found(=, _, _, Middle, Vector, _, W) :-
    At is 2 * Middle + 2,
    arg(At, Vector, W).
found(<, Low, _, Middle, Vector, T, W) :-
    High is Middle - 1,
    find(Low, High, Vector, T, W).
found(>, _, High, Middle, Vector, T, W) :-
    Low is Middle + 1,
    find(Low, High, Vector, T, W).

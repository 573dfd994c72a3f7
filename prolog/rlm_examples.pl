:- encoding(utf8).
:- module(rlm_examples,
          [ examples_declare/1,   % +Module
            examples_add/4,       % +Module, +Stemmer, +I, +Text
            examples_forget/2,    % +Module, +I
            has_examples/1,       % +Module
            example_weights/4,    % +Module, +View, +Terms, -Weights
            example_scores/3      % +Module, +Weights, -Pairs
          ]).
:- use_module(library(apply), [include/3]).
:- use_module(library(lists), [member/2]).
:- use_module(rlm_index, [fields_vector/3, least_rarity/1, rarity/3, vector_shares/3]).
:- use_module(rlm_origin, [counts/2, frequency/4, in_view/3, view_size/3]).

/** <module> What people said when they wanted a unit

A unit may carry examples: what somebody would say who needs it. They are no description. Each is looked at by
itself, and the one that is most like the text counts; the others do not.

Facts of a catalog module: `example(E, I, Text, Vector)`, E being a number of its own, and `told(Term, E)`.
*/

%!  examples_declare(+Module) is det.

examples_declare(M) :-
    dynamic([ M:example/4, M:told/2 ], [incremental(false)]).

%!  examples_add(+Module, +Stemmer, +I, +Text) is det.
%
%   Learn the examples of unit `I`, one a line.

examples_add(M, Stemmer, I, Text) :-
    split_string(Text, "\n", " \t\r", Lines),
    forall(( member(Line, Lines), Line \== "" ), example_add(M, Stemmer, I, Line)).

example_add(M, Stemmer, I, Line) :-
    atom_string(Said, Line),
    fields_vector(Stemmer, _{example: Said}, Vector),
    flag(rlm_example, E, E + 1),
    assertz(M:example(E, I, Said, Vector)),
    compound_name_arguments(Vector, v, Args),
    forall(term_of(Args, T), assertz(M:told(T, E))).

term_of([T, _|Args], Term) :-
    (   Term = T
    ;   term_of(Args, Term)
    ).

%!  examples_forget(+Module, +I) is det.

examples_forget(M, I) :-
    forall(retract(M:example(E, I, _, _)), retractall(M:told(_, E))).

%!  has_examples(+Module) is semidet.

has_examples(M) :-
    M:example(_, _, _, _),
    !.

%!  example_weights(+Module, +View, +Terms, -Weights) is det.
%
%   `w(Term, Weight, Term)` for each term of a text that some example has. How rare it is depends on the units
%   that have it, in an example or in what they say of themselves, whichever are more.

example_weights(M, View, Terms, Weights) :-
    view_size(M, View, Size),
    least_rarity(Least),
    findall(w(T, Weight, T),
            ( member(T-Factor, Terms),
              told_frequency(M, View, T, Frequency),
              rarity(Size, Frequency, Rarity),
              Rarity >= Least,
              Weight is Rarity * Factor // 1000 ),
            Weights).

told_frequency(M, View, T, Frequency) :-
    findall(I, ( M:told(T, E), M:example(E, I, _, _), in_view(View, M, I) ), Is0),
    Is0 \== [],
    sort(Is0, Is1),
    include(counts(View), Is1, Is),
    length(Is, Told0),
    Told is max(1, Told0),
    (   frequency(M, View, T, Described0)
    ->  Described = Described0
    ;   Described = 0
    ),
    Frequency is max(Told, Described).

%!  example_scores(+Module, +Weights, -Pairs) is det.
%
%   `I-e(example(Text), Score)` for each unit with an example that has one of the terms: the best of its
%   examples, the first one of equals.

example_scores(M, Weights, Pairs) :-
    findall(E, ( member(w(T, _, _), Weights), M:told(T, E) ), Es0),
    sort(Es0, Es),
    findall(k(I, Down, Text)-Score,
            ( member(E, Es),
              M:example(E, I, Text, Vector),
              vector_shares(Vector, Weights, Shares),
              sum_shares(Shares, 0, Score),
              Score > 0,
              Down is -Score ),
            Keyed),
    sort(Keyed, Sorted),
    firsts(Sorted, none, Pairs).

sum_shares([], Sum, Sum).
sum_shares([s(_, X, _)|Shares], Sum0, Sum) :-
    Sum1 is Sum0 + X,
    sum_shares(Shares, Sum1, Sum).

firsts([], _, []).
firsts([k(I, _, Text)-Score|Keyed], Last, Pairs) :-
    (   I == Last
    ->  firsts(Keyed, Last, Pairs)
    ;   Pairs = [I-e(example(Text), Score)|Rest],
        firsts(Keyed, I, Rest)
    ).

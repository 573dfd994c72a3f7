:- encoding(utf8).
:- module(rlm_origin,
          [ origin_declare/1,     % +Module
            origin_add/3,         % +Module, +I, +Origin
            origin_forget/2,      % +Module, +I
            mixed/2,              % +Module, +View
            several/2,            % +Module, +View
            view/5,               % +Module, +Who, +Hidden, +Count, -View
            view_who/2,           % +View, -Who
            is_hidden/2,          % +Hidden, +I
            counts/2,             % +View, +I
            hidden_numbers/2,     % +View, -Is
            bit_numbers/2,        % +Bits, -Is
            in_view/3,            % +View, +Module, +I
            view_row/3,           % ?View, ?Kind, ?Origin
            view_size/3,          % +Module, +View, -Size
            frequency/4,          % +Module, +View, +Term, -Frequency
            posted/5,             % +View, +Module, +Term, -I, -Weight
            wordiest/4            % +Module, +View, +Terms, -Origin
          ]).
:- set_prolog_flag(optimise, true).           % arithmetic in place; this file only
:- use_module(library(aggregate), [aggregate_all/3]).
:- use_module(library(lists), [member/2]).

/** <module> The origin of a unit, and the catalog without one origin

Units of the host have no origin. Units of third parties have the origin that the host gave them: a server, a file, a
scope of skills. A view is the catalog, or a part of it:

| view            | units                                  |
|-----------------|----------------------------------------|
| all             | all                                    |
| host            | the host's own                         |
| without(Origin) | all but those of that third party      |

`view(Who, Hidden, Size)` is one of these of which some units cannot be shown (rlm_hidden): they have their words, but
do not count where units are counted.

Facts of a catalog module: `origin(I, Origin)`, and `brought(Origin, N)`: how many are from there.
*/

%!  origin_declare(+Module) is det.

origin_declare(M) :-
    dynamic([ M:origin/2, M:brought/2 ], [incremental(false)]).

%!  origin_add(+Module, +I, +Origin) is det.
%
%   Unit `I` is from `Origin`; empty for the host.

origin_add(_, _, '') :- !.
origin_add(M, I, Origin) :-
    assertz(M:origin(I, Origin)),
    ( retract(M:brought(Origin, N0)) -> true ; N0 = 0 ),
    N is N0 + 1,
    assertz(M:brought(Origin, N)).

%!  origin_forget(+Module, +I) is det.

origin_forget(M, I) :-
    (   retract(M:origin(I, Origin))
    ->  retract(M:brought(Origin, N0)),
        N is N0 - 1,
        ( N =:= 0 -> true ; assertz(M:brought(Origin, N)) )
    ;   true
    ).

%!  mixed(+Module, +View) is semidet.
%
%   Not all units that count in the view have one origin, and some are a third party's: it could suppress others.

mixed(M, View) :-
    M:brought(Origin, _),
    view_size(M, View, Size),
    origin_count(M, View, Origin, N),
    N > 0,
    !,
    N < Size.

%!  several(+Module, +View) is semidet.
%
%   More than one third party has units that count in the view.

several(M, View) :-
    origin_count(M, View, One, N1),
    N1 > 0,
    origin_count(M, View, Other, N2),
    Other \== One,
    N2 > 0,
    !.

%   origin_count(+M, +View, ?Origin, -N) is nondet: the number of a third party's units that count in the view.
origin_count(M, View, Origin, N) :-
    M:brought(Origin, All),
    (   View = view(_, Hidden, _),
        Hidden =\= 0
    ->  aggregate_all(count, ( M:origin(I, Origin), \+ is_hidden(Hidden, I) ), N)
    ;   N = All
    ).

%!  view(+Module, +Who, +Hidden, +Count, -View) is det.
%
%   `view(Who, Hidden, Size)`: the units of `Who` (`all`, `host` or `without(Origin)`). Those that cannot be shown
%   (rlm_hidden; `Count` of them in the catalog) are in it and do not count.

view(M, Who, Hidden, Count, view(Who, Hidden, Size)) :-
    (   Who == all
    ->  M:size(All),
        Size is All - Count
    ;   view_size(M, Who, All),
        (   Hidden =:= 0
        ->  Size = All
        ;   bit_numbers(Hidden, Is),
            aggregate_all(count, ( member(I, Is), in_view(Who, M, I) ), Out),
            Size is All - Out
        )
    ).

%!  hidden_numbers(+View, -Is:list) is det.
%
%   The units that do not count in the view.

hidden_numbers(view(_, Hidden, _), Is) :-
    bit_numbers(Hidden, Is).

%!  bit_numbers(+Bits:integer, -Is:list) is det.
%
%   The numbers of the bits that are set.

bit_numbers(0, Is) =>
    Is = [].
bit_numbers(Bits, Is) =>
    Last is msb(Bits),
    findall(I, ( between(0, Last, I), getbit(Bits, I) =:= 1 ), Is).

%!  view_who(+View, -Who) is det.

view_who(view(Who0, _, _), Who) =>
    Who = Who0.
view_who(Who0, Who) =>
    Who = Who0.

%!  is_hidden(+Hidden:integer, +I:integer) is semidet.

is_hidden(Hidden, I) :-
    Hidden =\= 0,
    getbit(Hidden, I) =:= 1.

%!  counts(+View, +I) is semidet.
%
%   Unit `I` can be shown, as far as the view knows.

counts(view(_, Hidden, _), I) =>
    \+ is_hidden(Hidden, I).
counts(_, _) =>
    true.

%!  in_view(+View, +Module, +I) is semidet.

in_view(view(Who, _, _), M, I) :-
    in_view(Who, M, I).
in_view(all, _, _).
in_view(host, M, I) :-
    \+ M:origin(I, _).
in_view(without(Origin), M, I) :-
    \+ M:origin(I, Origin).

%!  view_row(?View, ?Kind, ?Origin)
%
%   A view as plain data.

view_row(host, host, '').
view_row(without(Origin), without, Origin) :-
    Origin \== ''.

%!  view_size(+Module, +View, -Size) is det.
%
%   How many units count in the view.

view_size(_, view(_, _, Size0), Size) =>
    Size = Size0.
view_size(M, all, Size) =>
    M:size(Size).
view_size(M, host, Size) =>
    M:size(All),
    aggregate_all(sum(N), M:brought(_, N), Strange),
    Size is All - Strange.
view_size(M, without(Origin), Size) =>
    M:size(All),
    ( M:brought(Origin, N) -> true ; N = 0 ),
    Size is All - N.

%!  frequency(+Module, +View, +Term, -Frequency) is semidet.
%
%   How many units that count in the view have the term; at least one. A term that only units have which cannot be shown
%   is as rare as one that one unit has: how much it says of them is of interest where they are explained.

frequency(M, view(Who, Hidden, _), T, Frequency), Hidden =\= 0 =>
    M:posting(T, _, Is, _),
    aggregate_all(count, ( arg(_, Is, I), in_view(Who, M, I), \+ is_hidden(Hidden, I) ), Shown),
    (   Shown > 0
    ->  Frequency = Shown
    ;   arg(_, Is, I),
        in_view(Who, M, I)
    ->  Frequency = 1
    ).
frequency(M, view(Who, _, _), T, Frequency) =>
    frequency(M, Who, T, Frequency).
frequency(M, all, T, Frequency) =>
    M:posting(T, Frequency, _, _).            % the lists are not copied
frequency(M, View, T, Frequency) =>
    M:posting(T, _, Is, _),
    aggregate_all(count, ( arg(_, Is, I), in_view(View, M, I) ), Frequency),
    Frequency > 0.

%!  posted(+View, +Module, +Term, -I, -Weight) is nondet.
%
%   The units of the view that have the term, and what it weighs in them.

posted(view(Who, _, _), M, T, I, W) :-
    posted(Who, M, T, I, W).
posted(all, M, T, I, W) :-
    M:posting(T, _, Is, Ws),
    arg(N, Is, I),
    arg(N, Ws, W).
posted(host, M, T, I, W) :-
    posted(all, M, T, I, W),
    in_view(host, M, I).
posted(without(Origin), M, T, I, W) :-
    posted(all, M, T, I, W),
    in_view(without(Origin), M, I).

%!  wordiest(+Module, +View, +Terms, -Origin) is semidet.
%
%   The third party whose units have most of the terms altogether, as far as they count; of equals the first by name.

wordiest(M, View, Terms, Origin) :-
    findall(O,
            ( member(T, Terms),
              M:posting(T, _, Is, _),
              arg(_, Is, I),
              M:origin(I, O),
              counts(View, I) ),
            Os0),
    msort(Os0, Os),
    Os = [First|_],
    longest_run(Os, 0, First, Origin).

longest_run([], _, Origin, Origin).
longest_run([O|Os], Most, Origin0, Origin) :-
    run(Os, O, 1, Length, Rest),
    (   Length > Most
    ->  longest_run(Rest, Length, O, Origin)
    ;   longest_run(Rest, Most, Origin0, Origin)
    ).

run([O|Os], O, N0, N, Rest) :-
    !,
    N1 is N0 + 1,
    run(Os, O, N1, N, Rest).
run(Rest, _, N, N, Rest).

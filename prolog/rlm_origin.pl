:- encoding(utf8).
:- module(rlm_origin,
          [ origin_declare/1,     % +Module
            origin_add/3,         % +Module, +I, +Origin
            origin_forget/2,      % +Module, +I
            mixed/1,              % +Module
            in_view/3,            % +View, +Module, +I
            view_row/3,           % ?View, ?Kind, ?Origin
            view_size/3,          % +Module, +View, -Size
            frequency/4,          % +Module, +View, +Term, -Frequency
            posted/5,             % +View, +Module, +Term, -I, -Weight
            wordiest/3            % +Module, +Terms, -Origin
          ]).
:- set_prolog_flag(optimise, true).           % arithmetic in place; this file only
:- use_module(library(aggregate), [aggregate_all/3]).
:- use_module(library(lists), [member/2]).

/** <module> Who a unit is from, and the catalog without somebody

Units of the host have no origin. Those of strangers have the one that the host gave them: a server, a file, a scope of
skills. A view is the catalog, or what would be left of it:

| view            | units                                  |
|-----------------|----------------------------------------|
| all             | all                                    |
| host            | the host's own                         |
| without(Origin) | all but those of that stranger         |

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

%!  mixed(+Module) is semidet.
%
%   Not all units are from one place, and some are a stranger's: it could stand in somebody's way.

mixed(M) :-
    M:brought(_, N),
    !,
    M:size(Size),
    N < Size.

%!  in_view(+View, +Module, +I) is semidet.

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
%   How many units of the view have the term; at least one.

frequency(M, View, T, Frequency) :-
    (   View == all
    ->  M:posting(T, Frequency, _, _)         % the lists are not copied
    ;   M:posting(T, _, Is, _),
        aggregate_all(count, ( arg(_, Is, I), in_view(View, M, I) ), Frequency),
        Frequency > 0
    ).

%!  posted(+View, +Module, +Term, -I, -Weight) is nondet.
%
%   The units of the view that have the term, and what it weighs in them.

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

%!  wordiest(+Module, +Terms, -Origin) is semidet.
%
%   The stranger whose units have most of the terms altogether.

wordiest(M, Terms, Origin) :-
    findall(O,
            ( member(T, Terms),
              M:posting(T, _, Is, _),
              arg(_, Is, I),
              M:origin(I, O) ),
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

:- encoding(utf8).
:- module(rlm_conflict,
          [ clash/4,              % +Module, +Active, +Is, -Reason
            outranked/4,          % +Module, +Roots, -Standing, -Outranked
            decided_first/3       % +World, +Roots, -Ordered
          ]).
:- use_module(library(assoc), [del_assoc/4, empty_assoc/1, get_assoc/3, list_to_assoc/2, put_assoc/4]).
:- use_module(library(lists), [member/2, nth1/3]).
:- use_module(library(pairs), [pairs_values/2]).
:- use_module(rlm_catalog, [replaces/3, supersedes/3]).
:- use_module(rlm_closure, [places/2, reachable/3]).

/** <module> What a unit pushes out

Nothing that is active is ever revoked: what supersedes something stands before it in the order, and what
comes later and clashes is turned away with the name of what was there first.
*/

%!  clash(+Module, +Active:assoc, +Is:list, -Reason) is semidet.
%
%   The first of Is that cannot stand beside Active: `superseded_by(Winner, I)`, or `conflict_with(Winner, I)`
%   where the two conflict or where I would supersede Winner too late.

clash(M, Active, Is, Reason) :-
    member(I, Is),
    against(M, Active, I, Reason),
    !.

against(M, Active, I, superseded_by(A, I)) :-
    supersedes(M, A, I),
    get_assoc(A, Active, _).
against(M, Active, I, conflict_with(A, I)) :-
    conflicting(M, I, A),
    get_assoc(A, Active, _).
against(M, Active, I, conflict_with(A, I)) :-
    supersedes(M, I, A),
    get_assoc(A, Active, _).

%   conflicting(+M, +I, -J) is nondet: one of them says so, and that is enough.
conflicting(M, I, J) :-
    M:conflicts(I, Id),
    M:number(Id, J).
conflicting(M, I, J) :-
    M:unit(I, Id, _, _, _, _),
    M:conflicts(J, Id).

%!  outranked(+Module, +Roots:list, -Standing:list, -Outranked:list) is det.
%
%   Of units that the host wants together, one that another of them supersedes gives way: `I-Winner`.

outranked(M, Roots, Standing, Outranked) :-
    places(Roots, Places),
    findall(R, ( member(R, Roots), \+ above_of(M, Places, R, _, _) ), Standing),
    findall(R-Winner,
            ( member(R, Roots),
              findall(Place-S,
                      ( above_of(M, Places, R, Place, S),
                        \+ above_of(M, Places, S, _, _) ),
                      Ss),
              sort(Ss, [_-Winner|_]) ),
            Outranked).

%   above_of(+M, +Places, +R, -Place, -S) is nondet: S of Places takes the place of R.
above_of(M, Places, R, Place, S) :-
    replaces(M, S, R),
    get_assoc(S, Places, Place).

%!  decided_first(+World, +Roots:list, -Ordered:list) is det.
%
%   Roots (`root(I, Tier, Exempt)`) in the order in which they are decided: one that supersedes something
%   stands immediately before the best root whose closure contains what it supersedes.

decided_first(World, Roots, Ordered) :-
    World = world(M, _, _, _, _, _),
    (   M:above(_, _)
    ->  findall(S-(Place-Root),
                ( nth1(Place, Roots, Root),
                  arg(1, Root, S),
                  once(supersedes(M, S, _)) ),
                Pairs),
        list_to_assoc(Pairs, Superseders),
        empty_assoc(None),
        emit(Roots, World, Superseders, None, _, Ordered, [])
    ;   Ordered = Roots
    ).

%   emit(+Roots, +World, +Superseders, +Done0, -Done, -Ordered, ?Rest): each root once, after the superseders of its
%   closure.
emit([], _, _, Done, Done, Rest, Rest).
emit([Root|Roots], World, Superseders, Done0, Done, Ordered, Rest) :-
    arg(1, Root, R),
    (   get_assoc(R, Done0, _)
    ->  Done1 = Done0,
        Ordered = Ordered1
    ;   superseders_of(World, R, Superseders, Done0, Before),
        remaining(Superseders, R, Others),
        emit(Before, World, Others, Done0, Done2, Ordered, Ordered2),
        put_assoc(R, Done2, true, Done1),
        (   get_assoc(R, Done2, _)
        ->  Ordered2 = Ordered1
        ;   Ordered2 = [Root|Ordered1]
        )
    ),
    emit(Roots, World, Superseders, Done1, Done, Ordered1, Rest).

superseders_of(World, R, Superseders, Done, Before) :-
    World = world(M, _, _, _, _, _),
    reachable(World, [R], Closure),
    findall(Place-Superseder,
            ( member(X, Closure),
              supersedes(M, S, X),
              S \== R,
              get_assoc(S, Superseders, Place-Superseder),
              \+ get_assoc(S, Done, _) ),
            Pairs),
    sort(Pairs, Sorted),
    pairs_values(Sorted, Before).

remaining(Superseders, R, Others) :-
    (   del_assoc(R, Superseders, _, Others0)
    ->  Others = Others0
    ;   Others = Superseders
    ).

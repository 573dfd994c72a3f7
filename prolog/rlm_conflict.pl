:- encoding(utf8).
:- module(rlm_conflict,
          [ clash/4,              % +Module, +Active, +Is, -Reason
            outranked/4,          % +Module, +Roots, -Standing, -Outranked
            decided_first/3       % +World, +Roots, -Ordered
          ]).
:- use_module(library(lists), [member/2, reverse/2, selectchk/3]).
:- use_module(rlm_catalog, [replaces/3, supersedes/3]).
:- use_module(rlm_closure, [reachable/3]).

/** <module> What a unit pushes out

Nothing that is active is ever revoked: what supersedes something stands before it in the order, and what
comes later and clashes is turned away with the name of what was there first.
*/

%!  clash(+Module, +Active:list, +Is:list, -Reason) is semidet.
%
%   The first of Is that cannot stand beside Active: `superseded_by(Winner, I)`, or `conflict_with(Winner, I)`
%   where the two conflict or where I would supersede Winner too late.

clash(M, Active, Is, Reason) :-
    member(I, Is),
    against(M, Active, I, Reason),
    !.

against(M, Active, I, superseded_by(A, I)) :-
    supersedes(M, A, I),
    memberchk(A, Active).
against(M, Active, I, conflict_with(A, I)) :-
    conflicting(M, I, A),
    memberchk(A, Active).
against(M, Active, I, conflict_with(A, I)) :-
    supersedes(M, I, A),
    memberchk(A, Active).

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
    findall(R, ( member(R, Roots), \+ ( replaces(M, S, R), memberchk(S, Roots) ) ), Standing),
    findall(R-Winner,
            ( member(R, Roots),
              \+ memberchk(R, Standing),
              once(( member(Winner, Standing), replaces(M, Winner, R) )) ),
            Outranked).

%!  decided_first(+World, +Roots:list, -Ordered:list) is det.
%
%   Roots (`root(I, Tier, Exempt)`) in the order in which they are decided: one that supersedes something
%   stands immediately before the best root whose closure contains what it supersedes.

decided_first(World, Roots, Ordered) :-
    World = world(M, _, _, _, _, _),
    (   M:above(_, _)
    ->  findall(Root,
                ( member(Root, Roots),
                  arg(1, Root, S),
                  once(supersedes(M, S, _)) ),
                Superseders),
        emit(Roots, World, Superseders, [], Reversed),
        reverse(Reversed, Ordered)
    ;   Ordered = Roots
    ).

%   emit(+Roots, +World, +Superseders, +Done0, -Done): each root once, after the superseders of its closure.
emit([], _, _, Done, Done).
emit([Root|Roots], World, Superseders, Done0, Done) :-
    (   memberchk(Root, Done0)
    ->  Done1 = Done0
    ;   superseders_of(World, Root, Superseders, Done0, Before),
        remaining(Superseders, Root, Others),
        emit(Before, World, Others, Done0, Done2),
        (   memberchk(Root, Done2)
        ->  Done1 = Done2
        ;   Done1 = [Root|Done2]
        )
    ),
    emit(Roots, World, Superseders, Done1, Done).

superseders_of(World, Root, Superseders, Done, Before) :-
    World = world(M, _, _, _, _, _),
    arg(1, Root, R),
    reachable(World, [R], Closure),
    findall(Superseder,
            ( member(Superseder, Superseders),
              arg(1, Superseder, S),
              S \== R,
              \+ memberchk(Superseder, Done),
              once(( supersedes(M, S, X), memberchk(X, Closure) )) ),
            Before).

remaining(Superseders, Root, Others) :-
    (   selectchk(Root, Superseders, Others0)
    ->  Others = Others0
    ;   Others = Superseders
    ).

:- encoding(utf8).
:- module(rlm_conflict,
          [ clash/4,              % +Module, +Active, +Is, -Reason
            outranked/4,          % +Module, +Roots, -Standing, -Outranked
            decided_first/4       % +World, +Bad, +Roots, -Ordered
          ]).
:- use_module(library(assoc), [empty_assoc/1, get_assoc/3, put_assoc/4]).
:- use_module(library(lists), [member/2, nth1/3]).
:- use_module(library(pairs), [pairs_values/2]).
:- use_module(rlm_catalog, [replaces/3, supersedes/3]).
:- use_module(rlm_closure, [by_number/2, places/2, reaching/4]).

/** <module> What a unit pushes out

Nothing that is active is ever revoked: what supersedes something stands before it in the order, and what
comes later and clashes is turned away with the name of what was there first.
*/

%!  clash(+Module, +Active:assoc, +Is:list, -Reason) is semidet.
%
%   The first of Is that cannot stand beside Active: `superseded_by(Winner, I)`, or `conflict_with(Winner, I)`
%   where the two conflict or where I would supersede Winner too late. Of several winners it is the one that was
%   admitted first: Active has the place of each.

clash(M, Active, Is, Reason) :-
    member(I, Is),
    against(M, Active, I, Reason),
    !.

against(M, Active, I, superseded_by(A, I)) :-
    \+ \+ ( supersedes(M, S, I), get_assoc(S, Active, _) ),      % most units stand against none
    findall(Place-S, ( supersedes(M, S, I), get_assoc(S, Active, Place) ), Ss),
    earliest(Ss, A).
against(M, Active, I, conflict_with(A, I)) :-
    \+ \+ ( conflicting(M, I, C), get_assoc(C, Active, _) ),      % most units stand against none
    findall(Place-C, ( conflicting(M, I, C), get_assoc(C, Active, Place) ), Cs),
    earliest(Cs, A).
against(M, Active, I, conflict_with(A, I)) :-
    \+ \+ ( supersedes(M, I, S), get_assoc(S, Active, _) ),      % most units stand against none
    findall(Place-S, ( supersedes(M, I, S), get_assoc(S, Active, Place) ), Ss),
    earliest(Ss, A).

%   earliest(+Placed, -A) is semidet: of `Place-A`.
earliest([Placed|More], A) :-
    sort([Placed|More], [_-A|_]).

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

%!  decided_first(+World, +Bad, +Roots:list, -Ordered:list) is det.
%
%   Roots (`root(I, Tier, Exempt)`) in the order in which they are decided: one that supersedes something
%   stands immediately before the best root whose closure contains what it supersedes. A root that cannot be shown has
%   no closure, and pulls nothing forward.

decided_first(World, Bad, Roots, Ordered) :-
    World = world(M, _, _, _, _, _),
    (   M:above(_, _)
    ->  findall(S-(Place-Root),
                ( nth1(Place, Roots, Root),
                  arg(1, Root, S),
                  once(supersedes(M, S, _)) ),
                Pairs),
        findall(R-(Place-Root),
                ( member(S-(Place-Root), Pairs),
                  before(World, Bad, S, R) ),
                Before0),
        by_number(Before0, Before),
        empty_assoc(None),
        emit(Roots, Before, None, _, Ordered, [])
    ;   Ordered = Roots
    ).

%   before(+World, +Bad, +S, -R) is nondet: S supersedes something in the closure of R.
before(World, Bad, S, R) :-
    World = world(M, _, _, _, _, _),
    findall(X, supersedes(M, S, X), Xs),
    reaching(World, viable(Bad), Xs, Rs),
    member(R, Rs),
    R \== S.

%   emit(+Roots, +Before, +Done0, -Done, -Ordered, ?Rest): each root once, after those that stand before it. A root is
%   noted before it is looked at, so that a circle ends.
emit([], _, Done, Done, Rest, Rest).
emit([Root|Roots], Before, Done0, Done, Ordered, Rest) :-
    arg(1, Root, R),
    (   get_assoc(R, Done0, _)
    ->  Done1 = Done0,
        Ordered = Ordered1
    ;   put_assoc(R, Done0, true, Done2),
        (   get_assoc(R, Before, Placed)
        ->  sort(Placed, Sorted),
            pairs_values(Sorted, First),
            emit(First, Before, Done2, Done1, Ordered, [Root|Ordered1])
        ;   Done1 = Done2,
            Ordered = [Root|Ordered1]
        )
    ),
    emit(Roots, Before, Done1, Done, Ordered1, Rest).

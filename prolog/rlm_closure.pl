:- encoding(utf8).
:- module(rlm_closure,
          [ by_number/2,          % +Pairs, -Table
            needs/4,              % +World, +I, -Id, -J
            reachable/3,          % +World, +Roots, -Is
            reaching/4,           % +World, +Which, +Is, -Rs
            nonviable/3,          % +World, +Roots, -Bad
            out/4,                % +World, +Bad, +I, -Reasons
            places/2,             % +Is, -Places
            closure/5             % +World, +Bad, +Active, +Roots, -Closure
          ]).
:- use_module(library(apply), [foldl/4]).
:- use_module(library(assoc),
              [ assoc_to_keys/2, empty_assoc/1, gen_assoc/3, get_assoc/3, list_to_assoc/2, put_assoc/4 ]).
:- use_module(library(lists), [append/3, member/2, nth1/3]).
:- use_module(library(ordsets), [ord_memberchk/2, ord_subtract/3, ord_union/3]).
:- use_module(library(pairs), [group_pairs_by_key/2]).
:- use_module(rlm_catalog, [replaces/3, supersedes/3]).
:- use_module(rlm_eligible, [blocks/4, eligible/3]).

/** <module> What a unit drags in

A unit needs what it requires; a requirement is met by the unit itself or by something that supersedes it.
A unit is *viable* where it is eligible and all that it needs can be met: units that need each other stand
or fall together (the greatest such set). Relations are listed by id, so that the order in which units were
registered shows nowhere.

A `World` is what one compile knows, and it never changes:
`world(Module, Policy, Extra, Negated, Vetoed, Candidates)`. `Extra` holds requirements for this compile
only (a table of ids, by I), `Negated` (an ordset) and `Vetoed` (a table of rules, by I) what the user's words
and the host's rules keep out, and `Candidates` (places/2, in the order of their ranks) what stands on its own
feet and may therefore stand in for others.

What is asked of many units, whether this one is active, a candidate, a member, is asked of a table: a catalog
that is shown whole has thousands of each.
*/

%!  by_number(+Pairs, -Table) is det.
%
%   Of `I-X`, an assoc from each I to its Xs, in their order.

by_number(Pairs, Table) :-
    keysort(Pairs, Sorted),
    group_pairs_by_key(Sorted, Groups),
    list_to_assoc(Groups, Table).

%!  places(+Is:list, -Places) is det.
%
%   An assoc from each I to its place in the list, the first where it has more.

places(Is, Places) :-
    findall(I-Place, nth1(Place, Is, I), Pairs),
    sort(1, @<, Pairs, Sorted),
    list_to_assoc(Sorted, Places).

%!  needs(+World, +I, -Id, -J) is nondet.
%
%   I requires the unit `Id`; J is its number, or `missing`.

needs(world(M, _, Extra, _, _, _), I, Id, J) :-
    (   M:requires(I, Id)
    ;   get_assoc(I, Extra, Ids),
        member(Id, Ids)
    ),
    (   M:number(Id, J0)
    ->  J = J0
    ;   J = missing
    ).

%!  reachable(+World, +Roots, -Is:ordset) is det.
%
%   Roots and all that they require, through any number of steps.

reachable(World, Roots, Is) :-
    sort(Roots, Sorted),
    near_levels(Levels),
    spread(Sorted, Levels, World, Sorted, Is).

%   near_levels(?N): so many levels are merged as ordered sets, which is twice as fast as a table; merged so, each unit
%   of a long chain would cost as much as all before it.
near_levels(32).

spread([], _, _, Seen, Is) =>
    Is = Seen.
spread(Level, 0, World, Seen, Is) =>
    findall(I-true, member(I, Seen), Pairs),
    list_to_assoc(Pairs, Known0),
    spread_far(Level, World, Known0, Known),
    assoc_to_keys(Known, Is).
spread(Level, Left, World, Seen, Is) =>
    required(World, Level, Js),
    ord_subtract(Js, Seen, New),
    ord_union(Seen, New, Seen1),
    Left1 is Left - 1,
    spread(New, Left1, World, Seen1, Is).

%   spread_far(+Level, +World, +Known0, -Known): the same with a table.
spread_far([], _, Known0, Known) =>
    Known = Known0.
spread_far(Level, World, Known0, Known) =>
    required(World, Level, Js),
    findall(J, ( member(J, Js), \+ get_assoc(J, Known0, _) ), New),
    foldl(known, New, Known0, Known1),
    spread_far(New, World, Known1, Known).

known(J, Known0, Known) :-
    put_assoc(J, Known0, true, Known).

%!  reaching(+World, +Which, +Is, -Rs) is det.
%
%   The units from which one of Is is reached through requirements, Is themselves included: `Which` is `all`, or
%   `viable(Bad)` for those that are viable and reach it through viable units.

reaching(World, Which, Is, Rs) :-
    empty_assoc(None),
    back(Is, World, Which, None, Known),
    findall(R, ( gen_assoc(R, Known, _), passes(Which, World, R) ), Rs).

back([], _, _, Known0, Known) =>
    Known = Known0.
back(Is, World, Which, Known0, Known) =>
    foldl(known, Is, Known0, Known1),
    World = world(M, _, Extra, _, _, _),
    findall(R,
            ( member(I, Is),
              M:unit(I, Id, _, _, _, _),
              (   M:requires(R, Id)
              ;   gen_assoc(R, Extra, Ids),
                  memberchk(Id, Ids)
              ),
              \+ get_assoc(R, Known1, _),
              passes(Which, World, R) ),
            Rs0),
    sort(Rs0, Rs),
    back(Rs, World, Which, Known1, Known).

passes(all, _, _).
passes(viable(Bad), World, R) :-
    out(World, Bad, R, []).

%   required(+World, +Is, -Js:ordset): what Is require themselves, as far as it is there.
required(World, Is, Js) :-
    findall(J, ( member(I, Is), needs(World, I, _, J), J \== missing ), Js0),
    sort(Js0, Js).

                /*******************************
                *           VIABILITY          *
                *******************************/

%!  nonviable(+World, +Roots, -Bad) is det.
%
%   An assoc of units that roots with requirements could drag in and that are not viable, with their
%   reasons. (A unit that requires nothing is judged when it is met: out/4.)

nonviable(World, Roots, Bad) :-
    empty_assoc(None),
    needy(World, Roots, Needy),
    (   Needy == []
    ->  Bad = None
    ;   concerned(World, Needy, Is),
        add_blocked(Is, World, None, Blocked),
        fall(Is, World, Blocked, Fallen),
        all_reasons(Is, World, Fallen, Fallen, Bad)
    ).

needy(world(M, _, Extra, _, _, _), _, Needy), empty_assoc(Extra), \+ M:requires(_, _) =>
    Needy = [].
needy(World, Roots, Needy) =>
    findall(R, ( member(R, Roots), once(needs(World, R, _, _)) ), Needy).

%   concerned(+World, +Roots, -Is): what Roots reach, and what could stand in for any of it.
concerned(World, Roots, Is) :-
    reachable(World, Roots, Is0),
    findall(S,
            ( member(I, Is0),
              substitute(World, I, S),
              \+ ord_memberchk(S, Is0) ),
            Ss0),
    sort(Ss0, Ss),
    (   Ss == []
    ->  Is = Is0
    ;   ord_union(Is0, Ss, Wider),
        concerned(World, Wider, Is)
    ).

%   substitute(+World, +I, -S): S supersedes I and stands on its own feet.
substitute(World, I, S) :-
    World = world(M, _, _, _, _, Candidates),
    replacement(M, Candidates, I, _, S).

%   replacement(+M, +Places, +I, -Place, -S) is nondet: S of Places stands in for I.
replacement(M, Places, I, Place, S) :-
    replaces(M, S, I),
    get_assoc(S, Places, Place).

add_blocked([], _, Bad, Bad).
add_blocked([I|Is], World, Bad0, Bad) :-
    kept_out(World, I, Reasons),
    (   Reasons == []
    ->  Bad1 = Bad0
    ;   put_assoc(I, Bad0, Reasons, Bad1)
    ),
    add_blocked(Is, World, Bad1, Bad).

%   kept_out(+World, +I, -Reasons): what keeps I itself out, whatever it needs.
kept_out(world(M, Policy, _, Negated, Vetoed, _), I, Reasons) :-
    (   eligible(M, Policy, I),
        \+ ord_memberchk(I, Negated),
        \+ get_assoc(I, Vetoed, _)
    ->  Reasons = []
    ;   blocks(M, Policy, I, Reasons0),
        findall(Reason, prose_or_rule(I, Negated, Vetoed, Reason), Reasons1),
        append(Reasons0, Reasons1, Reasons)
    ).

prose_or_rule(I, Negated, _, negated) :-
    ord_memberchk(I, Negated).
prose_or_rule(I, _, Vetoed, vetoed(Rule)) :-
    get_assoc(I, Vetoed, Rules),
    member(Rule, Rules).

%   fall(+Is, +World, +Bad0, -Bad): what needs something that cannot be met falls too, until nothing does. After the
%   first round only those are looked at again whom something that fell in the last one concerns.
fall(Is, World, Bad0, Bad) :-
    falling(Is, World, Bad0, Falling),
    (   Falling == []
    ->  Bad = Bad0
    ;   findall(J-I, ( member(I, Is), concerns(World, J, I) ), Pairs),
        by_number(Pairs, Concerned),
        fall_round(Falling, Concerned, World, Bad0, Fallen),
        named(Is, Concerned, World, Bad0, Fallen, Bad)
    ).

fall_round([], _, _, Bad0, Bad) =>
    Bad = Bad0.
fall_round(Falling, Concerned, World, Bad0, Bad) =>
    add_falling(Falling, Bad0, Bad1),
    findall(I, ( member(J-_, Falling), get_assoc(J, Concerned, Is0), member(I, Is0) ), Is1),
    sort(Is1, Is),
    falling(Is, World, Bad1, Next),
    fall_round(Next, Concerned, World, Bad1, Bad).

%   named(+Is, +Concerned, +World, +Own, +Fallen, -Bad): the first reason of each unit in Fallen is the one that is
%   nearest to what keeps a unit out itself (Own): not the one that was found first, which hangs on units that fell
%   before.
named(Is, Concerned, World, Own, Fallen, Bad) :-
    findall(I, ( member(I, Is), get_assoc(I, Fallen, _) ), Out),
    naming(Out, Concerned, World, Fallen, Own, Bad).

naming(Is, Concerned, World, Fallen, Bad0, Bad) :-
    findall(I-Reason,
            ( member(I, Is),
              get_assoc(I, Fallen, _),
              \+ get_assoc(I, Bad0, _),
              once(unmet(World, Fallen, Bad0, I, Reason)) ),
            Named),
    (   Named == []
    ->  Bad = Bad0
    ;   add_falling(Named, Bad0, Bad1),
        findall(I, ( member(J-_, Named), get_assoc(J, Concerned, Is0), member(I, Is0) ), Next0),
        sort(Next0, Next),
        naming(Next, Concerned, World, Fallen, Bad1, Bad)
    ).

%   falling(+Is, +World, +Bad, -Falling): `I-Reason` for those that are not bad yet, and need what Bad leaves unmet.
falling(Is, World, Bad, Falling) :-
    findall(I-Reason,
            ( member(I, Is),
              \+ get_assoc(I, Bad, _),
              once(unmet(World, Bad, Bad, I, Reason)) ),
            Falling).

%   concerns(+World, -J, +I) is nondet: I needs J, or something for which J could stand in.
concerns(World, J, I) :-
    needs(World, I, _, D),
    D \== missing,
    (   J = D
    ;   substitute(World, D, J)
    ).

add_falling([], Bad, Bad).
add_falling([I-Reason|Falling], Bad0, Bad) :-
    put_assoc(I, Bad0, [Reason], Bad1),
    add_falling(Falling, Bad1, Bad).

%   all_reasons(+Is, +World, +Fallen, +Bad0, -Bad): everything that is wrong with each, not only what came first.
all_reasons([], _, _, Bad, Bad).
all_reasons([I|Is], World, Fallen, Bad0, Bad) :-
    (   get_assoc(I, Fallen, _)
    ->  kept_out(World, I, Own),
        findall(Reason, unmet(World, Fallen, Fallen, I, Reason), Unmet),
        append(Own, Unmet, Reasons),
        put_assoc(I, Bad0, Reasons, Bad1)
    ;   Bad1 = Bad0
    ),
    all_reasons(Is, World, Fallen, Bad1, Bad).

%   unmet(+World, +Bad, +Named, +I, -Reason) is nondet: in the order of what I requires. Bad are the units that stand in
%   for nothing, Named those whose reasons are known.
unmet(World, Bad, Named, I, Reason) :-
    needs(World, I, Id, J),
    unmet_need(J, Id, World, Bad, Named, I, Reason).

unmet_need(missing, Id, _, _, _, _, Reason) =>
    Reason = missing_dependency(Id).
unmet_need(J, Id, World, Bad, Named, I, Unmet) =>
    Unmet = dependency_out(Id, Reason),
    get_assoc(J, Named, [Reason0|_]),
    shallow(Reason0, Reason),
    World = world(M, _, _, _, _, _),
    \+ replaces(M, I, J),
    \+ ( substitute(World, J, S),
         \+ get_assoc(S, Bad, _) ).

%   One step of a chain is enough beside a unit; the next one stands beside the unit that it names.
shallow(dependency_out(Id, _), Reason) =>
    Reason = dependency_out(Id).
shallow(Reason0, Reason) =>
    Reason = Reason0.

%!  out(+World, +Bad, +I, -Reasons) is det.
%
%   Why I is not viable; empty where it is.

out(World, Bad, I, Reasons) :-
    (   get_assoc(I, Bad, Reasons0)
    ->  Reasons = Reasons0
    ;   kept_out(World, I, Reasons)
    ).

                /*******************************
                *            CLOSURE           *
                *******************************/

%!  closure(+World, +Bad, +Active, +Roots, -Closure) is det.
%
%   What admitting Roots together would add to Active (an assoc): `members(Ms)`, each `m(I, root)` or
%   `m(I, dependency_of(J))`, in order. What others of them supersede is left out, with all that only it
%   needed. `contradiction(A, B)` where a root would be left out so, or where two members conflict.

closure(World, _, Active, [Root], Closure), \+ get_assoc(Root, Active, _), \+ needs(World, Root, _, _) =>
    Closure = members([m(Root, root)]).
closure(World, Bad, Active, Roots, Closure) =>
    World = world(M, _, _, _, _, _),
    walk(Roots, World, Active, drags(Bad), Members0),
    member_places(Members0, Places0),
    outdone(M, Members0, Places0, Outdone),
    (   Outdone == []
    ->  consistent(M, Members0, Places0, Closure)
    ;   places(Roots, RootPlaces),
        member(R-S, Outdone),
        get_assoc(R, RootPlaces, _)
    ->  Closure = contradiction(R, S)
    ;   list_to_assoc(Outdone, Superseders),
        walk(Roots, World, Active, instead(Superseders, Places0), Members),
        member_places(Members, Places),
        consistent(M, Members, Places, Closure)
    ).

member_places(Members, Places) :-
    findall(I, member(m(I, _), Members), Is),
    places(Is, Places).

consistent(M, Members, Places, Closure) :-
    (   member(m(A, _), Members),
        findall(Place-O, ( opposed(M, A, O), get_assoc(O, Places, Place) ), Os),
        Os \== []
    ->  sort(Os, [_-B|_]),
        Closure = contradiction(A, B)
    ;   Closure = members(Members)
    ).

opposed(M, A, B) :-
    M:conflicts(A, Id),
    M:number(Id, B).
opposed(M, A, B) :-
    supersedes(M, A, B).

%   walk(+Roots, +World, +Active, +How, -Members): breadth first, the first reason is kept.
walk(Roots, World, Active, How, Members) :-
    empty_assoc(None),
    queued(Roots, root, None, Known, Level, []),
    levels(Level, World, Active, How, Known, Members).

levels([], _, _, _, _, Members) =>
    Members = [].
levels(Level, World, Active, How, Known0, Members) =>
    level(Level, World, Active, How, Known0, Known, Next, Members, Rest),
    levels(Next, World, Active, How, Known, Rest).

%   level(+Level, +World, +Active, +How, +Known0, -Known, -Next, -Members, ?Rest): one level of the walk; Known has
%   all that was ever on its way into the closure.
level([], _, _, _, Known, Known, [], Rest, Rest).
level([m(I, Why)|Level], World, Active, How, Known0, Known, Next, Members, Rest) :-
    (   get_assoc(I, Active, _)
    ->  Members = Members1,
        Known1 = Known0,
        Next = Next1
    ;   Members = [m(I, Why)|Members1],
        findall(J, step(How, World, Active, Known0, I, J), Js),
        queued(Js, dependency_of(I), Known0, Known1, Next, Next1)
    ),
    level(Level, World, Active, How, Known1, Known, Next1, Members1, Rest).

%   queued(+Is, +Why, +Known0, -Known, -Level, ?Rest): those of Is that are new.
queued([], _, Known, Known, Rest, Rest).
queued([I|Is], Why, Known0, Known, Level, Rest) :-
    (   get_assoc(I, Known0, _)
    ->  Known1 = Known0,
        Level = Level1
    ;   put_assoc(I, Known0, true, Known1),
        Level = [m(I, Why)|Level1]
    ),
    queued(Is, Why, Known1, Known, Level1, Rest).

%   step(+How, +World, +Active, +Known, +I, -J) is nondet: I needs something that nothing active meets, and J comes
%   for it. `drags(Bad)`: unless something that is on its way already stands in for it. `instead(Outdone, Places)`:
%   J is a member, a superseder in the place of what it supersedes.
step(How, World, Active, Known, I, J) :-
    World = world(M, _, _, _, _, _),
    needs(World, I, _, D),
    D \== missing,
    \+ met(M, Active, D),
    comes(How, World, Known, D, J).

comes(drags(Bad), World, Known, D, J) :-
    World = world(M, _, _, _, _, _),
    \+ replacement(M, Known, D, _, _),
    (   out(World, Bad, D, [])
    ->  J = D
    ;   first_substitute(World, Bad, D, J)
    ).
comes(instead(Outdone, Places), World, _, D, J) :-
    World = world(M, _, _, _, _, _),
    (   get_assoc(D, Outdone, S)
    ->  J = S
    ;   get_assoc(D, Places, _)
    ->  J = D
    ;   replacements(M, Places, D, Ss),
        member(_-J, Ss),
        \+ get_assoc(J, Outdone, _)
    ->  true
    ).

%   met(+M, +Active, +D) is semidet: D is active, or something active stands in for it.
met(M, Active, D) :-
    (   get_assoc(D, Active, _)
    ->  true
    ;   replacement(M, Active, D, _, _)
    ->  true
    ).

%   replacements(+M, +Places, +I, -Ss): `Place-S` for all of Places that stand in for I, in their order.
replacements(M, Places, I, Ss) :-
    findall(Place-S, replacement(M, Places, I, Place, S), Ss0),
    keysort(Ss0, Ss).

first_substitute(World, Bad, D, J) :-
    World = world(M, _, _, _, _, Candidates),
    replacements(M, Candidates, D, Ss),
    member(_-J, Ss),
    out(World, Bad, J, []),
    !.

%   outdone(+M, +Members, +Places, -Pairs): `I-S` for each member with its superseder among them that none supersedes.
outdone(M, Members, Places, Pairs) :-
    (   M:above(_, _)
    ->  findall(I-S,
                ( member(m(I, _), Members),
                  replacements(M, Places, I, Ss),
                  once(( member(_-S, Ss), \+ replacement(M, Places, S, _, _) )) ),
                Pairs)
    ;   Pairs = []
    ).

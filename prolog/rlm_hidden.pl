:- encoding(utf8).
:- module(rlm_hidden,
          [ hidden/7,             % +World, +Module, +Policy, +Forbidden, -Hidden, -Count, -Lacking
            bits/2                % +Is, -Bits
          ]).
:- set_prolog_flag(optimise, true).           % arithmetic in place; this file only
:- use_module(library(apply), [exclude/3]).
:- use_module(library(assoc), [assoc_to_keys/2, gen_assoc/3, get_assoc/3]).
:- use_module(library(lists), [member/2]).
:- use_module(library(ordsets), [ord_union/3]).
:- use_module(rlm_catalog, [replaces/3]).
:- use_module(rlm_eligible, [eligible/3]).
:- use_module(rlm_origin, [bit_numbers/2, is_hidden/2]).

/** <module> The units that cannot be shown

A unit cannot be shown where

  - the host's word or the request's wire keeps it out (rlm_eligible), or a rule of the host vetoes it;
  - the user's text says not to use it;
  - it requires a unit that is not in the catalog, or one that cannot be shown, and no unit that may be shown supersedes
    that one.

Such a unit changes nothing for the others: it makes no word common, raises no floor, takes no place, and pulls nothing
forward. Whatever counts units asks here which of them count.

`Hidden` is one integer with bit I set for each unit I that cannot be shown: to ask of one unit is one step, and the
10,000 units of a large catalog are 1.3 KB. What the host's policy alone keeps out is kept in the catalog's module, as
`barred(Policy, Own, Bits, Hurt)`, until the catalog changes.
*/

%!  hidden(+World, +Module, +Policy, +Forbidden:ordset, -Hidden:integer, -Count:integer, -Lacking:list) is det.
%
%   `World` (rlm_closure) has what the host and its rules say of this compile; `Forbidden` are the units that the user's
%   text names, some of which the host's wishes spare. `Lacking` are the units that nothing keeps out but what they
%   need, and those that may come in only with another unit in the place of one that cannot be shown.

hidden(World, M, Policy, Forbidden, Hidden, Count, Lacking) :-
    World = world(_, _, Extra, Negated, Vetoed, _),
    barred(M, Policy, Own0, Barred, Hurt0),
    assoc_to_keys(Vetoed, VetoedIs),
    ord_union(Negated, VetoedIs, Out),
    findall(I, ( gen_assoc(I, Extra, _), unmet(M, Extra, Barred, I) ), Needy),
    (   Out == [],
        Needy == []
    ->  Own = Own0,
        Fallen = Barred,
        Hurt = Hurt0
    ;   bits(Out, OutBits),
        bits(Needy, NeedyBits),
        Own is Own0 \/ OutBits,
        ord_union(Out, Needy, Level0),
        exclude(is_hidden(Barred), Level0, Level),
        With is Barred \/ OutBits \/ NeedyBits,
        fall(Level, M, Extra, With, Fallen),
        hurt(Level, M, Extra, Hurt0, Hurt)
    ),
    M:next(Next),
    Known is (1 << Next) - 1,                 % units that stand for one compile are not counted
    bits(Forbidden, ForbiddenBits),
    Hidden is (Fallen \/ ForbiddenBits) /\ Known,
    Count is popcount(Hidden),
    LackingBits is (Fallen \/ Hurt) /\ \Own /\ Known,
    bit_numbers(LackingBits, Lacking).

%   barred(+M, +Policy, -Own, -Bits, -Hurt): what the policy alone keeps out (Own), with what needs that (Bits), and
%   what needs any of these and may have another in its place (Hurt).
barred(M, Policy, Own, Bits, Hurt) :-
    (   M:barred(Policy, Own0, Bits0, Hurt0)
    ->  Own = Own0,
        Bits = Bits0,
        Hurt = Hurt0
    ;   M:next(Next),
        findall(I, ( suspect(M, Policy, I), I < Next, \+ eligible(M, Policy, I) ), Out0),
        sort(Out0, Out),
        bits(Out, Own),
        findall(I, ( M:requires(I, Id), \+ M:number(Id, _), I < Next ), Lacking0),
        sort(Lacking0, Lacking),
        bits(Lacking, LackingBits),
        ord_union(Out, Lacking, Level),
        Bits0 is Own \/ LackingBits,
        fall(Level, M, t, Bits0, Bits),
        hurt(Level, M, t, 0, Hurt),
        make_room(M),
        assertz(M:barred(Policy, Own, Bits, Hurt))
    ).

%   kept_policies(?N): a process compiles with few policies at a time.
kept_policies(8).

make_room(M) :-
    kept_policies(Most),
    (   predicate_property(M:barred(_, _, _, _), number_of_clauses(N)),
        N >= Most
    ->  retract(M:barred(_, _, _, _))
    ;   true
    ),
    !.

%   suspect(+M, +Policy, -I) is nondet: only these can be ineligible. Most catalogs have few, most policies name few.
suspect(M, _, I) :-
    M:invisible(I).
suspect(M, _, I) :-
    M:unavailable(I).
suspect(M, policy(_, _, _, _, wire(Refused, _)), I) :-
    gen_assoc(Id, Refused, _),
    M:number(Id, I).
suspect(M, policy(_, Scope, Denied, Disabled, _), I) :-
    (   Scope == null
    ->  (   M:guarded(I)
        ;   member(Patterns, [Denied, Disabled]),
            named(M, Patterns, I)
        )
    ;   M:unit(I, _, _, _, _, _)
    ).

named(M, patterns(Exact, Globs), I) :-
    (   Globs == []
    ->  gen_assoc(Id, Exact, _),
        M:number(Id, I)
    ;   M:unit(I, _, _, _, _, _)
    ).

%   fall(+Level, +M, +Extra, +Bits0, -Bits): what needs something in Level that nothing meets any more is out too.
fall([], _, _, Bits0, Bits) =>
    Bits = Bits0.
fall(Level, M, Extra, Bits0, Bits) =>
    findall(I,
            ( member(J, Level),
              concerned(M, Extra, J, I),
              \+ is_hidden(Bits0, I),
              unmet(M, Extra, Bits0, I) ),
            Is0),
    sort(Is0, Is),
    bits(Is, More),
    Bits1 is Bits0 \/ More,
    fall(Is, M, Extra, Bits1, Bits).

%   hurt(+Level, +M, +Extra, +Hurt0, -Hurt): all that needs something in Level, through any number of steps; where
%   nothing supersedes anything, fall/5 finds the same.
hurt(Level, M, Extra, Hurt0, Hurt) :-
    (   M:above(_, _)
    ->  hurt_levels(Level, M, Extra, Hurt0, Hurt)
    ;   Hurt = Hurt0
    ).

hurt_levels([], _, _, Hurt0, Hurt) =>
    Hurt = Hurt0.
hurt_levels(Level, M, Extra, Hurt0, Hurt) =>
    findall(I, ( member(J, Level), concerned(M, Extra, J, I), \+ is_hidden(Hurt0, I) ), Is0),
    sort(Is0, Is),
    bits(Is, More),
    Hurt1 is Hurt0 \/ More,
    hurt_levels(Is, M, Extra, Hurt1, Hurt).

%   concerned(+M, +Extra, +J, -I) is nondet: I needs J, or something that J supersedes.
concerned(M, Extra, J, I) :-
    (   D = J
    ;   M:above(J, D)
    ),
    M:unit(D, Id, _, _, _, _),
    (   M:requires(I, Id)
    ;   gen_assoc(I, Extra, Ids),
        memberchk(Id, Ids)
    ).

unmet(M, Extra, Bits, I) :-
    (   M:requires(I, Id)
    ;   get_assoc(I, Extra, Ids),
        member(Id, Ids)
    ),
    (   M:number(Id, D)
    ->  is_hidden(Bits, D),
        \+ ( replaces(M, S, D),
             ( S == I ; \+ is_hidden(Bits, S) ) )
    ;   true
    ),
    !.

%!  bits(+Is:ordset, -Bits:integer) is det.
%
%   One bit for each number. Halves are joined, so that long lists are not added to one long integer one by one.

bits(Is, Bits) :-
    (   Is = [First|_]
    ->  length(Is, Length),
        bits(Length, Is, [], First, Relative),
        Bits is Relative << First
    ;   Bits = 0
    ).

%   bits(+Length, +Is, -Rest, +From, -Bits): of the first Length of Is, less From.
bits(1, [I|Rest0], Rest, From, Bits) =>
    Rest = Rest0,
    Bits is 1 << (I - From).
bits(Length, Is, Rest, From, Bits) =>
    Half is Length // 2,
    Other is Length - Half,
    bits(Half, Is, Middle, From, Low),
    Middle = [First|_],
    bits(Other, Middle, Rest, First, High),
    Bits is Low \/ (High << (First - From)).

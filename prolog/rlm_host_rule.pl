:- encoding(utf8).
:- module(rlm_host_rule,
          [ rule_body/7           % +Goals, ?Unit, ?Turn, ?Answer, +Defined, -I, -Body
          ]).
:- use_module(library(apply), [maplist/3]).
:- use_module(library(assoc), [get_assoc/3]).
:- use_module(library(lists), [append/3, member/2]).

/** <module> From a clause about one unit to a rule about all

A host writes what holds of one unit. Trying that on every unit of a catalog would repeat, a hundred
thousand times, what only asks about the turn. So a rule runs in three steps:

  1. the goals before the first one that mentions the unit, once;
  2. the units: the one that the head names; or those that the next goal lists (a `member/2`, a unification,
     a table of facts); or those of the catalog, narrowed down by the kind, server and trust that the next
     goals ask for;
  3. the other goals, for each of them.

None of this changes what a rule means: goals have no side effects, and a goal that does not mention the unit
says the same for each.
*/

%!  rule_body(+Goals, ?Unit, ?Turn, ?Answer, +Defined, -I, -Body) is det.
%
%   The body of a rule about the unit with number I, from `g(Goal, Target)` for each goal as it was written
%   and as it runs. What does not ask about the unit comes first, then the units, then the rest.

rule_body(Goals, Unit, Turn, Answer, Defined, I, Body) :-
    steps(Goals, Unit, Turn, Defined, Before, Filter0, After),
    seen(Unit, Before-After-Answer, Filter0, Filter),
    targets(Before, Targets0),
    targets(After, Targets1),
    append(Targets0, [rlm_host_words:listed(Turn, I, Unit, Filter)|Targets1], Targets),
    conjunction(Targets, Body).

%   steps(+Goals, ?Unit, ?Turn, +Defined, -Before, -Filter, -After): around the units.
steps(Goals, Unit, Turn, Defined, Before, filter(Kind, Server, Trust), After) :-
    term_variables(Unit, Variables),
    (   Variables == []
    ->  Before = [],
        After = Goals
    ;   about_turn(Goals, Variables, Before0, Rest),
        (   Rest = [g(Goal, Target)|After0],
            chooses(Goal, Unit, Defined)
        ->  append(Before0, [g(Goal, Target)], Before),
            After = After0
        ;   Before = Before0,
            narrowed(Rest, Unit, Turn, filter(Kind, Server, Trust), After)
        )
    ).

about_turn([G|Goals], Variables, [G|Before], Rest) :-
    G = g(Goal, _),
    term_variables(Goal, Own),
    \+ ( member(V, Own), member(W, Variables), V == W ),
    !,
    about_turn(Goals, Variables, Before, Rest).
about_turn(Rest, _, [], Rest).

%   chooses(+Goal, ?Unit, +Defined) is semidet: Goal may be asked for the units instead of about one.
chooses(Goal, Unit, Defined) :-
    var(Unit),
    (   Goal = member(U, _)
    ->  U == Unit
    ;   Goal = (A = B)
    ->  ( A == Unit -> true ; B == Unit )
    ;   callable(Goal),
        functor(Goal, Name, Arity),
        get_assoc(Name/Arity, Defined, facts)
    ).

%   narrowed(+Goals, ?Unit, ?Turn, ?Filter, -Rest): what the first goals say of the unit goes into the filter.
narrowed([g(Goal, _)|Goals], Unit, Turn, Filter, Rest) :-
    var(Unit),
    narrows(Goal, Unit, Turn, Filter, Slot, Value),
    atom(Value),
    ( var(Slot) -> true ; Slot == Value ),
    !,
    Slot = Value,
    narrowed(Goals, Unit, Turn, Filter, Rest).
narrowed(Rest, _, _, _, Rest).

narrows(Goal, Unit, Turn, filter(Kind, Server, Trust), Slot, Value) :-
    (   Goal = kind(U, Value)
    ->  U == Unit,
        Slot = Kind
    ;   Goal = server(U, Value)
    ->  U == Unit,
        Slot = Server
    ;   Goal = trust(T, U, Value),
        T == Turn,
        U == Unit,
        Slot = Trust
    ).

%   seen(?Unit, +Others, +Filter0, -Filter): where nobody asks which unit it is, none needs a term.
seen(Unit, Others, Filter0, Filter) :-
    (   var(Unit),
        term_variables(Others, Variables),
        \+ ( member(V, Variables), V == Unit )
    ->  Filter0 = filter(Kind, Server, Trust),
        Filter = unseen(Kind, Server, Trust)
    ;   Filter = Filter0
    ).

targets(Goals, Targets) :-
    maplist(target, Goals, Targets).

target(g(_, Target), Target).

conjunction([Goal], Goal) :-
    !.
conjunction([Goal|Goals], (Goal, More)) :-
    conjunction(Goals, More).

:- det(rule_body/7).

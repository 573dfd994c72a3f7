:- encoding(utf8).
:- module(rlm_admit,
          [ start/1,              % -State
            admit_together/5,     % +Tier, +Roots, +Given, +State0, -State
            admit_limited/5       % +Roots, +Limit, +Given, +State0, -State
          ]).
:- use_module(library(aggregate), [aggregate_all/3]).
:- use_module(library(assoc), [empty_assoc/1, get_assoc/3, put_assoc/4]).
:- use_module(library(lists), [append/3, member/2]).
:- use_module(rlm_closure, [closure/5, out/4]).
:- use_module(rlm_conflict, [clash/4, outranked/4]).
:- use_module(rlm_eligible, [most_tools/2]).

/** <module> Admission: who gets in, one root after the other

A state is `state(Admitted, Active, Rejected)`: admitted units `a(I, Tier, Why)` with the latest first, the
place of each in the order of admission as a table by I, which has under `tools` how many of them are tools, and
`r(I, Reasons)` for roots that were turned away. `Given` is `given(World, Bad)`.
*/

%!  start(-State) is det.

start(state([], Active, [])) :-
    empty_assoc(Active).

%!  admit_together(+Tier, +Roots:list, +Given, +State0, -State) is det.
%
%   Roots that the host wants, all at once. Two that cannot stand together are no choice to make here.
%
%   @error misconfigured(Tier, Cause): `blocked(I, Reasons)` for a pinned unit that something other than a
%   capability or the scope keeps out; `contradiction(A, B)`.

admit_together(_, [], _, State, State) :- !.
admit_together(Tier, Roots, Given, State0, State) :-
    Given = given(World, Bad),
    World = world(M, _, _, _, _, _),
    State0 = state(Admitted0, Active0, Rejected0),
    (   all_fit(Tier, Roots, Given, Active0, Members)
    ->  Turned = [],
        Outdone = []
    ;   empty_assoc(Pardoned),
        standing(Roots, Tier, Given, Active0, Pardoned, Standing0, Turned),
        outranked(M, Standing0, Standing, Outranked),
        findall(r(I, [superseded_by(Winner, I)]), member(I-Winner, Outranked), Outdone),
        closure(World, Bad, Active0, Standing, Closure),
        (   Closure = members(Members)
        ->  true
        ;   throw(misconfigured(Tier, Closure, given(World, Bad), Standing))
        )
    ),
    add_members(M, Members, Tier, Admitted0, Admitted, Active0, Active),
    append(Turned, Outdone, Rejected1),
    append(Rejected1, Rejected0, Rejected),
    State = state(Admitted, Active, Rejected).

%   all_fit(+Tier, +Roots, +Given, +Active, -Members) is semidet: where nothing supersedes anything, roots bring
%   together what they bring one by one; so where all of that fits, each root does. One walk for all, however long their
%   chains.
all_fit(Tier, Roots, given(World, Bad), Active, Members) :-
    World = world(M, _, _, _, _, _),
    Tier \== pinned,
    \+ M:above(_, _),
    forall(member(R, Roots), out(World, Bad, R, [])),
    closure(World, Bad, Active, Roots, members(Members)),
    findall(I, member(m(I, _), Members), Is),
    \+ clash(M, Active, Is, _).

%   standing(+Roots, +Tier, +Given, +Active, +Pardoned, -Standing, -Turned): roots that can get in by themselves.
%   Pardoned has what is known to be out for no fault of the host's: many roots may need the same.
standing([], _, _, _, _, [], []).
standing([R|Rs], Tier, Given, Active, Pardoned0, Standing, Turned) :-
    stands(Tier, R, Given, Active, Outcome),
    (   Outcome = rejected(Reasons)
    ->  pardoned(Tier, R, Reasons, Given, Pardoned0, Pardoned),
        Turned = [r(R, Reasons)|Turned1],
        Standing = Standing1
    ;   Outcome == already
    ->  Standing = Standing1,
        Turned = Turned1,
        Pardoned = Pardoned0
    ;   Standing = [R|Standing1],
        Turned = Turned1,
        Pardoned = Pardoned0
    ),
    standing(Rs, Tier, Given, Active, Pardoned, Standing1, Turned1).

%   stands(+Tier, +Root, +Given, +Active, -Outcome): as attempt/4. Pinned units come first, so that they clash with
%   nothing that is active; where one contradicts itself, it is seen when all are taken together.
stands(pinned, R, given(World, Bad), _, Outcome) =>
    out(World, Bad, R, Reasons),
    ( Reasons == [] -> Outcome = stands ; Outcome = rejected(Reasons) ).
stands(_, R, Given, Active, Outcome) =>
    attempt(R, Given, Active, Outcome).

pardoned(pinned, R, Reasons, Given, Pardoned0, Pardoned) =>
    (   pardonable(Reasons, Given, Pardoned0, Pardoned1)
    ->  Pardoned = Pardoned1
    ;   throw(misconfigured(pinned, blocked(R, Reasons), Given, [R]))
    ).
pardoned(_, _, _, _, Pardoned0, Pardoned) =>
    Pardoned = Pardoned0.

%   A lost capability or a narrow scope hides a pinned unit; anything else is the host at odds with itself.
pardonable([], _, Pardoned, Pardoned).
pardonable([Reason|Reasons], Given, Pardoned0, Pardoned) :-
    pardonable_reason(Reason, Given, Pardoned0, Pardoned1),
    pardonable(Reasons, Given, Pardoned1, Pardoned).

pardonable_reason(out_of_scope, _, Pardoned, Pardoned).
pardonable_reason(capability_missing(_), _, Pardoned, Pardoned).
pardonable_reason(dependency_out(Id, _), Given, Pardoned0, Pardoned) :-
    (   get_assoc(Id, Pardoned0, _)
    ->  Pardoned = Pardoned0
    ;   put_assoc(Id, Pardoned0, true, Pardoned1),
        Given = given(World, Bad),
        World = world(M, _, _, _, _, _),
        M:number(Id, J),
        out(World, Bad, J, Reasons),
        pardonable(Reasons, Given, Pardoned1, Pardoned)
    ).

%!  admit_limited(+Roots:list, +Limit, +Given, +State0, -State) is det.
%
%   Roots `root(I, Tier, Exempt)`. The limit counts roots that evidence brought in, not attempts; roots that
%   are named in the text are exempt. What comes after it is not even tried. A producer, `root(I, producer,
%   after(U, Parameter))`, comes in only behind an active U, and is not counted.

admit_limited([], _, _, State, State).
admit_limited([root(R, producer, after(U, Parameter))|Roots], Left, Given, State0, State) :-
    !,
    State0 = state(_, Active, _),
    (   get_assoc(U, Active, _)
    ->  admit(producer(U, Parameter), R, Given, State0, State1, _)
    ;   State1 = State0
    ),
    admit_limited(Roots, Left, Given, State1, State).
admit_limited([root(R, Tier, Exempt)|Roots], Left, Given, State0, State) :-
    (   Tier == evidence,
        Exempt == false
    ->  (   Left =:= 0
        ->  admit_limited(Roots, Left, Given, State0, State)
        ;   admit(Tier, R, Given, State0, State1, Outcome),
            left(Outcome, Left, Left1),
            admit_limited(Roots, Left1, Given, State1, State)
        )
    ;   admit(Tier, R, Given, State0, State1, _),
        admit_limited(Roots, Left, Given, State1, State)
    ).

left(admitted(_), Left0, Left) =>
    Left is Left0 - 1.
left(_, Left0, Left) =>
    Left = Left0.

admit(Tier, R, Given, State0, State, Outcome) :-
    State0 = state(Admitted0, Active0, Rejected0),
    attempt(R, Given, Active0, Outcome),
    (   Outcome = admitted(Members)
    ->  Given = given(world(M, _, _, _, _, _), _),
        add_members(M, Members, Tier, Admitted0, Admitted, Active0, Active),
        State = state(Admitted, Active, Rejected0)
    ;   Outcome = rejected(Reasons)
    ->  State = state(Admitted0, Active0, [r(R, Reasons)|Rejected0])
    ;   State = State0
    ).

%   attempt(+Root, +Given, +Active, -Outcome): admitted(Members), rejected(Reasons) or `already`.
attempt(R, given(World, Bad), Active, Outcome) :-
    (   get_assoc(R, Active, _)
    ->  Outcome = already
    ;   out(World, Bad, R, Reasons),
        Reasons \== []
    ->  Outcome = rejected(Reasons)
    ;   crowded(World, Active, [R], Reason)
    ->  Outcome = rejected([Reason])
    ;   closure(World, Bad, Active, [R], Closure),
        judged(Closure, World, Active, Outcome)
    ).

judged(contradiction(A, B), _, _, Outcome) =>
    Outcome = rejected([contradicts_itself(A, B)]).
judged(members(Members), World, Active, Outcome) =>
    World = world(M, _, _, _, _, _),
    findall(I, member(m(I, _), Members), Is),
    (   ( clash(M, Active, Is, Reason) ; crowded(World, Active, Is, Reason) )
    ->  Outcome = rejected([Reason])
    ;   Outcome = admitted(Members)
    ).

%   crowded(+World, +Active, +Is, -Reason) is semidet: with Is there would be more tools than the wire takes.
crowded(world(M, Policy, _, _, _, _), Active, Is, over_tool_limit(Most)) :-
    most_tools(Policy, Most),
    tools(Active, Before),
    length(Is, Units),
    Before + Units > Most,
    aggregate_all(count, ( member(I, Is), tool(M, I) ), New),
    New > 0,
    Before + New > Most.

tools(Active, Tools) :-
    (   get_assoc(tools, Active, Tools0)
    ->  Tools = Tools0
    ;   Tools = 0
    ).

tool(M, I) :-
    M:unit(I, _, Kind, _, _, _),
    memberchk(Kind, [tool, mcp_tool]).

%   add_members(+M, +Members, +Tier, +Admitted0, -Admitted, +Active0, -Active): Active counts the tools.
add_members(M, Members, Tier, Admitted0, Admitted, Active0, Active) :-
    counted_in(Members, Tier, Admitted0, Admitted, Active0, Active1),
    tools(Active1, Before),
    count_tools(Members, M, Before, Tools),
    ( Tools =:= Before -> Active = Active1 ; put_assoc(tools, Active1, Tools, Active) ).

count_tools([], _, Tools, Tools).
count_tools([m(I, _)|Members], M, Tools0, Tools) :-
    ( tool(M, I) -> Tools1 is Tools0 + 1 ; Tools1 = Tools0 ),
    count_tools(Members, M, Tools1, Tools).

counted_in(Members, Tier, Admitted0, Admitted, Active0, Active) :-
    (   Admitted0 = [a(Last, _, _)|_]
    ->  get_assoc(Last, Active0, Place)
    ;   Place = 0
    ),
    placed(Members, Place, Tier, Admitted0, Admitted, Active0, Active).

placed([], _, _, Admitted, Admitted, Active, Active).
placed([m(I, Why0)|Ms], Place0, Tier0, Admitted0, Admitted, Active0, Active) :-
    Place is Place0 + 1,
    put_assoc(I, Active0, Place, Active1),
    reason(Tier0, Why0, Tier, Why),
    placed(Ms, Place, Tier0, [a(I, Tier, Why)|Admitted0], Admitted, Active1, Active).

reason(producer(U, Parameter), root, Tier, Why) =>
    Tier = producer,
    Why = produces(U, Parameter).
reason(producer(_, _), Why0, Tier, Why) =>
    Tier = producer,
    Why = Why0.
reason(Tier0, Why0, Tier, Why) =>
    Tier = Tier0,
    Why = Why0.

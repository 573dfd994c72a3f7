:- encoding(utf8).
:- module(rlm_changes,
          [ what_if/2,            % +Args, -Reply
            changes/4             % +Id, +Question, :Facts, -Changes
          ]).
:- use_module(library(assoc), [get_assoc/3, list_to_assoc/2]).
:- use_module(library(lists), [append/3, member/2, nth1/3, subtract/3]).
:- use_module(rlm_eligible, [matches/2, patterns/2]).
:- use_module(rlm_explain, [explain_unit/2, remedies/2]).
:- use_module(rlm_select, [select/2]).

/** <module> The search for changes of the host that would make the rules choose a unit

The reasons against a unit are walked in their order. Each reason has a change that removes it, or none (rlm_explain).
After each change the units are selected again. In the end the changes that are superfluous are dropped. Tokens play no
part here: a budget is judged where units are packed.
*/

:- meta_predicate changes(+, +, 2, -).

%   most_changes(?N): the host is asked for no more.
most_changes(4).

%!  what_if(+Args:dict, -Reply:dict) is det.
%
%   `Args`: a compile's question as for rlm_select:select/2, with its `catalog`; the `about` of the search (an id);
%   `facts` of that unit and of those that it may need; `own_capabilities`, those of the host's own units; and the
%   `stemmer`. `Reply`: `changes`, a list of one-pair dicts, or the `blocker`, the reason that no change removes.

what_if(Args, Reply) :-
    findall(Id-Unit, ( member(Unit, Args.facts), Id = Unit.id ), Pairs),
    list_to_assoc(Pairs, Units),
    changes(Args.about, Args, known_facts(Units), Changes),
    (   Changes = none(Reason)
    ->  Reply = _{blocker: Reason}
    ;   findall(Dict,
                ( member(Change, Changes), Change =.. [What, Value], dict_pairs(Dict, _, [What-Value]) ),
                Dicts),
        Reply = _{changes: Dicts}
    ).

known_facts(Units, Id, Unit) :-
    get_assoc(Id, Units, Unit).

%!  changes(+Id:atom, +Question:dict, :Facts, -Changes) is det.
%
%   At most four changes `grant(Capability)`, `undeny(Id)`, `enable(Id)` or `select(Id)`, in the order in which they were
%   found; they are enough, and none of them is superfluous. `none(Reason)` where there are none. `call(Facts, Id, Unit)`
%   gives the facts of a unit, as a catalog takes them.

changes(Id, Question, Facts, Changes) :-
    most_changes(Most),
    search(Most, Id, Question, Facts, [], Changes0),
    (   Changes0 = none(_),
        Fewer is Most - 1,
        search(Fewer, Id, Question, Facts, [select(Id)], Changes1),      % more units may stand in for a selected one
        Changes1 \= none(_)
    ->  Changes = Changes1
    ;   Changes = Changes0
    ).

search(Left, Id, Base, Facts, Made, Changes) :-
    foldl_made(Made, Base, Question),
    select(Question, Reply),
    (   get_dict(error, Reply, Error)
    ->  Changes = none(_{kind: contradicts_itself, units: [Id, Error.kind]})
    ;   chosen(Reply, Id)
    ->  irreducible(Made, Id, Base, Changes)
    ;   findall(Outcome, outcome(Id, [Id], Question, Facts, Reply, Outcome), Outcomes0),
        reasons_of(Id, Question, Facts, Reply, [First|_]),
        append(Outcomes0, [blocker(First)], Outcomes),
        step(Outcomes, Left, Id, Base, Facts, Made, Changes)
    ).

chosen(Reply, Id) :-
    member([Id|_], Reply.active),
    !.

%   outcome(+Id, +Seen, +Question, :Facts, +Reply, -Outcome) is nondet: for each reason that keeps Id out the `change(C)`
%   that removes it, or the `blocker(Reason)` that none removes, beneath its requirements too.
outcome(Id, Seen, Question, Facts, Reply, Outcome) :-
    reasons_of(Id, Question, Facts, Reply, Reasons),
    outcome_of(Reasons, Id, Seen, Question, Facts, Reply, Outcome).

outcome_of([Reason|Reasons], Id, Seen, Question, Facts, Reply, Outcome) :-
    remedies(_{unit: Id, reasons: [Reason]}, Remedy),
    (   get_dict(blocker, Remedy, Blocker),
        Blocker.kind \== none
    ->  Outcome = blocker(Blocker)
    ;   get_dict(change, Remedy, Dict),
        removes(Dict, Reason, Seen, Question, Facts, Reply, Outcome)
    ;   outcome_of(Reasons, Id, Seen, Question, Facts, Reply, Outcome)
    ).

removes(Dict, Reason, Seen, Question, Facts, Reply, Outcome) :-
    (   get_dict(look_at, Dict, Unit)
    ->  \+ memberchk(Unit, Seen),
        beneath(Unit, Reason, Seen, Reply, Other),
        outcome(Other, [Other|Seen], Question, Facts, Reply, Outcome)
    ;   dict_pairs(Dict, _, [What-Value]),
        Change =.. [What, Value],
        Outcome = change(Change)
    ).

%   beneath(+Unit, +Reason, +Seen, +Reply, -Other): the requirement that is out, or where it came in by a stand-in
%   that does not count for the host, what it requires itself.
beneath(Unit, Reason, Seen, Reply, Other) :-
    (   \+ chosen(Reply, Unit)
    ->  Other = Unit
    ;   get_dict(reason, Reason, Because),
        get_dict(unit, Because, Other),
        \+ memberchk(Other, Seen),
        \+ chosen(Reply, Other)
    ).

step(Outcomes, Left, Id, Base, Facts, Made, Changes) :-
    (   member(change(Change), Outcomes),
        \+ memberchk(Change, Made)
    ->  (   Left =:= 0
        ->  Changes = none(_{kind: no_evidence})
        ;   Next is Left - 1,
            append(Made, [Change], More),
            search(Next, Id, Base, Facts, More, Changes)
        )
    ;   memberchk(blocker(Blocker), Outcomes),
        Changes = none(Blocker)
    ).

%   made(+Change, +Question0, -Question): the policy with the change made.
made(grant(Capability), Q0, Q) :-
    (   Q0.capabilities == null
    ->  Granted = Q0.own_capabilities
    ;   Granted = Q0.capabilities
    ),
    without(Capability, Q0.withheld, Withheld),
    Q = Q0.put(_{capabilities: [Capability|Granted], withheld: Withheld}).
made(select(Id), Q0, Q) :-
    Q = Q0.put(selected, [Id|Q0.selected]).
made(undeny(Id), Q0, Q) :-
    without(Id, Q0.denied, Denied),
    Q = Q0.put(denied, Denied).
made(enable(Id), Q0, Q) :-
    without(Id, Q0.disabled, Disabled),
    Q = Q0.put(disabled, Disabled).

without(Id, Patterns, Rest) :-
    findall(P, ( member(P, Patterns), \+ ( patterns([P], Ready), matches(Ready, Id) ) ), Rest).

%   reasons_of(+Id, +Question, :Facts, +Reply, -Reasons) is det: why a unit is out. A unit of which no facts are at hand
%   came in by a rule of the host; to select it is what can be tried.
reasons_of(Id, Question, Facts, Reply, Reasons) :-
    (   ( member([Id, Reasons0], Reply.rejected) ; member([Id, Reasons0], Reply.nonviable) )
    ->  Reasons = Reasons0
    ;   call(Facts, Id, Unit)
    ->  ( nth1(Rank0, Reply.ranked, Id) -> Rank = Rank0 ; Rank = null ),
        ( memberchk(Id, Reply.negated) -> Negated = true ; Negated = false ),
        findall(Rule, member([Id, Rule], Reply.vetoed), Rules),
        explain_unit(Question.put(_{ unit: Unit, sources: Reply.sources, rank: Rank, negated: Negated, vetoed: Rules,
                                     raised: [], held_floor: Reply.relative_floor, admitted: [], retained: [] }),
                     Looked),
        Reasons = Looked.reasons
    ;   Reasons = [_{kind: no_evidence}]
    ).

irreducible(Made, Id, Base, Changes) :-
    drop_idle(Made, Made, Id, Base, Changes).

drop_idle([], Kept, _, _, Kept).
drop_idle([Change|Rest], Kept0, Id, Base, Kept) :-
    subtract(Kept0, [Change], Fewer),
    foldl_made(Fewer, Base, Question),
    (   select(Question, Reply),
        \+ get_dict(error, Reply, _),
        chosen(Reply, Id)
    ->  drop_idle(Rest, Fewer, Id, Base, Kept)
    ;   drop_idle(Rest, Kept0, Id, Base, Kept)
    ).

foldl_made([], Q, Q).
foldl_made([Change|Changes], Q0, Q) :-
    made(Change, Q0, Q1),
    foldl_made(Changes, Q1, Q).

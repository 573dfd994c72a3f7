:- encoding(utf8).
:- module(rlm_what_if,
          [ why_not/1,            % +Unit
            what_if/1,            % +Unit
            what_if/2             % ?Unit, -Changes
          ]).
:- use_module(library(lists), [append/3, member/2, nth1/3, reverse/2, subtract/3]).
:- use_module(rlm_catalog, [catalog_change/2, catalog_create/2, catalog_destroy/2]).
:- use_module(rlm_eligible, [matches/2, patterns/2]).
:- use_module(rlm_explain, [explain_unit/2, remedies/2, sentence/2]).
:- use_module(rlm_open, [current_session/1, record/1]).
:- use_module(rlm_select, [select/2]).
:- use_module(rlm_session, [line/2, looked_up/5, printed_about/2, question/1, unit_asked/2, unit_dict/3, why/1]).
:- use_module(rlm_unit, [unit_term/2]).

/** <module> The changes of the host that would show a unit

Each answer was tried: the units of the session are selected again with the policy changed.

    ?- why_not(tool(slack)).
    ?- what_if(tool(slack), Changes).
    Changes = [undeny('tool:slack')].
*/

%!  why_not(+Unit) is nondet.
%
%   Print why a unit is not shown, and what the host would have to change.

why_not(Unit) :-
    printed_about(Unit, Id),
    unit_term(Id, Term),
    why(Term),
    looked_up(Id, State, _, _, _),
    (   State == active
    ->  true
    ;   what_if(Term)
    ).

%!  what_if(+Unit) is nondet.
%
%   Print what the host would have to change for a unit to be chosen by the rules. (Tokens are not counted
%   here: a budget is judged by Python's `view.what_if`.)

what_if(Unit) :-
    printed_about(Unit, Id),
    changes_for(Id, Changes),
    (   Changes = none(Reason)
    ->  sentence(Reason, Sentence),
        line("nothing that the host can change here shows ~w: ~w", [Id, Sentence])
    ;   Changes == []
    ->  line("~w is chosen already", [Id])
    ;   findall(Text, ( member(Change, Changes), change_text(Change, Text) ), Texts),
        atomic_list_concat(Texts, ', and ', Listed),
        line("~w would be chosen: ~w", [Id, Listed])
    ).

change_text(Change, Text) :-
    Change =.. [What, Value],
    atomic_list_concat([What, ' ', Value], Text).

%!  what_if(?Unit, -Changes) is nondet.
%
%   At most four changes `grant(Capability)`, `undeny(Id)`, `enable(Id)` or `select(Id)`, in the order in which
%   they were found, tried by selecting again and irreducible; `none(Reason)` where there are none. The host's own
%   rules are not here: what they vetoed then, they veto.

what_if(Unit, Changes) :-
    unit_asked(Unit, Id),
    changes_for(Id, Changes).

changes_for(Id, Changes) :-
    (   vetoed_beneath([Id], [], Reason)
    ->  Changes = none(Reason)
    ;   try_changes(Id, Changes)
    ).

%   vetoed_beneath(+Ids, +Seen, -Reason) is semidet: a rule vetoes one of Ids or something that it requires.
vetoed_beneath([Id|Ids], Seen, Reason) :-
    (   memberchk(Id, Seen)
    ->  vetoed_beneath(Ids, Seen, Reason)
    ;   record(vetoed(Id, Rule))
    ->  Veto = _{kind: vetoed, rule: Rule},
        (   Seen == []
        ->  Reason = Veto
        ;   Reason = _{kind: dependency_out, unit: Id, reason: Veto}
        )
    ;   record(unit(Id, Facts)),
        unit_dict(Id, Facts, Unit)
    ->  append(Ids, Unit.requires, Next),
        vetoed_beneath(Next, [Id|Seen], Reason)
    ;   vetoed_beneath(Ids, [Id|Seen], Reason)
    ).

try_changes(Id, Changes) :-
    question(Question),
    session_catalog(Handle),
    search(4, Id, Question.put(catalog, Handle), [], Changes).

:- dynamic built/2.             % Session, Handle: a catalog of the session's units

%   session_catalog(-Handle) is det: built for the first question and kept as long as the session is open.
session_catalog(Handle) :-
    current_session(Session),
    built(Session, Handle),
    !.
session_catalog(Handle) :-
    current_session(Session),
    record(session(_, _, Stemmer)),
    catalog_create(_{stemmer: Stemmer}, Created),
    Handle = Created.catalog,
    findall(Unit, ( record(unit(Id, Facts)), unit_dict(Id, Facts, Unit) ), Units),
    catch(catalog_change(_{catalog: Handle, remove: [], units: Units}, _),
          Error,
          ( catalog_destroy(_{catalog: Handle}, _), throw(Error) )),
    assertz(built(Session, Handle)).

:- multifile rlm_open:closed/1.

rlm_open:closed(Session) :-
    forall(retract(rlm_what_if:built(Session, Handle)), catalog_destroy(_{catalog: Handle}, _)).

search(Left, Id, Question, Made, Changes) :-
    select(Question, Reply),
    (   get_dict(error, Reply, Error)
    ->  Changes = none(_{kind: contradicts_itself, units: [Id, Error.kind]})
    ;   chosen(Reply, Id)
    ->  irreducible(Made, Id, Question, Changes)
    ;   findall(Outcome, outcome(Id, [Id], Question, Reply, Outcome), Outcomes),
        step(Outcomes, Left, Id, Question, Made, Changes)
    ).

chosen(Reply, Id) :-
    member([Id|_], Reply.active),
    !.

%   outcome(+Id, +Seen, +Question, +Reply, -Outcome) is nondet: for each reason that keeps Id out the `change(C)`
%   that removes it, or the `blocker(Reason)` that none removes, beneath its requirements too.
outcome(Id, Seen, Question, Reply, Outcome) :-
    reasons_of(Id, Question, Reply, Reasons),
    outcome_of(Reasons, Id, Seen, Question, Reply, Outcome).

outcome_of([Reason|Reasons], Id, Seen, Question, Reply, Outcome) :-
    remedies(_{unit: Id, reasons: [Reason]}, Remedy),
    (   get_dict(blocker, Remedy, Blocker),
        Blocker.kind \== none
    ->  Outcome = blocker(Blocker)
    ;   get_dict(change, Remedy, Dict),
        removes(Dict, Reason, Seen, Question, Reply, Outcome)
    ;   outcome_of(Reasons, Id, Seen, Question, Reply, Outcome)
    ).

removes(Dict, Reason, Seen, Question, Reply, Outcome) :-
    (   get_dict(look_at, Dict, Unit)
    ->  \+ memberchk(Unit, Seen),
        beneath(Unit, Reason, Seen, Reply, Other),
        outcome(Other, [Other|Seen], Question, Reply, Outcome)
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

step(Outcomes, Left, Id, Question, Made, Changes) :-
    (   member(change(Change), Outcomes),
        \+ memberchk(Change, Made)
    ->  (   Left =:= 0
        ->  Changes = none(_{kind: no_evidence})
        ;   Next is Left - 1,
            made(Change, Question, Question1),
            search(Next, Id, Question1, [Change|Made], Changes)
        )
    ;   member(blocker(Blocker), Outcomes)
    ->  Changes = none(Blocker)
    ;   Changes = none(_{kind: no_evidence})
    ).

%   made(+Change, +Question0, -Question): the policy with the change made.
made(grant(Capability), Q0, Q) :-
    (   Q0.capabilities == null
    ->  findall(C, ( record(unit(_, [_, _, host, C|_])), C \== null ), Granted)
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

reasons_of(Id, Question, Reply, Reasons) :-
    (   ( member([Id, Reasons0], Reply.rejected) ; member([Id, Reasons0], Reply.nonviable) )
    ->  Reasons = Reasons0
    ;   record(session(_, _, Stemmer)),
        record(unit(Id, Facts)),
        unit_dict(Id, Facts, Unit),
        ( nth1(Rank0, Reply.ranked, Id) -> Rank = Rank0 ; Rank = null ),
        ( memberchk(Id, Reply.negated) -> Negated = true ; Negated = false ),
        explain_unit(Question.put(_{ stemmer: Stemmer, unit: Unit, sources: Reply.sources, rank: Rank,
                                     negated: Negated, vetoed: [], raised: [], held_floor: Reply.relative_floor,
                                     admitted: [], retained: [] }),
                     Looked),
        Reasons = Looked.reasons
    ).

irreducible(Made, Id, Question0, Changes) :-
    question(Base0),
    Base = Base0.put(catalog, Question0.catalog),
    reverse(Made, Ordered),
    drop_idle(Ordered, Ordered, Id, Base, Changes).

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

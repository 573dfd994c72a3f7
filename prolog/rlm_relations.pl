:- encoding(utf8).
:- module(rlm_relations,
          [ unit/2,               % ?Unit, ?Kind
            matching/2,           % +Pattern, ?Unit
            state/2,              % ?Unit, ?State
            reason/2,             % ?Unit, ?Reason
            hidden/2,             % ?Unit, ?Reason
            rejected/2,           % ?Unit, ?Reason
            packed_out/2,         % ?Unit, ?Reason
            left_out/2,           % ?Unit, ?Reason
            evidence/4,           % ?Unit, ?Kind, ?Source, ?Score
            rank/2,               % ?Unit, ?Rank
            requires/2,           % ?Unit, ?Other
            suggests/2,           % ?Unit, ?Other
            conflicts/2,          % ?Unit, ?Other
            supersedes/2,         % ?Unit, ?Other
            cost/3,               % ?Unit, ?Form, ?Tokens
            budget/2,             % ?What, ?Tokens
            turn/1,               % ?Fact
            policy/1,             % ?Fact
            changed/4             % ?Session1, ?Session2, ?Unit, ?How
          ]).
:- use_module(library(lists), [member/2, nth1/3]).
:- use_module(rlm_named, [name_score/1]).
:- use_module(rlm_open, [in/2, record/1, session/1]).
:- use_module(rlm_session, [looked_up/5, surely_hidden/1, unit_asked/2]).
:- use_module(rlm_unit, [unit_kind/2, unit_term/2]).

/** <module> Relations over a saved compile

Each predicate is a relation: any argument may be a variable, and it enumerates on backtracking. They can be combined
in one query:

    ?- requires(U, V), rejected(V, denied).               % what needs a tool that the host denied
    ?- left_out(U, packed_out(Tokens, Free)).             % what a larger budget would have shown
    ?- in(S, active(tool(git_diff))).                     % the sessions that show it
    ?- changed(monday, friday, U, How).

A unit is a term, `tool(git_diff)`. Where a unit is given, an id, a name that only one unit has, or a pattern with `*`
and `?` will do (rlm_session:unit_asked/2). Scores are in the units of `why/1`: 2.29 and not 2290.

A reason is a term: `denied`, `below_floor(Score, Floor)`, `dependency_out(Unit, Reason)`. Its data stand in the order
of reason_fields/2.
*/

%!  unit(?Unit, ?Kind:atom) is nondet.
%
%   The catalog has the unit. Kind is one of rlm_unit:unit_kinds/1.

unit(Unit, Kind) :-
    unit_asked(Unit, Id),
    unit_kind(Id, Kind0),
    Kind = Kind0.

%!  matching(+Pattern:text, ?Unit) is nondet.
%
%   The id or the name of Unit matches Pattern, in which `*` stands for any characters and `?` for one.

matching(Pattern, Unit) :-
    unit_asked(Pattern, Id),
    unit_term(Id, Term),
    same_unit(Unit, Id, Term).

%!  state(?Unit, ?State) is nondet.
%
%   State is `active`, `packed_out`, `rejected` or `hidden`. Each unit has one.

state(Unit, State) :-
    (   nonvar(State),
        memberchk(State, [active, packed_out]),
        \+ ground(Unit)
    ->  record(active(Id, _, _, _)),
        unit_term(Id, Unit)
    ;   unit_asked(Unit, Id)
    ),
    state_of(Id, State0),
    State = State0.

%   state_of(+Id, -State) is det: what is written in the session is not looked up again.
state_of(Id, State) :-
    (   surely_hidden(Id)
    ->  State = hidden
    ;   record(active(Id, Form, _, _))
    ->  ( Form == null -> State = packed_out ; State = active )
    ;   record(rejected(Id, _))
    ->  State = rejected
    ;   looked_up(Id, State, _, _, _)
    ).

%!  reason(?Unit, ?Reason) is nondet.
%
%   A reason for the unit's state: one that keeps it out, or one that speaks for it.

reason(Unit, Reason) :-
    unit_asked(Unit, Id),
    reason_of(Id, Reason).

reason_of(Id, Reason) :-
    looked_up(Id, _, _, Dicts, _),
    member(Dict, Dicts),
    reason_term(Dict, Id, Reason0),
    Reason = Reason0.

%!  hidden(?Unit, ?Reason) is nondet.
%
%   The unit was no candidate for this turn.

hidden(Unit, Reason) :-
    in_state(Unit, hidden, Reason).

%!  rejected(?Unit, ?Reason) is nondet.
%
%   The unit was a candidate, or the host wanted it, and the rules turned it away.

rejected(Unit, Reason) :-
    in_state(Unit, rejected, Reason).

%!  packed_out(?Unit, ?Reason) is nondet.
%
%   The unit was chosen, and the budget had no room for it.

packed_out(Unit, Reason) :-
    in_state(Unit, packed_out, Reason).

%!  left_out(?Unit, ?Reason) is nondet.
%
%   The unit is not shown: it is hidden, rejected or packed out.

left_out(Unit, Reason) :-
    unit_asked(Unit, Id),
    state_of(Id, State),
    State \== active,
    reason_of(Id, Reason).

in_state(Unit, State, Reason) :-
    unit_asked(Unit, Id),
    state_of(Id, State),
    reason_of(Id, Reason).

%!  evidence(?Unit, ?Kind, ?Source, ?Score:float) is nondet.
%
%   What counts for the unit. Kind is that of the reason; with `lexical` there is one answer for each word.

evidence(Unit, Kind, Source, Score) :-
    unit_asked(Unit, Id),
    looked_up(Id, _, _, Dicts, Words),
    member(Dict, Dicts),
    Kind = Dict.kind,
    evidence_of(Kind, Dict, Words, Source0, Thousandths),
    Source = Source0,
    Score is Thousandths / 1000.

evidence_of(lexical, _, Words, Word, Share) :-
    member([Word, Share, _], Words).
evidence_of(name, Dict, _, Dict.name, Score) :-
    name_score(Score).
evidence_of(trigger, Dict, _, Dict.value, Dict.score).
evidence_of(example, Dict, _, Dict.example, Dict.score).
evidence_of(history, Dict, _, Dict.turn, Dict.score).
evidence_of(intent, Dict, _, Dict.part, Dict.score).
evidence_of(spared, Dict, _, Dict.origin, Dict.score).
evidence_of(need, Dict, _, Dict.need, Dict.score).
evidence_of(sensor, Dict, _, Dict.sensor, Dict.score).
evidence_of(boosted, Dict, _, Dict.rule, Dict.by).

%!  rank(?Unit, ?Rank:integer) is nondet.
%
%   The unit was number Rank of the candidates.

rank(Unit, Rank) :-
    (   ground(Unit)
    ->  unit_asked(Unit, Id),
        record(ranked(Id, Rank))
    ;   record(ranked(Id, Rank)),
        unit_term(Id, Unit)
    ).

%!  requires(?Unit, ?Other) is nondet.
%!  suggests(?Unit, ?Other) is nondet.
%!  conflicts(?Unit, ?Other) is nondet.
%!  supersedes(?Unit, ?Other) is nondet.
%
%   The relations of the catalog. `requires` may name a unit that the catalog does not have.

requires(Unit, Other) :- related(1, Unit, Other).
suggests(Unit, Other) :- related(2, Unit, Other).
conflicts(Unit, Other) :- related(3, Unit, Other).
supersedes(Unit, Other) :- related(4, Unit, Other).

related(Place, Unit, Other) :-
    meant_other(Other, OtherId),
    (   ground(Unit)
    ->  unit_asked(Unit, Id),
        relation(Place, Id, Ids)
    ;   relation(Place, Id, Ids),
        Ids = [_|_],
        unit_term(Id, Unit)
    ),
    member(OtherId, Ids),
    unit_term(OtherId, Term),
    same_unit(Other, OtherId, Term).

relation(Place, Id, Ids) :-
    record(unit(Id, [_, _, _, _, _, _, Relations|_])),
    nth1(Place, Relations, Ids).

%   meant_other(+Other, -Id) is nondet: Id stays free where Other does not name one unit of the session.
meant_other(Other, Id) :-
    (   ground(Other),
        \+ ( compound(Other), catch(unit_term(_, Other), error(_, _), fail) )
    ->  unit_asked(Other, Id)
    ;   true
    ).

%   same_unit(?Unit, +Id, +Term) is semidet: an id or a name is left as it was given.
same_unit(Unit, Id, Term) :-
    (   ground(Unit),
        Unit \= Term
    ->  unit_asked(Unit, Id)
    ;   Unit = Term
    ).

%!  cost(?Unit, ?Form, ?Tokens:integer) is nondet.
%
%   The price of a unit, where the compile had to know it: in the form in which it is shown, and in full where there was
%   no room for that.

cost(Unit, Form, Tokens) :-
    (   ground(Unit)
    ->  unit_asked(Unit, Id),
        record(active(Id, Form0, Tokens0, Rows))
    ;   record(active(Id, Form0, Tokens0, Rows)),
        unit_term(Id, Unit)
    ),
    (   Form0 \== null,
        Form = Form0,
        Tokens = Tokens0
    ;   member(Row, Rows),
        memberchk([kind, Kind], Row),
        memberchk(Kind, [packed_out, shortened]),
        memberchk([tokens, Tokens], Row),
        Form = full
    ).

%!  budget(?What, ?Tokens:integer) is nondet.
%
%   `limit`: the tokens that the request may have; `used`: those that it has; `free`: the difference.

budget(What, Tokens) :-
    record(ledger(Used, Limit)),
    Free is Limit - Used,
    member(What-Tokens, [limit-Limit, used-Used, free-Free]).

%!  turn(?Fact) is nondet.
%
%   What this turn brought: `text(Text)`, `need(Text)`, `history(TurnsAgo, Text)`, `signal(Name, Value)`,
%   `sensor(Name)`, `selected(Unit)`.

turn(Fact) :-
    turn_fact(Fact).

turn_fact(text(Text)) :-
    record(input(text, Text)).
turn_fact(need(Need)) :-
    record(input(needs, Needs)),
    member(Need, Needs).
turn_fact(history(Ago, Text)) :-
    record(input(history, Texts)),
    nth1(Ago, Texts, Text).
turn_fact(signal(Name, Value)) :-
    record(input(signals, Signals)),
    member([Name, Values], Signals),
    member(Value, Values).
turn_fact(sensor(Name)) :-
    record(input(sensors, Sensors)),
    member([Name|_], Sensors).
turn_fact(selected(Unit)) :-
    record(input(selected, Ids)),
    member(Id, Ids),
    shown_term(Id, Unit).

%!  policy(?Fact) is nondet.
%
%   What the host set: `mode(Mode)`, `grants(Pattern)` (`grants(default)` where it set none), `withholds(Pattern)`,
%   `denied(Pattern)`, `disabled(Pattern)`, `scope(Pattern)`, `floor(Score)`, `candidate_limit(N)`, `most_tools(N)`.

policy(Fact) :-
    policy_fact(Fact).

policy_fact(mode(Mode)) :-
    record(input(mode, Mode)).
policy_fact(grants(Pattern)) :-
    record(input(capabilities, Patterns)),
    ( Patterns == null -> Pattern = default ; member(Pattern, Patterns) ).
policy_fact(withholds(Pattern)) :-
    listed(withheld, Pattern).
policy_fact(denied(Pattern)) :-
    listed(denied, Pattern).
policy_fact(disabled(Pattern)) :-
    listed(disabled, Pattern).
policy_fact(scope(Pattern)) :-
    listed(scope, Pattern).
policy_fact(floor(Score)) :-
    record(input(floor, Thousandths)),
    Score is Thousandths / 1000.
policy_fact(candidate_limit(Limit)) :-
    record(input(limit, Limit)).
policy_fact(most_tools(Most)) :-
    record(input(most_tools, Most)).

listed(Key, Pattern) :-
    record(input(Key, Patterns)),
    Patterns \== null,
    member(Pattern, Patterns).

%!  changed(?Session1:atom, ?Session2:atom, ?Unit, ?How) is nondet.
%
%   How a unit differs in Session2 from Session1: `registered`, `unregistered`, `appeared`, `vanished`,
%   `form(Before, After)` where it is shown in both, or `state(Before, After)` where it is shown in neither.

changed(Session1, Session2, Unit, How) :-
    session(Session1),
    session(Session2),
    Session1 \== Session2,
    findall(Id, ( member(S, [Session1, Session2]), in(S, unit_asked_quietly(Unit, Id)) ), Ids0),
    sort(Ids0, Ids),
    member(Id, Ids),
    unit_term(Id, Term),
    difference(Session1, Session2, Id, How),
    ( ground(Unit) -> true ; Unit = Term ).

%   unit_asked_quietly(?Unit, -Id) is nondet: a unit that only one of the sessions has is no mistake in the other.
unit_asked_quietly(Unit, Id) :-
    (   ground(Unit),
        compound(Unit),
        catch(unit_term(Id0, Unit), error(_, _), fail)
    ->  record(unit(Id0, _)),
        Id = Id0
    ;   unit_asked(Unit, Id)
    ).

difference(Session1, Session2, Id, How) :-
    place(Session1, Id, Before),
    place(Session2, Id, After),
    Before \== After,
    how(Before, After, How).

%   place(+Session, +Id, -Place) is det: `shown(Form)`, the state of a unit that is not shown, or `none`.
place(Session, Id, Place) :-
    (   in(Session, record(unit(Id, _)))
    ->  once(in(Session, place_of(Id, Place)))
    ;   Place = none
    ).

place_of(Id, Place) :-
    state_of(Id, State),
    (   State == active
    ->  record(active(Id, Form, _, _)),
        Place = shown(Form)
    ;   Place = State
    ).

how(none, shown(_), How) => How = appeared.
how(none, _, How) => How = registered.
how(shown(_), none, How) => How = vanished.
how(_, none, How) => How = unregistered.
how(shown(Before), shown(After), How) => How = form(Before, After).
how(shown(_), _, How) => How = vanished.
how(_, shown(_), How) => How = appeared.
how(Before, After, How) => How = state(Before, After).

                /*******************************
                *            REASONS           *
                *******************************/

%   reason_term(+Dict, +Id, -Term) is det: a reason of rlm_explain for the unit Id, as a term. A kind that the table does
%   not name has its data in the order of their keys.
reason_term(Dict, Id, Term) :-
    Kind = Dict.kind,
    (   reason_fields(Kind, Fields)
    ->  findall(Value, ( member(Field, Fields), field_value(Field, Dict, Id, Value) ), Values)
    ;   dict_pairs(Dict, _, Pairs),
        findall(Value, ( member(Key-Value, Pairs), \+ memberchk(Key, [kind, words]) ), Values)
    ),
    Term =.. [Kind|Values].

%!  reason_fields(?Kind, ?Fields) is nondet.
%
%   The data of a reason, in the order in which its term has them. `score(F)` is in thousandths in the session, and
%   `unit(F)` is an id there.

reason_fields(lexical, [score(score)]).
reason_fields(name, [name]).
reason_fields(trigger, [signal, value, score(score)]).
reason_fields(example, [example, score(score)]).
reason_fields(history, [turn, score(score)]).
reason_fields(intent, [part, score(score)]).
reason_fields(spared, [origin, score(score)]).
reason_fields(need, [need, score(score)]).
reason_fields(sensor, [sensor, score(score)]).
reason_fields(boosted, [rule, score(by)]).
reason_fields(dependency_of, [unit(unit)]).
reason_fields(suggested_by, [unit(unit)]).
reason_fields(disabled, [by]).
reason_fields(capability_missing, [capability]).
reason_fields(below_floor, [score(score), score(floor)]).
reason_fields(over_candidate_limit, [rank]).
reason_fields(over_tool_limit, [limit]).
reason_fields(refused_by_wire, [wire, what]).
reason_fields(missing_dependency, [unit(unit)]).
reason_fields(dependency_out, [unit(unit), reason(reason)]).
reason_fields(superseded_by, [unit(unit), through(through)]).
reason_fields(conflict_with, [unit(unit), through(through)]).
reason_fields(contradicts_itself, [units(units)]).
reason_fields(vetoed, [rule]).
reason_fields(packed_out, [tokens, free]).
reason_fields(shortened, [tokens, free]).

%   field_value(+Field, +Dict, +Id, -Value) is semidet: it fails for data that this reason does not have, and where a
%   unit is superseded or in conflict by itself, and not through another.
field_value(score(Key), Dict, _, Value) =>
    get_dict(Key, Dict, Thousandths),
    Value is Thousandths / 1000.
field_value(unit(Key), Dict, _, Value) =>
    get_dict(Key, Dict, Unit),
    shown_term(Unit, Value).
field_value(through(Key), Dict, Id, Value) =>
    get_dict(Key, Dict, Unit),
    Unit \== Id,
    shown_term(Unit, Value).
field_value(units(Key), Dict, _, Value) =>
    get_dict(Key, Dict, Units),
    findall(Term, ( member(Unit, Units), shown_term(Unit, Term) ), Value).
field_value(reason(Key), Dict, _, Value) =>
    get_dict(Key, Dict, Inner),
    reason_term(Inner, Dict.unit, Value).
field_value(Key, Dict, _, Value) =>
    get_dict(Key, Dict, Value).

%   shown_term(+Id, -Term) is det: an id that is none of a unit stays an atom.
shown_term(Id, Term) :-
    (   catch(unit_term(Id, Term0), error(_, _), fail)
    ->  Term = Term0
    ;   Term = Id
    ).

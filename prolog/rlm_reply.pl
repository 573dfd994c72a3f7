:- encoding(utf8).
:- module(rlm_reply,
          [ selection_reply/3,    % +Module, +Selection, -Reply
            error_reply/2,        % +Misconfigured, -Reply
            evidence_reasons/3,   % +Lexical, +Others, -Reasons
            reason_dict/3         % +Module, +Reason, -Dict
          ]).
:- use_module(library(assoc), [assoc_to_list/2, empty_assoc/1, get_assoc/3, list_to_assoc/2, put_assoc/4]).
:- use_module(library(lists), [append/3, list_to_set/2, member/2, reverse/2]).
:- use_module(library(ordsets), [list_to_ord_set/2, ord_memberchk/2]).
:- use_module(rlm_body, [bodies/4]).
:- use_module(rlm_catalog, [replaces/3, unit_id/3]).
:- use_module(rlm_closure, [needs/4, reaching/4]).
:- use_module(rlm_evidence, [source_weights/5]).
:- use_module(rlm_named, [name_score/1]).
:- use_module(rlm_origin, [counts/2, view_row/3]).

/** <module> What a selection says of itself

Terms with numbers become plain data with ids. Each active unit comes as
`[Id, Tier, Class, Score, Reasons, Needs]`: its class for the packer (`pinned`, `mandatory`, `periphery`,
`frontier`) and the active units that meet its requirements.
*/

%!  selection_reply(+Module, +Selection, -Reply:dict) is det.

selection_reply(M, Selection, Reply) :-
    Selection = selection(Args, View, Evidence, Ranked, floors(Floor, Relative), Forbidden, World, Bad, State),
    State = state(Admitted, Active, Rejected),
    World = world(_, _, _, _, Vetoed, _),
    Evidence = evidence(_, _, Weights, _, _),
    reverse(Admitted, Ordered),
    obliged(Ordered, Args, World, Active, Obliged),
    findall(I-C, ( member(C, Ranked), arg(1, C, I) ), Keyed),
    list_to_assoc(Keyed, Evidenced),
    findall([Id, Tier, Class, Score, Reasons, Needs],
            ( member(a(I, Tier, Why), Ordered),
              unit_id(M, I, Id),
              class(M, Args, Obliged, I, Id, Tier, Why, Class),
              in_reasons(M, Ordered, Evidenced, I, Tier, Why, Score, Reasons),
              met_by(World, Active, I, Needs) ),
            ActiveRows),
    reverse(Rejected, Turned),
    empty_assoc(None),
    first_turned(Turned, Active, None, First0),
    current_reasons(First0, M, Active, First),
    reason_rows(M, First, RejectedRows),
    assoc_to_list(Bad, BadPairs0),
    current_reasons(BadPairs0, M, Active, BadPairs),
    reason_rows(M, BadPairs, BadRows0),
    sort(BadRows0, BadRows),
    findall(Id, ( member(I, Forbidden), unit_id(M, I, Id) ), NegatedIds0),
    sort(NegatedIds0, NegatedIds),
    assoc_to_list(Vetoed, Vetoes),
    findall([Id, Rule], ( member(I-Rules, Vetoes), unit_id(M, I, Id), member(Rule, Rules) ), VetoedIds0),
    sort(1, @=<, VetoedIds0, VetoedIds),
    ids_scores(Ranked, M, View, 1, RankedIds, Scores, Ranks),
    raised_rows(Ranked, M, Active, RaisedRows),
    source_weights(M, View, Args, Weights, Sources),
    yielding(M, Args, Ordered, Obliged, Yielding),
    bodies(World, Args, Active, Bodies),
    Reply = _{ active: ActiveRows, rejected: RejectedRows, nonviable: BadRows, negated: NegatedIds,
               vetoed: VetoedIds, ranked: RankedIds, scores: Scores, ranks: Ranks, raised: RaisedRows, sources: Sources,
               bodies: Bodies,
               floor: Floor, relative_floor: Relative, yielding: Yielding }.

%   yielding(+M, +Args, +Ordered, +Obliged, -Ids): where room is lacking, what earlier requests showed and no call used
%   gives way first, the oldest before the others; never what the host wants, what is retained, or what must stay.
yielding(M, Args, Ordered, Obliged, Ids) :-
    (   get_dict(unused, Args, Unused),
        Unused \== []
    ->  findall(I-Tier, member(a(I, Tier, _), Ordered), Tiers),
        findall(Id,
                ( member(Id, Unused),
                  M:number(Id, I),
                  memberchk(I-Tier, Tiers),
                  \+ memberchk(Tier, [pinned, selected, retained]),
                  \+ get_assoc(I, Obliged, _) ),
                Ids0),
        list_to_set(Ids0, Ids)
    ;   Ids = []
    ).

%   ids_scores(+Ranked, +M, +View, +Rank, -Ids, -Scores, -Ranks): a unit that cannot be shown stands beside the one
%   whose rank it has.
ids_scores([], _, _, _, [], [], []).
ids_scores([c(I, Score, _, _)|Ranked], M, View, Rank0, [Id|Ids], [Score|Scores], [Rank0|Ranks]) :-
    unit_id(M, I, Id),
    ( counts(View, I) -> Rank is Rank0 + 1 ; Rank = Rank0 ),
    ids_scores(Ranked, M, View, Rank, Ids, Scores, Ranks).

%   raised_rows(+Ranked, +M, +Active, -Rows): what moved a candidate that is not active, and is seen only beside the
%   others: a name means it and no other, it is the best for a part of the text, third parties may not keep it out, or a
%   rule of the host said so. Its own evidence can be counted again.
raised_rows([], _, _, []).
raised_rows([c(I, _, _, Others)|Ranked], M, Active, Rows) :-
    (   Others = [_|_],
        \+ get_assoc(I, Active, _),
        findall(E, ( member(E, Others), beside(E) ), Es),
        Es \== []
    ->  evidence_reasons(0, Es, Reasons),
        reason_rows(M, [I-Reasons], [Row]),
        Rows = [Row|Rest]
    ;   Rows = Rest
    ),
    raised_rows(Ranked, M, Active, Rest).

beside(e(name(_), _)).
beside(e(need(_), Score)) :-
    name_score(Score).
beside(e(intent(_), _)).
beside(e(spared(_), _)).
beside(e(boost(_), _)).

%   first_turned(+Turned, +Active, +Seen, -Pairs): `I-Reasons` for each root that stayed out, as first told.
first_turned([], _, _, []).
first_turned([r(I, Reasons)|Turned], Active, Seen0, Pairs) :-
    (   ( get_assoc(I, Seen0, _) ; get_assoc(I, Active, _) )
    ->  Pairs = Rest,
        Seen = Seen0
    ;   Pairs = [I-Reasons|Rest],
        put_assoc(I, Seen0, true, Seen)
    ),
    first_turned(Turned, Active, Seen, Rest).

%   current_reasons(+Pairs0, +M, +Active, -Pairs): a requirement that came in after all is why nothing is out, where
%   there are other reasons.
current_reasons([], _, _, []).
current_reasons([I-Reasons0|Pairs0], M, Active, [I-Reasons|Pairs]) :-
    findall(R, ( member(R, Reasons0), \+ came_in(M, Active, R) ), Reasons1),
    ( Reasons1 == [] -> Reasons = Reasons0 ; Reasons = Reasons1 ),
    current_reasons(Pairs0, M, Active, Pairs).

came_in(M, Active, dependency_out(Id, _)) :-
    M:number(Id, J),
    get_assoc(J, Active, _).

reason_rows(M, Pairs, Rows) :-
    findall([Id, Dicts],
            ( member(I-Reasons, Pairs),
              unit_id(M, I, Id),
              reason_dicts(M, Reasons, Dicts) ),
            Rows).

                /*******************************
                *            CLASSES           *
                *******************************/

%   obliged(+Ordered, +Args, +World, +Active, -Obliged): what must stay, and whatever it needs, as a table by I.
obliged(Ordered, Args, World, Active, Obliged) :-
    World = world(M, _, _, _, _, _),
    findall(I,
            ( member(a(I, Tier, Why), Ordered),
              stays(M, Args, I, Tier, Why) ),
            Staying),
    empty_assoc(None),
    spread(Staying, World, Active, None, Obliged).

stays(_, _, _, pinned, root).
stays(M, _, I, _, _) :-
    M:mandatory(I).
stays(M, Args, I, _, _) :-
    Args.admitted \== [],
    unit_id(M, I, Id),
    memberchk([Id, mandatory, _], Args.admitted).

spread([], _, _, Obliged, Obliged).
spread([I|Is], World, Active, Obliged0, Obliged) :-
    (   get_assoc(I, Obliged0, _)
    ->  Next = Is,
        Obliged1 = Obliged0
    ;   put_assoc(I, Obliged0, true, Obliged1),
        findall(J, meets(World, Active, I, J), Js),
        append(Js, Is, Next)
    ),
    spread(Next, World, Active, Obliged1, Obliged).

class(_, _, _, _, _, pinned, root, Class) =>
    Class = pinned.
class(_, Args, Obliged, I, Id, _, _, Class) =>
    (   get_assoc(I, Obliged, _)
    ->  Class = mandatory
    ;   member([Id, Given, _], Args.admitted)
    ->  Class = Given
    ;   Class = periphery
    ).

%   meets(+World, +Active, +I, -J): active J meets a requirement of I; of several that stand in for it, the one that was
%   admitted first.
meets(World, Active, I, J) :-
    World = world(M, _, _, _, _, _),
    needs(World, I, _, D),
    D \== missing,
    (   get_assoc(D, Active, _)
    ->  J = D
    ;   findall(Place-S, ( replaces(M, S, D), get_assoc(S, Active, Place) ), Ss),
        sort(Ss, [_-J|_])
    ).

met_by(World, Active, I, Ids) :-
    World = world(M, _, _, _, _, _),
    findall(Id, ( meets(World, Active, I, J), unit_id(M, J, Id) ), Ids).

                /*******************************
                *            REASONS           *
                *******************************/

%   in_reasons(...): why a unit is active, what decided first.
in_reasons(M, Ordered, Evidenced, I, Tier, Why, Score, Reasons) :-
    findall(Reason, tier_reason(M, Ordered, I, Tier, Why, Reason), First),
    (   get_assoc(I, Evidenced, c(_, Score0, Lexical, Others))
    ->  Score = Score0,
        evidence_reasons(Lexical, Others, Second)
    ;   Score = 0,
        Second = []
    ),
    append(First, Second, All),
    reason_dicts(M, All, Reasons).

tier_reason(_, _, _, _, dependency_of(J), dependency_of(J)).
tier_reason(_, _, _, _, produces(J, Parameter), produces(J, Parameter)).
tier_reason(M, _, I, _, dependency_of(_), pinned) :-
    M:pinned(I).
tier_reason(_, _, _, pinned, root, pinned).
tier_reason(_, _, _, selected, root, selected_by_host).
tier_reason(_, _, _, retained, root, retained).
tier_reason(_, _, _, all_tools, root, all_tools).
tier_reason(M, Ordered, I, suggested, root, suggested_by(J)) :-
    unit_id(M, I, Id),
    member(a(J, _, _), Ordered),
    M:suggests(J, Id),
    !.

%!  evidence_reasons(+Lexical, +Others, -Reasons) is det.
%
%   All evidence for a unit as reasons: `Others` are `e(Kind, Score)`, with or without the unit's number.

evidence_reasons(Lexical, Others, Reasons) :-
    findall(Reason, evidence_reason(Lexical, Others, Reason), Reasons).

evidence_reason(_, Others, Reason) :-
    member(Other, Others),
    ( Other = e(Kind, Score) ; Other = _-e(Kind, Score) ),
    scored(Kind, Score, Reason).
evidence_reason(Lexical, _, lexical(Lexical)) :-
    Lexical > 0.

scored(name(Key), _, name(Key)).
scored(trigger(Signal, Value), Score, trigger(Signal, Value, Score)).
scored(need(Text), Score, need(Text, Score)).
scored(history(Turn), Score, history(Turn, Score)).
scored(sensor(Name), Score, sensor(Name, Score)).
scored(example(Text), Score, example(Text, Score)).
scored(intent(Part), Score, intent(Part, Score)).
scored(spared(View), Score, spared(View, Score)).
scored(boost(Rule), By, boosted(Rule, By)).

reason_dicts(M, Reasons, Dicts) :-
    findall(Dict, ( member(Reason, Reasons), reason_dict(M, Reason, Dict) ), Dicts).

%!  reason_dict(+Module, +Reason, -Dict) is det.
%
%   A reason as plain data: `kind` and what belongs to it.

reason_dict(_, trigger(Signal, Value, Weight), Dict) =>
    Dict = _{kind: trigger, signal: Signal, value: Value, score: Weight}.
reason_dict(_, name(Key), Dict) =>
    Dict = _{kind: name, name: Key}.
reason_dict(_, lexical(Score), Dict) =>
    Dict = _{kind: lexical, score: Score}.
reason_dict(_, need(Text, Score), Dict) =>
    Dict = _{kind: need, need: Text, score: Score}.
reason_dict(_, history(Turn, Score), Dict) =>
    Dict = _{kind: history, turn: Turn, score: Score}.
reason_dict(_, sensor(Name, Score), Dict) =>
    Dict = _{kind: sensor, sensor: Name, score: Score}.
reason_dict(_, example(Text, Score), Dict) =>
    Dict = _{kind: example, example: Text, score: Score}.
reason_dict(_, intent(Part, Score), Dict) =>
    Dict = _{kind: intent, part: Part, score: Score}.
reason_dict(_, spared(View, Score), Dict) =>
    view_row(View, _, Origin),
    Dict = _{kind: spared, origin: Origin, score: Score}.
reason_dict(_, boosted(Rule, By), Dict) =>
    Dict = _{kind: boosted, rule: Rule, by: By}.
reason_dict(M, dependency_of(I), Dict) =>
    unit_id(M, I, Id),
    Dict = _{kind: dependency_of, unit: Id}.
reason_dict(M, produces(I, Parameter), Dict) =>
    unit_id(M, I, Id),
    Dict = _{kind: produces, unit: Id, parameter: Parameter}.
reason_dict(_, lone_weak_hit(Server), Dict) =>
    Dict = _{kind: lone_weak_hit, server: Server}.
reason_dict(M, suggested_by(I), Dict) =>
    unit_id(M, I, Id),
    Dict = _{kind: suggested_by, unit: Id}.
reason_dict(_, disabled(By), Dict) =>
    Dict = _{kind: disabled, by: By}.
reason_dict(_, capability_missing(Capability), Dict) =>
    Dict = _{kind: capability_missing, capability: Capability}.
reason_dict(_, missing_dependency(Id), Dict) =>
    Dict = _{kind: missing_dependency, unit: Id}.
reason_dict(M, dependency_out(Id, Reason), Dict) =>
    reason_dict(M, Reason, Because),
    Dict = _{kind: dependency_out, unit: Id, reason: Because}.
reason_dict(_, dependency_out(Id), Dict) =>
    Dict = _{kind: dependency_out, unit: Id}.
reason_dict(M, superseded_by(J, I), Dict) =>
    unit_id(M, J, Winner),
    unit_id(M, I, Loser),
    Dict = _{kind: superseded_by, unit: Winner, through: Loser}.
reason_dict(M, conflict_with(J, I), Dict) =>
    unit_id(M, J, Winner),
    unit_id(M, I, Loser),
    Dict = _{kind: conflict_with, unit: Winner, through: Loser}.
reason_dict(M, contradicts_itself(I, J), Dict) =>
    unit_id(M, I, A),
    unit_id(M, J, B),
    Dict = _{kind: contradicts_itself, units: [A, B]}.
reason_dict(_, vetoed(Rule), Dict) =>
    Dict = _{kind: vetoed, rule: Rule}.
reason_dict(_, refused_by_wire(Wire, What), Dict) =>
    Dict = _{kind: refused_by_wire, wire: Wire, what: What}.
reason_dict(_, over_tool_limit(Most), Dict) =>
    Dict = _{kind: over_tool_limit, limit: Most}.
reason_dict(_, over_candidate_limit(Rank), Dict) =>
    Dict = _{kind: over_candidate_limit, rank: Rank}.
reason_dict(_, below_floor(Score, Floor), Dict) =>
    Dict = _{kind: below_floor, score: Score, floor: Floor}.
reason_dict(_, Reason, Dict), atom(Reason) =>
    Dict = _{kind: Reason}.

                /*******************************
                *            ERRORS            *
                *******************************/

%!  error_reply(+Misconfigured, -Reply:dict) is det.
%
%   What the host wants together and cannot have: `error` with `kind`, the `units` that want it (the roots)
%   and what they clash `between`.

error_reply(misconfigured(Tier, blocked(I, Reasons), given(World, _), _), Reply) =>
    World = world(M, _, _, _, _, _),
    unit_id(M, I, Id),
    reason_dicts(M, Reasons, Dicts),
    atom_concat(Tier, '_blocked', Kind),
    Reply = _{error: _{kind: Kind, units: [Id], reasons: Dicts}}.
error_reply(misconfigured(Tier, contradiction(A, B), Given, Roots), Reply) =>
    Given = given(World, _),
    World = world(M, _, _, _, _, _),
    owner(Roots, Given, A, OwnerA),
    owner(Roots, Given, B, OwnerB),
    findall(Id, ( member(I, [OwnerA, OwnerB]), unit_id(M, I, Id) ), Owners),
    sort(Owners, Units),
    findall(Id, ( member(I, [A, B]), unit_id(M, I, Id) ), Between0),
    msort(Between0, Between),
    atom_concat(Tier, '_conflict', Kind),
    Reply = _{error: _{kind: Kind, units: Units, between: Between, reasons: []}}.

%   owner(+Roots, +Given, +I, -Owner): the wanted unit that is I or drags it in.
owner(Roots, given(World, _), I, Owner) :-
    (   memberchk(I, Roots)
    ->  Owner = I
    ;   reaching(World, all, [I], Rs),
        list_to_ord_set(Rs, Reaching),
        member(Owner, Roots),
        ord_memberchk(Owner, Reaching)
    ->  true
    ;   Owner = I
    ).

:- encoding(utf8).
:- module(rlm_explain,
          [ explanations/2,       % +Args, -Reply
            explained_unit/3,     % +Question, +Row, -Explanation
            explain_unit/2,       % +Args, -Reply
            all_reasons/4,        % +Rejected, +Decided, +LookedAt, -Reasons
            remedies/2,           % +Args, -Reply
            say/2,                % +Args, -Reply
            sentence/2,           % +ReasonDict, -Sentence
            with_words/3,         % +Words, +Reason0, -Reason
            visible/2             % +Text, -Visible
          ]).
:- use_module(library(lists), [append/2, append/3, member/2]).
:- use_module(rlm_catalog, [scratch/3]).
:- use_module(rlm_eligible, [blocks/4, policy/2]).
:- use_module(rlm_evidence, [evidence/5, reading/3]).
:- use_module(rlm_index, [vector_score/3, vector_shares/3]).
:- use_module(rlm_named, [name_score/1]).
:- use_module(rlm_origin, [view_row/3]).
:- use_module(rlm_reply, [evidence_reasons/3, reason_dict/3]).

/** <module> Explanations

A unit that the rules turned away or let in has its reasons already. Everything else in the catalog is
explained when somebody asks, from the unit itself, the policy and what each word of the texts weighed: no
catalog is needed any more. Reasons are data; sentence/2 says them in English, the same in every place.
*/

%!  explanations(+Args:dict, -Reply:dict) is det.
%
%   `Args`: a compile's input and policy as for explain_unit/2, and `units`: a row of explained_unit/3 each. `Reply`: the
%   `explanations` in the same order.

explanations(Args, _{explanations: Explanations}) :-
    findall(Explanation, ( member(Row, Args.units), explained_unit(Args, Row, Explanation) ), Explanations).

%!  explained_unit(+Question:dict, +Row:dict, -Explanation:dict) is det.
%
%   What a compile decided about a unit and what else there is to say. `Row`: the `unit`, `rank`, `raised`, `negated` and
%   `vetoed` of explain_unit/2; `decided`, where the compile has it (`active`, `packed_out`, `rejected`, `nonviable` or
%   `none`), and the `reasons` that it gave. `Explanation`: `state`, `reasons`, `words`, and the reasons as `sentences`.

explained_unit(Question, Row, _{state: State, reasons: Reasons, words: Words, sentences: Sentences}) :-
    explain_unit(Question.put(Row), Looked),
    Words = Looked.words,
    decided(Row.decided, Row, Looked, State, Reasons),
    findall(Sentence,
            ( member(Reason0, Reasons), with_words(Words, Reason0, Reason), sentence(Reason, Sentence) ),
            Sentences).

decided(active, Row, _, State, Reasons) =>
    State = active,
    Reasons = Row.reasons.
decided(packed_out, Row, _, State, Reasons) =>
    State = packed_out,
    Reasons = Row.reasons.
decided(rejected, Row, Looked, State, Reasons) =>
    State = rejected,
    all_reasons(true, Row.reasons, Looked.reasons, Reasons).
decided(nonviable, Row, Looked, State, Reasons), integer(Row.rank) =>
    State = rejected,
    all_reasons(true, Row.reasons, Looked.reasons, Reasons).
decided(_, Row, Looked, State, Reasons) =>
    State = Looked.state,
    all_reasons(false, Row.reasons, Looked.reasons, Reasons).

%!  with_words(+Words:list, +Reason0:dict, -Reason:dict) is det.
%
%   The words of the text, each `[Word, Share, Term]`, in the reason whose sentence lists them.

with_words(Words, Reason0, Reason) :-
    (   Reason0.kind == lexical
    ->  Reason = Reason0.put(words, Words)
    ;   Reason = Reason0
    ).

%!  explain_unit(+Args:dict, -Reply:dict) is det.
%
%   `Args`: a compile's input and policy, its `sources` (rlm_evidence:source_weights/4) and the floor that
%   held (`held_floor`), the `unit` as a catalog takes it, its `rank` among the candidates or `null`, what `raised`
%   it there (reasons, rlm_reply), whether prose forbids it (`negated`) and the rule that vetoes it, or `null`. `Reply`:
%   its `state`, `reasons` and `words`, each word of the text that counts for it with its share and the term by which
%   it does.

explain_unit(Args, _{state: State, reasons: Dicts, words: Words}) :-
    scratch(Args.stemmer, Args.unit, M),
    policy(Args, Policy),
    blocks(M, Policy, 1, Blocks),
    findall(Out, turned_away(Args, Out), Outs),
    append(Blocks, Outs, Against),
    weighed(M, Args.sources, Weighed, Words),
    reading(M, Args.text, Reading),
    evidence(M, all, Reading, Args.put(words, Weighed), evidence(Scores, Others0, _, _, _)),
    with_named(Args.raised, Others0, Others1),
    with_raised(Args.raised, Others1, Others),
    ( Scores = [1-Lexical] -> true ; Lexical = 0 ),
    evidence_reasons(Lexical, Others, For),
    verdict(Args, Against, For, Lexical, State, Reasons),
    findall(Dict, ( member(Reason, Reasons), reason_dict(M, Reason, Dict) ), Dicts).

%!  all_reasons(+Rejected:bool, +Decided:list(dict), +LookedAt:list(dict), -Reasons:list(dict)) is det.
%
%   The reasons for which a unit was turned away when the rules decided (Rejected), or for which it could not be shown,
%   and then what else speaks against it or for it (explain_unit/2).

all_reasons(_, [], LookedAt, Reasons) =>
    Reasons = LookedAt.
all_reasons(Rejected, Decided, LookedAt, Reasons) =>
    findall(Reason, ( member(Reason, LookedAt), adds(Rejected, Decided, Reason) ), More),
    append(Decided, More, Reasons).

%   adds(+Rejected, +Decided, +Reason) is semidet: the reasons that decided do not say so yet.
adds(Rejected, Decided, Reason) :-
    about(Reason, Kind, Unit),
    Kind \== over_candidate_limit,
    \+ ( Rejected == true, memberchk(Kind, [below_floor, no_evidence]) ),
    \+ ( member(Other, Decided), about(Other, Kind, Unit) ).

about(Reason, Reason.kind, Unit) :-
    ( get_dict(unit, Reason, Unit0) -> Unit = Unit0 ; Unit = none ).

%   with_named(+Raised, +Others0, -Others): of names those that count beside the other units: which have the places that
%   there are for names, and may be meant by the same spelling.
with_named(Raised, Others0, Others) :-
    findall(Other, ( member(Other, Others0), Other \= _-e(name(_), _) ), Others1),
    name_score(Score),
    findall(1-e(Kind, Score),
            ( member(Reason, Raised),
              by_name(Reason, Score, Kind),
              \+ memberchk(1-e(Kind, Score), Others1) ),
            Named),
    append(Others1, Named, Others2),
    sort(0, @=<, Others2, Others).

by_name(Reason, _, name(Key)) :-
    _{kind: name, name: Key} :< Reason.
by_name(Reason, Score, need(Need)) :-
    _{kind: need, need: Need, score: Score} :< Reason.

%   with_raised(+Raised, +Others0, -Others): with what is seen only where a unit stands beside the others, in the order
%   in which active units tell it.
with_raised(Raised, Others0, Others) :-
    findall(1-e(intent(Part), Score),
            ( member(Reason, Raised), _{kind: intent, part: Part, score: Score} :< Reason ),
            Intents),
    findall(1-e(spared(View), Score),
            ( member(Reason, Raised),
              _{kind: spared, origin: Origin, score: Score} :< Reason,
              view_row(View, _, Origin) ),
            Spared),
    findall(1-e(boost(Rule), By),
            ( member(Reason, Raised), _{kind: boosted, rule: Rule, by: By} :< Reason ),
            Boosts),
    append([Spared, Intents, Others0, Boosts], Others).

turned_away(Args, negated) :-
    Args.negated == true.
turned_away(Args, vetoed(Rule)) :-
    member(Rule, Args.vetoed).

verdict(Args, [], For, _, State, Reasons), integer(Args.rank) =>
    State = rejected,
    Reasons = [over_candidate_limit(Args.rank)|For].
verdict(Args, Against, For, _, State, Reasons), integer(Args.rank) =>
    State = rejected,
    append(Against, For, Reasons).
verdict(Args, Against, [], _, State, Reasons), Against \== [], wanted_anyway(Args) =>
    State = rejected,
    Reasons = Against.
verdict(_, Against, [], _, State, Reasons) =>
    State = hidden,
    append(Against, [no_evidence], Reasons).
verdict(Args, Against, For, Lexical, State, Reasons) =>
    total(For, 0, Score0),
    Score is max(Score0, Lexical),
    (   Score >= Args.held_floor,
        Against \== []
    ->  State = rejected,
        append(Against, For, Reasons)
    ;   State = hidden,
        append(Against, [below_floor(Score, Args.held_floor)|For], Reasons)
    ).

%   In `all_tools` a tool needs no evidence.
wanted_anyway(Args) :-
    Args.mode == all_tools,
    memberchk(Args.unit.kind, [tool, mcp_tool]).

total([], Sum, Sum).
total([Reason|Reasons], Sum0, Sum) :-
    (   compound(Reason),
        functor(Reason, _, Arity),
        arg(Arity, Reason, Score),
        integer(Score)
    ->  Sum1 is Sum0 + Score
    ;   Sum1 = Sum0
    ),
    total(Reasons, Sum1, Sum).

%   weighed(+M, +Sources, -Weighed, -Words): the scores of the one unit, from the weights that held.
weighed(M, Sources, _{rest: 0, text: Text, needs: Needs, history: History, examples: Examples}, Words) :-
    Examples = Sources.examples,
    M:vector(1, Vector),
    weigh_all(Sources.text, Vector, Text),
    weigh_all(Sources.needs, Vector, Needs),
    weigh_all(Sources.history, Vector, History),
    Sources.text = [First],
    weights(First, Weights),
    vector_shares(Vector, Weights, Shares),
    findall([Word, Share, Term], member(s(Word, Share, Term), Shares), Words).

weigh_all([], _, []).
weigh_all([Source|Sources], Vector, [Weighed|Rest]) :-
    weights(Source, Weights),
    vector_score(Vector, Weights, Score),
    (   Score > 0
    ->  Weighed = Source.put(_{numbers: [1], scores: [Score]})
    ;   Weighed = Source.put(_{numbers: [], scores: []})
    ),
    weigh_all(Sources, Vector, Rest).

weights(Source, Weights) :-
    triples(Source.terms, Source.rarities, Source.words, Weights).

triples([], [], [], []).
triples([T|Ts], [R|Rs], [W|Ws], [w(T, R, W)|Weights]) :-
    triples(Ts, Rs, Ws, Weights).

                /*******************************
                *            REMEDIES          *
                *******************************/

%!  remedies(+Args:dict, -Reply:dict) is det.
%
%   What the host could change about the first of `reasons` (dicts) that keeps `unit` out: `change` is a
%   dict (`grant`, `undeny`, `enable`, `select` or `budget`), or `blocker` the reason that no such change
%   removes. `denied` and `disabled` are the policy's patterns.

remedies(Args, Reply) :-
    (   member(Reason, Args.reasons),
        remedy(Reason.kind, Reason, Args, Change)
    ->  (   Change = none
        ->  Reply = _{blocker: Reason}
        ;   Reply = _{change: Change}
        )
    ;   Reply = _{blocker: _{kind: none}}
    ).

%   remedy(+Kind, +Reason, +Args, -Change) is semidet: fails for reasons that do not keep a unit out.
remedy(denied, _, Args, _{undeny: Args.unit}).
remedy(disabled, Reason, Args, Change) :-
    (   Reason.by == policy
    ->  Change = _{enable: Args.unit}
    ;   Change = none
    ).
remedy(capability_missing, Reason, _, _{grant: Reason.capability}).
remedy(packed_out, Reason, _, _{budget: More}) :-
    More is max(1, Reason.tokens - Reason.free).
remedy(negated, _, Args, _{select: Args.unit}).
remedy(below_floor, _, Args, _{select: Args.unit}).
remedy(no_evidence, _, Args, _{select: Args.unit}).
remedy(over_candidate_limit, _, Args, _{select: Args.unit}).
remedy(over_tool_limit, _, Args, _{select: Args.unit}).
remedy(lone_weak_hit, _, Args, _{select: Args.unit}).
remedy(conflict_with, _, Args, _{select: Args.unit}).
remedy(superseded_by, _, Args, _{select: Args.unit}).
remedy(dependency_out, Reason, Args, Change) :-
    (   get_dict(reason, Reason, Because)
    ->  because(Because.kind, Because, Reason.unit, Args, Change)
    ;   Change = _{look_at: Reason.unit}
    ).
remedy(Kind, _, _, none) :-
    memberchk(Kind, [ unavailable, out_of_scope, missing_dependency, contradicts_itself, vetoed,
                      refused_by_wire ]).

%   because(+Kind, +Because, +Unit, +Args, -Change): what brings back a requirement that is out. To select the
%   requirement itself would not be what was asked for: what the text forbids comes back with what needs it.
because(dependency_out, _, Unit, _, Change) =>
    Change = _{look_at: Unit}.
because(negated, _, _, Args, Change) =>
    Change = _{select: Args.unit}.
because(Kind, Because, Unit, Args, Change) =>
    (   remedy(Kind, Because, Args.put(unit, Unit), Change0),
        \+ ( is_dict(Change0), get_dict(select, Change0, _) )
    ->  Change = Change0
    ;   Change = none
    ).

                /*******************************
                *            ENGLISH           *
                *******************************/

%!  say(+Args:dict, -Reply:dict) is det.
%
%   `reasons` in English, one `sentences` each.

say(Args, _{sentences: Sentences}) :-
    findall(Sentence, ( member(Reason, Args.reasons), sentence(Reason, Sentence) ), Sentences).

%!  sentence(+Reason:dict, -Sentence:atom) is det.
%
%   One line, with nothing in it that a terminal would obey, whatever a model or a third party wrote.

sentence(Reason, Sentence) :-
    phrase(says(Reason.kind, Reason), Parts),
    atomic_list_concat(Parts, Text),
    visible(Text, Sentence).

%   most_quoted(?Characters): of what somebody wrote, no more is repeated in a sentence.
most_quoted(200).

%!  visible(+Text:atom, -Visible:atom) is det.
%
%   The text with control characters, and those that turn the direction of writing, as escapes.

visible(Text, Visible) :-
    atom_codes(Text, Codes),
    (   member(Code, Codes),
        unseen(Code)
    ->  findall(Part, ( member(C, Codes), seen(C, Part) ), Parts),
        atomic_list_concat(Parts, Visible)
    ;   Visible = Text
    ).

seen(Code, Part) :-
    (   Code =:= 0'\n
    ->  Part = '\\n'
    ;   unseen(Code)
    ->  format(atom(Part), '\\x~16r\\', [Code])
    ;   char_code(Part, Code)
    ).

unseen(C) :- C < 0x20, !.
unseen(C) :- C >= 0x7f, C =< 0x9f, !.
unseen(C) :- C >= 0x2028, C =< 0x202e, !.       % line and paragraph separators, embeddings and overrides
unseen(C) :- C >= 0x2066, C =< 0x2069.          % isolates

says(pinned, _) -->
    [ 'the host pinned it' ].
says(selected_by_host, _) -->
    [ 'the host selected it for this compile' ].
says(retained, _) -->
    [ 'a session or an agent keeps it from an earlier turn' ].
says(all_tools, _) -->
    [ 'every eligible tool is shown in this mode' ].
says(name, R) -->
    [ 'the text names it ("', R.name, '")' ].
says(trigger, R) -->
    [ 'its ', R.signal, ' trigger "' ], short(R.value), [ '" fired (' ], score(R.score), [ ')' ].
says(lexical, R) -->
    [ 'words of the text count ' ], score(R.score), words(R).
says(example, R) -->
    [ 'it is like its example "' ], short(R.example), [ '" (' ], score(R.score), [ ')' ].
says(history, R) -->
    [ 'words of ' ], number_of(R.turn, ' turn', ' turns'), [ ' ago count ' ], score(R.score).
says(intent, R) -->
    [ 'it is the best for a part of the text, "' ], short(R.part), [ '" (' ], score(R.score), [ ')' ].
says(spared, R) -->
    [ 'third parties may not keep it out: ' ], without(R.origin), [ ' it counts ' ], score(R.score).
says(need, R) -->
    [ 'the model said it needs "' ], short(R.need), [ '" (' ], score(R.score), [ ')' ].
says(sensor, R) -->
    [ 'sensor ', R.sensor, ' gives it ' ], score(R.score).
says(boosted, R) -->
    [ 'a rule of the host moves it by ' ], score(R.by), [ ': ', R.rule ].
says(dependency_of, R) -->
    [ R.unit, ' requires it' ].
says(produces, R) -->
    [ 'it lists what ', R.unit, ' takes as "' ], short(R.parameter), [ '"' ].
says(lone_weak_hit, R) -->
    [ 'it is the only one of ' ], short(R.server), [ ', for one word, where another server is meant' ].
says(suggested_by, R) -->
    [ R.unit, ' suggests it' ].
says(denied, _) -->
    [ 'the host denied it' ].
says(disabled, R) -->
    (   { R.by == policy }
    ->  [ 'the host disabled it' ]
    ;   [ 'the host registered it as not visible' ]
    ).
says(unavailable, _) -->
    [ 'it is not available now' ].
says(out_of_scope, _) -->
    [ 'it is out of scope' ].
says(capability_missing, R) -->
    [ 'the capability ', R.capability, ' is not granted' ].
says(negated, _) -->
    [ 'the text says not to use it' ].
says(below_floor, R) -->
    [ 'its evidence, ' ], score(R.score), [ ', is below the floor of ' ], score(R.floor).
says(no_evidence, _) -->
    [ 'nothing in this turn asks for it' ].
says(over_candidate_limit, R) -->
    [ 'it is number ', R.rank, ' of the candidates, past the limit' ].
says(over_tool_limit, R) -->
    [ 'the wire takes ' ], number_of(R.limit, ' tool', ' tools'), [ ', and that many came before it' ].
says(refused_by_wire, R) -->
    wire(R.wire), [ ' refuses it: ' ], short(R.what).
says(missing_dependency, R) -->
    [ 'it requires ', R.unit, ', which is not in the catalog' ].
says(dependency_out, R) -->
    [ 'it requires ', R.unit ],
    (   { get_dict(reason, R, Because) }
    ->  { sentence(Because, Sentence) },
        [ ', which cannot be shown: ', Sentence ]
    ;   [ ', which cannot be shown' ]
    ).
says(superseded_by, R) -->
    through(R),
    [ 'superseded by ', R.unit, ', which is shown' ].
says(conflict_with, R) -->
    through(R),
    [ 'in conflict with ', R.unit, ', which came first' ].
says(contradicts_itself, R) -->
    { R.units = [A, B] },
    [ 'it would bring both ', A, ' and ', B, ', which cannot stand together' ].
says(vetoed, R) -->
    [ 'a rule of the host keeps it out: ', R.rule ].
says(packed_out, R) -->
    [ 'it needs ' ], number_of(R.tokens, ' token', ' tokens'),
    [ ', and ' ], number_of(R.free, ' was free', ' were free').

says(shortened, R) -->
    [ 'in full it needs ' ], number_of(R.tokens, ' token', ' tokens'),
    [ ', and ' ], number_of(R.free, ' was free', ' were free').

without(Origin) -->
    (   { Origin == '' }
    ->  [ 'among the units of the host' ]
    ;   [ 'without those of ' ], short(Origin)
    ).

%   short(+Text)//: as it was written, or how it begins.
short(Text) -->
    {   most_quoted(Most),
        sub_atom(Text, 0, Most, After, Begin),
        After > 0
    ->  atom_concat(Begin, '…', Said)
    ;   Said = Text
    },
    [ Said ].

wire(Wire) -->
    (   { Wire == common }
    ->  [ 'a wire that this request may go to' ]
    ;   [ 'the ', Wire, ' wire' ]
    ).

number_of(Number, One, Many) -->
    { Number =:= 1 -> Words = One ; Words = Many },
    [ Number, Words ].

through(R) -->
    (   { get_dict(through, R, Through) }
    ->  [ Through, ' is ' ]
    ;   [ 'it is ' ]
    ).

score(Thousandths) -->
    { Units is Thousandths / 1000,
      format(atom(Text), '~2f', [Units]) },
    [ Text ].

words(R) -->
    (   { get_dict(words, R, Words),
          Words \== [] }
    ->  { findall(Text,
                  ( member([Word, Share, Term], Words),
                    Units is Share / 1000,
                    ( Term == Word -> Said = Word ; atomic_list_concat([Word, ' as ', Term], Said) ),
                    format(atom(Text), '~w ~2f', [Said, Units]) ),
                  Texts),
          atomic_list_concat(Texts, ', ', Listed) },
        [ ' (', Listed, ')' ]
    ;   []
    ).

:- encoding(utf8).
:- module(rlm_session,
          [ open_session/1,       % +File
            active/1,             % ?Unit
            why/1,                % +Unit
            why_not/1,            % +Unit
            what_if/1,            % +Unit
            what_if/2,            % +Unit, -Changes
            explained/3           % +Unit, -State, -Reasons
          ]).
:- use_module(library(apply), [maplist/3]).
:- use_module(library(error), [existence_error/2]).
:- use_module(library(lists), [append/3, member/2, nth1/3, reverse/2, subtract/3]).
:- use_module(rlm_catalog, [catalog_change/2, catalog_create/2, catalog_destroy/2]).
:- use_module(rlm_eligible, [matches/2, patterns/2]).
:- use_module(rlm_explain, [all_reasons/4, explain_unit/2, remedies/2, sentence/2, visible/2]).
:- use_module(rlm_meant, [unit_meant/3]).
:- use_module(rlm_select, [select/2]).
:- use_module(rlm_session_read, [session_records/2]).
:- use_module(rlm_unit, [unit_term/2]).

/** <module> Asking about a compile that was saved

`view.save("s.rlm")` in Python writes a file of plain terms (rlm_session_read); when it is open, the compile answers
for itself:

    ?- open_session('s.rlm').
    ?- why(tool(git_diff)).
    tool:git_diff is active, in its full form:
      - words of the text count 1.84 (git 1.23, chang 0.61)
    ?- why_not(tool(slack)).
    ?- what_if(tool(slack)).
    ?- active(U).
*/

:- dynamic
    record/1.                   % a term of the session that is open

%!  open_session(+File) is semidet.
%
%   Open a session; the one before is forgotten. It fails, with a line on standard error, for what is no name.
%
%   @error existence_error(rlm_session_file, File), domain_error(rlm_session, What): see
%   rlm_session_read:session_records/2.

open_session(File) :-
    \+ atomic(File),
    !,
    format(user_error, "the name of a file is wanted, in quotes: open_session('review.rlm').~n", []),
    fail.
open_session(File) :-
    session_records(File, Records),
    retractall(record(_)),
    forall(member(Record, Records), assertz(record(Record))).

                /*******************************
                *           ANSWERING          *
                *******************************/

%   A person asks here: what is no unit is told in a line (rlm_meant), and the question fails.

%!  active(?Unit) is nondet.
%
%   Unit (a term such as `tool(git_diff)`) is shown.

active(Unit) :-
    opened,
    record(active(Id, Form, _, _)),
    Form \== null,
    unit_term(Id, Unit).

%!  why(+Unit) is semidet.
%
%   Print why a unit is shown, or why not.

why(Unit) :-
    known(Unit, Id),
    state(Id, State, Form, Reasons),
    (   Form == null
    ->  line("~w is ~w:", [Id, State])
    ;   line("~w is ~w, in its ~w form:", [Id, State, Form])
    ),
    forall(( member(Reason, Reasons), sentence(Reason, Sentence) ),
           line("  - ~w", [Sentence])).

%   line(+Format, +Arguments): a line, with nothing in it that a terminal would obey.
line(Format, Arguments) :-
    format(atom(Text), Format, Arguments),
    visible(Text, Visible),
    format("~w~n", [Visible]).

%!  why_not(+Unit) is semidet.
%
%   Print why a unit is not shown, and what the host would have to change.

why_not(Unit) :-
    why(Unit),
    known(Unit, Id),
    state(Id, State, _, _),
    (   State == active
    ->  true
    ;   what_if(Unit)
    ).

%!  explained(+Unit, -State, -Reasons) is semidet.
%
%   The same as data: reasons are dicts.

explained(Unit, State, Reasons) :-
    known(Unit, Id),
    state(Id, State, _, Reasons).

opened :-
    (   record(session(_, _, _))
    ->  true
    ;   existence_error(rlm_session, 'open_session/1 was not called')
    ).

known(Unit, Id) :-
    opened,
    findall(Other, record(unit(Other, _)), Ids),
    unit_meant(Unit, Ids, Id).

state(Id, State, Form, Reasons) :-
    looked_at(Id, Looked),
    (   record(active(Id, Form0, _, Rows))
    ->  Form = Form0,
        ( Form == null -> State = packed_out ; State = active ),
        maplist(row_dict, Rows, Reasons0),
        maplist(with_words(Looked.words), Reasons0, Reasons)
    ;   Form = null,
        against(Id, Against, Rejected),
        ( Rejected == true -> State = rejected ; State = Looked.state ),
        maplist(row_dict, Against, First),
        all_reasons(Rejected, First, Looked.reasons, Reasons0),
        maplist(with_words(Looked.words), Reasons0, Reasons)
    ).

against(Id, Rows, Rejected) :-
    (   record(rejected(Id, Rows0))
    ->  Rows = Rows0,
        Rejected = true
    ;   record(nonviable(Id, Rows0))
    ->  Rows = Rows0,
        ( record(ranked(Id, _)) -> Rejected = true ; Rejected = false )
    ;   Rows = [],
        Rejected = false
    ).

with_words(Words, Reason0, Reason) :-
    (   Reason0.kind == lexical
    ->  Reason = Reason0.put(words, Words)
    ;   Reason = Reason0
    ).

row_dict(Row, Dict) :-
    findall(Key-Value, ( member([Key, Value0], Row), row_value(Value0, Value) ), Pairs),
    dict_create(Dict, _, Pairs).

row_value([nested|Row], Value) :- !, row_dict(Row, Value).
row_value(Value, Value).

looked_at(Id, Looked) :-
    question(Question),
    record(session(_, _, Stemmer)),
    record(unit(Id, Facts)),
    unit_dict(Id, Facts, Unit),
    sources(Sources),
    record(floor(Floor)),
    ( record(ranked(Id, Rank)) -> true ; Rank = null ),
    ( record(negated(Id)) -> Negated = true ; Negated = false ),
    findall(Rule, record(vetoed(Id, Rule)), Rules),
    ( record(raised(Id, Rows)) -> maplist(row_dict, Rows, Raised) ; Raised = [] ),
    explain_unit(Question.put(_{ stemmer: Stemmer, unit: Unit, sources: Sources, rank: Rank,
                                 negated: Negated, vetoed: Rules, raised: Raised, held_floor: Floor,
                                 admitted: [], retained: [] }),
                 Looked).

question(Question) :-
    findall(Key-Value, record(input(Key, Value)), Pairs),
    dict_create(Question, _, [words-null, rules-null, standing-[]|Pairs]).

sources(_{text: [Text], needs: Needs, history: History, examples: Examples}) :-
    source_list(examples, Examples),
    source_list(text, [Text]),
    source_list(needs, Needs),
    source_list(history, History).

source_list(Kind, Sources) :-
    findall(Source,
            ( record(source(Kind, _, Terms, Rarities, Words, Best)),
              source_dict(Best, _{terms: Terms, rarities: Rarities, words: Words}, Source) ),
            Sources).

source_dict(null, Source0, Source) =>
    Source = Source0.
source_dict(Best, Source0, Source) =>
    Source = Source0.put(best, Best).

unit_dict(Id, [Kind, Priority, Trust, Origin, Capability, Flags, Relations, Names, Groups, Triggers, Fields], Unit) :-
    Flags = [Pinned, Mandatory, Visible, Available],
    Relations = [Requires, Suggests, Conflicts, Supersedes],
    Fields = [Name, Alias, Description, Category, Parameters, Explained, Values, Examples],
    Unit = _{ id: Id, kind: Kind, priority: Priority, trust: Trust, origin: Origin, capability: Capability,
              pinned: Pinned, mandatory: Mandatory, visible: Visible, available: Available,
              requires: Requires, suggests: Suggests, conflicts: Conflicts, supersedes: Supersedes,
              names: Names, groups: Groups, triggers: Triggers,
              fields: _{ name: Name, alias: Alias, description: Description, category: Category,
                         parameters: Parameters, explained: Explained, values: Values, examples: Examples } }.

                /*******************************
                *            WHAT IF           *
                *******************************/

%!  what_if(+Unit) is semidet.
%
%   Print what the host would have to change for a unit to be chosen by the rules. (Tokens are not counted
%   here: a budget is judged by Python's `view.what_if`.)

what_if(Unit) :-
    what_if(Unit, Changes),
    known(Unit, Id),
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

%!  what_if(+Unit, -Changes) is semidet.
%
%   At most four changes `grant(Capability)`, `undeny(Id)`, `enable(Id)` or `select(Id)`, in the order in which
%   they were found, tried by selecting again and irreducible; `none(Reason)` where there are none. The host's own
%   rules are not here: what they vetoed then, they veto.

what_if(Unit, Changes) :-
    known(Unit, Id),
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
    setup_call_cleanup(
        session_catalog(Handle),
        search(4, Id, Question.put(catalog, Handle), [], Changes),
        catalog_destroy(_{catalog: Handle}, _)).

session_catalog(Handle) :-
    record(session(_, _, Stemmer)),
    catalog_create(_{stemmer: Stemmer}, Created),
    Handle = Created.catalog,
    findall(Unit, ( record(unit(Id, Facts)), unit_dict(Id, Facts, Unit) ), Units),
    catalog_change(_{catalog: Handle, remove: [], units: Units}, _).

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

                /*******************************
                *           MESSAGES           *
                *******************************/

:- multifile prolog:error_message//1.

prolog:error_message(existence_error(rlm_session, What)) -->
    [ 'no session is open: ~w'-[What] ].

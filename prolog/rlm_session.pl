:- encoding(utf8).
:- module(rlm_session,
          [ active/1,             % ?Unit
            why/1,                % +Unit
            explained/3,          % ?Unit, -State, -Reasons
            looked_up/5,          % +Id, -State, -Form, -Reasons, -Words
            surely_hidden/1,      % +Id
            unit_asked/2,         % ?Unit, -Id
            printed_about/2,      % +Unit, -Id
            line/2,               % +Format, +Arguments
            question/1,           % -Question
            unit_dict/3           % +Id, +Facts, -Unit
          ]).
:- use_module(library(apply), [maplist/3]).
:- use_module(library(lists), [member/2]).
:- use_module(rlm_eligible, [blocked/2, policy/2]).
:- use_module(rlm_explain, [explained_unit/3, sentence/2, visible/2, with_words/3]).
:- use_module(rlm_meant, [unit_meant/3]).
:- use_module(rlm_open, [current_session/1, record/1, records/1]).
:- use_module(rlm_unit, [unit_name/2, unit_term/2]).

/** <module> Asking about a compile that was saved

`view.save("s.rlm")` in Python writes a file of plain terms (rlm_session_read). When it is open (rlm_open), these
predicates answer questions about it:

    ?- open_session('s.rlm').
    ?- why(tool(git_diff)).
    tool:git_diff is active, in its full form:
      - words of the text count 1.84 (git 1.23, chang 0.61)
    ?- active(U).
*/

:- dynamic
    looked/6,                   % Session, Id, State, Form, Reasons, Words: what was looked up already
    prepared/2.                 % Session, Policy: the policy with its patterns made ready

:- multifile rlm_open:closed/1.

rlm_open:closed(Name) :-
    retractall(rlm_session:looked(Name, _, _, _, _, _)),
    retractall(rlm_session:prepared(Name, _)).

                /*******************************
                *           ANSWERING          *
                *******************************/

%   A person asks here: what is no unit is told in a line (rlm_meant), and the question fails.

%!  active(?Unit) is nondet.
%
%   Unit (a term such as `tool(git_diff)`) is shown.

active(Unit) :-
    (   ground(Unit)
    ->  unit_asked(Unit, Id),
        record(active(Id, Form, _, _)),
        Form \== null
    ;   record(active(Id, Form, _, _)),
        Form \== null,
        unit_term(Id, Unit)
    ).

%!  why(+Unit) is nondet.
%
%   Print why a unit is shown, or why not.

why(Unit) :-
    printed_about(Unit, Id),
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

%   printed_about(+Unit, -Id) is nondet: a variable is no unit to print about.
printed_about(Unit, Id) :-
    (   ground(Unit)
    ->  unit_asked(Unit, Id)
    ;   known(Unit, Id)
    ).

%!  explained(?Unit, -State, -Reasons) is nondet.
%
%   The same as data: reasons are dicts.

explained(Unit, State, Reasons) :-
    unit_asked(Unit, Id),
    state(Id, State, _, Reasons).

%!  unit_asked(?Unit, -Id:atom) is nondet.
%
%   Id is a unit of the session that Unit means. A variable enumerates all units, in the order of their ids; so does a
%   term with variables, such as `mcp_tool(github, Name)`. An atom or a string with `*` or `?` means each unit whose id
%   or name matches. Anything else means one unit (rlm_meant).

unit_asked(Unit, Id) :-
    (   ground(Unit)
    ->  ground_unit(Unit, Id)
    ;   record(unit(Id, _)),
        unit_term(Id, Unit)
    ).

ground_unit(Unit, Id) :-
    compound(Unit),
    catch(unit_term(Id0, Unit), error(_, _), fail),
    record(unit(Id0, _)),
    !,
    Id = Id0.
ground_unit(Unit, Id) :-
    glob(Unit),
    !,
    record(unit(Id, _)),
    (   wildcard_match(Unit, Id)
    ->  true
    ;   unit_name(Id, Name),
        wildcard_match(Unit, Name)
    ).
ground_unit(Unit, Id) :-
    known(Unit, Id).

%   glob(+Unit) is semidet.
glob(Unit) :-
    ( atom(Unit) ; string(Unit) ),
    sub_atom(Unit, _, 1, _, Char),
    memberchk(Char, [*, ?]),
    !.

known(Unit, Id) :-
    current_session(_),
    findall(Other, record(unit(Other, _)), Ids),
    unit_meant(Unit, Ids, Id).

%!  looked_up(+Id:atom, -State:atom, -Form:atom, -Reasons:list(dict), -Words:list) is det.
%
%   The state of a unit, the form in which it is shown (or `null`), its reasons, and the words of the text that count
%   for it, each `[Word, Share, Term]`. What was looked up once is kept as long as the session is open.

looked_up(Id, State, Form, Reasons, Words) :-
    current_session(Session),
    (   looked(Session, Id, State0, Form0, Reasons0, Words0)
    ->  true
    ;   look_up(Id, State0, Form0, Reasons0, Words0),
        assertz(looked(Session, Id, State0, Form0, Reasons0, Words0))
    ),
    State = State0,
    Form = Form0,
    Reasons = Reasons0,
    Words = Words0.

%!  surely_hidden(+Id:atom) is semidet.
%
%   The unit is hidden, known without weighing its words: it was no candidate, and nothing speaks against it.

surely_hidden(Id) :-
    records(M),
    \+ M:active(Id, _, _, _),
    \+ M:rejected(Id, _),
    \+ M:nonviable(Id, _),
    \+ M:ranked(Id, _),
    \+ M:negated(Id),
    \+ M:vetoed(Id, _),
    M:unit(Id, [_, _, Trust, _, Capability, [_, _, Visible, Available]|_]),
    session_policy(Policy),
    \+ blocked(Policy, facts(Id, Trust, Capability, Visible, Available)),
    !.

session_policy(Policy) :-
    current_session(Session),
    (   prepared(Session, Policy0)
    ->  Policy = Policy0
    ;   question(Question),
        policy(Question, Policy),
        assertz(prepared(Session, Policy))
    ).

state(Id, State, Form, Reasons) :-
    looked_up(Id, State, Form, Reasons, _).

look_up(Id, State, Form, Reasons, Words) :-
    decided(Id, Form, Decided, Rows),
    maplist(row_dict, Rows, Given),
    question(Question),
    record(session(_, _, Stemmer)),
    record(unit(Id, Facts)),
    unit_dict(Id, Facts, Unit),
    sources(Sources),
    record(floor(Floor)),
    ( record(ranked(Id, Rank)) -> true ; Rank = null ),
    ( record(negated(Id)) -> Negated = true ; Negated = false ),
    findall(Rule, record(vetoed(Id, Rule)), Rules),
    ( record(raised(Id, RaisedRows)) -> maplist(row_dict, RaisedRows, Raised) ; Raised = [] ),
    explained_unit(Question.put(_{ stemmer: Stemmer, sources: Sources, held_floor: Floor, admitted: [], retained: [] }),
                   _{ unit: Unit, rank: Rank, raised: Raised, negated: Negated, vetoed: Rules,
                      decided: Decided, reasons: Given },
                   Explained),
    State = Explained.state,
    Words = Explained.words,
    maplist(with_words(Words), Explained.reasons, Reasons).

%   decided(+Id, -Form, -Decided, -Rows) is det: what the session has about a unit, as rlm_explain:explained_unit/3 takes
%   it.
decided(Id, Form, Decided, Rows) :-
    (   record(active(Id, Form0, _, Rows0))
    ->  Form = Form0,
        Rows = Rows0,
        ( Form == null -> Decided = packed_out ; Decided = active )
    ;   Form = null,
        (   record(rejected(Id, Rows0))
        ->  Decided = rejected
        ;   record(nonviable(Id, Rows0))
        ->  Decided = nonviable
        ;   Decided = none,
            Rows0 = []
        ),
        Rows = Rows0
    ).

row_dict(Row, Dict) :-
    findall(Key-Value, ( member([Key, Value0], Row), row_value(Value0, Value) ), Pairs),
    dict_create(Dict, _, Pairs).

row_value([nested|Row], Value) :- !, row_dict(Row, Value).
row_value(Value, Value).

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
            ( record(source(Kind, _, Terms, Rarities, Words, Least)),
              source_dict(Least, _{terms: Terms, rarities: Rarities, words: Words}, Source) ),
            Sources).

source_dict(null, Source0, Source) =>
    Source = Source0.
source_dict(Least, Source0, Source) =>
    Source = Source0.put(least, Least).

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

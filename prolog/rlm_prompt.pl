:- encoding(utf8).
:- module(rlm_prompt,
          [ prompt_catalog_create/1,                     % -Catalog
            prompt_catalog_destroy/1,                    % +Catalog
            prompt_catalog_register/3,                   % +Catalog, +Unit, +Options
            prompt_catalog_register_tool_registry/4,     % +Catalog, +Schemas, +Options, -Units
            prompt_compile/4,                            % +Catalog, +Input, +Options, -Compiled
            prompt_recompile/4,                          % +Compiled, +Input, +Options, -Again
            prompt_explain/3,                            % +Compiled, +Unit, -Explanation
            prompt_render/3,                             % +Compiled, +Options, -Rendered
            prompt_compiler_tool_schemas/2               % +Compiled, -Schemas
          ]).
:- use_module(library(assoc), [assoc_to_keys/2, get_assoc/3, list_to_assoc/2]).
:- use_module(library(error), [existence_error/2, must_be/2]).
:- use_module(library(lists), [member/2, nth1/3]).
:- use_module(rlm_catalog, [catalog_change/2, catalog_create/2, catalog_destroy/2]).
:- use_module(rlm_explain, [explained_unit/3]).
:- use_module(rlm_meant, [likest/3, meant/3, not_meant/2]).
:- use_module(rlm_select, [select/2]).
:- use_module(rlm_unit, [unit_kind/2, unit_name/2, unit_server/2, unit_term/2]).

/** <module> The compiler from a Prolog prompt

Register units, compile, and ask why, with no Python at all. Selection and explanation are the same
predicates that Python uses; counting tokens, packing and sending are Python's, and the two predicates that
would need them say so.

    ?- prompt_catalog_create(C),
       prompt_catalog_register(C, _{unit: tool(git_diff), description: 'Show what changed in git'}, _{}),
       prompt_compile(C, _{text: 'review my git change'}, _{}, Compiled),
       prompt_explain(Compiled, tool(git_diff), E).
*/

:- dynamic registered/3.        % Handle, Id, Facts: what there is to explain a unit by

%!  prompt_catalog_create(-Catalog) is det.

prompt_catalog_create(prompt_catalog(Handle)) :-
    catalog_create(_{stemmer: english}, Created),
    Handle = Created.catalog.

%!  prompt_catalog_destroy(+Catalog) is det.

prompt_catalog_destroy(prompt_catalog(Handle)) :-
    catalog_destroy(_{catalog: Handle}, _),
    retractall(registered(Handle, _, _)).

%!  prompt_catalog_register(+Catalog, +Unit:dict, +Options:dict) is det.
%
%   Unit has `unit` (a term such as `tool(git_diff)`) and may have `description`, `requires`, `suggests`,
%   `conflicts`, `supersedes` (lists of terms) and `requires_capability`. The host's own word comes in Options:
%   `activation` (`always` or `relevant`), `mandatory`, `visible`, `available`, `priority`, `trust`.
%
%   @error existence_error(option, Name) for a key that is none of these; its context names the closest.

prompt_catalog_register(prompt_catalog(Handle), Unit, Options) :-
    known_keys(Unit, [unit, description, requires, suggests, conflicts, supersedes, requires_capability]),
    known_keys(Options, [activation, mandatory, visible, available, priority, trust]),
    unit_term(Id, Unit.unit),
    facts(Id, Unit, Options, Facts),
    catalog_change(_{catalog: Handle, remove: [Id], units: [Facts]}, _),
    retractall(registered(Handle, Id, _)),
    assertz(registered(Handle, Id, Facts)).

known_keys(Dict, Known) :-
    must_be(dict, Dict),
    forall(get_dict(Key, Dict, _),
           ( memberchk(Key, Known) -> true ; no_option(Key, Known) )).

no_option(Key, Known) :-
    (   likest(Key, Known, Close)
    ->  format(string(Hint), "did you mean ~w?", [Close])
    ;   atomic_list_concat(Known, ', ', Names),
        format(string(Hint), "known: ~w", [Names])
    ),
    throw(error(existence_error(option, Key), context(_, Hint))).

value(Dict, Key, Default, Value) :-
    (   get_dict(Key, Dict, Value0)
    ->  Value = Value0
    ;   Value = Default
    ).

facts(Id, Unit, Options, Facts) :-
    unit_kind(Id, Kind),
    unit_name(Id, Name),
    unit_server(Id, Server),
    ( Server == '' -> Names = [Name], Groups = [] ; atomic_list_concat([Server, Name], /, Path),
                                                   Names = [Name, Path], Groups = [Server] ),
    ( memberchk(Kind, [tool, mcp_tool]) -> Own = Id ; Own = null ),
    value(Unit, requires_capability, Own, Capability),
    value(Unit, description, '', Description0),
    atom_string(Description, Description0),
    ids(Unit, requires, Requires),
    ids(Unit, suggests, Suggests),
    ids(Unit, conflicts, Conflicts),
    ids(Unit, supersedes, Supersedes),
    value(Options, activation, relevant, Activation),
    must_be(oneof([always, relevant]), Activation),
    ( Activation == always -> Pinned = true ; Pinned = false ),
    value(Options, mandatory, false, Mandatory),
    value(Options, visible, true, Visible),
    value(Options, available, true, Available),
    value(Options, priority, 100, Priority),
    value(Options, trust, host, Trust),
    Facts = _{ id: Id, kind: Kind, priority: Priority, trust: Trust, capability: Capability,
               pinned: Pinned, mandatory: Mandatory, visible: Visible, available: Available,
               requires: Requires, suggests: Suggests, conflicts: Conflicts, supersedes: Supersedes,
               names: Names, groups: Groups, triggers: [],
               fields: _{ name: Name, alias: '', description: Description, category: Server,
                          parameters: '', explained: '', values: '', examples: '' } }.

ids(Unit, Key, Ids) :-
    value(Unit, Key, [], Terms),
    findall(Id, ( member(Term, Terms), unit_term(Id, Term) ), Ids0),
    sort(Ids0, Ids).

%!  prompt_catalog_register_tool_registry(+Catalog, +Schemas:list(dict), +Options:dict, -Units) is det.
%
%   Register the tools of a registry by what it says of them (`name`, `description`); handlers stay where
%   they are. `Units` are the terms of the units.

prompt_catalog_register_tool_registry(Catalog, Schemas, Options, Units) :-
    findall(tool(Name),
            ( member(Schema, Schemas),
              atom_string(Name, Schema.name),
              value(Schema, description, '', Description),
              prompt_catalog_register(Catalog, _{unit: tool(Name), description: Description}, Options) ),
            Units).

%!  prompt_compile(+Catalog, +Input:dict, +Options:dict, -Compiled) is det.
%
%   Input: `text`, `needs`, `signals`, `selected`, `denied`. Options: `mode`, `capabilities`, `scope`,
%   `disabled`, `candidate_limit`. `Compiled` has `active`, the terms of the chosen units, in order.
%
%   @error configuration(Error) where what the host pinned or selected cannot stand together.

prompt_compile(prompt_catalog(Handle), Input, Options, Compiled) :-
    known_keys(Input, [text, needs, signals, selected, denied]),
    known_keys(Options, [mode, capabilities, scope, disabled, candidate_limit]),
    value(Input, text, '', Text0),
    atom_string(Text, Text0),
    value(Input, needs, [], Needs),
    value(Input, signals, [], Signals),
    ids(Input, selected, Selected),
    ids(Input, denied, Denied),
    value(Options, mode, compiled, Mode),
    value(Options, capabilities, null, Capabilities),
    value(Options, scope, null, Scope),
    value(Options, disabled, [], Disabled),
    value(Options, candidate_limit, 64, Limit),
    Question = _{ catalog: Handle, text: Text, history: [], needs: Needs, signals: Signals, sensors: [],
                  words: null, admitted: [], retained: [], standing: [], selected: Selected, denied: Denied,
                  disabled: Disabled, capabilities: Capabilities, withheld: [], scope: Scope, mode: Mode, limit: Limit,
                  floor: 300, relative_floor: 250, abstain: 1000, rules: null },
    select(Question, Reply),
    (   get_dict(error, Reply, Error)
    ->  throw(error(configuration(Error), _))
    ;   findall(Unit, ( member([Id|_], Reply.active), unit_term(Id, Unit) ), Active),
        findall(Id-Facts, registered(Handle, Id, Facts), Registered),
        list_to_assoc(Registered, Units),
        Compiled = compiled_context{ catalog: prompt_catalog(Handle), active: Active, reply: Reply,
                                     options: Options, question: Question, units: Units }
    ).

%!  prompt_recompile(+Compiled, +Input:dict, +Options:dict, -Again) is det.
%
%   Compile the same catalog again, with another input; Options add to the earlier ones.

prompt_recompile(Compiled, Input, Options, Again) :-
    prompt_compile(Compiled.catalog, Input, Compiled.options.put(Options), Again).

%!  prompt_explain(+Compiled, +Unit, -Explanation) is det.
%
%   `explanation{unit, state, reasons, text}`: `active` or `rejected`, or `hidden` where nothing asked for it, with
%   every reason there is. It is the unit as it was registered when Compiled was made. Unit is a term, an id, or a name
%   that one unit alone has, as for why/1; `unit` is its term.
%
%   @error existence_error(unit, Unit) for one that the catalog did not have then; its context says which one is close,
%   or between which it does not tell.

prompt_explain(Compiled, Unit, explanation{unit: Term, state: State, reasons: Reasons, text: Text}) :-
    assoc_to_keys(Compiled.units, Ids),
    meant(Unit, Ids, Meant),
    (   Meant = unit(Id)
    ->  unit_term(Id, Term),
        get_assoc(Id, Compiled.units, Facts)
    ;   not_meant(Meant, Hint),
        throw(error(existence_error(unit, Unit), context(_, Hint)))
    ),
    Reply = Compiled.reply,
    ( nth1(N, Reply.ranked, Id) -> nth1(N, Reply.ranks, Rank) ; Rank = null ),
    ( memberchk(Id, Reply.negated) -> Negated = true ; Negated = false ),
    ( member([Id, Raised], Reply.raised) -> true ; Raised = [] ),
    decided(Id, Reply, Decided, Given),
    explained_unit(Compiled.question.put(_{ stemmer: english, sources: Reply.sources, held_floor: Reply.relative_floor }),
                   _{ unit: Facts, rank: Rank, raised: Raised, negated: Negated, vetoed: [], decided: Decided,
                      reasons: Given },
                   Explained),
    State = Explained.state,
    Reasons = Explained.reasons,
    Text = Explained.sentences.

%   decided(+Id, +Reply, -Decided, -Reasons) is det: what the rules decided about a unit, as
%   rlm_explain:explained_unit/3 takes it.
decided(Id, Reply, Decided, Reasons) :-
    (   member([Id, _, _, _, Reasons0, _], Reply.active)
    ->  Decided = active
    ;   member([Id, Reasons0], Reply.rejected)
    ->  Decided = rejected
    ;   member([Id, Reasons0], Reply.nonviable)
    ->  Decided = nonviable
    ;   Decided = none,
        Reasons0 = []
    ),
    Reasons = Reasons0.

%!  prompt_render(+Compiled, +Options, -Rendered) is failure.
%!  prompt_compiler_tool_schemas(+Compiled, -Schemas) is failure.
%
%   Bodies and schemas never enter Prolog: in Python, `view.messages(provider)` and `view.tools(provider)`.
%
%   @error existence_error(python, What)

prompt_render(_, _, _) :-
    existence_error(python, 'view.messages(provider)').

prompt_compiler_tool_schemas(_, _) :-
    existence_error(python, 'view.tools(provider)').

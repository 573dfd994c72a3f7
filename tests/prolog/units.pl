:- encoding(utf8).
:- module(units,
          [ with_units/2,         % +Units, :Goal
            with_units/3,         % +Stemmer, +Units, :Goal
            question/2,           % +Changes, -Args
            chosen/3,             % +Units, +Changes, -Ids
            reason_value/5,       % +Units, +Changes, +Id, +Path, -Value
            refused_value/4       % +Units, +Changes, +Path, -Value
          ]).
:- use_module('../../prolog/rlm_catalog', [catalog_change/2, catalog_create/2, catalog_destroy/2]).
:- use_module('../../prolog/rlm_select', [select/2]).

/** <module> Small catalogs for tests

A unit is `Id-Attributes` or an id; attributes are `requires(Ids)`, `pinned(true)`, `description(Text)` and so on.
*/

:- meta_predicate with_units(+, 1), with_units(+, +, 1).

%!  with_units(+Units, :Goal) is nondet.
%
%   Call Goal with the handle of a catalog of Units.

with_units(Units, Goal) :-
    with_units(english, Units, Goal).

%!  with_units(+Stemmer:atom, +Units, :Goal) is nondet.

with_units(Stemmer, Units, Goal) :-
    setup_call_cleanup(
        ( catalog_create(_{stemmer: Stemmer}, Created),
          Handle = Created.catalog ),
        ( findall(Dict, ( member(Unit, Units), unit_dict(Unit, Dict) ), Dicts),
          catalog_change(_{catalog: Handle, remove: [], units: Dicts}, _),
          call(Goal, Handle) ),
        catalog_destroy(_{catalog: Handle}, _)).

unit_dict(Unit, Dict) :-
    ( Unit = Id-Attributes -> true ; Id = Unit, Attributes = [] ),
    atomic_list_concat([Kind, Path], ':', Id),
    (   sub_atom(Path, Before, 1, After, /)
    ->  sub_atom(Path, 0, Before, _, Server),
        sub_atom(Path, _, After, 0, Name),
        Names = [Name, Path], Groups = [Server]
    ;   Name = Path, Names = [Name], Groups = []
    ),
    ( memberchk(Kind, [tool, mcp_tool]) -> Capability = Id ; Capability = null ),
    Fields = _{name: Name, alias: '', description: '', category: '', parameters: '', explained: '', values: '', examples: ''},
    Base = _{ id: Id, kind: Kind, priority: 100, trust: host, capability: Capability,
              pinned: false, mandatory: false, visible: true, available: true,
              requires: [], suggests: [], conflicts: [], supersedes: [],
              names: Names, groups: Groups, triggers: [], fields: Fields, effect: '', server: '', identifiers: [] },
    foldl(attribute, Attributes, Base, Dict).

attribute(description(Text), D0, D) :- !,
    D = D0.put(fields, D0.fields.put(description, Text)).
attribute(Attribute, D0, D) :-
    Attribute =.. [Key, Value],
    D = D0.put(Key, Value).

%!  question(+Changes:dict, -Args:dict) is det.
%
%   A compile's question that asks nothing, with Changes.

question(Changes, Args) :-
    Args = _{ text: '', history: [], needs: [], signals: [], sensors: [], words: null, admitted: [],
              retained: [], standing: [], selected: [], denied: [], disabled: [], capabilities: null, withheld: [], scope: null,
              mode: compiled, limit: 64, floor: 300, relative_floor: 0, abstain: 0, rules: null }.put(Changes).

answer(Changes, Reply, Handle) :-
    question(Changes, Args),
    select(Args.put(catalog, Handle), Reply).

%!  chosen(+Units, +Changes, -Ids) is det.

chosen(Units, Changes, Ids) :-
    with_units(Units, answer(Changes, Reply)),
    !,
    findall(Id, member([Id|_], Reply.active), Ids).

%!  reason_value(+Units, +Changes, +Id, +Path, -Value) is nondet.
%
%   What stands under the keys of Path in one of the reasons of Id.

reason_value(Units, Changes, Id, Path, Value) :-
    once(with_units(Units, answer(Changes, Reply))),
    (   member([Id, _, _, _, Reasons, _], Reply.active)
    ;   member([Id, Reasons], Reply.rejected)
    ),
    member(Reason, Reasons),
    at(Path, Reason, Value).

%!  refused_value(+Units, +Changes, +Path, -Value) is semidet.

refused_value(Units, Changes, Path, Value) :-
    once(with_units(Units, answer(Changes, Reply))),
    at([error|Path], Reply, Value).

at([], Value, Value).
at([Key|Path], Dict, Value) :-
    is_dict(Dict),
    get_dict(Key, Dict, Inner),
    at(Path, Inner, Value).

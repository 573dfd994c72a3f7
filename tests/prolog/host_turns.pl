:- encoding(utf8).
:- module(host_turns,
          [ loaded/2,             % +Text, -Reply
            refused/2,            % +Lines, -Places
            complaint/3,          % +Text, -Message, -Fix
            warned/2,             % +Text, -Messages
            decided/6,            % +Text, +Given, +Scores, -Ranked, -Vetoed, -Needs
            decided_on/7,         % +Units, +Text, +Given, +Scores, -Ranked, -Vetoed, -Needs
            vetoed/3,             % +Text, +Given, -Vetoed
            boosted/4,            % +Text, +Given, +Scores, -Ranked
            needed/3,             % +Text, +Given, -Needs
            failing/5,            % +Text, +Given, +Scores, -Name, -Message
            units/1,              % -Units
            catalog/3,            % +Units, -Handle, -M
            turn/2                % +Given, -Args
          ]).
:- use_module('../../prolog/rlm_catalog', [catalog_change/2, catalog_create/2, catalog_destroy/2, catalog_module/2]).
:- use_module('../../prolog/rlm_host', [host_boosts/4, host_rules/3, rules_forget/2, rules_load/2]).
:- use_module('../../prolog/rlm_unit', [unit_kind/2]).

/** <module> Turns with rules of a host, for tests */

%   loaded(+Text, -Reply): and forgotten again.
loaded(Text, Reply) :-
    atom_string(Source, Text),
    rules_load(_{source: Source, name: 'policy.pl'}, Reply),
    (   get_dict(rules, Reply, Handle)
    ->  rules_forget(_{rules: Handle}, _)
    ;   true
    ).

%   refused(+Lines, -Places): where the errors are, as Line-Column; there is no handle.
refused(Lines, Places) :-
    atomic_list_concat(Lines, '\n', Source),
    loaded(Source, Reply),
    \+ get_dict(rules, Reply, _),
    findall(L-C, ( member(F, Reply.findings), F.level == error, L = F.line, C = F.column ), Places).

%   complaint(+Text, -Message, -Fix): of the one error.
complaint(Text, Message, Fix) :-
    loaded(Text, Reply),
    findall(M-F, ( member(Finding, Reply.findings), Finding.level == error, M = Finding.message, F = Finding.fix ),
            [Message-Fix]).

warned(Text, Messages) :-
    loaded(Text, Reply),
    get_dict(rules, Reply, _),
    findall(M, ( member(F, Reply.findings), F.level == warning, M = F.message ), Messages).

units([ 'tool:git_diff'-[], 'tool:deploy'-[], 'tool:tag'-[], 'tool:changelog'-[],
        'mcp_tool:postgres/drop_table'-[trust-stranger], 'mcp_tool:postgres/query'-[trust-stranger],
        'mcp_tool:files/deep/read'-[], 'skill:checklist'-[priority-200] ]).

%   catalog(+Units, -Handle, -M)
catalog(Units, Handle, M) :-
    catalog_create(_{stemmer: english}, Reply),
    Handle = Reply.catalog,
    findall(Unit, ( member(Id-Facts, Units), unit(Id, Facts, Unit) ), Dicts),
    catalog_change(_{catalog: Handle, remove: [], units: Dicts}, _),
    catalog_module(Handle, M).

unit(Id, Facts, Unit) :-
    unit_kind(Id, Kind),
    ( memberchk(trust-Trust, Facts) -> true ; Trust = host ),
    ( memberchk(priority-Priority, Facts) -> true ; Priority = 100 ),
    Unit = _{ id: Id, kind: Kind, priority: Priority, trust: Trust, capability: null, pinned: false,
              mandatory: false, visible: true, available: true, requires: [], suggests: [], conflicts: [],
              supersedes: [], names: [], groups: [], triggers: [], fields: _{} }.

%   turn(+Given, -Args): a turn with what is given, a pair each.
turn(Given, Args) :-
    dict_pairs(Some, _, Given),
    Args = _{text: '', needs: [], signals: [], mode: compiled}.put(Some).

%   decided(+Text, +Given, +Scores, -Ranked, -Vetoed, -Needs): with ids for numbers.
decided(Text, Given, Scores, Ranked, Vetoed, Needs) :-
    units(Units),
    decided_on(Units, Text, Given, Scores, Ranked, Vetoed, Needs).

decided_on(Units, Text, Given, Scores, Ranked, Vetoed, Needs) :-
    atom_string(Source, Text),
    rules_load(_{source: Source, name: 'policy.pl'}, Loaded),
    turn([rules-(Loaded.rules)|Given], Args),
    setup_call_cleanup(
        catalog(Units, Catalog, M),
        ( findall(c(I, Score, Score, []), ( member(Id-Score, Scores), M:number(Id, I) ), Ranked0),
          host_rules(M, Args, rules(Vetoed1, Needs1)),
          host_boosts(M, Args, Ranked0, Ranked1),
          findall(Id-Score-Es, ( member(c(I, Score, _, Es), Ranked1), M:unit(I, Id, _, _, _, _) ), Ranked),
          findall(Id-Why, ( member(I-Why, Vetoed1), M:unit(I, Id, _, _, _, _) ), Vetoed),
          findall(Id-Other, ( member(I-Other, Needs1), M:unit(I, Id, _, _, _, _) ), Needs) ),
        ( catalog_destroy(_{catalog: Catalog}, _),
          rules_forget(_{rules: Loaded.rules}, _) )).

vetoed(Text, Given, Vetoed) :-
    decided(Text, Given, [], _, Vetoed, _).

boosted(Text, Given, Scores, Ranked) :-
    decided(Text, Given, Scores, Ranked, _, _).

needed(Text, Given, Needs) :-
    decided(Text, Given, [], _, _, Needs).

%   failing(+Text, +Given, +Scores, -Name, -Message): the rule that ends a turn, and what is told of it.
failing(Text, Given, Scores, Name, Message) :-
    catch(decided(Text, Given, Scores, _, _, _), error(host_rule_failed(Name, Message), _), true).

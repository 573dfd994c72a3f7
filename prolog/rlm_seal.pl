:- encoding(utf8).
:- module(rlm_seal,
          [ seal/2                % +Args, -Reply
          ]).
:- use_module(library(assoc), [get_assoc/3, list_to_assoc/2]).
:- use_module(library(lists), [member/2]).
:- use_module(rlm_eligible, [matches/2, patterns/2]).

/** <module> What must hold of every finished projection

The seal knows nothing of how a selection came about. It is handed what is about to be shown, as the units
themselves say it (not as the index has it), and the host's policy, and it looks for anything unlawful.

`Args`: `shown` and `pinned`, lists of units as dicts (`id`, `requires`, `conflicts`, `supersedes` with
everything superseded through others, `capability`, `trust`, `visible`, `available`); the policy's
`capabilities`, `withheld`, `scope`, `denied`, `disabled`; `extra`, requirements of this compile only ([Id, Id]);
`obliged`, what may not be packed out; `total` and `token_limit`.
*/

%!  seal(+Args:dict, -Reply:dict) is det.
%
%   `Reply`: `violations`, each with the `law`, the `unit` and the `other` unit or thing; empty is lawful.

seal(Args, _{violations: Violations}) :-
    findall(Id-true, shown(Args, Id, _), Pairs),
    sort(Pairs, Sorted),
    list_to_assoc(Sorted, Shown),
    policy_patterns(Args, Policy),
    findall(_{law: Law, unit: Unit, other: Other},
            violation(Args, Shown, Policy, Law, Unit, Other),
            Violations).

policy_patterns(Args, p(grant(Granted, Withheld), Scope, Denied, Disabled)) :-
    optional(Args.capabilities, Granted),
    patterns(Args.withheld, Withheld),
    optional(Args.scope, Scope),
    patterns(Args.denied, Denied),
    patterns(Args.disabled, Disabled).

optional(null, Patterns) =>
    Patterns = null.
optional(List, Patterns) =>
    patterns(List, Patterns).

%   violation(+Args, +Shown:assoc, +Policy, -Law, -Unit, -Other) is nondet.
violation(Args, Shown, _, 'L1', Id, Needed) :-
    shown(Args, Id, Unit),
    required(Args, Id, Unit, Needed),
    \+ get_assoc(Needed, Shown, _),
    \+ ( shown(Args, Other, OtherUnit),
         superseding(OtherUnit, Needed),
         ( pinned(Args, Needed) -> pinned(Args, Other) ; true ) ).
violation(Args, Shown, _, 'L2', Id, Other) :-
    shown(Args, Id, Unit),
    get_dict(conflicts, Unit, Conflicts),
    member(Other, Conflicts),
    get_assoc(Other, Shown, _).
violation(Args, Shown, _, 'L3', Id, Other) :-
    shown(Args, Other, Unit),
    get_dict(supersedes, Unit, Superseded),
    member(Id, Superseded),
    get_assoc(Id, Shown, _).
violation(Args, _, Policy, 'L4', Id, Why) :-
    shown(Args, Id, Unit),
    ineligible(Policy, Unit, Why).
violation(Args, Shown, _, 'L4', Id, refused_by_wire) :-
    get_dict(refused, Args, Rows),
    member([Id|_], Rows),
    get_assoc(Id, Shown, _).
violation(Args, Shown, Policy, 'L5', Id, pinned) :-
    member(Unit, Args.pinned),
    get_dict(id, Unit, Id),
    \+ get_assoc(Id, Shown, _),
    \+ ineligible(Policy, Unit, _),
    get_dict(requires, Unit, []),
    \+ memberchk([Id, _], Args.extra),
    \+ ( member(Other, Args.pinned),
         superseding(Other, Id),
         get_dict(id, Other, OtherId),
         get_assoc(OtherId, Shown, _) ).
violation(Args, Shown, _, packing, Id, mandatory) :-
    member(Id, Args.obliged),
    \+ get_assoc(Id, Shown, _).
violation(Args, _, _, packing, budget, Total) :-
    Total = Args.total,
    Total > Args.token_limit.

shown(Args, Id, Unit) :-
    member(Unit, Args.shown),
    get_dict(id, Unit, Id).

pinned(Args, Id) :-
    member(Unit, Args.pinned),
    get_dict(id, Unit, Id),
    !.

required(_, _, Unit, Needed) :-
    get_dict(requires, Unit, Requires),
    member(Needed, Requires).
required(Args, Id, _, Needed) :-
    member([Id, Needed], Args.extra).

superseding(Unit, Id) :-
    get_dict(supersedes, Unit, Superseded),
    memberchk(Id, Superseded).

ineligible(p(_, _, Denied, _), Unit, denied) :-
    get_dict(id, Unit, Id),
    matches(Denied, Id).
ineligible(p(_, _, _, Disabled), Unit, disabled) :-
    get_dict(id, Unit, Id),
    matches(Disabled, Id).
ineligible(_, Unit, invisible) :-
    get_dict(visible, Unit, false).
ineligible(_, Unit, unavailable) :-
    get_dict(available, Unit, false).
ineligible(p(_, Scope, _, _), Unit, out_of_scope) :-
    Scope \== null,
    get_dict(id, Unit, Id),
    \+ matches(Scope, Id).
ineligible(p(grant(Granted, Withheld), _, _, _), Unit, capability_missing) :-
    get_dict(capability, Unit, Capability),
    Capability \== null,
    get_dict(trust, Unit, Trust),
    (   matches(Withheld, Capability)
    ->  true
    ;   Granted == null
    ->  Trust \== host
    ;   \+ matches(Granted, Capability)
    ).

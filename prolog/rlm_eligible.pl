:- encoding(utf8).
:- module(rlm_eligible,
          [ policy/2,             % +Args, -Policy
            blocks/4,             % +Module, +Policy, +I, -Reasons
            eligible/3,           % +Module, +Policy, +I
            blocked/2,            % +Policy, +Facts
            permits/2,            % +Policy, +Capability
            most_tools/2,         % +Policy, -Most
            matches/2,            % +Patterns, +Id
            matching/2,           % +Args, -Reply
            patterns/2            % +List, -Patterns
          ]).
:- use_module(library(assoc), [get_assoc/3, list_to_assoc/2]).
:- use_module(library(lists), [member/2]).

/** <module> May a unit be shown at all?

Only the host's word counts here: what it denies, disables, grants and puts in scope, and what it says of a
unit (visible, available); and what the wire of the request cannot carry. Nothing in a text or a description can reach
these rules.
*/

%!  policy(+Args:dict, -Policy) is det.
%
%   `policy(Grant, Scope, Denied, Disabled, Wire)` with patterns made ready. `null` capabilities grant what the host
%   itself registered; what is withheld is not granted, whatever else is said. `null` scope is everything. `Wire` is
%   what the request's wire refuses: `refused`, rows `[Id, Wire, What]` of units that cannot be sent, and `most_tools`,
%   how many tools it takes, or `null`.

policy(Args, policy(grant(Granted, Withheld), Scope, Denied, Disabled, wire(Refused, Most))) :-
    optional_patterns(Args.capabilities, Granted),
    patterns(Args.withheld, Withheld),
    optional_patterns(Args.scope, Scope),
    patterns(Args.denied, Denied),
    patterns(Args.disabled, Disabled),
    ( get_dict(refused, Args, Rows) -> true ; Rows = [] ),
    ( get_dict(most_tools, Args, Most) -> true ; Most = null ),
    findall(Id-because(Wire, What), member([Id, Wire, What], Rows), Pairs),
    list_to_assoc(Pairs, Refused).

%!  permits(+Policy, +Capability) is semidet.
%
%   The host grants the capability to what it registered itself.

permits(policy(Grant, _, _, _, _), Capability) :-
    granted(Grant, host, Capability).

%!  most_tools(+Policy, -Most) is semidet.
%
%   How many tools the wire takes; fails where it sets no limit.

most_tools(policy(_, _, _, _, wire(_, Most)), Most) :-
    integer(Most).

optional_patterns(null, Patterns) =>
    Patterns = null.
optional_patterns(List, Patterns) =>
    patterns(List, Patterns).

%!  patterns(+List:list(atom), -Patterns) is det.
%
%   `*` in a pattern stands for any characters; everything else for itself.

patterns(List, patterns(Exact, Globs)) :-
    findall(P-true, ( member(P, List), \+ sub_atom(P, _, 1, _, *) ), Pairs0),
    sort(Pairs0, Pairs),
    list_to_assoc(Pairs, Exact),
    findall(Parts,
            ( member(P, List),
              sub_atom(P, _, 1, _, *),
              atomic_list_concat(Parts, *, P) ),
            Globs).

%!  matches(+Patterns, +Id) is semidet.

matches(patterns(Exact, _), Id) :-
    get_assoc(Id, Exact, _),
    !.
matches(patterns(_, Globs), Id) :-
    member([First|Parts], Globs),
    atom_concat(First, Rest, Id),
    glob(Parts, Rest),
    !.

%!  matching(+Args:dict, -Reply:dict) is det.
%
%   Those of `patterns` that match `id`.

matching(Args, _{patterns: Matching}) :-
    findall(P,
            ( member(P, Args.patterns),
              patterns([P], Patterns),
              matches(Patterns, Args.id) ),
            Matching).

%   glob(+Parts, +Text): Text is anything, then the first part, and so on; the last part ends it.
glob([Last], Text) =>
    sub_atom(Text, _, _, 0, Last).
glob([Part|Parts], Text) =>
    once(sub_atom(Text, _, _, After, Part)),
    sub_atom(Text, _, After, 0, Rest),
    glob(Parts, Rest).

%!  blocks(+Module, +Policy, +I, -Reasons:list) is det.
%
%   Everything that keeps a unit out, in a fixed order; empty where it may be shown.

blocks(M, Policy, I, Reasons) :-
    M:unit(I, Id, _, _, Trust, Capability),
    findall(Reason, block(M, Policy, I, Id, Trust, Capability, Reason), Reasons).

%!  eligible(+Module, +Policy, +I) is semidet.

eligible(M, Policy, I) :-
    M:unit(I, Id, _, _, Trust, Capability),
    \+ block(M, Policy, I, Id, Trust, Capability, _).

%!  blocked(+Policy, +Facts) is semidet.
%
%   Something keeps the unit `facts(Id, Trust, Capability, Visible, Available)` out. The same as blocks/4, with no
%   catalog.

blocked(Policy, facts(Id, Trust, Capability, Visible, Available)) :-
    (   Visible == false
    ;   Available == false
    ;   before_flags(Policy, Id, _)
    ;   after_flags(Policy, Id, Trust, Capability, _)
    ),
    !.

block(_, Policy, _, Id, _, _, Reason) :-
    before_flags(Policy, Id, Reason).
block(M, _, I, _, _, _, disabled(unit)) :-
    M:invisible(I).
block(M, _, I, _, _, _, unavailable) :-
    M:unavailable(I).
block(_, Policy, _, Id, Trust, Capability, Reason) :-
    after_flags(Policy, Id, Trust, Capability, Reason).

before_flags(policy(_, _, Denied, _, _), Id, denied) :-
    matches(Denied, Id).
before_flags(policy(_, _, _, Disabled, _), Id, disabled(policy)) :-
    matches(Disabled, Id).

after_flags(policy(_, Scope, _, _, _), Id, _, _, out_of_scope) :-
    Scope \== null,
    \+ matches(Scope, Id).
after_flags(policy(Grant, _, _, _, _), _, Trust, Capability, capability_missing(Capability)) :-
    Capability \== null,
    \+ granted(Grant, Trust, Capability).
after_flags(policy(_, _, _, _, wire(Refused, _)), Id, _, _, refused_by_wire(Wire, What)) :-
    get_assoc(Id, Refused, because(Wire, What)).

granted(grant(Granted, Withheld), Trust, Capability) :-
    \+ matches(Withheld, Capability),
    named(Granted, Trust, Capability).

named(null, Trust, _) =>
    Trust == host.
named(Granted, _, Capability) =>
    matches(Granted, Capability).

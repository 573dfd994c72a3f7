:- encoding(utf8).
:- use_module(library(plunit)).
:- use_module('../../prolog/rlm_catalog', [catalog_change/2, catalog_module/2]).
:- use_module('../../prolog/rlm_hidden', [bits/2]).
:- use_module('../../prolog/rlm_origin', [bit_numbers/2]).
:- use_module('../../prolog/rlm_select', [analyse/2]).
:- use_module(units).

:- begin_tests(rlm_hidden).

%   hidden_of(+Units, +Changes, -Names): the units that cannot be shown, without their kinds, in the order of the catalog.
hidden_of(Units, Changes, Names) :-
    once(with_units(Units, hidden_by(Changes, Names))).

hidden_by(Changes, Names, Handle) :-
    question(Changes, Args),
    analyse(Args.put(catalog, Handle), Analysis),
    catalog_module(Handle, M),
    findall(Name,
            ( member(I, Analysis.hidden), M:unit(I, Id, _, _, _, _), atomic_list_concat([_, Name], ':', Id) ),
            Names).

%   twice(+Units, +Changes, +Removed, -Names): asked before and after a change of the catalog.
twice(Units, Changes, Removed, Before-After) :-
    once(with_units(Units, before_and_after(Changes, Removed, Before, After))).

before_and_after(Changes, Removed, Before, After, Handle) :-
    hidden_by(Changes, Before, Handle),
    catalog_change(_{catalog: Handle, remove: Removed, units: []}, _),
    hidden_by(Changes, After, Handle).

four(['tool:a', 'tool:ab', 'skill:b', 'mcp_tool:s/c'-[trust(stranger)]]).

%   What the host's word keeps out: a row for each way to say it.
policy_row(_{}, ['s/c']).
policy_row(_{capabilities: ['mcp_tool:s/*']}, [a, ab]).
policy_row(_{capabilities: [*]}, []).
policy_row(_{capabilities: [*], denied: ['tool:a']}, [a]).
policy_row(_{capabilities: [*], denied: ['tool:a*']}, [a, ab]).
policy_row(_{capabilities: [*], denied: ['skill:b', 'tool:*b']}, [ab, b]).
policy_row(_{capabilities: [*], denied: ['tool:nowhere']}, []).
policy_row(_{capabilities: [*], disabled: ['tool:ab']}, [ab]).
policy_row(_{capabilities: [*], disabled: ['*b']}, [ab, b]).
policy_row(_{capabilities: [*], denied: ['skill:*'], disabled: ['z*']}, [b]).
policy_row(_{capabilities: [*], scope: ['tool:*']}, [b, 's/c']).
policy_row(_{capabilities: [*], scope: ['skill:b']}, [a, ab, 's/c']).
policy_row(_{capabilities: [*], scope: []}, [a, ab, b, 's/c']).
policy_row(_{capabilities: [*], refused: [['tool:ab', openai, name]]}, [ab]).
policy_row(_{capabilities: [*], refused: [['tool:gone', openai, name]]}, []).
policy_row(_{capabilities: [*], text: 'do not use ab'}, [ab]).

test(rule_what_the_host_or_the_text_keeps_out_is_hidden, [forall(policy_row(Changes, Expected)), Names == Expected]) :-
    four(Units),
    hidden_of(Units, Changes, Names).
test(rule_what_is_registered_as_invisible_or_not_available_is_hidden, Names == [a, b]) :-
    hidden_of(['tool:a'-[visible(false)], 'tool:b'-[available(false)], 'tool:c'], _{}, Names).

%   What needs something that nothing meets.
need_row(['tool:a'-[requires(['tool:ghost'])], 'tool:b'], _{}, [a]).
need_row(['tool:a'-[requires(['tool:b'])], 'tool:b'-[requires(['tool:c'])], 'tool:c'], _{denied: ['tool:c']}, [a, b, c]).
need_row(['tool:a'-[requires(['tool:b'])], 'tool:b'-[requires(['tool:a'])]], _{}, []).
need_row(['tool:a'-[requires(['tool:b'])], 'tool:b'-[requires(['tool:a', 'tool:c'])], 'tool:c'], _{denied: ['tool:c']},
         [a, b, c]).
need_row(['tool:a'-[requires(['tool:old'])], 'tool:old', 'tool:new'-[supersedes(['tool:old'])]], _{denied: ['tool:old']},
         [old]).
need_row(['tool:a'-[requires(['tool:old'])], 'tool:old', 'tool:new'-[supersedes(['tool:old'])]],
         _{denied: ['tool:old', 'tool:new']}, [a, old, new]).
need_row(['tool:new'-[requires(['tool:old']), supersedes(['tool:old'])], 'tool:old'], _{denied: ['tool:old']}, [old]).
% what could stand in falls last, through steps of its own
need_row(['tool:a'-[requires(['tool:old'])], 'tool:old', 'tool:new'-[supersedes(['tool:old']), requires(['tool:x'])],
          'tool:x'-[requires(['tool:y'])], 'tool:y'],
         _{denied: ['tool:old', 'tool:y']}, [a, old, new, x, y]).
need_row(['tool:a'-[requires(['tool:p'])], 'tool:p'-[pinned(true)], 'tool:new'-[supersedes(['tool:p'])]],
         _{disabled: ['tool:p']}, [a, p]).
need_row(['skill:a', 'tool:b', 'tool:c'], _{denied: ['tool:b'], admitted: [['skill:a', selected, ['tool:b']]]}, [a, b]).
need_row(['skill:a', 'tool:b', 'tool:c'-[requires(['skill:a'])]],
         _{denied: ['tool:b'], admitted: [['skill:a', selected, ['tool:b']]]}, [a, b, c]).
need_row(['skill:a', 'tool:b', 'tool:c'], _{admitted: [['skill:a', selected, ['tool:b', 'tool:ghost']]]}, [a]).
need_row(['skill:a', 'tool:b'-[requires(['tool:c'])], 'tool:c'],
         _{denied: ['tool:c'], admitted: [['skill:a', selected, ['tool:b']]]}, [a, b, c]).
need_row(['tool:github', 'tool:pull'-[requires(['tool:github'])]], _{text: 'do not use github'}, [github, pull]).
need_row(['tool:github', 'tool:pull'-[requires(['tool:github'])], 'tool:b'], _{text: 'do not use github', selected: ['tool:github']},
         [github]).

test(rule_what_needs_a_hidden_unit_is_hidden, [forall(need_row(Units, Changes, Expected)), Names == Expected]) :-
    hidden_of(Units, Changes, Names).
test(rule_a_change_of_the_catalog_is_seen, Both == [a, b]-[c]) :-
    twice(['tool:a'-[requires(['tool:b'])], 'tool:b', 'tool:c'-[requires(['tool:a'])], 'tool:d'-[supersedes(['tool:a'])]],
          _{denied: ['tool:b']}, ['tool:b', 'tool:a', 'tool:d'], Both).

%   All that keeps one unit out, in the order in which it is told.
test(rule_reasons_stand_in_a_fixed_order,
     Kinds == [denied, disabled, disabled, unavailable, out_of_scope, capability_missing, refused_by_wire]) :-
    findall(Kind,
            reason_value(['tool:a'-[visible(false), available(false)]],
                         _{ selected: ['tool:a'], denied: ['tool:a'], disabled: ['tool:a'], scope: [], withheld: [*],
                            refused: [['tool:a', openai, name]] },
                         'tool:a', [kind], Kind),
            Kinds).
test(rule_a_capability_that_is_withheld_is_missing, Names == [a]) :-
    hidden_of(['tool:a', 'tool:b'], _{withheld: ['tool:a']}, Names).
test(rule_a_capability_that_is_granted_and_withheld_is_missing, Names == [a]) :-
    hidden_of(['tool:a', 'tool:b'], _{capabilities: [*], withheld: ['tool:a']}, Names).

% Which of them may come in with another unit in the place of one that is hidden

lacking_of(Units, Changes, Names) :-
    once(with_units(Units, lacking_by(Changes, Names))).

lacking_by(Changes, Names, Handle) :-
    question(Changes, Args0),
    Args = Args0.put(catalog, Handle),
    catalog_module(Handle, M),
    rlm_select:catalog_ready(M),
    rlm_select:read_turn(M, Args, read(_, _, _, _, Lacking), _, _, _, _),
    findall(Name,
            ( member(I, Lacking), M:unit(I, Id, _, _, _, _), atomic_list_concat([_, Name], ':', Id) ),
            Names).

lacking_row(['tool:a', 'tool:b'], _{}, []).
lacking_row(['tool:a'-[requires(['tool:b'])], 'tool:b'], _{denied: ['tool:b']}, [a]).
lacking_row(['tool:a'-[requires(['tool:ghost'])]], _{}, [a]).
lacking_row(['tool:a'-[requires(['tool:ghost'])]], _{denied: ['tool:a']}, []).
lacking_row(['tool:a'-[requires(['tool:old'])], 'tool:old', 'tool:new'-[supersedes(['tool:old'])]], _{denied: ['tool:old']}, [a]).
lacking_row(['tool:a'-[requires(['tool:old'])], 'tool:old', 'tool:new'-[supersedes(['tool:old'])], 'tool:m'-[requires(['tool:n'])],
             'tool:n'],
            _{denied: ['tool:old']}, [a]).
lacking_row(['tool:b'-[requires(['tool:a'])], 'tool:a'-[requires(['tool:old'])], 'tool:old', 'tool:new'-[supersedes(['tool:old'])]],
            _{denied: ['tool:old']}, [b, a]).
lacking_row(['tool:a'-[requires(['tool:github'])], 'tool:github', 'tool:new'-[supersedes(['tool:github'])]],
            _{text: 'do not use github'}, [a]).
lacking_row(['tool:a'-[requires(['tool:old'])], 'tool:old', 'tool:new'-[supersedes(['tool:old'])],
             'tool:z'-[supersedes(['tool:new']), requires(['tool:a'])]],
            _{denied: ['tool:old', 'tool:new']}, [a, z]).

test(rule_what_only_lacks_something_is_looked_at, [forall(lacking_row(Units, Changes, Expected)), Names == Expected]) :-
    lacking_of(Units, Changes, Names).

% Bits

test(rule_a_bit_for_each_number, [forall(member(Is, [[], [0], [3], [0, 1], [1, 2, 5], [7, 8, 9, 40, 100, 1000]])), Back == Is]) :-
    bits(Is, Bits),
    bit_numbers(Bits, Back).

:- end_tests(rlm_hidden).

:- encoding(utf8).
:- use_module(library(plunit)).
:- use_module('../../prolog/rlm_catalog', [catalog_module/2]).
:- use_module('../../prolog/rlm_reply', [evidence_reasons/3, reason_dict/3]).
:- use_module('../../prolog/rlm_select', [select/2]).
:- use_module(units).

:- begin_tests(rlm_reply).

replied(Changes, Reply, Handle) :-
    question(Changes, Args),
    select(Args.put(catalog, Handle), Reply).

reply(Units, Changes, Reply) :- once(with_units(Units, replied(Changes, Reply))).

%   rows(+Units, +Changes, -Rows): `Name-Class-Needs` of what is active, in order.
rows(Units, Changes, Rows) :-
    reply(Units, Changes, Reply),
    findall(Name-Class-Needs,
            ( member([Id, _, Class, _, _, Needs], Reply.active), atomic_list_concat([_, Name], ':', Id) ),
            Rows).

class_row(['tool:a', 'tool:b'], _{selected: ['tool:a']}, [a-periphery-[]]).
class_row(['tool:a'-[pinned(true), requires(['tool:b'])], 'tool:b'], _{}, [a-pinned-['tool:b'], b-mandatory-[]]).
class_row(['tool:a'-[mandatory(true), requires(['tool:b'])], 'tool:b'-[requires(['tool:c'])], 'tool:c', 'tool:d'],
          _{selected: ['tool:a', 'tool:d']},
          [a-mandatory-['tool:b'], d-periphery-[], b-mandatory-['tool:c'], c-mandatory-[]]).
class_row(['tool:a', 'tool:b', 'tool:c'], _{admitted: [['tool:a', mandatory, ['tool:b']]], selected: ['tool:c']},
          [a-mandatory-['tool:b'], c-periphery-[], b-mandatory-[]]).
class_row(['tool:a'-[requires(['tool:b'])], 'tool:b'-[requires(['tool:a'])]], _{selected: ['tool:a']},
          [a-periphery-['tool:b'], b-periphery-['tool:a']]).
% the first of those that stand in for a requirement
class_row(['tool:a'-[requires(['tool:old'])], 'tool:old', 'tool:y'-[supersedes(['tool:old'])],
           'tool:x'-[supersedes(['tool:old'])]],
          _{denied: ['tool:old'], selected: ['tool:a', 'tool:x', 'tool:y']},
          [a-periphery-['tool:x'], x-periphery-[], y-periphery-[]]).

test(rule_class_and_needs_of_what_is_active, [forall(class_row(Units, Changes, Expected)), Rows == Expected]) :-
    rows(Units, Changes, Rows).
test(rule_what_is_negated_or_vetoed_is_listed_by_id, Ids == ['tool:github', 'tool:slack']) :-
    reply(['tool:slack', 'tool:github', 'tool:git'], _{text: 'do not use github or slack'}, Reply),
    Ids = Reply.negated.
test(rule_a_clash_is_told_with_its_two_ends, U-B == ['skill:a', 'skill:d']-['tool:b', 'tool:c']) :-
    reply(['skill:d'-[pinned(true), requires(['tool:b'])], 'tool:c'-[conflicts(['tool:b'])], 'tool:b',
           'skill:a'-[pinned(true), requires(['tool:c'])]],
          _{}, Reply),
    U = Reply.error.units,
    B = Reply.error.between.
test(rule_a_requirement_that_came_in_is_no_reason, Kinds == [conflict_with]) :-
    Units = ['tool:a'-[description(stone), requires(['tool:b']), conflicts(['tool:c'])], 'tool:b', 'tool:c'],
    findall(Kind, reason_value(Units, _{text: stone, selected: ['tool:b', 'tool:c']}, 'tool:a', [kind], Kind), Kinds0),
    findall(Kind, ( member(Kind, Kinds0), Kind \== lexical ), Kinds).

kinds(Units, Changes, Id, Kinds) :-
    findall(Kind, reason_value(Units, Changes, Id, [kind], Kind), Kinds).

reasons_row(_{selected: ['tool:a']}, 'tool:a', [selected_by_host]).
reasons_row(_{selected: ['tool:a']}, 'tool:b', [dependency_of]).
reasons_row(_{selected: ['tool:a']}, 'tool:c', [suggested_by]).
reasons_row(_{retained: ['tool:c']}, 'tool:c', [retained]).
reasons_row(_{mode: all_tools}, 'tool:c', [all_tools]).
reasons_row(_{admitted: [['tool:c', pinned, []]]}, 'tool:c', [pinned]).
reasons_row(_{text: 'river bridge', floor: 1}, 'tool:d', [lexical]).

test(rule_why_a_unit_is_active, [forall(reasons_row(Changes, Id, Expected)), Kinds == Expected]) :-
    kinds(['tool:a'-[requires(['tool:b']), suggests(['tool:c'])], 'tool:b', 'tool:c', 'tool:d'-[description(river)], 'tool:e'],
          Changes, Id, Kinds).
test(rule_a_pinned_dependency_is_told_as_both, Kinds == [pinned, dependency_of, pinned]) :-
    Units = ['skill:a'-[pinned(true), requires(['skill:b'])], 'skill:b'-[pinned(true)]],
    kinds(Units, _{}, 'skill:a', A),
    kinds(Units, _{}, 'skill:b', B),
    append(A, [dependency_of|B], Kinds).

evidence_row(0, [], []).
evidence_row(5, [], [lexical(5)]).
evidence_row(0, [e(name(k), 300)], [name(k)]).
evidence_row(5, [1-e(need(t), 3), e(sensor(s), 4)], [need(t, 3), sensor(s, 4), lexical(5)]).
evidence_row(0, [e(trigger(phrase, v), 1), e(history(2), 2), e(example(x), 3), e(intent(p), 4), e(spared(host), 5),
                 e(boost(r), 6)],
             [trigger(phrase, v, 1), history(2, 2), example(x, 3), intent(p, 4), spared(host, 5), boosted(r, 6)]).

test(rule_all_evidence_is_a_reason, [forall(evidence_row(Lexical, Others, Expected)), Reasons == Expected]) :-
    evidence_reasons(Lexical, Others, Reasons).

% Reasons as data; units 1 and 2 are tool:a and tool:b

dict_row(trigger(phrase, v, 9), _{kind: trigger, signal: phrase, value: v, score: 9}).
dict_row(name(k), _{kind: name, name: k}).
dict_row(lexical(5), _{kind: lexical, score: 5}).
dict_row(need(t, 5), _{kind: need, need: t, score: 5}).
dict_row(history(2, 5), _{kind: history, turn: 2, score: 5}).
dict_row(sensor(s, 5), _{kind: sensor, sensor: s, score: 5}).
dict_row(example(x, 5), _{kind: example, example: x, score: 5}).
dict_row(intent(p, 5), _{kind: intent, part: p, score: 5}).
dict_row(spared(host, 5), _{kind: spared, origin: '', score: 5}).
dict_row(spared(without(o), 5), _{kind: spared, origin: o, score: 5}).
dict_row(boosted(r, 5), _{kind: boosted, rule: r, by: 5}).
dict_row(dependency_of(1), _{kind: dependency_of, unit: 'tool:a'}).
dict_row(suggested_by(2), _{kind: suggested_by, unit: 'tool:b'}).
dict_row(disabled(policy), _{kind: disabled, by: policy}).
dict_row(capability_missing(c), _{kind: capability_missing, capability: c}).
dict_row(missing_dependency(x), _{kind: missing_dependency, unit: x}).
dict_row(dependency_out(x), _{kind: dependency_out, unit: x}).
dict_row(dependency_out(x, denied), _{kind: dependency_out, unit: x, reason: _{kind: denied}}).
dict_row(superseded_by(1, 2), _{kind: superseded_by, unit: 'tool:a', through: 'tool:b'}).
dict_row(conflict_with(1, 2), _{kind: conflict_with, unit: 'tool:a', through: 'tool:b'}).
dict_row(contradicts_itself(1, 2), _{kind: contradicts_itself, units: ['tool:a', 'tool:b']}).
dict_row(vetoed(r), _{kind: vetoed, rule: r}).
dict_row(refused_by_wire(openai, name), _{kind: refused_by_wire, wire: openai, what: name}).
dict_row(over_tool_limit(9), _{kind: over_tool_limit, limit: 9}).
dict_row(over_candidate_limit(9), _{kind: over_candidate_limit, rank: 9}).
dict_row(below_floor(1, 2), _{kind: below_floor, score: 1, floor: 2}).
dict_row(denied, _{kind: denied}).

told(Reason, Dict, Handle) :-
    catalog_module(Handle, M),
    reason_dict(M, Reason, Dict).

test(rule_each_reason_as_data, [forall(dict_row(Reason, Expected)), true(Dict :< Expected), true(Expected :< Dict)]) :-
    once(with_units(['tool:a', 'tool:b'], told(Reason, Dict))).

:- end_tests(rlm_reply).

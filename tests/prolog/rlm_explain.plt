:- encoding(utf8).
:- use_module(library(plunit)).
:- use_module('../../prolog/rlm_explain').
:- use_module('../../prolog/rlm_eligible').
:- use_module('../../prolog/rlm_catalog', [catalog_module/2]).
:- use_module('../../prolog/rlm_index', [index_update/1]).
:- use_module(units).

:- begin_tests(rlm_explain).

says(Reason, Text) :-
    sentence(Reason, Text).

test(pinned, T == 'the host pinned it') :- says(_{kind: pinned}, T).
test(lexical_with_words, T == 'words of the text count 1.20 (git 1.00, diff as compar 0.20)') :-
    says(_{kind: lexical, score: 1200, words: [[git, 1000, git], [diff, 200, compar]]}, T).
test(conflict, T == 'tool:a is in conflict with tool:b, which came first') :-
    says(_{kind: conflict_with, unit: 'tool:b', through: 'tool:a'}, T).
test(a_chain, T == 'it requires tool:b, which cannot be shown: the host denied it') :-
    says(_{kind: dependency_out, unit: 'tool:b', reason: _{kind: denied}}, T).
test(packed_out, T == 'it needs 90 tokens, and 10 were free') :-
    says(_{kind: packed_out, tokens: 90, free: 10}, T).
test(packed_out_by_one, T == 'it needs 1 token, and 1 was free') :-
    says(_{kind: packed_out, tokens: 1, free: 1}, T).
test(shortened, T == 'in full it needs 90 tokens, and 10 were free') :-
    says(_{kind: shortened, tokens: 90, free: 10}, T).
test(history, T == 'words of 1 turn ago count 0.40') :- says(_{kind: history, turn: 1, score: 400}, T).
% Every sentence whole

says_row(_{kind: pinned}, 'the host pinned it').
says_row(_{kind: selected_by_host}, 'the host selected it for this compile').
says_row(_{kind: retained}, 'a session or an agent keeps it from an earlier turn').
says_row(_{kind: all_tools}, 'every eligible tool is shown in this mode').
says_row(_{kind: name, name: 'git diff'}, 'the text names it ("git diff")').
says_row(_{kind: trigger, signal: phrase, value: 'look over', score: 900}, 'its phrase trigger "look over" fired (0.90)').
says_row(_{kind: lexical, score: 1200}, 'words of the text count 1.20').
says_row(_{kind: lexical, score: 1200, words: []}, 'words of the text count 1.20').
says_row(_{kind: example, example: 'a stone', score: 700}, 'it is like its example "a stone" (0.70)').
says_row(_{kind: history, turn: 2, score: 40}, 'words of 2 turns ago count 0.04').
says_row(_{kind: intent, part: 'find it', score: 500}, 'it is the best for a part of the text, "find it" (0.50)').
says_row(_{kind: spared, origin: x, score: 500}, 'third parties may not keep it out: without those of x it counts 0.50').
says_row(_{kind: spared, origin: '', score: 500},
         'third parties may not keep it out: among the units of the host it counts 0.50').
says_row(_{kind: need, need: 'a list', score: 300}, 'the model said it needs "a list" (0.30)').
says_row(_{kind: sensor, sensor: ear, score: 3500}, 'sensor ear gives it 3.50').
says_row(_{kind: boosted, by: 250, rule: 'boost(a)'}, 'a rule of the host moves it by 0.25: boost(a)').
says_row(_{kind: dependency_of, unit: 'tool:b'}, 'tool:b requires it').
says_row(_{kind: suggested_by, unit: 'tool:b'}, 'tool:b suggests it').
says_row(_{kind: denied}, 'the host denied it').
says_row(_{kind: disabled, by: policy}, 'the host disabled it').
says_row(_{kind: disabled, by: unit}, 'the host registered it as not visible').
says_row(_{kind: unavailable}, 'it is not available now').
says_row(_{kind: out_of_scope}, 'it is out of scope').
says_row(_{kind: capability_missing, capability: money}, 'the capability money is not granted').
says_row(_{kind: negated}, 'the text says not to use it').
says_row(_{kind: below_floor, score: 100, floor: 300}, 'its evidence, 0.10, is below the floor of 0.30').
says_row(_{kind: no_evidence}, 'nothing in this turn asks for it').
says_row(_{kind: over_candidate_limit, rank: 7}, 'it is number 7 of the candidates, past the limit').
says_row(_{kind: over_tool_limit, limit: 1}, 'the wire takes 1 tool, and that many came before it').
says_row(_{kind: over_tool_limit, limit: 128}, 'the wire takes 128 tools, and that many came before it').
says_row(_{kind: refused_by_wire, wire: openai, what: 'its name'}, 'the openai wire refuses it: its name').
says_row(_{kind: refused_by_wire, wire: common, what: 'its name'}, 'a wire that this request may go to refuses it: its name').
says_row(_{kind: missing_dependency, unit: 'tool:b'}, 'it requires tool:b, which is not in the catalog').
says_row(_{kind: dependency_out, unit: 'tool:b'}, 'it requires tool:b, which cannot be shown').
says_row(_{kind: dependency_out, unit: 'tool:b', reason: _{kind: unavailable}},
         'it requires tool:b, which cannot be shown: it is not available now').
says_row(_{kind: superseded_by, unit: 'tool:b'}, 'it is superseded by tool:b, which is shown').
says_row(_{kind: superseded_by, unit: 'tool:b', through: 'tool:c'}, 'tool:c is superseded by tool:b, which is shown').
says_row(_{kind: conflict_with, unit: 'tool:b'}, 'it is in conflict with tool:b, which came first').
says_row(_{kind: contradicts_itself, units: ['tool:b', 'tool:c']},
         'it would bring both tool:b and tool:c, which cannot stand together').
says_row(_{kind: vetoed, rule: 'veto(a)'}, 'a rule of the host keeps it out: veto(a)').
says_row(_{kind: packed_out, tokens: 2, free: 0}, 'it needs 2 tokens, and 0 were free').
says_row(_{kind: shortened, tokens: 1, free: 1}, 'in full it needs 1 token, and 1 was free').

test(rule_every_sentence_whole, [forall(says_row(Reason, Expected)), Text == Expected]) :- says(Reason, Text).
test(rule_a_long_text_is_quoted_by_its_beginning, Lengths == [Most, Most]) :-
    rlm_explain:most_quoted(Most),
    length(Codes, Most),
    maplist(=(0'x), Codes),
    atom_codes(Fits, Codes),
    atom_codes(TooLong, [0'y|Codes]),
    findall(Length,
            ( member(Text-Marks, [Fits-0, TooLong-1]),
              phrase(rlm_explain:short(Text), [Said]),
              atom_length(Said, Length0),
              ( sub_atom(Said, _, 1, 0, '…') -> Marked = 1 ; Marked = 0 ),
              Marked == Marks,
              Length is Length0 - Marks ),
            Lengths).

test(every_reason_can_be_said, Missing == []) :-
    findall(K, ( kind(K), \+ clause(rlm_explain:says(K, _, _, _), _) ), Missing).

kind(K) :-
    member(K, [ pinned, selected_by_host, retained, all_tools, name, trigger, lexical, example, history, need,
                sensor, boosted, dependency_of, suggested_by, denied, disabled, unavailable, out_of_scope,
                capability_missing, negated, below_floor, no_evidence, over_candidate_limit,
                missing_dependency, dependency_out, superseded_by, conflict_with, contradicts_itself, vetoed,
                packed_out, shortened ]).

change(Reasons, Change) :-
    remedies(_{unit: 'tool:a', reasons: Reasons}, Reply),
    ( get_dict(change, Reply, Change) -> true ; get_dict(blocker, Reply, Blocker), Change = blocker(Blocker.kind) ).

test(grant, V == 'tool:a') :- change([_{kind: capability_missing, capability: 'tool:a'}], C), get_dict(grant, C, V).
test(budget, V == 80) :- change([_{kind: packed_out, tokens: 90, free: 10}], C), get_dict(budget, C, V).
test(blocked, C == blocker(unavailable)) :- change([_{kind: unavailable}], C).
test(the_first_that_keeps_out, V == 'tool:a') :-
    change([_{kind: lexical, score: 1}, _{kind: below_floor, score: 1, floor: 2}], C),
    get_dict(select, C, V).

% A remedy for each reason

%   remedy_of(+Reason, -Remedy): `Field-Value` of the change, or blocker(Kind).
remedy_of(Reason, Remedy) :-
    change([Reason], Change),
    (   Change = blocker(_)
    ->  Remedy = Change
    ;   dict_pairs(Change, _, [Remedy])
    ).

remedy_row(_{kind: denied}, undeny-'tool:a').
remedy_row(_{kind: disabled, by: policy}, enable-'tool:a').
remedy_row(_{kind: disabled, by: unit}, blocker(disabled)).
remedy_row(_{kind: capability_missing, capability: c}, grant-c).
remedy_row(_{kind: packed_out, tokens: 90, free: 10}, budget-80).
remedy_row(_{kind: packed_out, tokens: 10, free: 10}, budget-1).
remedy_row(_{kind: packed_out, tokens: 12, free: 10}, budget-2).
remedy_row(_{kind: negated}, select-'tool:a').
remedy_row(_{kind: below_floor}, select-'tool:a').
remedy_row(_{kind: no_evidence}, select-'tool:a').
remedy_row(_{kind: over_candidate_limit}, select-'tool:a').
remedy_row(_{kind: over_tool_limit}, select-'tool:a').
remedy_row(_{kind: conflict_with}, select-'tool:a').
remedy_row(_{kind: superseded_by}, select-'tool:a').
remedy_row(_{kind: unavailable}, blocker(unavailable)).
remedy_row(_{kind: out_of_scope}, blocker(out_of_scope)).
remedy_row(_{kind: missing_dependency}, blocker(missing_dependency)).
remedy_row(_{kind: contradicts_itself}, blocker(contradicts_itself)).
remedy_row(_{kind: vetoed}, blocker(vetoed)).
remedy_row(_{kind: refused_by_wire}, blocker(refused_by_wire)).
remedy_row(_{kind: lexical}, blocker(none)).
remedy_row(_{kind: dependency_out, unit: 'tool:b'}, look_at-'tool:b').
remedy_row(_{kind: dependency_out, unit: 'tool:b', reason: _{kind: denied}}, undeny-'tool:b').
remedy_row(_{kind: dependency_out, unit: 'tool:b', reason: _{kind: disabled, by: policy}}, enable-'tool:b').
remedy_row(_{kind: dependency_out, unit: 'tool:b', reason: _{kind: capability_missing, capability: c}}, grant-c).
remedy_row(_{kind: dependency_out, unit: 'tool:b', reason: _{kind: dependency_out, unit: 'tool:c'}}, look_at-'tool:b').
remedy_row(_{kind: dependency_out, unit: 'tool:b', reason: _{kind: negated}}, select-'tool:a').
remedy_row(_{kind: dependency_out, unit: 'tool:b', reason: _{kind: conflict_with}}, blocker(dependency_out)).
remedy_row(_{kind: dependency_out, unit: 'tool:b', reason: _{kind: unavailable}}, blocker(dependency_out)).
remedy_row(_{kind: dependency_out, unit: 'tool:b', reason: _{kind: lexical}}, blocker(dependency_out)).

test(rule_a_remedy_for_each_reason, [forall(remedy_row(Reason, Expected)), Remedy == Expected]) :-
    remedy_of(Reason, Remedy).

% The verdict on a unit that was not decided on: state and reasons

verdict_row(_{rank: 7, mode: compiled}, [], [lexical(900)], rejected-[over_candidate_limit(7), lexical(900)]).
verdict_row(_{rank: 7, mode: compiled}, [denied], [lexical(900)], rejected-[denied, lexical(900)]).
verdict_row(_{rank: null, mode: compiled}, [], [], hidden-[no_evidence]).
verdict_row(_{rank: null, mode: compiled}, [denied], [], hidden-[denied, no_evidence]).
verdict_row(_{rank: null, mode: all_tools}, [denied], [], rejected-[denied]).
verdict_row(_{rank: null, mode: all_tools}, [], [], hidden-[no_evidence]).
verdict_row(_{rank: null, mode: all_tools, unit: _{kind: skill}}, [denied], [], hidden-[denied, no_evidence]).
verdict_row(_{rank: null, mode: all_tools, unit: _{kind: mcp_tool}}, [denied], [], rejected-[denied]).
verdict_row(_{rank: null, mode: compiled}, [], [lexical(200)], hidden-[below_floor(200, 300), lexical(200)]).
verdict_row(_{rank: null, mode: compiled}, [denied], [lexical(200)], hidden-[denied, below_floor(200, 300), lexical(200)]).
verdict_row(_{rank: null, mode: compiled}, [denied], [lexical(300)], rejected-[denied, lexical(300)]).
verdict_row(_{rank: null, mode: compiled}, [], [lexical(300)], hidden-[below_floor(300, 300), lexical(300)]).
verdict_row(_{rank: null, mode: compiled}, [denied], [need(n, 200), lexical(200)],
            rejected-[denied, need(n, 200), lexical(200)]).
verdict_row(_{rank: null, mode: compiled}, [], [name, need(n, 100), lexical(150)],
            hidden-[below_floor(250, 300), name, need(n, 100), lexical(150)]).

test(rule_verdict_by_rank_floor_and_mode, [forall(verdict_row(Changes, Against, For, Expected)), Verdict == Expected]) :-
    Args = _{unit: _{kind: tool}, held_floor: 300}.put(Changes),
    rlm_explain:verdict(Args, Against, For, 0, State, Reasons),
    Verdict = State-Reasons.
test(rule_verdict_counts_words_that_no_reason_tells, S-R == hidden-[below_floor(250, 300), need(n, 100)]) :-
    rlm_explain:verdict(_{unit: _{kind: tool}, held_floor: 300, rank: null, mode: compiled}, [], [need(n, 100)], 250, S, R).

% The words of the one unit

source_of(Terms, Rarities, Words, _{terms: Terms, rarities: Rarities, words: Words, numbers: [9], scores: [9]}).

test(rule_a_source_counts_in_the_one_unit, Is-Ss == [[1], [], [1]]-[[1500], [], [500]]) :-
    source_of([bridg, stone], [1000, 1000], [bridge, stone], Both),
    source_of([river], [1000], [river], None),
    source_of([stone], [1000], [stone], Stone),
    rlm_explain:weigh_all([Both, None, Stone], v(bridg, 1000, stone, 500), Weighed),
    findall(I, ( member(W, Weighed), get_dict(numbers, W, I) ), Is),
    findall(S, ( member(W, Weighed), get_dict(scores, W, S) ), Ss).

weighed_there(Sources, Weighed-Words, Handle) :-
    catalog_module(Handle, M),
    index_update(M),
    rlm_explain:weighed(M, Sources, Weighed, Words).

test(rule_the_words_of_the_one_unit_are_told, Told == [[river, river]]) :-
    source_of([river, stone], [1000, 1000], [river, stone], Source),
    Sources = _{text: [Source], needs: [], history: [], examples: kept},
    once(with_units(['tool:a'-[description(river)]], weighed_there(Sources, Weighed-Words))),
    Weighed.examples == kept,
    findall([Word, Term], ( member([Word, Share, Term], Words), Share > 0 ), Told).

% What was decided comes first, and nothing is told twice

more(Rejected, Decided, LookedAt, Kinds) :-
    all_reasons(Rejected, Decided, LookedAt, Reasons),
    findall(Kind, ( member(Reason, Reasons), get_dict(kind, Reason, Kind) ), Kinds).

test(rule_all_reasons_nothing_was_decided, Ks == [below_floor]) :- more(false, [], [_{kind: below_floor}], Ks).
test(rule_all_reasons_decided_first, Ks == [denied, lexical]) :- more(true, [_{kind: denied}], [_{kind: lexical}], Ks).
test(rule_all_reasons_not_twice, Ks == [denied]) :- more(true, [_{kind: denied}], [_{kind: denied}], Ks).
test(rule_all_reasons_of_another_unit, Ks == [conflict_with, conflict_with]) :-
    more(true, [_{kind: conflict_with, unit: a}], [_{kind: conflict_with, unit: b}], Ks).
test(rule_all_reasons_never_over_the_limit, Ks == [denied]) :-
    more(false, [_{kind: denied}], [_{kind: over_candidate_limit}], Ks).
test(rule_all_reasons_a_rejected_unit_had_evidence, A-B == [denied]-[denied, below_floor, no_evidence]) :-
    LookedAt = [_{kind: below_floor}, _{kind: no_evidence}],
    more(true, [_{kind: denied}], LookedAt, A),
    more(false, [_{kind: denied}], LookedAt, B).

% What raised a unit among the others

test(rule_a_name_is_no_evidence_where_the_unit_is_no_candidate, Es == [1-e(need(n), 2)]) :-
    rlm_explain:with_named([], [1-e(name(x), 2000), 1-e(need(n), 2)], Es).
test(rule_a_name_counts_as_it_did_beside_the_others, Es == [1-e(name(y), 2000), 1-e(need(n), 2000)]) :-
    rlm_explain:with_named([_{kind: name, name: y}, _{kind: need, need: n, score: 2000}, _{kind: spared, score: 7}],
                           [1-e(name(x), 2000), 1-e(need(n), 2000)], Es).
test(rule_what_raised_it_stands_around_its_evidence,
     Es == [1-e(intent(part), 5), 1-e(need(n), 2), 1-e(boost('a rule'), 9)]) :-
    rlm_explain:with_raised([_{kind: boosted, rule: 'a rule', by: 9}, _{kind: intent, part: part, score: 5}],
                            [1-e(need(n), 2)], Es).

% Characters that a terminal would obey

visible_row("a b", 'a b').
visible_row("a\nb", 'a\\nb').
visible_row("\x1f\", '\\x1f\\').
visible_row("\x20\", ' ').
visible_row("~", '~').
visible_row("\x7f\", '\\x7f\\').
visible_row("\x9f\", '\\x9f\\').
visible_row("\xa0\", '\xa0\').
visible_row("\x2027\", '\x2027\').
visible_row("\x2028\", '\\x2028\\').
visible_row("\x202e\", '\\x202e\\').
visible_row("\x202f\", '\x202f\').
visible_row("\x2065\", '\x2065\').
visible_row("\x2066\", '\\x2066\\').
visible_row("\x2069\", '\\x2069\\').
visible_row("\x206a\", '\x206a\').
visible_row("é\ta", 'é\\x9\\a').

test(rule_visible_escapes_control_and_direction, [forall(visible_row(String, Expected)), Visible == Expected]) :-
    atom_string(Text, String),
    visible(Text, Visible).

:- end_tests(rlm_explain).

:- begin_tests(rlm_eligible).

glob_row('a*', a, true).
glob_row('a*', ba, false).
glob_row('*a', ba, true).
glob_row('*a', ab, false).
glob_row('a*a', a, false).
glob_row('a*a', aa, true).
glob_row('a*b*c', 'a1b2c', true).
glob_row('a*b*c', 'acb', false).
glob_row('*ab*ab', xabyab, true).
glob_row('*ab*ab', ab, false).

test(rule_a_star_stands_for_any_characters, [forall(glob_row(Pattern, Id, Expected)), Truth == Expected]) :-
    patterns([Pattern], Patterns),
    ( matches(Patterns, Id) -> Truth = true ; Truth = false ).
test(rule_any_pattern_may_match) :- patterns([x, 'y*', 'a*'], P), matches(P, ab).
test(rule_the_patterns_that_match, Ps == [a, 'a*', *]) :-
    matching(_{id: a, patterns: [b, a, 'a*', 'b*', *]}, Reply),
    Ps = Reply.patterns.

test(exact) :- patterns(['tool:a'], P), matches(P, 'tool:a').
test(not_a_part, fail) :- patterns(['tool:a'], P), matches(P, 'tool:ab').
test(star_at_the_end) :- patterns(['tool:github/*'], P), matches(P, 'tool:github/x').
test(star_in_the_middle) :- patterns(['tool:*/x'], P), matches(P, 'tool:github/x').
test(two_stars) :- patterns(['*:git*b/*'], P), matches(P, 'tool:github/x').
test(star_alone) :- patterns([*], P), matches(P, 'tool:a').
test(no_star_is_literal, fail) :- patterns(['tool:?'], P), matches(P, 'tool:a').
test(order_of_parts, fail) :- patterns(['*b*a'], P), matches(P, 'ab').
test(parts_may_repeat) :- patterns(['*ab*ab'], P), matches(P, 'xabyabab').
test(nothing_matches_an_empty_list, fail) :- patterns([], P), matches(P, a).

:- end_tests(rlm_eligible).

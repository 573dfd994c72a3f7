:- encoding(utf8).
:- use_module(library(plunit)).
:- use_module('../../prolog/rlm_catalog', [catalog_change/2, catalog_module/2]).
:- use_module('../../prolog/rlm_examples').
:- use_module('../../prolog/rlm_index', [index_update/1, rarity/3]).
:- use_module('../../prolog/rlm_origin', [view/5]).
:- use_module(units).

:- begin_tests(rlm_examples).

unit(Id-Examples, Id-[fields(Fields)]) :-
    unit(Id-Examples-'', Id-[fields(Fields)]).
unit(Id-Examples-Description, Id-[fields(Fields)]) :-
    atom(Id),
    Fields = _{ name: n, alias: '', description: Description, category: '', parameters: '', explained: '', values: '',
                examples: Examples }.

%   scores_of(+Rows, +Terms, -Scores): `Id-Text-Score` by examples, of rows `Id-Examples`.
scores_of(Rows, Terms, Scores) :-
    asked(Rows, scored(Terms, Scores)).

asked(Rows, Goal) :-
    findall(Unit, ( member(Row, Rows), once(unit(Row, Unit)) ), Units),
    with_units(Units, Goal),
    !.

scored(Terms, Scores, Handle) :-
    catalog_module(Handle, M),
    index_update(M),
    example_weights(M, all, Terms, Weights),
    example_scores(M, Weights, Pairs),
    findall(Id-Text-Score, ( member(I-e(example(Text), Score), Pairs), M:unit(I, Id, _, _, _, _) ), Scores).

weighed(Terms, Weights, Handle) :-
    catalog_module(Handle, M),
    index_update(M),
    example_weights(M, all, Terms, Weights).

weighed_in(View, Terms, Weights, Handle) :-
    catalog_module(Handle, M),
    index_update(M),
    example_weights(M, View, Terms, Weights).

%   weighed_without(+Rows, +Terms, -Weights, +Handle): where the units of Rows cannot be shown.
weighed_without(Rows, Terms, Weights, Handle) :-
    catalog_module(Handle, M),
    index_update(M),
    findall(Bit, ( member(Id-_, Rows), M:number(Id, I), Bit is 1 << I ), Bits),
    sum_list(Bits, Hidden),
    length(Rows, Count),
    view(M, all, Hidden, Count, View),
    example_weights(M, View, Terms, Weights).

forgotten(Id, Left, Handle) :-
    catalog_change(_{catalog: Handle, remove: [Id], units: []}, _),
    catalog_module(Handle, M),
    findall(Text, M:example(_, _, Text, _), Texts),
    findall(T, M:told(T, _), Ts0),
    sort(Ts0, Ts),
    Left = Texts-Ts.

rows([a-'stone bridge', b-'river\nforest stone', c-'', d-'', e-'', f-'', g-'']).

test(rule_each_unit_has_its_best_example, Texts == [a-'stone bridge', b-'forest stone']) :-
    rows(Rows0),
    tools(Rows0, Rows),
    scores_of(Rows, [stone-1000, bridg-1000, forest-1000], Scores),
    findall(Id-Text, ( member(Full-Text-_, Scores), atom_concat('tool:', Id, Full) ), Texts).
test(rule_the_words_of_an_example_add_up, Sum == Both) :-
    tools([a-'stone bridge', b-'', c-'', d-''], Rows),
    scores_of(Rows, [stone-1000], [_-_-One]),
    scores_of(Rows, [bridg-1000], [_-_-Other]),
    scores_of(Rows, [stone-1000, bridg-1000], [_-_-Both]),
    Sum is One + Other,
    One > 0.
test(rule_of_equal_examples_the_first_by_text, Texts == ['bridge stone']) :-
    tools([a-'stone bridge\nbridge stone', b-'', c-''], Rows),
    scores_of(Rows, [stone-1000, bridg-1000], Scores),
    findall(Text, member(_-Text-_, Scores), Texts).
test(rule_a_word_of_no_example_weighs_nothing, Ts == [stone]) :-
    rows(Rows0),
    tools(Rows0, Rows),
    asked(Rows, weighed([stone-1000, tower-1000], Weights)),
    findall(T, member(w(T, _, T), Weights), Ts).
test(rule_a_rare_word_weighs_its_rarity, W == Rarity) :-
    tools([a-'stone', b-'', c-'', d-''], Rows),
    asked(Rows, weighed([stone-1000], [w(stone, W, stone)])),
    rarity(4, 1, Rarity).
test(rule_other_words_of_examples_make_no_word_common, W == Rarity) :-
    tools([a-'stone', b-'river', c-'forest', d-''], Rows),
    asked(Rows, weighed([stone-1000], [w(stone, W, stone)])),
    rarity(4, 1, Rarity).
test(rule_a_view_counts_its_own_units, W == Rarity) :-
    tools([a-'stone', b-'stone', c-'stone', d-''], [A, B, C, D]),
    asked([A, B, C, D], weighed_without([B, C], [stone-1000], [w(stone, W, stone)])),
    rarity(2, 1, Rarity).
test(rule_a_view_of_the_host_knows_no_strangers_examples, W == Rarity) :-
    tools([a-'stone', b-'', c-'', d-''], Rows),
    findall(Unit, ( member(Row, Rows), once(unit(Row, Unit)) ), Units),
    findall(Id-[origin(s), trust(stranger)|Rest],
            ( member(Full, ['tool:x', 'tool:y']), once(unit(Full-stone, Id-Rest)) ),
            Strangers),
    append(Units, Strangers, All),
    once(with_units(All, weighed_in(host, [stone-1000], [w(stone, W, stone)]))),
    rarity(4, 1, Rarity).
test(rule_a_quoted_word_weighs_less, W == Less) :-
    tools([a-'stone', b-'', c-'', d-''], Rows),
    asked(Rows, weighed([stone-400], [w(stone, W, stone)])),
    rarity(4, 1, Rarity),
    Less is Rarity * 400 // 1000.
test(rule_a_word_of_two_units_is_less_rare, W == Rarity) :-
    tools([a-'stone\nstone wall', b-'stone', c-'', d-''], Rows),
    asked(Rows, weighed([stone-1000], [w(stone, W, stone)])),
    rarity(4, 2, Rarity).
test(rule_a_word_of_descriptions_is_as_rare_as_there, W == Rarity) :-
    tools([a-'stone', b-'', c-'', d-'', e-'', f-''], Rows0),
    append(Rows0, ['tool:x'-''-stone, 'tool:y'-''-stone], Rows),
    asked(Rows, weighed([stone-1000], [w(stone, W, stone)])),
    rarity(8, 2, Rarity).
test(rule_what_every_example_has_says_nothing, Ws == []) :-
    findall(N-stone, between(1, 20, N), Rows0),
    tools(Rows0, Rows),
    asked(Rows, weighed([stone-1000], Ws)).
test(rule_a_removed_unit_leaves_no_example, Left == ['river', 'forest stone']-[forest, river, stone]) :-
    tools([a-'stone bridge', b-'river\nforest stone'], Rows),
    asked(Rows, forgotten('tool:a', Left)).
test(rule_a_catalog_without_examples_has_none, fail) :-
    asked(['tool:a'-''], examples_there).
test(rule_a_blank_line_is_no_example, Texts == [stone]) :-
    asked(['tool:a'-'\n  \nstone\n'], texts(Texts)).

examples_there(Handle) :- catalog_module(Handle, M), has_examples(M).

texts(Texts, Handle) :-
    catalog_module(Handle, M),
    findall(Text, M:example(_, _, Text, _), Texts).

tools(Rows0, Rows) :-
    findall(Full-Examples, ( member(Id-Examples, Rows0), atom_concat('tool:', Id, Full) ), Rows).

:- end_tests(rlm_examples).

:- encoding(utf8).
:- use_module(library(plunit)).
:- use_module(units).

% A name in another spelling: case and separators make no difference where that can mean one unit only.

:- begin_tests(rlm_spellings).

%   shown(+Units, +Text, -Ids): what a text brings in.
shown(Units, Text, Ids) :-
    shown(Units, Text, _{}, Ids).

shown(Units, Text, Changes, Ids) :-
    chosen(Units, Changes.put(text, Text), Ids).

test(rule_a_name_in_small_letters, Ids == ['tool:addPerson']) :-
    shown(['tool:addPerson', 'tool:listDeals'], 'call addperson', Ids).
test(rule_a_name_in_capitals, Ids == ['tool:add_person']) :-
    shown(['tool:add_person'], 'call ADDPERSON', Ids).
test(rule_a_name_with_a_separator_less, Ids == ['tool:get_user_id']) :-
    shown(['tool:get_user_id'], 'call get_userid', Ids).
test(rule_a_name_of_one_word_with_a_separator, Ids == ['tool:addperson']) :-
    shown(['tool:addperson'], 'call add_person', Ids).
test(rule_a_name_inside_an_identifier, Ids == ['tool:crm/getUserID']) :-
    shown(['tool:crm/getUserID'], 'call mcp__crm__getuserid', Ids).
test(rule_a_server_makes_a_spelling_mean_one_unit, Ids == ['tool:a/openRed']) :-
    shown(['tool:a/openRed', 'tool:b/openRed'], 'call a/openred', Ids).
test(rule_a_spelling_of_two_names_is_none, Ids == []) :-
    shown(['tool:addPerson', 'tool:a/add_person'], 'call addperson', Ids).
test(rule_a_spelling_that_is_another_unit_by_its_letters_is_that_unit, Ids == ['tool:addperson']) :-
    shown(['tool:addPerson', 'tool:addperson'], 'call `addperson`', Ids).
test(rule_a_spelling_is_that_of_the_unit_that_can_be_shown, Ids == ['tool:addPerson']) :-
    shown(['tool:addPerson', 'tool:add_person'], 'call addperson', _{denied: ['tool:add_person']}, Ids).
test(rule_a_stranger_with_the_same_spelling_takes_nothing_from_the_host, Ids == ['tool:addPerson']) :-
    shown(['tool:addPerson', 'tool:add_person'-[origin(shop)]], 'call addperson', Ids).
test(rule_an_alias_in_another_spelling, Ids == ['tool:contacts']) :-
    shown(['tool:contacts'-[names([contacts, newPerson])]], 'call newperson', Ids).
test(rule_a_need_in_another_spelling, Ids == ['tool:addPerson']) :-
    shown(['tool:addPerson'], hello, _{needs: [addperson]}, Ids).
test(rule_words_of_a_sentence_are_not_put_together, Ids == []) :-
    shown(['tool:overview'], 'look it over, view by view', Ids).
test(rule_a_plain_word_is_no_name_of_one_word, Found == []) :-
    findall(Kind, reason_value(['tool:stone'], _{text: stone}, 'tool:stone', [kind], Kind), Kinds),
    findall(K, ( member(K, Kinds), K == name ), Found).
test(rule_a_long_identifier_is_not_put_together, Ids == []) :-
    shown(['tool:addPerson'], 'a_b_c_d_e_f_g_h_i_j_k_l_addperson', Ids).
test(rule_a_name_that_is_gone_is_none, Count == 0) :-
    with_units(['tool:addPerson'], gone(Count)).
test(rule_the_reason_has_the_spelling_of_the_text, [nondet, V == addperson]) :-
    reason_value(['tool:addPerson'], _{text: 'call addperson'}, 'tool:addPerson', [name], V).

% A negation as well.

test(rule_a_negation_in_another_spelling, Ids == []) :-
    shown(['tool:addPerson'-[description(stone)]], 'a stone, but do not use addperson', Ids).
test(rule_a_negation_with_a_separator, Ids == []) :-
    shown(['tool:addperson'-[description(stone)]], 'a stone, but do not use add_person', Ids).
test(rule_a_negation_of_a_server_in_another_spelling, Ids == []) :-
    shown(['tool:open_red/list'-[description(stone)]], 'a stone, but do not use openred', Ids).
test(rule_a_negation_rules_out_all_that_it_may_mean, Ids == []) :-
    shown(['tool:addPerson'-[description(stone)], 'tool:add_person'-[description(stone)]],
          'a stone, but do not use addperson', Ids).

gone(Count, Handle) :-
    rlm_catalog:catalog_change(_{catalog: Handle, remove: ['tool:addPerson'], units: []}, _),
    rlm_catalog:catalog_module(Handle, M),
    aggregate_all(count, M:joined(_, _, _), Count).

:- end_tests(rlm_spellings).

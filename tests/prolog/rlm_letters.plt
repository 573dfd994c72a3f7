:- encoding(utf8).
:- use_module(library(plunit)).
:- use_module('../../prolog/rlm_letters').

:- begin_tests(rlm_letters).

:- meta_predicate ascii_of(1, -).

%   ascii_of(:Class, -Codes): the codes of ASCII that are in Class.
ascii_of(Class, Codes) :-
    findall(C, ( between(0, 127, C), call(Class, C) ), Codes).

test(rule_letters_and_digits_of_ascii, Codes == Expected) :-
    ascii_of(letter_or_digit, Codes),
    atom_codes('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz', Expected).
test(rule_capitals_of_ascii, Codes == Expected) :-
    ascii_of(capital, Codes),
    atom_codes('ABCDEFGHIJKLMNOPQRSTUVWXYZ', Expected).
test(rule_small_letters_of_ascii, Codes == Expected) :-
    ascii_of(small, Codes),
    atom_codes('abcdefghijklmnopqrstuvwxyz', Expected).
test(rule_blanks_of_ascii, Codes == [9, 10, 11, 12, 13, 32]) :-
    ascii_of(blank, Codes).

%   0x85 next line, 0xa0 no-break space, 0x2028 and 0x2029 line and paragraph, 0x3000 ideographic; 0x200b has no width
test(rule_blanks_of_other_scripts, Blanks == [0x85, 0xa0, 0x2003, 0x2028, 0x2029, 0x3000]) :-
    findall(C, ( member(C, [0x80, 0x85, 0xa0, 0xe9, 0x2003, 0x200b, 0x2028, 0x2029, 0x3000, 0x4e00]), blank(C) ), Blanks).
test(rule_capitals_and_small_letters_of_other_scripts, Cases == [capital, capital, small, small, capital, none, none]) :-
    findall(Case,
            ( member(C, [0'Ä, 0x01c5, 0'ä, 0'ß, 0x1e9e, 0'中, 0'٣]),
              ( capital(C) -> Case = capital ; small(C) -> Case = small ; Case = none ) ),
            Cases).
test(rule_letters_digits_and_marks_of_other_scripts, Others == [0'€, 0'’, 0x3000, 0'→]) :-
    findall(C,
            ( member(C, [0'ä, 0'Ä, 0x01c5, 0x02b0, 0'中, 0'٣, 0'Ⅷ, 0x0301, 0x0903, 0x1e9e, 0'€, 0'’, 0x3000, 0'→]),
              \+ letter_or_digit(C) ),
            Others).

%   Unicode has given these codes to nothing yet, or later than the data of the library.
test(rule_a_code_that_is_not_known_is_a_letter_outside_of_blocks_of_pictures, Letters == [0x1fff, 0x2fe0, 0xfdff, 0x1efff, 0x1fb00]) :-
    findall(C,
            ( member(C, [0x1fff, 0x2bff, 0x2fe0, 0xd800, 0xdfff, 0xfdff, 0xfff0, 0xffff, 0x1efff, 0x1f000, 0x1faff, 0x1fb00,
                         0xe0000, 0x10ffff]),
              letter_or_digit(C) ),
            Letters).
test(rule_blocks_of_pictures, Bad == []) :-
    findall(First-Last,
            ( member(First-Last, [0x80-0x9f, 0x2000-0x2bff, 0xd800-0xf8ff, 0xfe00-0xfe0f, 0xfff0-0xffff, 0x1f000-0x1faff]),
              Before is First - 1,
              After is Last + 1,
              \+ ( rlm_letters:picture(First), rlm_letters:picture(Last), \+ rlm_letters:picture(After),
                   ( First =:= 0x80 -> true ; \+ rlm_letters:picture(Before) ) ) ),
            Bad).
test(rule_private_planes_are_pictures, Pictures == [0xe0000, 0x10ffff]) :-
    findall(C, ( member(C, [0xdffff, 0xe0000, 0x10ffff]), rlm_letters:picture(C) ), Pictures).
test(rule_half_of_a_pair_has_no_category, Known == [0xd7a3, 0xe000]) :-
    findall(C, ( member(C, [0xd7a3, 0xd800, 0xdc00, 0xdfff, 0xe000]), once(rlm_letters:category(C, _)) ), Known).

test(rule_ascii_in_small_letters, Lower == '@az[`az{09') :- lower_text('@AZ[`az{09', Lower).
test(rule_ascii_in_capitals, Upper == '@AZ[`AZ{09') :- upper_text('@AZ[`az{09', Upper).
test(rule_other_scripts_in_small_letters, Lower == 'äöß中σ') :- lower_text('ÄÖẞ中Σ', Lower).
test(rule_other_scripts_in_capitals, Upper == 'ÄÖ中Σ') :- upper_text('äö中σ', Upper).

test(rule_ascii_is_folded_to_small_letters, Folded == ['api', 'zoo', 'zoo', '']) :-
    maplist(folded_text, ['API', 'zoo', 'Zoo', ''], Folded).
test(rule_all_forms_of_a_word_are_folded_to_one, Folded == 'οδοσ strasse arger abc') :-
    folded_text('ΟΔΟΣ Straße Ärger ＡＢＣ', Folded).
test(rule_a_sharp_s_of_either_case_is_folded_alike, Folded == ['grosse', 'grosse', 'grosse']) :-
    maplist(folded_text, ['GRÖẞE', 'größe', 'GROSSE'], Folded).
test(rule_plain_text_keeps_capitals, Plain == ['Resume ABC', 'ASCII', '']) :-
    maplist(plain_text, ['Résumé ＡＢＣ', 'ASCII', ''], Plain).
test(rule_a_text_of_marks_alone_becomes_empty, Plain == '') :- plain_text('\u0301\u200d', Plain).
test(rule_a_text_with_half_of_a_pair_stays, Codes == [0'a, 0xd800, 0xe9]) :-
    atom_codes(Text, [0'a, 0xd800, 0xe9]),
    plain_text(Text, Plain),
    atom_codes(Plain, Codes).
test(rule_ascii_ends_at_127, Ascii == [[], [0, 127]]) :-
    findall(Codes, ( member(Codes, [[], [0, 127], [128], [0'a, 0xe9]]), ascii(Codes) ), Ascii).

:- end_tests(rlm_letters).

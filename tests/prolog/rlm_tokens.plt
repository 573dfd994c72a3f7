:- encoding(utf8).
:- use_module(library(plunit)).
:- use_module(library(lists), [member/2]).
:- use_module('../../prolog/rlm_tokens').

%   trouble(+Text, -Found): with small bounds; `none` where there is none.
trouble(Text, Found) :-
    (   text_trouble(Text, bounds(2, 12, 20, 20), Offset, Trouble)
    ->  Found = Offset-Trouble
    ;   Found = none
    ).

%   opens(?Text): what stands before the brackets of Text is one token, and they are in the open.
opens("16'FF").
opens("36'zZ").
opens("2'10").
opens("0'c").
opens("0'''").
opens("0''").
opens("0'\\x41\\").
opens("0'\\x41").
opens("0'\\101\\").
opens("0'\\'").
opens("0'\\n").
opens("0'(").
opens("0'\"").
opens("0'%").
opens("0x1F").
opens("0o17").
opens("0b101").
opens("1 000").
opens("1_000").
opens("1_ /* ( */ 000").
opens("1r3").
opens("1.5NaN").
opens("1.0Inf").
opens("1.0e+10").
opens("'a''b'").
opens("'\\''").
opens("'\\x41\\'").
opens("'\\\n'").
opens("\"'\"").
opens("`'`").
opens("/* ' */").
opens("/* /* ' */ ' */").
opens("/**/").
opens("% '\n").

%   shuts(?Text): brackets behind Text are hidden in a quote or a comment.
shuts("'").
shuts("\"").
shuts("`").
shuts("a'").
shuts("116'").
shuts("0x10'").
shuts("37'1").
shuts("1e10'").
shuts("'\\").
shuts("/*").
shuts("/*/").
shuts("/* /* */").
shuts("%").
shuts("a % ").
shuts("a./* ' */").
shuts("0o8'7").
shuts("0b3'1").
shuts("1_x'").
shuts("1__0'").

:- begin_tests(rlm_tokens).

test(in_the_open, [forall(opens(Text)), Trouble == depth(2)]) :-
    string_concat(Text, " [[[[", Deep),
    trouble(Deep, _-Trouble).
test(hidden, [forall(shuts(Text)), Found == none]) :-
    string_concat(Text, "[[[[", Deep),
    trouble(Deep, Found).
test(read_in_two_ways, [forall(member(Text, ["1.0'a'", "00'a", "1 0'a'", "016'F", "1'0", "0'a0'b", "0'0'a", "'\\\n\\n'"])),
                        Trouble == mixed]) :-
    trouble(Text, _-Trouble).
test(place, Found == 9-depth(2)) :-
    trouble("a.\nb([c, [[d]]]).", Found).
test(an_end_closes, Found == none) :-
    trouble("a(( .\nb(( .\nc(( .", Found).
test(an_end_is_told_by_a_blank_of_ascii, Found == 7-depth(2)) :-
    trouble("a((.\u00a0 b(c)).", Found).
test(symbols_that_look_like_a_comment, Found == 6-depth(2)) :-
    trouble("a+/*[[[", Found).
test(long_number, [forall(member(Text, ["123456789012345678901", "0x12345678901234567890", "1_0000_0000_0000_00000",
                                        "1.0000000000000000000", "36'1234567890123456789", "1e1000000000000000000"])),
                   Found == 0-number(20)]) :-
    trouble(Text, Found).
test(long_quoted, [forall(member(Quote, ["'", "\"", "`"])), Found-Doubled == (2-quoted(20))-(2-quoted(20))]) :-
    format(string(Text), "a ~wxxxxxxxxxxxxxxxxxxxxx~w", [Quote, Quote]),
    format(string(Pairs), "a ~wxxxxxxxxxx~w~wxxxxxxxxxx~w", [Quote, Quote, Quote, Quote]),
    trouble(Text, Found),
    trouble(Pairs, Doubled).
test(tokens_of_a_clause, Found == 14-tokens(12)) :-
    trouble("p(1, 2, 3). \n q(1, 2, 3, 4, 5, 6).", Found).
test(nul, Found == 1-nul) :-
    trouble("a\u0000", Found).
test(quoted_nul, Found == 2-nul) :-
    trouble("'a\u0000'", Found).
test(quasi_quotation, Found == 2-quasi_quotation) :-
    trouble("p({|x||y|}).", Found).
test(two_bars, Found == 3-quasi_quotation) :-
    trouble("a ||b", Found).
test(bar_behind_a_code, Found == none) :-
    trouble("[0'||T]", Found).
test(other_digits, Found == 0-digit) :-
    trouble("\u0663", Found).
test(small_numbers, [forall(member(Text, ["1.00", " 00", "[00, 01]"])), Found == none]) :-
    trouble(Text, Found).
test(iso_comments_do_not_nest, Trouble == depth(2)) :-
    current_prolog_flag(iso, Iso),
    setup_call_cleanup(
        set_prolog_flag(iso, true),
        trouble("/* /* */ [[[[", _-Trouble),
        set_prolog_flag(iso, Iso)).
%   places count every character that was read: in groups of digits, in comments, behind escapes
place_row("1_ /* c */ 000 [[[", 17).
place_row("1_% c\n 000 [[[", 13).
place_row("1_000_000 [[[", 12).
place_row("0'a [[[", 6).
place_row("0'\\x41\\ [[[", 10).
place_row("0'\\101\\ [[[", 10).
place_row("0'' [[[", 6).
place_row("16'FF [[[", 8).
place_row("1.0e+10 [[[", 10).
place_row("1.0e-10 [[[", 10).
place_row("1r3 [[[", 6).
place_row("'a''b' [[[", 9).
place_row("/* /* a */ b */ [[[", 18).
place_row("[[a] [[", 6).
place_row("]] [[[", 5).
place_row("[] [] [[[", 8).

test(rule_a_place_counts_every_character, [forall(place_row(Text, At)), Found == At-depth(2)]) :-
    trouble(Text, Found).
test(rule_a_nul_is_no_character_of_a_code, Found == 2-nul) :-
    trouble("0'\u0000", Found).
test(rule_brackets_that_close_free_the_depth, Found == none) :-
    trouble("[[a]] [[b]]", Found).

test(every_trouble_has_words, [forall(member(Trouble, [depth(1), tokens(1), number(1), quoted(1), quasi_quotation,
                                                       mixed, nul, digit, mark]))]) :-
    trouble_message(Trouble, Message, Fix),
    Message \== '',
    Fix \== ''.

:- end_tests(rlm_tokens).

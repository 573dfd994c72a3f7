:- encoding(utf8).
:- use_module(library(plunit)).
:- use_module('../../prolog/rlm_words').

:- begin_tests(rlm_words).

test(snake, Ws == [git, diff]) :- identifier_words(git_diff, Ws).
test(camel, Ws == [get, user, profile]) :- identifier_words(getUserProfile, Ws).
test(capitals, Ws == [http, server, error]) :- identifier_words('HTTPServerError', Ws).
test(mcp, Ws == [mcp, github, x]) :- identifier_words(mcp__github__x, Ws).
test(path, Ws == [github, create, issue]) :- identifier_words('github/create-issue', Ws).
test(digits_stay, Ws == [oauth2, s3]) :- identifier_words('oauth2 s3', Ws).
test(accents, F == 'cafe naive') :- fold('Café naïve', F).
test(ligature_and_width, F == 'file abc') :- fold('ﬁle ＡＢＣ', F).
test(invisible, F == github) :- fold('git\u200bhub', F).
test(nothing_left, F == '') :- fold('\u0301\u200b', F).
test(no_character, [nondet, true(sub_atom(F, 0, 1, _, a))]) :- fold('a\uFFFF', F).
test(no_crash_on_any_code, Bad == []) :-
    findall(C,
            ( between(0x80, 0x2fff, C),
              char_code(A, C),
              \+ ( tokens(A, Ts), token_words(Ts, _), terms(english, A, _) ) ),
            Bad).
test(turkish_capitals, F == istanbul) :- fold('İstanbul', F).
test(umlauts, F == 'uber grosse') :- fold('Über Grosse', F).
test(chinese_bigrams, Ws == [天气, 气预, 预报]) :- identifier_words(天气预报, Ws).
test(one_character, Ws == [水]) :- identifier_words(水, Ws).
test(mixed_scripts, Ws == [file, 检索]) :- identifier_words(file检索, Ws).
test(korean_bigrams, Ws == [날씨]) :- identifier_words(날씨, Ws).
test(stem_and_stop_words, Ts == [read, profil]) :- terms(english, 'the reading of profiles', Ts).
test(no_stemmer, Ts == [reading, profiles]) :- terms(none, 'the reading of profiles', Ts).
test(german_stemmer, Ts == [katz]) :- terms(german, 'Katzen', Ts).
test(curly_apostrophe, Ts == [w('don\'t', 'don’t'), w(use, use)]) :- tokens('don’t use', Ts).
test(double_space_and_nbsp, Ts == [w(do, do), w(not, not)]) :- tokens('do \u00a0 not', Ts).
test(identifier_is_one_token, [true(Fs == [git_diff, 'github/create_issue', 'foo.bar'])]) :-
    tokens('git_diff github/create_issue foo.bar', Ts),
    findall(F, member(w(F, _), Ts), Fs).
test(a_variant_is_one_token, Fs == ['search@2', 'a', 'find#3']) :-
    tokens('search@2 @a find#3', Ts),
    findall(F, member(w(F, _), Ts), Fs).
test(rule_a_variant_is_of_any_digit, Fs == ['a@0', 'b@9', 'c', 'd#5']) :-
    tokens('a@0 b@9 c@x d#5', Ts),
    findall(F, ( member(w(F, _), Ts), F \== x ), Fs).
test(punctuation, Ts == [p('`'), w(ls, ls), p('`'), p(',')]) :- tokens('`ls`,', Ts).
test(empty, Ts == []) :- tokens('', Ts).
test(memory_changes_nothing, A == B) :-
    forget_words,
    terms(english, 'getUserProfile reads', A),
    terms(english, 'getUserProfile reads', B).

:- end_tests(rlm_words).

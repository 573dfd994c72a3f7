:- encoding(utf8).
:- use_module(library(plunit)).
:- use_module('../../prolog/rlm_negation', [negated/2]).
:- use_module('../../prolog/rlm_negation_clause', []).
:- use_module('../../prolog/rlm_negation_phrase', []).
:- use_module('../../prolog/rlm_words', [tokens/2]).

% More rows as in rlm_negation.plt, each for one step of the grammar.

:- begin_tests(rlm_negation_rows).

row("in no case, use slack", [[slack]]).
row("in no case should you use slack", [[slack]]).
row("explain how to avoid slack", []).
row("explain how to disable git", []).
row("he managed to disable git", []).
row("try to avoid git", [[git]]).
row("use neither curl here", [[curl]]).
row("Neither curl nor wget, please", [[curl], [wget]]).
row("neither curl nor wget works here", []).
row("'slack' is not to be used", [[slack]]).
row("do not use ('slack')", [[slack]]).
row("do not use slack (or jira) and trello", [[slack], [jira], [trello]]).
row("do not use slack (jira), github or trello", [[slack], [jira], [github], [trello]]).
row("no github tools may be used", [[github, tools]]).
row("no github tools seem be used", []).
row("no slack is to be used", [[slack]]).
row("no tool but", [[tool]]).
row("without git if", []).

test(rule_what_a_text_forbids, [forall(row(Text, Expected)), Phrases == Expected]) :-
    tokens(Text, Tokens),
    negated(Tokens, Phrases).

barred_row([may, be, used], true).
barred_row([must, be, used], true).
barred_row([seems, be, used], false).
barred_row([is, to, be, used], true).
barred_row([seems, to, be, used], false).
barred_row([is, allowed], true).
barred_row([is, blue], false).
barred_row([may, be, seen], false).

test(rule_no_x_may_be_used, [forall(barred_row(Words, Expected)), Truth == Expected]) :-
    ( phrase(rlm_negation:barred, Words) -> Truth = true ; Truth = false ).

%   steps of the grammar by themselves
step_row(rlm_negation_clause:invites([please]), true).
step_row(rlm_negation_clause:invites([slack]), false).
step_row(rlm_negation_clause:invites([p(',')]), true).
step_row(rlm_negation_clause:invites([]), true).
step_row(rlm_negation_clause:universal([any], 1), true).
step_row(rlm_negation_clause:universal([tool, any], 4), true).
step_row(rlm_negation_clause:universal([tool, of, any], 4), false).
step_row(rlm_negation_clause:universal([is, any], 4), false).
step_row(rlm_negation_clause:universal([a, b, c, d, any], 4), false).
step_row(phrase(rlm_negation_clause:harmless, [possible]), true).
step_row(phrase(rlm_negation_clause:harmless, [you, can]), true).
step_row(phrase(rlm_negation_clause:harmless, [it, is, possible]), true).
step_row(phrase(rlm_negation_clause:harmless, [it, can, be, avoided]), true).
step_row(phrase(rlm_negation_clause:harmless, [at, all, possible]), true).
step_row(phrase(rlm_negation_clause:harmless, [you, all, possible]), false).
step_row(phrase(rlm_negation_clause:harmless, [it, all, possible]), false).
step_row(phrase(rlm_negation_clause:harmless, [busy]), false).
step_row(phrase(rlm_negation_clause:exceptive(apart), [from]), true).
step_row(phrase(rlm_negation_clause:exceptive(apart), []), false).
step_row(phrase(rlm_negation_clause:exceptive(aside), []), false).
step_row(phrase(rlm_negation_clause:exceptive(other), []), false).
step_row(phrase(rlm_negation_clause:exceptive(save), []), false).

test(rule_steps_of_the_grammar, [forall(step_row(Goal, Expected)), Truth == Expected]) :-
    ( call(Goal) -> Truth = true ; Truth = false ).

%   bounds: a phrase is read so many tokens far and no further
test(rule_nothing_works_is_seen_within_the_bound, [nondet]) :-
    phrase(rlm_negation_clause:hopeless(2), [a, b, nothing], []).
test(rule_nothing_works_is_not_seen_beyond_the_bound, fail) :-
    phrase(rlm_negation_clause:hopeless(1), [a, b, nothing], []).
test(rule_a_name_within_the_bound_is_one, Words == [a, b]) :-
    once(phrase(rlm_negation_phrase:noun_words(2, Words), [name([a]), name([b])])).
test(rule_a_name_beyond_the_bound_is_none, [forall(member(Tokens, [[name([a]), name([b])], [git, hub], [git, of, hub]])), fail]) :-
    phrase(rlm_negation_phrase:noun_words(1, _), Tokens, _).

:- end_tests(rlm_negation_rows).

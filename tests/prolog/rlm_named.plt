:- encoding(utf8).
:- use_module(library(plunit)).
:- use_module(units).

:- begin_tests(rlm_named).

%   named_in(+Text, -Truth): whether the unit git is there by its name.
named_in(Text, Truth) :-
    (   reason_value(['tool:git', 'tool:a', 'tool:b'], _{text: Text}, 'tool:git', [kind], name)
    ->  Truth = true
    ;   Truth = false
    ).

name_row('git it', false).
name_row('it (git)', false).
name_row('@git', true).
name_row('@ git', true).
name_row('git() it', true).
name_row('git(', false).
name_row('the "git" tool', true).
name_row('the `git` tool', true).
name_row('the «git» tool', true).
name_row('the "git', false).
name_row('the "git` tool', false).

test(rule_a_name_of_one_word_is_marked, [forall(name_row(Text, Expected)), Truth == Expected]) :- named_in(Text, Truth).

%   by_name(+Count, +Changes, -Ids): which of so many units come in where the text calls all of them.
by_name(Count, Changes, Ids) :-
    findall(Id, ( between(1, Count, N), format(atom(Id), 'tool:u~|~`0t~d~2+', [N]) ), Units),
    findall(Mention, ( member(Id, Units), atom_concat('tool:', Name, Id), atom_concat(@, Name, Mention) ), Mentions),
    atomic_list_concat(Mentions, ' ', Text),
    chosen(Units, _{text: Text, limit: 0}.put(Changes), Ids0),
    sort(Ids0, Ids).

test(rule_sixteen_come_in_by_name, Count-Last == 16-'tool:u16') :-
    by_name(18, _{}, Ids),
    length(Ids, Count),
    last(Ids, Last).
test(rule_what_cannot_be_shown_takes_no_place, Count-Last == 16-'tool:u18') :-
    by_name(20, _{denied: ['tool:u01', 'tool:u02']}, Ids),
    length(Ids, Count),
    last(Ids, Last).
test(rule_longer_names_come_first, Ids == ['tool:git_diff', 'tool:git']) :-
    chosen(['tool:git', 'tool:git_diff'], _{text: 'use `git` and git diff', floor: 300}, Ids).

fires_row(verb, review, 'I am reviewing it', true).
fires_row(verb, review, 'a stone', false).
fires_row(object, stone, 'two stones', true).
fires_row(object, stone, 'a river', false).
fires_row(phrase, 'look over', 'look over it', true).
fires_row(phrase, 'look over', 'look, over it', false).
fires_row(phrase, 'look over', 'looking over it', false).
fires_row(keyword, stone, 'stones', false).

test(rule_a_trigger_reads_the_text, [forall(fires_row(Signal, Value, Text, Expected)), Truth == Expected]) :-
    (   reason_value(['skill:s'-[triggers([[Signal, Value, 1000]])]], _{text: Text}, 'skill:s', [kind], trigger)
    ->  Truth = true
    ;   Truth = false
    ).

negated_row('do not use the git tool', ['tool:git']).
negated_row('do not use any tools', []).
negated_row('do not use my git server', ['tool:git']).
negated_row('do not use git diff', []).

test(rule_words_of_kind_are_no_part_of_a_forbidden_name, [forall(negated_row(Text, Expected)), Ids == Expected]) :-
    findall(Id,
            ( member(Id, ['tool:git', 'tool:tools_of']),
              once(reason_value(['tool:git', 'tool:tools_of'], _{text: Text, retained: ['tool:git', 'tool:tools_of']}, Id, [kind], negated)) ),
            Ids).

:- end_tests(rlm_named).

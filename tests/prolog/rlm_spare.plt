:- encoding(utf8).
:- use_module(library(plunit)).
:- use_module(units).

:- begin_tests(rlm_spare).

crowd(Origin, Text, N, Units) :-
    findall(Id-[origin(Origin), trust(stranger), capability(null), description(Text)],
            ( between(1, N, K), format(atom(Id), 'mcp_tool:~w/t~d', [Origin, K]) ),
            Units).

asked(_{text: 'stone bridge over water', floor: 300, relative_floor: 400, limit: 64}).

beside(Ours, Theirs, Ids) :-
    beside(Ours, Theirs, _{}, Ids).
beside(Ours, Theirs, Changes, Ids) :-
    append(Ours, Theirs, Units),
    asked(Asked),
    chosen(Units, Asked.put(Changes), All),
    findall(Id, ( member(Id, All), memberchk(Id-_, Ours) ), Ids).

small(['tool:small'-[description('water and so much else that is of no use to anybody here')]]).

test(a_crowd_makes_no_word_common, Ids == ['tool:small']) :-
    small(Ours),
    crowd(evil, 'stone bridge over water', 50, Theirs),
    beside(Ours, Theirs, Ids).
test(a_crowd_of_the_hosts_does, Ids == []) :-
    small(Ours),
    findall(Id-Attributes,
            ( crowd(evil, 'stone bridge over water', 50, Theirs),
              member(Id-As, Theirs),
              exclude([origin(_)]>>true, As, Attributes) ),
            Crowd),
    beside(Ours, Crowd, Ids).
test(strangers_do_so_to_no_other_stranger, Ids == ['mcp_tool:good/t1']) :-
    crowd(good, 'water and so much else that is of no use to anybody here', 1, Ours),
    crowd(evil, 'stone bridge over water', 50, Theirs),
    beside(Ours, Theirs, Ids).
test(who_registers_first_does_not_matter, Back == Ids) :-
    small(Ours),
    crowd(evil, 'stone bridge over water', 50, Theirs),
    append(Ours, Theirs, Units),
    reverse(Units, Reversed),
    asked(Question),
    chosen(Units, Question, Ids),
    chosen(Reversed, Question, Back).
%   spared_of(+Ours, -Count): how many of thirty units come in beside a crowd, and many that say nothing of it.
spared_of(Ours, Count) :-
    findall(Id-[description('nothing of it')], ( between(1, 200, N), atom_concat('tool:other', N, Id) ), Others),
    crowd(evil, 'stone bridge over water', 50, Evil),
    append(Others, Evil, Theirs),
    beside(Ours, Theirs, _{limit: 200}, Ids),
    length(Ids, Count).

test(of_other_strangers_no_more_than_twenty, Count == 20) :-
    crowd(good, 'water in a house', 30, Ours),
    spared_of(Ours, Count).
test(of_the_host_as_many_as_there_are, Count == 30) :-
    findall(Id-[description('water in a house')], ( between(1, 30, N), atom_concat('tool:w', N, Id) ), Ours),
    spared_of(Ours, Count).
test(the_limit_is_shared, Ids == ['tool:w1', 'tool:w2']) :-
    findall(Id-[description('some water')], ( member(N, [1, 2]), atom_concat('tool:w', N, Id) ), Ours),
    crowd(evil, 'stone bridge over water', 50, Theirs),
    beside(Ours, Theirs, _{limit: 4}, Ids).
test(it_is_told, [all(R == ['', evil])]) :-
    small(Ours),
    crowd(good, 'water and so much else that is of no use to anybody here', 1, Good),
    crowd(evil, 'stone bridge over water', 50, Theirs),
    append([Ours, Good, Theirs], Units),
    asked(Question),
    member(Id, ['tool:small', 'mcp_tool:good/t1']),
    once(( reason_value(Units, Question, Id, [kind], spared),
           reason_value(Units, Question, Id, [origin], R) )).

:- end_tests(rlm_spare).

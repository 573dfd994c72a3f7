:- encoding(utf8).
:- use_module(library(plunit)).
:- use_module('../../prolog/rlm_catalog', [catalog_module/2]).
:- use_module('../../prolog/rlm_index', [index_update/1]).
:- use_module('../../prolog/rlm_origin', [view/5]).
:- use_module('../../prolog/rlm_fairness', []).
:- use_module(units).

:- begin_tests(rlm_fairness).

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

test(rule_a_spared_unit_has_its_turn_within_the_limit, Ids == ['tool:small']) :-
    small(Ours),
    crowd(evil, 'stone bridge over water', 20, Evil),
    findall(Id-[description('nothing of it')], ( between(1, 60, N), atom_concat('tool:other', N, Id) ), Others),
    append(Evil, Others, Theirs),
    beside(Ours, Theirs, _{limit: 4}, Ids).
test(rule_a_spared_unit_keeps_its_own_evidence, Kinds == [lexical, spared]) :-
    small(Ours),
    crowd(evil, 'stone bridge over water', 20, Theirs),
    findall(Id-[description('nothing of it')], ( between(1, 60, N), atom_concat('tool:other', N, Id) ), Others),
    append([Ours, Theirs, Others], Units),
    asked(Question),
    findall(Kind, reason_value(Units, Question, 'tool:small', [kind], Kind), Kinds0),
    sort(Kinds0, Kinds).

% Whose turn it is: the lists in turn, each with its first that had none

turn_row([[1, 2, 3], [3, 4]], 3, [1, 2, 3]).
turn_row([[1, 2], [1, 3]], 2, [1, 3]).
turn_row([[1, 2, 3, 4], [1, 2, 5]], 3, [1, 2, 3]).
turn_row([[1], [2], [3]], 2, [1, 2]).
turn_row([[1], []], 5, [1]).
turn_row([[], []], 5, []).
turn_row([[1, 2], [2, 1]], 9, [1, 2]).

test(rule_units_are_taken_in_turn, [forall(turn_row(Lists, Limit, Expected)), Is == Expected]) :-
    rlm_fairness:in_turn(Lists, Limit, t, First),
    assoc_to_keys(First, Is).

%   views_of(+Units, -Views): of whom a catalog is looked at alone.
views_of(Units, Views) :-
    once(with_units(Units, viewed(Views))).

viewed(Views, Handle) :-
    catalog_module(Handle, M),
    index_update(M),
    view(M, all, 0, 0, All),
    findall(Who, rlm_fairness:viewed(M, All, 0, reading([], [], [water-1000]), null, [], Who), Views0),
    sort(Views0, Views).

test(rule_where_the_host_has_no_units_its_view_is_none, Views == [without(a)]) :-
    crowd(a, water, 3, As),
    crowd(b, water, 2, Bs),
    append(As, Bs, Units),
    views_of(Units, Views).
test(rule_the_views_are_of_the_host_and_without_the_wordiest, Views == [host, without(a)]) :-
    crowd(a, water, 3, As),
    crowd(b, water, 2, Bs),
    append([['tool:x'], As, Bs], Units),
    views_of(Units, Views).

:- end_tests(rlm_fairness).

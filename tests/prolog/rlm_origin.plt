:- encoding(utf8).
:- use_module(library(plunit)).
:- use_module('../../prolog/rlm_catalog').
:- use_module('../../prolog/rlm_index').
:- use_module('../../prolog/rlm_origin').
:- use_module(units).

:- begin_tests(rlm_origin).

ours(['tool:a'-[description('stone bridge')], 'tool:b'-[description(stone)]]).

theirs(Origin, Text, N, Units) :-
    findall(Id-[origin(Origin), trust(stranger), description(Text)],
            ( between(1, N, K), format(atom(Id), 'mcp_tool:~w/t~d', [Origin, K]) ),
            Units).

both(Units) :-
    ours(Ours),
    theirs(one, 'stone bridge', 3, One),
    theirs(other, bridge, 2, Other),
    append([Ours, One, Other], Units).

asked(Goal, Value, Handle) :-
    catalog_module(Handle, M),
    index_update(M),
    call(Goal, M, Value).

size(View, M, Size) :- view_size(M, View, Size).

test(sizes, Sizes == [7, 2, 4, 5, 7]) :-
    both(Units),
    findall(Size,
            ( member(View, [all, host, without(one), without(other), without(nobody)]),
              once(with_units(Units, asked(size(View), Size))) ),
            Sizes).

often(View, Term, M, N) :- ( frequency(M, View, Term, N0) -> N = N0 ; N = none ).

test(frequencies, Ns == [6, 1, 3, none]) :-
    both(Units),
    findall(N,
            ( member(View-Term, [all-bridg, host-bridg, without(one)-bridg, host-stones]),
              once(with_units(Units, asked(often(View, Term), N))) ),
            Ns).

scored(View, M, Ids) :-
    findall(Id, ( posted(View, M, bridg, I, W), W > 0, unit_id(M, I, Id) ), Ids).

test(a_view_has_no_others, Ids == ['tool:a', 'mcp_tool:other/t1', 'mcp_tool:other/t2']) :-
    both(Units),
    with_units(Units, asked(scored(without(one)), Ids)), !.

test(rule_the_hosts_view_has_no_strangers, Ids == ['tool:a']) :-
    both(Units),
    with_units(Units, asked(scored(host), Ids)), !.
test(rule_the_view_of_all_has_all, Count == 6) :-
    both(Units),
    with_units(Units, asked(scored(all), Ids)), !,
    length(Ids, Count).

%   A view of which some units cannot be shown: how many units and how many with a term count in it.
partly(Who, Ids, Term, M, Size-Frequency) :-
    findall(Bit, ( member(Id, Ids), M:number(Id, I), Bit is 1 << I ), Bits),
    sum_list(Bits, Hidden),
    length(Ids, Count),
    view(M, Who, Hidden, Count, View),
    view_size(M, View, Size),
    often(View, Term, M, Frequency).

partly_row(all, [], bridg, 7-6).
partly_row(all, ['tool:b'], bridg, 6-6).
partly_row(all, ['tool:a', 'mcp_tool:one/t1'], bridg, 5-4).
partly_row(host, ['tool:b', 'mcp_tool:one/t1'], bridg, 1-1).
partly_row(host, ['tool:a', 'tool:b'], bridg, 0-1).
partly_row(without(one), ['mcp_tool:one/t1', 'mcp_tool:other/t1'], bridg, 3-2).
partly_row(host, ['tool:a'], river, 1-none).
partly_row(without(one), ['tool:a', 'tool:b'], stone, 2-1).

test(rule_what_cannot_be_shown_does_not_count, [forall(partly_row(Who, Ids, Term, Expected)), Counts == Expected]) :-
    both(Units),
    with_units(Units, asked(partly(Who, Ids, Term), Counts)), !.

%   mixed and several where some units cannot be shown
crowd(Ids, M, Mixed-Several) :-
    findall(Bit, ( member(Id, Ids), M:number(Id, I), Bit is 1 << I ), Bits),
    sum_list(Bits, Hidden),
    length(Ids, Count),
    view(M, all, Hidden, Count, View),
    ( mixed(M, View) -> Mixed = true ; Mixed = false ),
    ( several(M, View) -> Several = true ; Several = false ).

crowd_row([], true-true).
crowd_row(['mcp_tool:other/t1', 'mcp_tool:other/t2'], true-false).
crowd_row(['mcp_tool:other/t1', 'mcp_tool:other/t2', 'tool:a', 'tool:b'], false-false).
crowd_row(['mcp_tool:one/t1', 'mcp_tool:one/t2', 'mcp_tool:one/t3', 'mcp_tool:other/t1', 'mcp_tool:other/t2'], false-false).
crowd_row(['tool:a', 'tool:b'], true-true).

test(rule_a_crowd_is_of_units_that_can_be_shown, [forall(crowd_row(Ids, Expected)), Crowd == Expected]) :-
    both(Units),
    with_units(Units, asked(crowd(Ids), Crowd)), !.

most(Terms, M, Origin) :- wordiest(M, all, Terms, Origin).

test(who_says_most, Origin == one) :-
    both(Units),
    with_units(Units, asked(most([stone, bridg]), Origin)), !.
test(of_equals_the_first_by_name, Origin == a) :-
    theirs(b, stone, 2, Bs), theirs(a, stone, 2, As),
    append(Bs, As, Units),
    with_units(Units, asked(most([stone]), Origin)), !.
test(any_name_is_a_name, Origins == [none, null, '[]']) :-
    findall(Origin,
            ( member(Name, [none, null, '[]']),
              theirs(Name, stone, 2, Units),
              once(with_units(Units, asked(most([stone]), Origin))) ),
            Origins).
test(the_host_is_nobody, fail) :-
    ours(Units),
    with_units(Units, asked(most([stone]), _)).

mixed_after(Ids, Handle) :-
    catalog_change(_{catalog: Handle, remove: Ids, units: []}, _),
    catalog_module(Handle, M),
    mixed(M, all).

test(mixed) :-
    both(Units), with_units(Units, mixed_after([])), !.
test(one_stranger_alone_stands_in_nobodys_way, fail) :-
    theirs(one, stone, 3, Units), with_units(Units, mixed_after([])).
test(strangers_who_went_are_forgotten, fail) :-
    ours(Ours), theirs(one, stone, 2, One),
    append(Ours, One, Units),
    with_units(Units, mixed_after(['mcp_tool:one/t1', 'mcp_tool:one/t2'])).

:- end_tests(rlm_origin).

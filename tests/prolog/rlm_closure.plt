:- encoding(utf8).
:- use_module(library(plunit)).
:- use_module(units).

:- begin_tests(rlm_closure).

%   A pinned unit keeps the selected one out, so that nothing of its chain is active; the chain is long enough for the
%   table that reachable/3 keeps of what lies far away.
test(l4_prose_never_reaches_what_a_selected_unit_would_need, [nondet, Ids == Expected]) :-
    numlist(1, 41, Ns),
    maplist(link, Ns, [First|Links]),
    findall(Id-[requires([Next])], ( append(_, [Id, Next|_], [First|Links]) ), Units),
    last(Links, Last),
    append(['skill:p'-[pinned(true), conflicts([First])], 'tool:pull'-[description(stone), requires(['tool:github'])], Last],
           Units, All),
    chosen(All, _{selected: [First], text: 'a stone, do not use github'}, Ids),
    append(_, ['tool:github'|Rest], Links),
    Expected = ['skill:p', 'tool:pull', 'tool:github'|Rest].
test(l3_a_circle_of_requirements_is_looked_through_once, Ids == ['tool:new', 'tool:y', 'tool:z']) :-
    chosen(['tool:old'-[description('stone bridge'), requires(['tool:y'])],
            'tool:y'-[requires(['tool:z']), description('stone bridge')], 'tool:z'-[requires(['tool:old'])],
            'tool:new'-[description(stone), supersedes(['tool:old'])]],
           _{text: 'stone bridge'}, Ids).
test(l3_a_member_stands_in_for_a_requirement_that_is_out, Ids == ['tool:a', 'tool:new', 'tool:y']) :-
    chosen(['tool:a'-[requires(['tool:new', 'tool:y', 'tool:z'])], 'tool:new'-[supersedes(['tool:old'])], 'tool:old',
            'tool:y'-[requires(['tool:old']), supersedes(['tool:z'])], 'tool:z'],
           _{selected: ['tool:a', 'tool:new', 'tool:y'], denied: ['tool:old']}, Ids0),
    sort(Ids0, Ids).

test(l1_what_stands_in_for_a_need_may_be_wanted_or_kept, [forall(member(Key, [selected, retained])), Ids == ['tool:a', 'tool:new']]) :-
    dict_pairs(Changes, _, [Key-['tool:new'], denied-['tool:old'], text-stone]),
    chosen(['tool:a'-[description(stone), requires(['tool:old'])], 'tool:old', 'tool:new'-[supersedes(['tool:old'])]],
           Changes, Ids0),
    sort(Ids0, Ids).
test(l1_a_unit_that_is_kept_needs_what_it_requires, Ids == []) :-
    chosen(['tool:a'-[requires(['tool:b'])], 'tool:b'], _{retained: ['tool:a'], denied: ['tool:b']}, Ids).

test(l1_a_kept_unit_that_is_denied_is_told_its_requirements_too, Kinds == [denied, dependency_out]) :-
    findall(Kind,
            reason_value(['tool:a'-[requires(['tool:b'])], 'tool:b'], _{retained: ['tool:a'], denied: ['tool:a', 'tool:b']},
                         'tool:a', [kind], Kind),
            Kinds).

link(5, 'tool:github') :- !.
link(N, Id) :- atom_concat('tool:t', N, Id).

:- end_tests(rlm_closure).

:- encoding(utf8).
:- use_module(library(plunit)).
:- use_module('../../prolog/rlm_catalog').
:- use_module('../../prolog/rlm_index', [index_update/1]).
:- use_module(units).

:- begin_tests(rlm_catalog).

%   left_of(+Unit, -Facts): what a catalog knows of a unit when it is gone.
left_of(Unit, Facts) :-
    with_units([Unit, 'tool:other'], removed(Unit, Facts)),
    !.

removed(Unit, Facts, Handle) :-
    ( Unit = Id-_ -> true ; Id = Unit ),
    catalog_module(Handle, M),
    M:number(Id, I),
    catalog_change(_{catalog: Handle, remove: [Id], units: []}, Reply),
    findall(Name,
            ( member(Name-Fact, [ unit-unit(I, _, _, _, _, _), number-number(Id, I), key-key(_, I, _), called-called(I, _),
                                  signal-signal(_, _, I, _), pinned-pinned(I), requires-requires(I, _),
                                  conflicts-conflicts(I, _), suggests-suggests(I, _), above-above(I, _) ]),
              catch(M:Fact, _, fail) ),
            Names),
    Facts = Reply.size-Names.

test(rule_a_removed_unit_leaves_nothing, Facts == 1-[]) :-
    left_of('skill:a'-[ pinned(true), requires(['tool:b']), conflicts(['tool:c']), suggests(['tool:d']),
                        supersedes(['tool:e']), description(stone),
                        triggers([[phrase, 'look over', 1000], [repo, git, 1000]]) ],
            Facts).

%   ids_after(+Standing, -Ids, -Inside): the ids of a catalog after, and while, units stand in it for one goal.
ids_after(Standing, Ids, Inside) :-
    with_units(['tool:a'], stood(Standing, Ids, Inside)),
    !.

stood(Standing, Ids, Inside, Handle) :-
    catalog_module(Handle, M),
    findall(Dict, ( member(Id, Standing), standing_unit(Id, Dict) ), Dicts),
    with_standing(M, Dicts, findall(Id, M:unit(_, Id, _, _, _, _), Inside)),
    findall(Id, M:unit(_, Id, _, _, _, _), Ids).

standing_unit(Id, Dict) :-
    atom_concat('skill:', Name, Id),
    Dict = _{ id: Id, kind: skill, priority: 100, trust: host, capability: null, pinned: false, mandatory: false,
              visible: true, available: true, requires: [], suggests: [], conflicts: [], supersedes: [],
              names: [Name], groups: [], triggers: [], fields: _{} }.

test(rule_standing_units_are_there_for_one_goal, Inside-Ids == ['tool:a', 'skill:x', 'skill:y', 'skill:z']-['tool:a']) :-
    ids_after(['skill:x', 'skill:y', 'skill:z'], Ids, Inside).
test(rule_no_standing_units_change_nothing, Inside-Ids == ['tool:a']-['tool:a']) :- ids_after([], Ids, Inside).
test(rule_a_catalog_that_is_gone_is_named, throws(_)) :-
    catalog_create(_{stemmer: english}, Created),
    catalog_destroy(_{catalog: Created.catalog}, _),
    catalog_change(_{catalog: Created.catalog, remove: [], units: []}, _).

%   vectors_of(+Units, -Vectors): `Id-Term-Weight` for each word of each unit, as a scorer outside receives them.
vectors_of(Units, Vectors) :-
    once(with_units(Units, listed_vectors(Vectors))).

listed_vectors(Vectors, Handle) :-
    catalog_module(Handle, M),
    index_update(M),
    M:next(Next),
    Last is Next - 1,
    catalog_vectors(_{catalog: Handle, first: 0, last: Last}, Reply),
    Next == Reply.next,
    findall(Id-Term-Weight,
            ( nth1(N, Reply.ids, Id),
              nth1(N, Reply.terms, Joined),
              nth1(N, Reply.weights, Weights),
              atomic_list_concat(Terms, ' ', Joined),
              nth1(Place, Terms, Term),
              nth1(Place, Weights, Weight) ),
            Vectors).

test(rule_a_scorer_outside_receives_every_word_with_its_weight, Words == ['tool:a'-bridg, 'tool:a'-stone, 'tool:b'-river]) :-
    vectors_of(['tool:a'-[description('stone bridge')], 'tool:b'-[description(river)]], Vectors),
    findall(Id-Term, ( member(Id-Term-Weight, Vectors), Term \== a, Term \== b, Weight > 0 ), Words0),
    sort(Words0, Words).

:- end_tests(rlm_catalog).

:- encoding(utf8).
:- module(rlm_catalog,
          [ catalog_create/2,      % +Args, -Reply
            catalog_destroy/2,     % +Args, -Reply
            catalog_change/2,      % +Args, -Reply
            catalog_count/2,       % +Args, -Reply
            catalog_vectors/2,     % +Args, -Reply
            scratch/3,             % +Stemmer, +Unit, -Module
            catalog_module/2,      % +Handle, -Module
            catalog_stemmer/2,     % +Module, -Stemmer
            catalog_ready/1,       % +Module
            catalog_size/2,        % +Module, -Size
            with_standing/3,       % +Module, +Units, :Goal
            unit_id/3,             % +Module, +I, -Id
            supersedes/3,          % +Module, ?I, ?J
            replaces/3             % +Module, ?I, ?J
          ]).
:- use_module(library(aggregate), [aggregate_all/3]).
:- use_module(library(assoc), [empty_assoc/1, gen_assoc/3, get_assoc/3, list_to_assoc/2, put_assoc/4]).
:- use_module(library(error), [existence_error/2]).
:- use_module(library(lists), [member/2]).
:- use_module(library(ordsets), [ord_union/3]).
:- use_module(library(pairs), [group_pairs_by_key/2]).
:- use_module(rlm_examples, [examples_add/4, examples_declare/1, examples_forget/2]).
:- use_module(rlm_index, [index_declare/1, index_forget/2, index_unit/4, index_update/1]).
:- use_module(rlm_origin, [origin_add/3, origin_declare/1, origin_forget/2]).
:- use_module(rlm_servers, [server_add/5, server_declare/1, server_forget/2]).
:- use_module(rlm_words, [fold/2, identifier_words/2, stemmer/1, stems/3]).

/** <module> What is there: facts about the units of a catalog

Each catalog is a module of its own, so that many can live at once and one can go without a trace. A unit is
known by a number inside its catalog; numbers never decide anything, ids do.

| fact                                              |                                                      |
|---------------------------------------------------|------------------------------------------------------|
| unit(I, Id, Kind, Priority, Trust, Capability)    | what it is; Capability is `null` where none is needed |
| number(Id, I)                                     | the other way round                                  |
| pinned(I), mandatory(I), invisible(I), unavailable(I) | the host's word, where it differs from the ordinary |
| requires(I, Id), suggests(I, Id)                  | relations by id: what they name may come later       |
| conflicts(I, Id), supersedes(I, Id)               |                                                      |
| key(Key, I, What)                                 | words that name it: `name`, `group`, or a trigger    |
| joined(Key, I, What)                              | a `name` or `group` of several words, written as one |
| called(I, Name)                                   | the words of its bare name                           |
| start(Word, Length)                               | how many words a key has that starts with this one   |
| signal(Name, Value, I, Weight)                    | host signals that ask for it                         |
| above(I, J)                                       | I supersedes J, through any number of steps          |
| guarded(I)                                        | it needs a capability                                |
| barred(Policy, Own, Bits, Hurt)                   | what a policy keeps out (rlm_hidden)                 |
| server(I, Server) and others                      | what the tools of a server are to each other (rlm_servers) |
| next(I), size(N)                                  | the next number, and how many units there are        |
*/

%   Units that stand for one compile only have the same facts, but for words, names and triggers: they are
%   pinned, so no evidence is looked for.

:- meta_predicate with_standing(+, +, 0).

:- dynamic
    catalog/3,                  % Handle, Module, Stemmer
    spare/1.                    % Module: of a catalog that was destroyed

%!  catalog_create(+Args:dict, -Reply:dict) is det.
%
%   `Args`: `stemmer`. `Reply`: the `catalog` handle, an integer.

catalog_create(Args, _{catalog: Handle}) :-
    Stemmer = Args.stemmer,
    (   stemmer(Stemmer)
    ->  true
    ;   existence_error(stemmer, Stemmer)
    ),
    flag(rlm_catalog, Handle, Handle + 1),
    (   retract(spare(M))
    ->  true
    ;   atom_concat(rlm_units_, Handle, M)
    ),
    declare(M),
    assertz(catalog(Handle, M, Stemmer)).

declare(M) :-
    dynamic([ M:unit/6, M:number/2, M:pinned/1, M:mandatory/1, M:invisible/1, M:unavailable/1,
              M:requires/2, M:suggests/2, M:conflicts/2, M:supersedes/2,
              M:key/3, M:joined/3, M:called/2, M:start/2, M:signal/4, M:above/2, M:stale/0, M:next/1, M:size/1,
              M:guarded/1, M:barred/4, M:body/2, M:occasion/2
            ]),
    index_declare(M),
    examples_declare(M),
    origin_declare(M),
    server_declare(M),
    assertz(M:next(1)),
    assertz(M:size(0)).

%!  scratch(+Stemmer, +Unit:dict, -Module) is det.
%
%   A catalog module that holds just one unit, numbered 1, until the next one is asked for.

scratch(Stemmer, Unit, rlm_units_scratch) :-
    M = rlm_units_scratch,
    retractall(catalog(_, M, _)),
    clear(M),
    declare(M),
    assertz(catalog(scratch, M, Stemmer)),
    add_units([Unit], M, Stemmer, 1, _).

%   A module cannot be taken back; the next catalog gets it.
clear(M) :-
    forall(( current_predicate(M:Name/Arity),
             functor(Head, Name, Arity),
             \+ predicate_property(M:Head, imported_from(_)) ),
           retractall(M:Head)).

%!  catalog_destroy(+Args:dict, -Reply:dict) is det.
%
%   Forget a catalog and everything in it. Destroying it again is no error.

catalog_destroy(Args, _{destroyed: Known}) :-
    (   retract(catalog(Args.catalog, M, _))
    ->  Known = @(true),
        clear(M),
        assertz(spare(M))
    ;   Known = @(false)
    ).

%!  catalog_count(+Args:dict, -Reply:dict) is det.
%
%   How many catalogs live in this process.

catalog_count(_, _{count: Count}) :-
    aggregate_all(count, ( catalog(Handle, _, _), Handle \== scratch ), Count).

%!  catalog_module(+Handle, -Module) is det.
%
%   @error existence_error(catalog, Handle) after it was destroyed.

catalog_module(Handle, M) :-
    (   catalog(Handle, M0, _)
    ->  M = M0
    ;   existence_error(catalog, Handle)
    ).

%!  catalog_stemmer(+Module, -Stemmer) is det.

catalog_stemmer(M, Stemmer) :-
    catalog(_, M, Stemmer),
    !.

%!  catalog_size(+Module, -Size) is det.

catalog_size(M, Size) :-
    M:size(Size),
    !.

                /*******************************
                *            CHANGE            *
                *******************************/

%!  catalog_change(+Args:dict, -Reply:dict) is det.
%
%   One batch: `remove` (ids) goes, `units` come. The caller has checked the batch as a whole. A unit need not
%   say what is ordinary (ordinary/1), nor name fields that are empty.

catalog_change(Args, _{size: Size}) :-
    catalog_module(Args.catalog, M),
    catalog(Args.catalog, M, Stemmer),
    retractall(M:barred(_, _, _, _)),
    remove_units(Args.remove, M),
    retract(M:next(First)),
    add_units(Args.units, M, Stemmer, First, Next),
    assertz(M:next(Next)),
    retract(M:size(Size1)),
    Size is Size1 + Next - First,
    assertz(M:size(Size)).

remove_units([], _) :- !.
remove_units(Ids, M) :-
    findall(I, ( member(Id, Ids), M:number(Id, I) ), Is),
    length(Is, Gone),
    retract(M:size(Size0)),
    Size is Size0 - Gone,
    assertz(M:size(Size)),
    index_forget(M, Is),
    forall(member(I, Is), remove_unit(M, I)).

remove_unit(M, I) :-
    retract_unit(M, I),
    retractall(M:key(_, I, _)),
    retractall(M:joined(_, I, _)),
    retractall(M:called(I, _)),
    retractall(M:signal(_, _, I, _)),
    origin_forget(M, I),
    server_forget(M, I),
    examples_forget(M, I).

%   retract_unit(+M, +I): the counterpart of assert_unit/3.
retract_unit(M, I) :-
    retract(M:unit(I, Id, _, _, _, _)),
    retractall(M:number(Id, _)),
    retractall(M:pinned(I)),
    retractall(M:mandatory(I)),
    retractall(M:invisible(I)),
    retractall(M:unavailable(I)),
    retractall(M:guarded(I)),
    retractall(M:requires(I, _)),
    retractall(M:suggests(I, _)),
    retractall(M:conflicts(I, _)),
    retractall(M:body(I, _)),
    retractall(M:occasion(I, _)),
    (   retract(M:supersedes(I, _))
    ->  retractall(M:supersedes(I, _)),
        outdate(M)
    ;   M:above(_, I)
    ->  outdate(M)
    ;   true
    ).

%!  with_standing(+Module, +Units:list(dict), :Goal) is semidet.
%
%   Run Goal once while further units of the host, all pinned, are in the catalog; however it ends, they are
%   gone afterwards. They have numbers, but the catalog does not grow: no word gets rarer by them.

with_standing(_, [], Goal) =>
    once(Goal).
with_standing(M, Units, Goal) =>
    M:next(First),
    setup_call_cleanup(stand(Units, M, First), once(Goal), leave(Units, M, First)).

stand([], _, _).
stand([Given|Units], M, I) :-
    ordinary(Ordinary),
    put_dict(Given, Ordinary, Unit),
    assert_unit(M, I, Unit),
    J is I + 1,
    stand(Units, M, J).

leave([], _, _).
leave([_|Units], M, I) :-
    ( M:unit(I, _, _, _, _, _) -> retract_unit(M, I) ; true ),
    J is I + 1,
    leave(Units, M, J).

add_units([], _, _, Next, Next).
add_units([Unit|Units], M, Stemmer, I, Next) :-
    add_unit(M, Stemmer, I, Unit),
    J is I + 1,
    add_units(Units, M, Stemmer, J, Next).

add_unit(M, Stemmer, I, Given) :-
    ordinary(Ordinary),
    put_dict(Given, Ordinary, Unit),
    assert_unit(M, I, Unit),
    ( get_dict(name, Unit.fields, Name) -> true ; Name = '' ),
    bare_name(Name, Bare),
    assertz(M:called(I, Bare)),
    origin_add(M, I, Unit.origin),
    identifier_words(Bare, NameWords),
    server_add(M, Stemmer, I, Unit, NameWords),
    names_keys(Unit.names, Names),
    add_keys(Names, name, M, I),
    names_keys(Unit.groups, Groups),
    add_keys(Groups, group, M, I),
    add_triggers(Unit.triggers, M, Stemmer, I),
    index_unit(M, Stemmer, I, Unit.fields.put(name, Bare)),
    (   get_dict(examples, Unit.fields, Examples)
    ->  examples_add(M, Stemmer, I, Examples)
    ;   true
    ).

%   assert_unit(+M, +I, +Unit): what it is and how it relates to others.
assert_unit(M, I, Unit) :-
    Id = Unit.id,
    assertz(M:unit(I, Id, Unit.kind, Unit.priority, Unit.trust, Unit.capability)),
    assertz(M:number(Id, I)),
    ( Unit.pinned == true -> assertz(M:pinned(I)) ; true ),
    ( Unit.mandatory == true -> assertz(M:mandatory(I)) ; true ),
    ( Unit.visible == true -> true ; assertz(M:invisible(I)) ),
    ( Unit.available == true -> true ; assertz(M:unavailable(I)) ),
    ( Unit.capability == null -> true ; assertz(M:guarded(I)) ),
    add_relations(Unit.requires, requires, M, I),
    add_relations(Unit.suggests, suggests, M, I),
    add_relations(Unit.conflicts, conflicts, M, I),
    add_relations(Unit.bodies, body, M, I),
    add_relations(Unit.occasions, occasion, M, I),
    add_relations(Unit.supersedes, supersedes, M, I),
    ( Unit.supersedes == [] -> true ; outdate(M) ).

add_relations([], _, _, _).
add_relations([Id|Ids], Relation, M, I) :-
    Fact =.. [Relation, I, Id],
    assertz(M:Fact),
    add_relations(Ids, Relation, M, I).

%   ordinary(-Unit:dict): what is not said of a unit; most of it is said of few.
ordinary(_{ priority: 100, pinned: false, mandatory: false, visible: true, available: true,
            requires: [], suggests: [], conflicts: [], supersedes: [], groups: [], triggers: [], origin: '',
            effect: '', server: '', identifiers: [], bodies: [], occasions: [] }).

%   bare_name(+Name, -Bare): the words of a name; a number behind `@` or `#` only tells variants apart.
bare_name(Name, Bare) :-
    (   member(Sign, [@, #]),
        sub_atom(Name, Before, 1, After, Sign),
        sub_atom(Name, _, After, 0, Number),
        catch(atom_number(Number, _), _, fail)
    ->  sub_atom(Name, 0, Before, _, Stem)
    ;   Stem = Name
    ),
    identifier_words(Stem, Words),
    atomic_list_concat(Words, ' ', Bare).

names_keys(Names, Keys) :-
    findall(Words,
            ( member(Name, Names),
              identifier_words(Name, Words),
              Words \== [] ),
            Keys0),
    sort(Keys0, Keys).

add_keys([], _, _, _).
add_keys([Words|Keys], What, M, I) :-
    add_key(Words, What, M, I),
    add_joined(Words, What, M, I),
    add_keys(Keys, What, M, I).

%   Signals that are looked for in a text become keys; every trigger also answers to a signal of the host.
add_triggers([], _, _, _).
add_triggers([[Signal, Value, Weight]|Triggers], M, Stemmer, I) :-
    identifier_words(Value, Words),
    trigger_key(Signal, Words, Stemmer, Key),
    add_key(Key, trigger(Signal, Value, Weight), M, I),
    fold(Value, Folded),
    assertz(M:signal(Signal, Folded, I, Weight)),
    add_triggers(Triggers, M, Stemmer, I).

trigger_key(Signal, Words, Stemmer, Key) :-
    (   memberchk(Signal, [phrase, keyword, need])
    ->  Key = Words
    ;   memberchk(Signal, [verb, object])
    ->  stems(Stemmer, Words, Key)
    ;   Key = []
    ).

add_key([], _, _, _) :- !.
add_key(Words, What, M, I) :-
    Words = [First|_],
    length(Words, Length),
    atomic_list_concat(Words, ' ', Key),
    assertz(M:key(Key, I, What)),
    (   M:start(First, Length)
    ->  true
    ;   assertz(M:start(First, Length))
    ).

%   add_joined(+Words, +What, +M, +I): what is one word is a key already.
add_joined(Words, What, M, I) :-
    (   Words = [_, _|_]
    ->  atomic_list_concat(Words, Joined),
        assertz(M:joined(Joined, I, What))
    ;   true
    ).

outdate(M) :-
    (   M:stale
    ->  true
    ;   assertz(M:stale)
    ).

%!  catalog_ready(+Module) is det.
%
%   What is derived from the facts is up to date afterwards.

catalog_ready(M) :-
    (   retract(M:stale)
    ->  retractall(M:above(_, _)),
        retractall(M:barred(_, _, _, _)),
        findall(I-J, ( M:supersedes(I, Id), M:number(Id, J) ), Pairs),
        sort(Pairs, Sorted),
        group_pairs_by_key(Sorted, Groups),
        list_to_assoc(Groups, Direct),
        empty_assoc(None),
        below_each(Groups, Direct, None, Below),
        forall(( gen_assoc(I, Below, Js), member(J, Js), J \== I ), assertz(M:above(I, J)))
    ;   true
    ).

%   below_each(+Groups, +Direct, +Below0, -Below): an assoc from each I to all that it supersedes.
below_each([], _, Below, Below).
below_each([I-_|Groups], Direct, Below0, Below) :-
    below(I, Direct, Below0, Below1, _),
    below_each(Groups, Direct, Below1, Below).

%   A unit is noted before it is looked at, so that a cycle ends.
below(I, Direct, Below0, Below, Js) :-
    (   get_assoc(I, Below0, Js0)
    ->  Js = Js0,
        Below = Below0
    ;   get_assoc(I, Direct, Js0)
    ->  put_assoc(I, Below0, Js0, Below1),
        below_all(Js0, Direct, Below1, Below2, Js0, Js),
        put_assoc(I, Below2, Js, Below)
    ;   Js = [],
        Below = Below0
    ).

below_all([], _, Below, Below, Js, Js).
below_all([I|Is], Direct, Below0, Below, Js0, Js) :-
    below(I, Direct, Below0, Below1, Is1),
    ord_union(Js0, Is1, Js1),
    below_all(Is, Direct, Below1, Below, Js1, Js).

%!  supersedes(+Module, ?I, ?J) is nondet.
%
%   I supersedes J, directly or through others.

supersedes(M, I, J) :-
    M:above(I, J).

%!  replaces(+Module, ?I, ?J) is nondet.
%
%   I supersedes J and can stand in for it: only a pinned unit takes the place of a pinned one.

replaces(M, I, J) :-
    M:above(I, J),
    ( M:pinned(J) -> M:pinned(I) ; true ).

%!  unit_id(+Module, +I, -Id) is det.

unit_id(M, I, Id) :-
    M:unit(I, Id, _, _, _, _).

%!  catalog_vectors(+Args:dict, -Reply:dict) is det.
%
%   The vectors of the units numbered `first` to `last`, for a scorer outside: parallel lists of `ids`,
%   `numbers`, `terms` (of one unit as one text, with blanks between) and `weights`.

catalog_vectors(Args, _{numbers: Is, ids: Ids, terms: Terms, weights: Weights, next: Next}) :-
    catalog_module(Args.catalog, M),
    findall([I, Id, Joined, Ws],
            ( between(Args.first, Args.last, I),
              M:unit(I, Id, _, _, _, _),
              M:vector(I, Vector),
              compound_name_arguments(Vector, v, Pairs),
              unzip(Pairs, Ts, Ws),
              atomic_list_concat(Ts, ' ', Joined) ),
            Rows),
    columns(Rows, Is, Ids, Terms, Weights),
    M:next(Next).

unzip([], [], []).
unzip([T, W|Pairs], [T|Ts], [W|Ws]) :-
    unzip(Pairs, Ts, Ws).

columns([], [], [], [], []).
columns([[I, Id, Ts, Ws]|Rows], [I|Is], [Id|Ids], [Ts|Terms], [Ws|Weights]) :-
    columns(Rows, Is, Ids, Terms, Weights).

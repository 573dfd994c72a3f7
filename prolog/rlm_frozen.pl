:- encoding(utf8).
:- module(rlm_frozen,
          [ catalog_freeze/2,      % +Args, -Reply
            catalog_thaw/2,        % +Args, -Reply
            catalog_fill/2         % +Args, -Reply
          ]).
:- use_module(library(error), [domain_error/2]).
:- use_module(library(lists), [member/2]).
:- use_module(library(solution_sequences), [limit/2]).
:- use_module(rlm_catalog, [catalog_module/2, catalog_ready/1]).
:- use_module(rlm_index, [index_update/1]).
:- public fill/2.                  % called from a clause that stands for facts

/** <module> The facts of a catalog as a file that loads fast

A frozen catalog has three parts. The facts are read when it is opened. Postings and vectors are read when a rule first
asks for one: until then a single clause stands for them.

    posting(T, N, Is, Ws) :- fill(Module, postings), Module:posting(T, N, Is, Ws).

A part is a row of lists in the binary form of fast_write/2. Reading it makes terms and runs nothing, and only the facts
of the table part_fact/3 are taken. The binary form is that of one Prolog: the caller compares versions and a digest
before it hands a file over.

A catalog module notes with `unread(Part, Path, Offset, Lists)` the parts that are not read yet.
*/

%   part_fact(?Part, ?Name, ?Arity): the facts of each part; see rlm_catalog, rlm_index, rlm_examples, rlm_origin,
%   rlm_servers.
part_fact(facts, unit, 6).
part_fact(facts, number, 2).
part_fact(facts, pinned, 1).
part_fact(facts, mandatory, 1).
part_fact(facts, invisible, 1).
part_fact(facts, unavailable, 1).
part_fact(facts, requires, 2).
part_fact(facts, suggests, 2).
part_fact(facts, conflicts, 2).
part_fact(facts, supersedes, 2).
part_fact(facts, key, 3).
part_fact(facts, joined, 3).
part_fact(facts, called, 2).
part_fact(facts, start, 2).
part_fact(facts, signal, 4).
part_fact(facts, above, 2).
part_fact(facts, guarded, 1).
part_fact(facts, next, 1).
part_fact(facts, size, 1).
part_fact(facts, origin, 2).
part_fact(facts, brought, 2).
part_fact(facts, example, 4).
part_fact(facts, told, 2).
part_fact(facts, server, 2).
part_fact(facts, effect, 2).
part_fact(facts, identifier, 3).
part_fact(facts, demands, 2).
part_fact(facts, lister, 2).
part_fact(facts, body, 2).
part_fact(facts, occasion, 2).
part_fact(facts, barred, 4).
part_fact(postings, posting, 4).
part_fact(vectors, vector, 2).

%   derived(?Name, ?Arity): facts that are made again, or that are not there when a catalog is ready.
derived(stale, 0).
derived(pending, 1).
derived(unread, 4).

%   together(?N): so many facts stand in one list.
together(1000).

%!  catalog_freeze(+Args:dict, -Reply:dict) is det.
%
%   Write the parts of `catalog` to the files `facts`, `postings` and `vectors`. `Reply` has the number of lists in
%   each, and `next`, the next number of a unit.
%
%   @error domain_error(frozen_fact, Name/Arity) for a fact that no part has.

catalog_freeze(Args, _{facts: Facts, postings: Postings, vectors: Vectors, next: Next}) :-
    catalog_module(Args.catalog, M),
    catalog_ready(M),
    index_update(M),
    catalog_fill(Args, _),
    forall(fact_of(M, Name, Arity), known_fact(Name, Arity)),
    write_part(M, facts, Args.facts, Facts),
    write_part(M, postings, Args.postings, Postings),
    write_part(M, vectors, Args.vectors, Vectors),
    M:next(Next).

fact_of(M, Name, Arity) :-
    current_predicate(M:Name/Arity),
    functor(Head, Name, Arity),
    predicate_property(M:Head, dynamic),
    \+ predicate_property(M:Head, imported_from(_)),
    predicate_property(M:Head, number_of_clauses(Clauses)),
    Clauses > 0.

known_fact(Name, Arity) :-
    (   part_fact(_, Name, Arity)
    ->  true
    ;   derived(Name, Arity)
    ->  true
    ;   domain_error(frozen_fact, Name/Arity)
    ).

write_part(M, Part, File, Lists) :-
    together(Most),
    setup_call_cleanup(
        open(File, write, Stream, [type(binary)]),
        (   State = lists(0),
            forall(( part_fact(Part, Name, Arity),
                     functor(Head, Name, Arity),
                     findnsols(Most, Head, M:Head, Facts),
                     Facts \== [] ),
                   ( fast_write(Stream, Facts),
                     arg(1, State, N0),
                     N is N0 + 1,
                     nb_setarg(1, State, N) )),
            arg(1, State, Lists)
        ),
        close(Stream)).

%!  catalog_thaw(+Args:dict, -Reply:dict) is det.
%
%   Read the facts of a new `catalog` from the file `path`, and note where its other parts are. `facts`, `postings` and
%   `vectors` are lists of two integers: the offset in bytes, and the number of lists there.

catalog_thaw(Args, _{size: Size}) :-
    catalog_module(Args.catalog, M),
    Path = Args.path,
    retractall(M:next(_)),
    retractall(M:size(_)),
    dynamic([M:unread/4]),
    forall(member(Part-[Offset, Lists], [facts-Args.facts, postings-Args.postings, vectors-Args.vectors]),
           assertz(M:unread(Part, Path, Offset, Lists))),
    read_part(M, facts),
    assertz((M:posting(T, N, Is, Ws) :- rlm_frozen:fill(M, postings), M:posting(T, N, Is, Ws))),
    assertz((M:vector(I, V) :- rlm_frozen:fill(M, vectors), M:vector(I, V))),
    warm(M),
    M:size(Size),
    !.

%!  catalog_fill(+Args:dict, -Reply:dict) is det.
%
%   Read the parts of `catalog` that are not read yet: its facts may be changed afterwards.

catalog_fill(Args, _{filled: @(true)}) :-
    catalog_module(Args.catalog, M),
    (   current_predicate(M:unread/4)
    ->  forall(M:unread(Part, _, _, _), fill(M, Part))
    ;   true
    ).

%   fill(+Module, +Part): read a part, in place of the clause that stands for it.
fill(M, Part) :-
    forall(part_fact(Part, Name, Arity),
           ( functor(Head, Name, Arity), retractall(M:Head) )),
    read_part(M, Part).

read_part(M, Part) :-
    retract(M:unread(Part, Path, Offset, Lists)),
    !,
    setup_call_cleanup(
        open(Path, read, Stream, [type(binary)]),
        ( seek(Stream, Offset, bof, _),
          forall(between(1, Lists, _), read_list(Stream, Part, M)) ),
        close(Stream)).

read_list(Stream, Part, M) :-
    fast_read(Stream, Facts),
    forall(member(Fact, Facts), add_fact(Part, M, Fact)).

add_fact(Part, M, Fact) :-
    functor(Fact, Name, Arity),
    (   part_fact(Part, Name, Arity)
    ->  assertz(M:Fact)
    ;   domain_error(frozen_fact, Name/Arity)
    ).

%   warm(+M): the hashes that lookups take are built at the first lookup.
warm(M) :-
    forall(limit(1, M:unit(I, Id, _, _, _, _)),
           ( warm_unit(M, I), forall(M:number(Id, _), true) )),
    forall(limit(1, M:key(Key, _, _)), forall(M:key(Key, _, _), true)),
    forall(limit(1, M:joined(Key, _, _)), forall(M:joined(Key, _, _), true)),
    forall(limit(1, M:start(Word, _)), forall(M:start(Word, _), true)).

warm_unit(M, I) :-
    forall(member(Goal, [unit(I, _, _, _, _, _), key(_, I, _), joined(_, I, _), called(I, _), origin(I, _), pinned(I),
                         server(I, _), mandatory(I), invisible(I), unavailable(I), guarded(I), requires(I, _),
                         suggests(I, _), body(I, _), occasion(I, _),
                         conflicts(I, _), supersedes(I, _), above(I, _), above(_, I)]),
           forall(M:Goal, true)).

:- det(catalog_freeze/2).
:- det(catalog_thaw/2).
:- det(catalog_fill/2).

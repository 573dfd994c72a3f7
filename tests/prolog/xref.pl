:- encoding(utf8).
:- module(rlm_test_xref, []).
:- use_module(library(apply), [exclude/3]).
:- use_module(library(lists), [member/2]).
:- use_module(library(occurs), [sub_term/2]).
:- use_module(library(prolog_source)).
:- use_module(library(prolog_xref)).

/** <module> Predicates that nobody uses

    swipl tests/prolog/xref.pl -- FILE.pl ...

One line (file, predicate, `exported` or `local`) per predicate of the files that is not called in its own
file, nor mentioned there as a closure, nor declared `public`, nor exported and called by another of the
files, nor mentioned in any of them as `Module:Predicate`.
*/

:- initialization(main, main).

:- dynamic
    closure/4,                          % File, Name, Arity, In: mentioned in a clause of In
    qualified/2.                        % Module, Name

main :-
    current_prolog_flag(argv, Argv),
    exclude(==(--), Argv, Files),
    forall(member(File, Files), ( xref_source(File, [silent(true), comments(ignore)]), mentions(File) )),
    forall(( member(File, Files), unused(File, Files, Name/Arity) ),
           ( file_base_name(File, Base),
             functor(Head, Name, Arity),
             ( xref_exported(File, Head) -> How = exported ; How = local ),
             format("~w ~q ~w~n", [Base, Name/Arity, How])
           )),
    halt(0).

unused(File, Files, Name/Arity) :-
    setof(Name/Arity, defined(File, Name, Arity), Predicates),
    member(Name/Arity, Predicates),
    functor(Head, Name, Arity),
    \+ called_here(File, Head),
    \+ ( closure(File, Name, Partial, In), Partial =< Arity, In \== Name/Arity ),
    \+ public(File, Name/Arity),
    \+ ( xref_exported(File, Head), called_elsewhere(File, Files, Head) ),
    \+ ( xref_module(File, Module), qualified(Module, Name) ).

defined(File, Name, Arity) :-
    xref_defined(File, Head, How),
    ( How = local(_) ; How = dynamic(_) ; How = thread_local(_) ),
    \+ xref_defined(File, Head, multifile(_)),
    \+ Head = _:_,
    functor(Head, Name, Arity).

called_here(File, Head) :-
    xref_called(File, Head, By),
    nonvar(By),
    \+ same(By, Head),
    !.

same(_:By, Head) :- !, same(By, Head).
same(By, Head) :- callable(By), functor(By, Name, Arity), functor(Head, Name, Arity).

public(File, Predicate) :-
    xref_public_list(File, -, [public(Public)]),
    member(Predicate, Public),
    !.

called_elsewhere(File, Files, Head) :-
    member(Other, Files),
    Other \== File,
    ( xref_called(Other, Head, _) ; xref_called(Other, _:Head, _) ),
    !.

%   mentions(+File): every atom and compound in the body of a clause may be a closure, every `Module:Goal`
%   a call.

mentions(File) :-
    setup_call_cleanup(
        prolog_open_source(File, In),
        ( repeat,
          prolog_read_source_term(In, Term, _, []),
          note(Term, File),
          Term == end_of_file,
          !
        ),
        prolog_close_source(In)).

note(Term, File) :-
    forall(( sub_term(Sub, Term), nonvar(Sub), Sub = M:G, atom(M), callable(G) ),
           ( functor(G, Name, _), assertz(qualified(M, Name)) )),
    (   clause_parts(Term, Name/Arity, Body)
    ->  forall(( sub_term(Sub, Body), nonvar(Sub), name_arity(Sub, Called, N) ),
               assertz(closure(File, Called, N, Name/Arity)))
    ;   true
    ).

name_arity(Atom, Name, Arity), atom(Atom) => Name = Atom, Arity = 0.
name_arity(Term, Name, Arity), compound(Term) => compound_name_arity(Term, Name, Arity).
name_arity(_, _, _) => fail.

clause_parts((Head --> Body), Name/Arity, Body) :- callable(Head), functor(Head, Name, N), Arity is N+2.
clause_parts((Head :- Body), Name/Arity, Body) :- callable(Head), functor(Head, Name, Arity).
clause_parts(((Head, Guard) => Body), Name/Arity, (Guard, Body)) :- callable(Head), !, functor(Head, Name, Arity).
clause_parts((Head => Body), Name/Arity, Body) :- callable(Head), functor(Head, Name, Arity).

:- encoding(utf8).
:- module(rlm_mutants, []).
:- use_module(library(http/json), [json_write_dict/3]).
:- use_module(library(clpfd), [op(_, _, _)]). % the syntax of rlm_fd.pl
:- use_module(library(lists), [append/2, member/2, nth1/3]).

/** <module> Small changes of rule files, for mutation tests

    swipl bench/mutants.pl -- FILE.pl ...

One line of JSON for each change: `file`, `line`, `kind`, `before`, `after`, and `edits`, a list of
`[From, To, Text]` in characters of the file. The kinds:

    comparison   `<` for `=<`, `==` for `\==`, and so on; one more or less in a comparison
    arithmetic   `+` for `-`, `min` for `max`, in an expression
    order        two goals of a conjunction that stand side by side change places
    dropped      a goal is not called
    condition    the condition of an if-then-else always holds, or never
    negation     a negated goal is not negated
    clauses      two clauses of a predicate that stand side by side change places

A goal is dropped as `(true -> true ; Goal)`, so that its variables stay and no warning betrays it. Grammar rules are
changed alike: what stands for a piece of text is dropped as `([] -> [] ; Piece)`, and goals in braces as any goals.
*/

:- initialization(main, main).

main :-
    current_prolog_flag(argv, Argv),
    append([_, Files], Argv),
    \+ memberchk('--', Files),
    !,
    forall(( member(File, Files), mutant(File, Mutant) ), line(Mutant)),
    halt(0).

line(Mutant) :-
    json_write_dict(current_output, Mutant, [width(0)]),
    nl.

%!  mutant(+File:atom, -Mutant:dict) is nondet.

mutant(File, _{file:Base, line:Line, kind:Kind, before:Before, after:After, edits:Edits}) :-
    read_file_to_string(File, Text, [encoding(utf8)]),
    file_base_name(File, Base),
    clauses(File, Clauses),
    change(Clauses, Text, Kind, Edits0),
    sort(1, @<, Edits0, Edits),
    Edits = [[From, _, _]|_],
    sub_string(Text, 0, From, _, Head),
    split_string(Head, "\n", "", Lines),
    length(Lines, Line),
    findall(Old, ( member([A, B, _], Edits), span(Text, A, B, Old) ), Olds),
    findall(New, member([_, _, New], Edits), News),
    atomics_to_string(Olds, " ... ", Before),
    atomics_to_string(News, " ... ", After),
    Before \== After.

atomics_to_string(Parts, Between, Text) :-
    atomic_list_concat(Parts, Between, Atom),
    atom_string(Atom, Text).

clauses(File, Clauses) :-
    setup_call_cleanup(
        open(File, read, Stream, [encoding(utf8)]),
        read_clauses(Stream, Clauses),
        close(Stream)).

read_clauses(Stream, Clauses) :-
    read_term(Stream, Term, [subterm_positions(Position), module(rlm_mutants)]),
    (   Term == end_of_file
    ->  Clauses = []
    ;   Clauses = [Term-Position|Rest],
        read_clauses(Stream, Rest)
    ).

span(Text, From, To, Part) :-
    Length is To - From,
    sub_string(Text, From, Length, _, Part).

bounds(From-To, From, To) :-
    !.
bounds(Position, From, To) :-
    arg(1, Position, From),
    arg(2, Position, To).

                /*******************************
                *           CHANGES            *
                *******************************/

change(Clauses, Text, clauses, [[F1, T1, Second], [F2, T2, First]]) :-
    append([_, [C1-P1, C2-P2], _], Clauses),
    predicate(C1, Predicate),
    predicate(C2, Predicate),
    body(C1, _),
    body(C2, _),
    bounds(P1, F1, T1),
    bounds(P2, F2, T2),
    span(Text, F1, T1, First),
    span(Text, F2, T2, Second).
change(Clauses, Text, Kind, Edits) :-
    member(Clause-Position, Clauses),
    (   goal_of_clause(Clause, Position, Goal, GoalPosition),
        change_in_body(Goal, GoalPosition, Text, Kind, Edits)
    ;   Clause = (_ --> Grammar),
        Position = term_position(_, _, _, _, [_, GrammarPosition]),
        change_in_grammar(Grammar, GrammarPosition, Text, Kind, Edits)
    ).

predicate((Head --> _), dcg(Name/Arity)) :- !, callable(Head), functor(Head, Name, Arity).
predicate((Head => _), Predicate) :- !, predicate(Head, Predicate).
predicate((Head :- _), Predicate) :- !, predicate(Head, Predicate).
predicate((Head, _), Predicate) :- !, predicate(Head, Predicate).
predicate((:- _), _) :- !, fail.
predicate(Head, Name/Arity) :- callable(Head), functor(Head, Name, Arity).

%   body(+Clause, -Body): facts have none; exchanging them is the matter of tables.
body((_ :- Body), Body).
body((_ => Body), Body).
body((_ --> Body), Body).

goal_of_clause((_ :- Body), term_position(_, _, _, _, [_, Position]), Body, Position).
goal_of_clause((_ => Body), term_position(_, _, _, _, [_, Position]), Body, Position).
goal_of_clause(((_, Guard) => _), term_position(_, _, _, _, [term_position(_, _, _, _, [_, Position]), _]), Guard,
               Position).

change_in_body(Goal, _, _, _, _) :-
    var(Goal),
    !,
    fail.
change_in_body(Goal, parentheses_term_position(_, _, Position), Text, Kind, Edits) :-
    !,
    change_in_body(Goal, Position, Text, Kind, Edits).
change_in_body((A, B), term_position(_, _, _, _, [PA, PB]), Text, Kind, Edits) :-
    !,
    (   change_in_body(A, PA, Text, Kind, Edits)
    ;   change_in_body(B, PB, Text, Kind, Edits)
    ;   Kind = order,
        swapped(A, PA, B, PB, Text, Edits)
    ).
change_in_body((If -> Then ; Else), term_position(_, _, _, _, [term_position(_, _, _, _, [PI, PT]), PE]), Text, Kind,
               Edits) :-
    !,
    (   change_of_condition(If, PI, Text, Kind, Edits)
    ;   change_in_body(Then, PT, Text, Kind, Edits)
    ;   change_in_body(Else, PE, Text, Kind, Edits)
    ).
change_in_body((A ; B), term_position(_, _, _, _, [PA, PB]), Text, Kind, Edits) :-
    !,
    (   change_in_body(A, PA, Text, Kind, Edits)
    ;   change_in_body(B, PB, Text, Kind, Edits)
    ).
change_in_body((If -> Then), term_position(_, _, _, _, [PI, PT]), Text, Kind, Edits) :-
    !,
    (   change_in_body(If, PI, Text, Kind, Edits)
    ;   change_in_body(Then, PT, Text, Kind, Edits)
    ).
change_in_body(\+ Goal, Position, Text, Kind, Edits) :-
    !,
    Position = term_position(From, To, _, _, [Inner]),
    (   Kind = negation,
        bounds(Inner, F, T),
        span(Text, F, T, Old),
        Edits = [[From, To, Old]]
    ;   change_in_body(Goal, Inner, Text, Kind, Edits)
    ;   dropped(Position, Text, Kind, Edits)
    ).
change_in_body(Goal, Position, Text, Kind, Edits) :-
    (   called(Goal, Position, Inner, InnerPosition),
        change_in_body(Inner, InnerPosition, Text, Kind, Edits)
    ;   Goal \== !, Goal \== true, Goal \== fail,
        dropped(Position, Text, Kind, Edits)
    ;   compared(Goal, Position, Kind, Edits)
    ;   computed(Goal, Position, Text, Kind, Edits)
    ).

%   change_in_grammar(+Body, +Position, +Text, -Kind, -Edits) is nondet: Body is that of a grammar rule.
change_in_grammar(Body, _, _, _, _) :-
    var(Body),
    !,
    fail.
change_in_grammar(Body, parentheses_term_position(_, _, Position), Text, Kind, Edits) :-
    !,
    change_in_grammar(Body, Position, Text, Kind, Edits).
change_in_grammar({Goal}, brace_term_position(_, _, Position), Text, Kind, Edits) :-
    !,
    change_in_body(Goal, Position, Text, Kind, Edits).
change_in_grammar((A, B), term_position(_, _, _, _, [PA, PB]), Text, Kind, Edits) :-
    !,
    (   change_in_grammar(A, PA, Text, Kind, Edits)
    ;   change_in_grammar(B, PB, Text, Kind, Edits)
    ;   Kind = order,
        swapped(A, PA, B, PB, Text, Edits)
    ).
change_in_grammar((If -> Then), term_position(_, _, _, _, [PI, PT]), Text, Kind, Edits) :-
    !,
    (   change_in_grammar(If, PI, Text, Kind0, Edits),
        Kind0 \== dropped,
        Kind = Kind0
    ;   Kind = condition,
        bounds(PI, From, To),
        span(Text, From, To, Old),
        member(Format, ["([] -> [] ; ~w)", "({ fail }, ~w)"]),
        format(string(New), Format, [Old]),
        Edits = [[From, To, New]]
    ;   change_in_grammar(Then, PT, Text, Kind, Edits)
    ).
change_in_grammar((A ; B), term_position(_, _, _, _, [PA, PB]), Text, Kind, Edits) :-
    !,
    (   change_in_grammar(A, PA, Text, Kind, Edits)
    ;   change_in_grammar(B, PB, Text, Kind, Edits)
    ).
change_in_grammar((A | B), term_position(_, _, _, _, [PA, PB]), Text, Kind, Edits) :-
    !,
    (   change_in_grammar(A, PA, Text, Kind, Edits)
    ;   change_in_grammar(B, PB, Text, Kind, Edits)
    ).
change_in_grammar(\+ Body, term_position(From, To, _, _, [Inner]), Text, Kind, Edits) :-
    !,
    (   Kind = negation,
        bounds(Inner, F, T),
        span(Text, F, T, Old),
        Edits = [[From, To, Old]]
    ;   change_in_grammar(Body, Inner, Text, Kind, Edits)
    ;   dropped_piece(From-To, Text, Kind, Edits)
    ).
change_in_grammar(Body, Position, Text, Kind, Edits) :-
    Body \== !,
    Body \== [],
    dropped_piece(Position, Text, Kind, Edits).

dropped_piece(Position, Text, dropped, [[From, To, New]]) :-
    bounds(Position, From, To),
    span(Text, From, To, Old),
    format(string(New), "([] -> [] ; ~w)", [Old]).

change_of_condition(If, Position, Text, Kind, Edits) :-
    change_in_body(If, Position, Text, Kind0, Edits),
    Kind0 \== dropped,
    Kind = Kind0.
change_of_condition(_, Position, Text, condition, [[From, To, New]]) :-
    bounds(Position, From, To),
    span(Text, From, To, Old),
    member(Format, ["(true -> true ; ~w)", "(fail, ~w)"]),
    format(string(New), Format, [Old]).

dropped(Position, Text, dropped, [[From, To, New]]) :-
    bounds(Position, From, To),
    span(Text, From, To, Old),
    format(string(New), "(true -> true ; ~w)", [Old]).

%   swapped(+A, +PA, +Rest, +PRest, +Text, -Edits): A and the first goal after it; a cut stays where it is.
swapped(A, PA, Rest, PRest, Text, [[F1, T1, Second], [F2, T2, First]]) :-
    (   Rest = (B, _), PRest = term_position(_, _, _, _, [PB, _])
    ->  true
    ;   B = Rest, PB = PRest
    ),
    A \== !,
    B \== !,
    bounds(PA, F1, T1),
    bounds(PB, F2, T2),
    span(Text, F1, T1, First),
    span(Text, F2, T2, Second).

called(findall(_, G, _), term_position(_, _, _, _, [_, P, _]), G, P).
called(findall(_, G, _, _), term_position(_, _, _, _, [_, P, _, _]), G, P).
called(forall(G, _), term_position(_, _, _, _, [P, _]), G, P).
called(forall(_, G), term_position(_, _, _, _, [_, P]), G, P).
called(aggregate_all(_, G, _), term_position(_, _, _, _, [_, P, _]), G, P).
called(once(G), term_position(_, _, _, _, [P]), G, P).
called(ignore(G), term_position(_, _, _, _, [P]), G, P).

compared(Goal, term_position(_, _, From, To, [_, _]), comparison, [[From, To, New]]) :-
    compound_name_arguments(Goal, Name, [_, _]),
    other(Name, New).

other(<, "=<").
other(=<, "<").
other(>, ">=").
other(>=, ">").
other(=:=, "=\\=").
other(=\=, "=:=").
other(==, "\\==").
other(\==, "==").
other(\=, "=").
other(@<, "@>").
other(@>, "@<").
other(@=<, "@<").
other(@>=, "@>").

computed(Goal, term_position(_, _, _, _, Positions), Text, Kind, Edits) :-
    compound_name_arguments(Goal, Name, Arguments),
    memberchk(Name, [is, <, >, =<, >=, =:=, =\=]),
    nth1(N, Arguments, Argument),
    \+ ( Name == is, N =:= 1 ),
    nth1(N, Positions, Position),
    part(Argument, Position, Part, PartPosition),
    changed_part(Part, PartPosition, Text, Kind, Edits).

part(Term, Position, Term, Position).
part(Term, parentheses_term_position(_, _, Position), Part, PartPosition) :-
    part(Term, Position, Part, PartPosition),
    PartPosition \== Position.
part(Term, term_position(_, _, _, _, Positions), Part, PartPosition) :-
    compound(Term),
    nth1(N, Positions, Position),
    arg(N, Term, Argument),
    part(Argument, Position, Part, PartPosition).

changed_part(Number, From-To, _, arithmetic, [[From, To, New]]) :-
    integer(Number),
    More is Number + 1,
    format(string(New), "~d", [More]).
changed_part(Term, term_position(_, _, From, To, [_, _]), _, arithmetic, [[From, To, New]]) :-
    compound_name_arguments(Term, Name, [_, _]),
    operator(Name, New).

operator(+, "-").
operator(-, "+").
operator(*, "+").
operator(//, "*").
operator(min, "max").
operator(max, "min").

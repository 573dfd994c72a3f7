:- encoding(utf8).
:- module(token_probe, []).
:- use_module(library(lists), [max_list/2, member/2, sum_list/2]).
:- use_module('../../prolog/rlm_tokens').

/** <module> The tokenizer beside SWI-Prolog's reader, on texts that come from a file

    swipl tests/prolog/token_probe.pl -- FILE

FILE has texts, each behind a line with its number of characters. A text that the tokenizer lets through is read in a
thread with the small C stack: where the reader goes deeper than the tokenizer said, that thread's stack is full.
Prints `unsound N Why` for such a text and for a number that is longer than its bound; `tight N Why` for a text that
was refused or measured otherwise although the reader reads it; at the end `done Texts Accepted Read Mixed`.
*/

:- initialization(main, main).

%   The bound on depth that is tried: 256 KB hold more levels than that, and fewer than the texts have in their bombs.
most(bounds(40, 100_000, 30, 100_000)).

main :-
    current_prolog_flag(argv, Argv),
    append([_, [File]], Argv),
    !,
    thread_create(catch(probe(File), Error, ( print_message(error, Error), halt(1) )), Id, [c_stack(262_144)]),
    thread_join(Id, Status),
    (   Status == true
    ->  halt(0)
    ;   writeln(user_error, Status),
        halt(1)
    ).

probe(File) :-
    Counts = counts(0, 0, 0, 0),
    setup_call_cleanup(
        open(File, read, In, [encoding(utf8), newline(posix)]),
        texts(In, 0, Counts),
        close(In)),
    Counts =.. [_|Numbers],
    atomic_list_concat([done|Numbers], ' ', Line),
    writeln(Line).

texts(In, N, Counts) :-
    read_string(In, "\n", "", End, Line),
    (   End =:= -1
    ->  true
    ;   number_string(Length, Line),
        read_string(In, Length, Text),
        read_string(In, "\n", "", _, _),
        count(1, Counts),
        \+ \+ text(N, Text, Counts),
        Next is N + 1,
        texts(In, Next, Counts)
    ).

count(Place, Counts) :-
    arg(Place, Counts, Count0),
    Count is Count0 + 1,
    nb_setarg(Place, Counts, Count).

text(N, Text, Counts) :-
    most(Bounds),
    (   text_trouble(Text, Bounds, _, Trouble)
    ->  ( Trouble == mixed -> count(4, Counts) ; true ),
        refused(N, Text, Trouble)
    ;   count(2, Counts),
        read_all(Text, Outcome, Positions),
        accepted(Outcome, Positions, N, Text, Counts)
    ).

accepted(overflow, _, N, _, _) =>
    format("unsound ~d the reader went deeper~n", [N]).
accepted(syntax, _, _, _, _) =>
    true.
accepted(read, Positions, N, Text, Counts) =>
    count(3, Counts),
    deepest(Positions, Text, Depth),
    most(bounds(_, Tokens, Number, Quoted)),
    (   Depth > 0,
        Less is Depth - 1,
        \+ text_trouble(Text, bounds(Less, Tokens, Number, Quoted), _, _)
    ->  format("unsound ~d of depth ~d, and that was not seen~n", [N, Depth])
    ;   text_trouble(Text, bounds(Depth, Tokens, Number, Quoted), _, _)
    ->  format("tight ~d of depth ~d, and more was seen~n", [N, Depth])
    ;   true
    ),
    (   long_number(Positions, Text, Number)
    ->  format("unsound ~d a long number~n", [N])
    ;   true
    ).

%   refused(+N, +Text, +Trouble): a small text that was refused for its quotes is read, to see whether that was needed.
refused(N, Text, Trouble) :-
    (   memberchk(Trouble, [depth(_), number(_)])
    ->  true
    ;   read_all(Text, read, _)
    ->  format("tight ~d ~w~n", [N, Trouble])
    ;   true
    ).

%   read_all(+Text, -Outcome, -Positions): as the rules of a host are read; Outcome is `read`, `syntax` or `overflow`.
read_all(Text, Outcome, Positions) :-
    setup_call_cleanup(
        open_string(Text, In),
        read_all(In, read, Outcome, [], Positions),
        close(In)).

read_all(In, Outcome0, Outcome, Positions0, Positions) :-
    Options = [subterm_positions(Position), double_quotes(string), back_quotes(codes), cycles(false), dotlists(false)],
    catch(( read_term(In, Term, Options), Read = term(Term) ), Error, Read = Error),
    (   Read == term(end_of_file)
    ->  Outcome = Outcome0,
        Positions = Positions0
    ;   Read = term(_)
    ->  read_all(In, Outcome0, Outcome, [Position|Positions0], Positions)
    ;   Read = error(syntax_error(_), _)
    ->  read_all(In, syntax, Outcome, Positions0, Positions)
    ;   Read = error(resource_error(_), _)
    ->  Outcome = overflow,
        Positions = []
    ;   print_message(error, Read),
        read_all(In, syntax, Outcome, Positions0, Positions)
    ).

deepest(Positions, Text, Depth) :-
    findall(D, ( member(P, Positions), depth(P, Text, D) ), Ds),
    max_list([0|Ds], Depth).

depth(Position, _, 0), var(Position) => true.
depth(From-_, Text, Depth) =>
    (   sub_string(Text, From, 1, _, Char),
        memberchk(Char, ["[", "{"])
    ->  Depth = 1
    ;   Depth = 0
    ).
depth(string_position(_, _), _, Depth) =>
    Depth = 0.
depth(parentheses_term_position(_, _, P), Text, Depth) =>
    depth(P, Text, Depth0),
    Depth is Depth0 + 1.
depth(brace_term_position(_, _, P), Text, Depth) =>
    depth(P, Text, Depth0),
    Depth is Depth0 + 1.
depth(list_position(_, _, Ps, Tail), Text, Depth) =>
    ( Tail == none -> All = Ps ; All = [Tail|Ps] ),
    deepest(All, Text, Depth0),
    Depth is Depth0 + 1.
depth(dict_position(_, _, _, _, Ps), Text, Depth) =>
    findall(P, member(key_value_position(_, _, _, _, _, _, P), Ps), Values),
    deepest(Values, Text, Depth0),
    Depth is Depth0 + 1.
depth(term_position(From, _, FFrom, FTo, Ps), Text, Depth) =>
    deepest(Ps, Text, Depth0),
    (   From =:= FFrom,
        sub_string(Text, FTo, 1, _, "(")
    ->  Depth is Depth0 + 1
    ;   sub_string(Text, FFrom, 1, _, Char),
        memberchk(Char, ["[", "{"])             % a block that is an operator
    ->  Depth is max(1, Depth0)
    ;   Depth = Depth0
    ).

%   long_number(+Positions, +Text, +Most): a number that was read from more characters than Most.
long_number(Positions, Text, Most) :-
    member(Position, Positions),
    inside(Position, From-To),
    To - From > Most + 1,                       % with a sign
    sub_string(Text, From, 2, _, Begin),
    sub_string(Text, From, 1, _, First),
    ( char_type(First, digit(_)) -> true ; First == "-", sub_string(Begin, 1, 1, _, Second), char_type(Second, digit(_)) ).

inside(Position, Position).
inside(Position, Inner) :-
    compound(Position),
    arg(_, Position, Argument),
    inside(Argument, Inner).

:- encoding(utf8).
:- module(rlm_repl,
          [ repl/1                % -Status
          ]).
:- use_module(library(aggregate), [aggregate_all/3]).
:- use_module(library(lists), [append/3, member/2]).
:- use_module(rlm_bridge, []).
:- use_module(rlm_open, [in/2, open_session/1, record/1, session/1]).
:- use_module(rlm_session, [active/1]).
:- use_module(rlm_tokens, [text_trouble/4, trouble_message/3]).
:- use_module(rlm_unit, [unit_name/2, unit_term/2]).
:- user:use_module(rlm).
:- public repl/1, session_open/2, interrupted/1.

/** <module> `rlm repl`: Prolog at the keyboard, Python behind it

Loaded by that command and by nothing else. A person gets the ordinary toplevel; queries that come from a
file or a pipe are answered one after the other, each with all its answers, and nobody is asked for a `;`.
In both `?- Goal.` may be written as the manuals write it, and `halt.` goes back to Python.
*/

:- multifile rlm_bridge:operation/2.

rlm_bridge:operation(session_open, rlm_repl:session_open).

%   session_open(+File, -Reply): open_session/1 as an operation, so that its errors arrive in Python.
session_open(File, @(true)) :-
    open_session(File).

%!  repl(-Status:integer) is det.
%
%   Answer queries until they end. Status is what a `halt(Status)` said, else 0.

repl(Status) :-
    rlm:calm,
    catch(answer_queries, End, ended(End, Said)),
    (   integer(Said)
    ->  Status = Said
    ;   Status = 0
    ).

%   ended(+End, -Status): a `halt`, or answers that nobody takes.
ended(unwind(halt(Said)), Status) =>
    Status = Said.
ended(unwritten, Status) =>
    Status = 1.
ended(Error, _) =>
    throw(Error).

answer_queries :-
    (   stream_property(user_input, tty(true))
    ->  toplevel
    ;   batch
    ).

		 /*******************************
		 *          A PERSON            *
		 *******************************/

toplevel :-
    setup_call_cleanup(
        on_signal(int, Old, rlm_repl:interrupted),
        greeted_toplevel,
        on_signal(int, _, Old)).

greeted_toplevel :-
    aggregate_all(count, active(_), Shown),
    ( Shown =:= 1 -> Units = 'unit is' ; Units = 'units are' ),
    format("~D ~w shown. Type help. to see what can be asked; Ctrl-D ends.~n~n", [Shown, Units]),
    '$toplevel':setup_interactive,
    prolog.

%   interrupted(+Signal): Ctrl-C ends the query, and nothing else.
interrupted(_) :-
    abort.

:- multifile user:expand_query/4.
:- dynamic user:expand_query/4.

user:expand_query(Query0, Query, Bindings, Bindings) :-
    rlm_repl:expanded(Query0, Query).

expanded(Query, _) :- var(Query), !, fail.
expanded(?-(Query), Query).
expanded(halt, end_of_file).

		 /*******************************
		 *          COMPLETION          *
		 *******************************/

:- multifile prolog:complete_input/4.

%   The tab key completes names and terms of units of the open sessions.
prolog:complete_input(Before, _, Delete, Completions) :-
    rlm_repl:begun(Before, Delete),
    Delete \== '',
    rlm_repl:completions(Delete, Completions),
    Completions \== [].

%   begun(+Before, -Begun): the characters of a name at the end of the input.
begun(Before, Begun) :-
    atom_codes(Before, Codes),
    append(_, End, Codes),
    ( append(_, [Code|_], End), \+ in_name(Code) -> fail ; true ),
    !,
    atom_codes(Begun, End).

in_name(Code) :- code_type(Code, csym).
in_name(0'-).

completions(Begun, Completions) :-
    findall(Name,
            ( session(S),
              in(S, record(unit(Id, _))),
              unit_name(Id, Name0),
              sub_atom(Name0, 0, _, _, Begun),
              format(atom(Name), "~q", [Name0]) ),
            Names),
    sort(Names, Completions).

		 /*******************************
		 *        A FILE OR PIPE        *
		 *******************************/

batch :-
    repeat,
    catch(next_query(Query0, Names), Error, true),
    (   nonvar(Error)
    ->  print_message(error, Error),
        hint(Error),
        \+ readable_on(Error)
    ;   ( expanded(Query0, Query) -> true ; Query = Query0 ),
        (   memberchk(Query, [end_of_file, halt])
        ->  true
        ;   answer(Query, Names),
            fail
        )
    ),
    !.

%   next_query(-Query, -Names): from the input; bounded as rules are, because it may come from anywhere.
%
%   @error syntax_error(Message)
next_query(Query, Names) :-
    '$raw_read'(user_input, Text),
    (   text_trouble(Text, bounds(100, 1_000_000, 4096, 1_000_000), _, Trouble)
    ->  trouble_message(Trouble, Message, _),
        throw(error(syntax_error(Message), _))
    ;   term_string(Query, Text, [module(user), variable_names(Names)])
    ).

%   hint(+Error): what is most often forgotten where the input ends too early.
hint(error(syntax_error(end_of_file), _)) =>
    format(user_error, "a query ends with a full stop, as in: active(U).~n", []).
hint(_) =>
    true.

%   readable_on(+Error): the reader stands behind the query that it could not read.
readable_on(error(syntax_error(_), _)).

answer(Query, Names) :-
    Found = found(false),
    catch(( ( forall(user:Query, ( nb_setarg(1, Found, true), tell(Names) )),
              Found == found(false)
            ->  format("false.~n")
            ;   true
            ),
            flush_output
          ),
          Error,
          told(Error)).

%   told(+Error): of the query; answers that cannot be written end them all. Where the reader has gone, nobody is
%   there to be told.
told(error(io_error(write, Stream), Context)), stream_property(Stream, alias(user_output)) =>
    (   Context = context(_, 'Broken pipe')
    ->  true
    ;   print_message(error, error(io_error(write, Stream), Context))
    ),
    throw(unwritten).
told(Error) =>
    print_message(error, Error).

tell(Names) :-
    findall(Name-Value,
            ( member(Name=Value, Names), \+ sub_atom(Name, 0, _, _, '_') ),
            Pairs),
    (   Pairs == []
    ->  format("true.~n")
    ;   findall(Text, ( member(Pair, Pairs), binding(Pair, Text) ), Texts),
        atomic_list_concat(Texts, ', ', Line),
        format("~w.~n", [Line])
    ).

binding(Name-Value, Text) :-
    format(atom(Text), "~w = ~W",
           [Name, Value, [quoted(true), portray(true), numbervars(true), max_depth(20), spacing(next_argument)]]).

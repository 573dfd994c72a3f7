:- encoding(utf8).
:- module(rlm_test_run, []).
:- use_module(library(plunit), [current_test/5, run_tests/2, set_test_options/1]).
:- use_module(library(http/json), [json_write_dict/3]).
:- use_module(library(lists), [append/2, append/3, member/2]).
:- use_module(library(ordsets), [ord_subtract/3]).
:- use_module(library(unix), [fork/1, wait/2]).

/** <module> plunit as lines of JSON

    swipl tests/prolog/run.pl -- list FILE.plt      one line per test: unit, name, line
    swipl tests/prolog/run.pl -- run  FILE.plt      the same, with result and message
    swipl tests/prolog/run.pl -- serve FILE.plt ... load all, and then answer lines of standard input (serve/0)

A result is `passed`, `failed`, `choicepoint` (passed, but left one that was not declared), `blocked` or
`vanished` (a condition or a generator that was not true, so that nothing was tested). A warning or an
error while FILE loads is a line with `trouble`; there are no tests then.
*/

:- initialization(main, main).

:- dynamic
    units_of/2,                         % File, Units
    trouble/1,                          % while the tests load
    said/2.                             % UnitAndName, Text: while they run

main :-
    current_prolog_flag(argv, Argv),
    append(_, [serve|Files], Argv),
    !,
    set_prolog_flag(gc_thread, false),
    set_prolog_flag(stack_limit, 500_000_000),
    forall(member(File, Files), load_with_units(File)),
    (   trouble(Text)
    ->  line(_{trouble:Text})
    ;   line(_{}),
        flush_output,
        serve
    ),
    halt(0).
main :-
    current_prolog_flag(argv, Argv),
    append([_, [Command,File]], Argv),
    !,
    load(File),
    (   trouble(_)
    ->  forall(trouble(Text), line(_{trouble:Text}))
    ;   do(Command)
    ),
    halt(0).

load(File) :-
    setup_call_cleanup(
        asserta((user:message_hook(Term, Kind, Lines) :- rlm_test_run:note_trouble(Term, Kind, Lines)), Hook),
        load_files(user:File, []),
        erase(Hook)).

note_trouble(Term, Kind, Lines) :-
    ( Kind == error ; Kind == warning ),
    Term \= ignored_weak_import(_, _), % rules that are loaded again meet the tests of others in `user`
    !,
    text(Lines, Text),
    assertz(trouble(Text)).

do(list) :-
    forall(declared(Unit, Name, Line, _), line(_{unit:Unit, name:Name, line:Line})).
do(run) :-
    set_test_options([cleanup(false), format(log), output(on_failure)]),
    setup_call_cleanup(
        asserta((user:message_hook(Term, Kind, Lines) :- rlm_test_run:note_said(Term, Kind, Lines)), Hook),
        run_tests(all, [summary(_)]),
        erase(Hook)),
    forall(declared(Unit, Name, Line, Options),
           ( outcome(Unit, Name, Line, Options, Result),
             findall(Text, said(Unit:Name, Text), Texts),
             atomic_list_concat(Texts, '\n', Message),
             line(_{unit:Unit, name:Name, line:Line, result:Result, message:Message})
           )).

%!  serve is det.
%
%   The first line of output, `{}`, tells that all is loaded. Each line of standard input is a Prolog term
%   `judge(Rules, Files)`. In a fork, Rules (a file that is loaded already) is loaded again, and the tests of Files run,
%   file after file. The answer is a line of JSON: `trouble`, what loading warned of; or the first test that does not
%   pass; or nothing, `{}`. For bench/mutation.py.

serve :-
    read_term(user_input, Term, []),
    (   Term = judge(Rules, Files)
    ->  flush_output,
        fork(Pid),
        (   Pid == child
        ->  judge(Rules, Files, Row),
            line(Row),
            flush_output,
            halt(0)
        ;   wait(Pid, Status),
            ( Status == exited(0) -> true ; term_to_atom(Status, Text), line(_{died:Text}) ),
            flush_output,
            serve
        )
    ;   true
    ).

judge(Rules, Files, Row) :-
    load(Rules),
    (   trouble(Text)
    ->  Row = _{trouble:Text}
    ;   member(File, Files),
        units_of(File, Units),
        first_trouble(Units, Row0)
    ->  Row = Row0.put(file, File)
    ;   Row = _{}
    ).

load_with_units(File) :-
    units(Old),
    load(File),
    units(All),
    ord_subtract(All, Old, New),
    assertz(units_of(File, New)).

units(Units) :-
    findall(Unit, current_test(Unit, _, _, _, _), Units0),
    sort(Units0, Units).

%   first_trouble(+Units, -Row) is semidet: the tests run one by one, as a change that breaks one often makes a later one
%   hang.
first_trouble(Units, _{unit:Unit, name:Name, line:Line, result:Result}) :-
    set_test_options([cleanup(false), format(log), output(on_failure), timeout(10)]),
    member(Unit, Units),
    findall(Line-Name, ( declared(Unit, Name, Line, _), \+ left_out(Name) ), Tests),
    member(Line-Name, Tests),
    once(( current_test(Unit, Name0, Line, _, Options), term_to_atom(Name0, Name) )),
    ignore(run_tests(Unit:Name0, [summary(_)])),
    outcome(Unit, Name, Line, Options, Result),
    Result \== passed.

%   left_out(?Name): takes seconds, as it is about time; or looks at what the process has loaded, which is more where
%   rules are loaded again.
left_out(Name) :-
    memberchk(Name,
              [ loads_no_solver_before_the_first_problem,
                long_chain, long_phrase, long_list, open_quotes, no_crash_on_any_code,
                many_conjuncts_are_no_nesting, says_to_the_end_of_a_long_text, infinite_between, not_plain ]).

declared(Unit, Name, Line, Options) :-
    current_test(Unit, Name0, Line, _, Options),
    term_to_atom(Name0, Name).

outcome(Unit, Name, Line, _, Result) :-
    bad(Unit, Name, Line),
    !,
    Result = failed.
outcome(Unit, Name, Line, Options, Result) :-
    is_recorded(plunit:passed(Unit, Name0, Line, _, _), Name0, Name),
    !,
    (   \+ member(nondet, Options),
        is_recorded(plunit:passed(Unit, Name1, Line, false, _), Name1, Name)
    ->  Result = choicepoint
    ;   Result = passed
    ).
outcome(Unit, Name, Line, _, blocked) :-
    is_recorded(plunit:blocked(Unit, Name0, Line, _), Name0, Name),
    !.
outcome(_, _, _, _, vanished).

bad(Unit, Name, Line) :- is_recorded(plunit:failed(Unit, Name0, Line, _, _), Name0, Name).
bad(Unit, Name, Line) :- is_recorded(plunit:timeout(Unit, Name0, Line, _, _), Name0, Name).
bad(Unit, Name, Line) :- is_recorded(plunit:fixme(Unit, Name0, Line, _, _), Name0, Name).

is_recorded(Goal, Name0, Name) :-
    call(Goal),
    term_to_atom(Name0, Name),
    !.

note_said(plunit(Term), Kind, Lines) :-
    ( Kind == error ; Kind == warning ),
    compound(Term),
    arg(_, Term, Unit:Name0),
    !,
    term_to_atom(Name0, Name),
    text(Lines, Text),
    assertz(said(Unit:Name, Text)).

text(Lines, Text) :-
    with_output_to(string(Said), print_message_lines(current_output, '', Lines)),
    split_string(Said, "", " \n", [Text]).

line(Dict) :-
    json_write_dict(current_output, Dict, [width(0)]),
    nl.

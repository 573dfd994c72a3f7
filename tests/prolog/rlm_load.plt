:- encoding(utf8).
:- use_module(library(plunit)).
:- use_module('../../prolog/rlm_load').

:- begin_tests(rlm_load).

%   loading(+Lines, -Findings): what is found in a file of these lines.
loading(Lines, Findings) :-
    tmp_file_stream(File, Out, [extension(pl), encoding(utf8)]),
    forall(member(Line, Lines), ( write(Out, Line), nl(Out) )),
    close(Out),
    load_strictly(File, Findings),
    nb_setval(loaded, File).

unload :-
    nb_getval(loaded, File),
    unload_file(File),
    delete_file(File).

found([Line, Severity], Findings) :-
    member(Finding, Findings),
    get_dict(line, Finding, Line),
    get_dict(severity, Finding, Severity),
    get_dict(file, Finding, File),
    nb_getval(loaded, File).

test(good, [true(Findings == []), cleanup(unload)]) :-
    loading([':- module(load_good, []).', 'p(é).'], Findings).

test(good_is_there, [nondet, true(X == 1), cleanup(unload)]) :-
    loading([':- module(load_there, []).', 'p(1).'], _),
    load_there:p(X).

test(warning, [all(F == [[2, warning]]), cleanup(unload)]) :-
    loading([':- module(load_warning, []).', 'p(X) :- q.'], Findings),
    found(F, Findings).

test(syntax, [all(F == [[3, error]]), cleanup(unload)]) :-
    loading([':- module(load_syntax, []).', 'p(1).', 'p(2 x).'], Findings),
    found(F, Findings).

test(bad_is_not_there, [fail, cleanup(unload)]) :-
    loading([':- module(load_bad, []).', 'p(1).', 'p(2 x).'], _),
    catch(load_bad:p(_), error(existence_error(_, _), _), fail).

test(every_fault, [all(F == [[2, warning], [3, error], [4, warning]]), cleanup(unload)]) :-
    loading([':- module(load_all, []).', ':- fail.', 'p(2 x).', 'q(X) :- true.'], Findings0),
    Findings0 = [_|_],
    found(F, Findings0).

test(place_is_said_once, [true(Message == 'Syntax error: Operator expected'), cleanup(unload)]) :-
    loading([':- module(load_once, []).', 'p(2 x).'], [Finding]),
    get_dict(message, Finding, Message).

test(nothing_is_printed_elsewhere, [true(Hooks == []), cleanup(unload)]) :-
    loading([':- module(load_hook, []).'], _),
    findall(B, ( clause(user:message_hook(_, _, _), B), B = rlm_load:_ ), Hooks).

test(no_file, File == '/no/such/file.pl') :-
    load_strictly('/no/such/file.pl', [Finding]),
    get_dict(file, Finding, File).

place_row(error(syntax_error(x), file(f, 3, 0, 0)), f-3).
place_row(error(x, file(f, 3)), f-3).
place_row(error(x, file(_, 3)), here-0).
place_row(error(x, context(a/1, _)), here-0).
place_row(error(x, _), here-0).
place_row(initialization_error(x, goal, f:4), f-4).
place_row(initialization_failure(goal, f:5), f-5).
place_row(anything, here-0).

test(rule_a_finding_has_its_place, [forall(place_row(Term, Expected)), Place == Expected]) :-
    rlm_load:place(Term, here, File, Line),
    Place = File-Line.
test(rule_a_failed_initialization_has_its_line, [all(F == [[2, warning]]), cleanup(unload)]) :-
    loading([':- module(load_init, []).', ':- initialization(fail).', 'p.', 'q.'], Findings),
    found(F, Findings).
test(rule_a_cancelled_load_is_not_the_fault_of_the_file, throws(rlm_error(cancelled, 7))) :-
    rlm_load:load_error(rlm_error(cancelled, 7)).
test(rule_flags_are_as_before_when_the_rest_is_loaded, After == Before) :-
    flags(Before),
    load_the_rest(Done),
    memberchk(Done, [0, 1]),
    flags(After).

flags([autoload=Autoload, verbose=Verbose]) :-
    current_prolog_flag(autoload, Autoload),
    current_prolog_flag(verbose, Verbose).

message_row(['a.pl:3:4: Syntax error: x'-[]], 'Syntax error: x').
message_row(['b.pl:3: no'-[]], 'b.pl:3: no').
message_row(['a.pl says x'-[]], 'a.pl says x').
message_row(['two'-[], nl, 'lines'-[]], 'two lines').

test(rule_the_place_is_no_part_of_the_message, [forall(message_row(Lines, Expected)), Message == Expected]) :-
    rlm_load:message_text(Lines, 'a.pl', Message).

:- end_tests(rlm_load).

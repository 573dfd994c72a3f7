:- encoding(utf8).
:- use_module(library(plunit)).
:- use_module('../../prolog/rlm').
:- use_module('../../prolog/rlm_bridge').
:- use_module(engine_probe, []).

:- begin_tests(table).

test(names_are_distinct, true(Sorted == Names)) :-
    findall(Name, rlm_bridge:operation(Name, _), Names0),
    msort(Names0, Names),
    sort(Names, Sorted).

test(every_operation_exists, all(Name == [nowhere])) :-
    rlm_bridge:operation(Name, Module:Predicate),
    \+ current_predicate(Module:Predicate/2).

:- end_tests(table).

:- begin_tests(rlm_call).

kind_row(rlm_error(mine, x), mine).
kind_row(rlm_error(f(x), x), uncaught).
kind_row(error(resource_error(stack), _), stack_limit).
kind_row(error(resource_error(stack_overflow), _), stack_limit).
kind_row(error(resource_error(program_space), _), resource_error).
kind_row(error(type_error(integer, a), _), type_error).
kind_row(error(_, _), uncaught).
kind_row('$aborted', aborted).
kind_row(unwind(abort), aborted).
kind_row(ball, uncaught).

test(rule_kind_of_each_error, [forall(kind_row(Error, Expected)), Kind == Expected]) :-
    rlm_bridge:kind(Error, Kind).
test(rule_no_integer_beyond_a_megabyte, Bytes == 1_048_576) :-
    current_prolog_flag(stack_limit, Stack),
    rlm_start(Stack, _),
    current_prolog_flag(max_integer_size, Bytes).
test(rule_the_end_of_the_process_is_guarded_once, Count == 1) :-
    current_prolog_flag(stack_limit, Stack),
    rlm_start(Stack, _),
    rlm_start(Stack, _),
    aggregate_all(count, rlm_bridge:guarded, Count).
test(rule_the_stack_has_the_size_that_was_asked_for, Bytes == 600_000_000) :-
    current_prolog_flag(stack_limit, Stack),
    setup_call_cleanup(
        rlm_start(600_000_000, _),
        current_prolog_flag(stack_limit, Bytes),
        set_prolog_flag(stack_limit, Stack)).
test(rule_the_version_is_that_of_prolog, Version == Expected) :-
    current_prolog_flag(stack_limit, Stack),
    current_prolog_flag(version, Expected),
    rlm_start(Stack, Version).

outcome(Operation, Args, Outcome) :-
    outcome(Operation, Args, 1_000_000, Outcome).

outcome(Operation, Args, Inferences, Outcome) :-
    rlm_call(1, Inferences, Operation, Args, Reply),
    (   get_dict(ok, Reply, Result)
    ->  Outcome = ok(Result)
    ;   get_dict(kind, Reply, Outcome),
        get_dict(message, Reply, Message),
        get_dict(term, Reply, Term),
        string(Message),
        string(Term)
    ).

test(ok, Outcome =@= ok([a, 1, 2.5, "s", _{k:[]}, []])) :-
    outcome(ping, [a, 1, 2.5, "s", _{k:[]}, []], Outcome).
test(constants, Outcome == ok([@(true), @(false), @(none)])) :-
    outcome(ping, [@(true), @(false), @(none)], Outcome).
test(first_answer, Outcome == ok(1)) :-
    outcome(choices, x, Outcome).
test(unknown, Outcome == unknown_operation) :-
    outcome(no_such_operation, x, Outcome).
test(failed, Outcome == failed) :-
    outcome(fails, x, Outcome).
test(type_error, Outcome == type_error) :-
    outcome(wrong, type, Outcome).
test(cyclic_error, Outcome == type_error) :-
    outcome(wrong, cyclic, Outcome).
test(ball, Outcome == uncaught) :-
    outcome(thrown, ball, Outcome).
test(undefined, Outcome == undefined) :-
    outcome(undefined, x, Outcome).
test(inferences, Outcome == inference_limit) :-
    outcome(spin, 1_000_000, 1_000, Outcome).
test(within_the_limit, Outcome == ok(done)) :-
    outcome(spin, 100, 1_000, Outcome).
test(no_call_afterwards, Call == 0) :-
    outcome(ping, x, _),
    nb_getval(rlm_call, Call).
test(no_call_after_an_error, [nondet, true(Outcome-Calls == type_error-[])]) :-
    outcome(wrong, type, Outcome),
    findall(Call, ( nb_current(rlm_call, Call), Call \== 0 ), Calls).

test(not_plain, [forall(member(What, [pair, nested_pair, compound, curly, variable, variable_inside, constraint,
                                      partial, cyclic_list, cyclic_item, cyclic_dict, deep, too_deep, stream,
                                      rational, infinite, nan, constant, set, hash, accent_key, far_key,
                                      number_key, zero_key, shared, many])),
                 true(Outcome == invalid_reply)]) :-
    outcome(odd, What, 100_000_000, Outcome).

test(plain, [forall(member(What, [none, true, false, deepest, big, text, empty])), true(Outcome = ok(_))]) :-
    outcome(odd, What, Outcome).

test(message, Message == "atom_length/2: Arguments are not sufficiently instantiated") :-
    rlm_call(1, 1_000_000, wrong, unbound, Reply),
    get_dict(message, Reply, Message).
test(nameless_term, Term == "error(instantiation_error,context(system:atom_length/2,_))") :-
    rlm_call(1, 1_000_000, wrong, unbound, Reply),
    get_dict(term, Reply, Term).
test(huge_error_is_short, true) :-
    rlm_call(1, 1_000_000, wrong, huge, Reply),
    get_dict(message, Reply, Message),
    string_length(Message, Length),
    Length < 2100.

:- end_tests(rlm_call).

:- begin_tests(rlm_cancel).

%   running(+Operation, +Manner, -Outcome): call it in a thread as call 7 and cancel that.
running(Operation, Manner, Outcome) :-
    thread_self(Me),
    thread_create(( rlm_call(7, 1_000_000_000_000, Operation, x, Reply),
                    thread_send_message(Me, replied(Reply)) ),
                  Thread),
    repeat,
    rlm_cancel(Thread, 7, Manner, _),
    thread_property(Thread, status(Status)),
    (   Status == running
    ->  thread_get_message(Me, replied(Reply), [timeout(0.01)])
    ;   true
    ),
    !,
    thread_join(Thread, Ended),
    (   Ended == true
    ->  ( nonvar(Reply) -> true ; thread_get_message(replied(Reply)) ),
        get_dict(kind, Reply, Outcome)
    ;   Outcome = Ended
    ).

test(throw, Outcome == cancelled) :-
    running(loop, throw, Outcome).
test(abort, Outcome == exception('$aborted')) :-
    running(stubborn, abort, Outcome).
test(no_thread, Sent == 0) :-
    rlm_cancel(no_such_thread, 7, throw, Sent).
test(another_call_goes_on, Reply =@= _{ok:done}) :-
    thread_self(Me),
    rlm_cancel(Me, 8, throw, 1),
    rlm_call(7, 1_000_000, spin, 1000, Reply).

:- end_tests(rlm_cancel).

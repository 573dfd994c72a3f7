:- encoding(utf8).
:- module(rlm_bridge,
          [ rlm_start/2,                % +StackBytes, -Version
            rlm_call/5,                 % +CallId, +Inferences, +Operation, +Args, -Reply
            rlm_cancel/4                % +Thread, +CallId, +Manner, -Sent
          ]).
:- use_module(library(terms), [term_size/2]).
:- use_module(library(wfs), [call_delays/2]).
:- use_module(rlm_load, []).
:- use_module(rlm_plain, [plain/1]).
:- public rlm_start/2, rlm_call/5, rlm_cancel/4.    % called from Python

/** <module> The one door between Python and the rules

Python calls rlm_call/5 and nothing else. An operation is a name, a row in the table operation/2, and an
ordinary predicate with two arguments: what came in, what goes out.

What a predicate receives:

  | Python          | here                                                            |
  |-----------------|-----------------------------------------------------------------|
  | `str`           | atom (always; use atom_string/2 where a string is wanted)       |
  | `int`, `float`  | integer, float (64 bits, finite)                                |
  | `True`, `False` | the atoms `true`, `false`                                       |
  | `None`          | the atom `null`; leave an absent text out, 'null' may be a name |
  | `list`, `tuple` | list                                                            |
  | `dict`          | dict with atom keys; the tag is `py`                            |

What it may answer: lists and dicts with ASCII keys of atoms, strings, integers, finite floats, and
`@(true)`, `@(false)`, `@(none)`. Anything else (a pair, a compound, a variable, a cycle, more than 32
levels) is answered as the error `invalid_reply`: a rule's mistake is an error, never a crash of Python.
*/

		 /*******************************
		 *          THE TABLE           *
		 *******************************/

%!  operation(?Name, ?Predicate) is nondet.
%
%   Predicate is `Module:Name` and is called with (Args, Reply). It may fail (error `failed`) or raise;
%   choice points that it leaves are cut.

:- multifile operation/2.

operation(ping, rlm_bridge:ping).
operation(load, rlm_load:load_strictly).
operation(identity, rlm_bridge:engine_identity).
operation(catalog_create, rlm_catalog:catalog_create).
operation(catalog_change, rlm_catalog:catalog_change).
operation(catalog_destroy, rlm_catalog:catalog_destroy).
operation(catalog_count, rlm_catalog:catalog_count).
operation(catalog_vectors, rlm_catalog:catalog_vectors).
operation(catalog_freeze, rlm_frozen:catalog_freeze).
operation(catalog_thaw, rlm_frozen:catalog_thaw).
operation(catalog_fill, rlm_frozen:catalog_fill).
operation(analyse, rlm_select:analyse).
operation(select, rlm_select:select).
operation(seal, rlm_seal:seal).
operation(matching, rlm_eligible:matching).
operation(explanations, rlm_explain:explanations).
operation(what_if, rlm_changes:what_if).
operation(say, rlm_explain:say).
operation(rules_load, rlm_host:rules_load).
operation(rules_forget, rlm_host:rules_forget).
operation(solve, rlm_solve:solve).

ping(Args, Args).

%   engine_identity(+Args, -Reply): the Prolog, so far as binary files depend on it.
engine_identity(_, _{identity: Text}) :-
    rlm_load:identity(Text).

		 /*******************************
		 *           CALLING            *
		 *******************************/

%   most_integer_bytes(?N): a thread that Python started has a limit of 0, which refuses what is longer than 1,000
%   bytes. rlm_hidden keeps a bit for each unit in one integer.
most_integer_bytes(1_048_576).

%!  rlm_start(+StackBytes:integer, -Version:integer) is det.
%
%   Prepare the calling thread to own Prolog: its stack limit, and no halt/0 while a call runs. Version
%   is 10000*Major + 100*Minor + Patch.

rlm_start(StackBytes, Version) :-
    set_prolog_flag(stack_limit, StackBytes),
    most_integer_bytes(Most),
    set_prolog_flag(max_integer_size, Most),
    (   guarded
    ->  true
    ;   assertz(guarded),
        at_halt(rlm_bridge:refuse_halt)
    ),
    current_prolog_flag(version, Version).

:- dynamic guarded/0.

refuse_halt :-
    (   nb_current(rlm_call, CallId),
        CallId > 0
    ->  cancel_halt(rlm_call(CallId))
    ;   true
    ).

%!  rlm_call(+CallId:integer, +Inferences:integer, +Operation:atom, +Args, -Reply:dict) is det.
%
%   Reply is `_{ok: Result}` or `_{kind: Kind, message: Message, term: Term}`. Never fails and raises
%   nothing but abort. CallId is positive and used once.

rlm_call(CallId, Inferences, Operation, Args, Reply) :-
    catch(bounded(CallId, Inferences, Operation, Args, Outcome), Error, Outcome = raised(Error)),
    reply(Outcome, Operation, Reply).

bounded(CallId, Inferences, Operation, Args, Outcome) :-
    b_setval(rlm_call, CallId),
    call_with_inference_limit(outcome(Operation, Args, Outcome0), Inferences, Limit),
    b_setval(rlm_call, 0),
    (   Limit == inference_limit_exceeded
    ->  Outcome = exceeded(Inferences)
    ;   Outcome = Outcome0
    ).

outcome(Operation, Args, Outcome) :-
    operation(Operation, Module:Predicate),
    !,
    (   call_delays(call(Module:Predicate, Args, Result), Condition)
    ->  defined(Condition, Operation),
        plain(Result),
        Outcome = ok(Result)
    ;   Outcome = failed
    ).
outcome(Operation, _, _) :-
    throw(rlm_error(unknown_operation, Operation)).

%   An answer that is neither true nor false (well-founded semantics) is no answer.

defined(Condition, Operation) :-
    (   Condition == true
    ->  true
    ;   throw(rlm_error(undefined, Operation))
    ).

reply(ok(Result), _, Reply) =>
    Reply = _{ok:Result}.
reply(failed, Operation, Reply) =>
    error_reply(rlm_error(failed, Operation), Reply).
reply(exceeded(Inferences), Operation, Reply) =>
    error_reply(rlm_error(inference_limit, Operation-Inferences), Reply).
reply(raised(Error), _, Reply) =>
    error_reply(Error, Reply).

%!  rlm_cancel(+Thread, +CallId, +Manner, -Sent) is det.
%
%   Stop call CallId if Thread is running it now; otherwise nothing happens to Thread. Manner is `throw`,
%   or `abort` for a rule that catches whatever is thrown. Sent is 1, or 0 when there is no such thread.

rlm_cancel(Thread, CallId, Manner, Sent) :-
    (   catch(thread_signal(Thread, rlm_bridge:stop(CallId, Manner)), error(existence_error(_, _), _), fail)
    ->  Sent = 1
    ;   Sent = 0
    ).

stop(CallId, Manner) :-
    (   nb_current(rlm_call, Running),
        Running == CallId
    ->  (   Manner == abort
        ->  abort
        ;   throw(rlm_error(cancelled, CallId))
        )
    ;   true
    ).

		 /*******************************
		 *        ERRORS AS DATA        *
		 *******************************/

most_characters(2000).

%!  error_reply(+Error, -Reply:dict) is det.
%
%   Any term that was thrown, as plain data of bounded size.

error_reply(Error, _{kind:Kind, message:Message, term:Term}) :-
    kind(Error, Kind),
    catch(call_with_inference_limit(described(Error, Message, Term), 1_000_000, Done), _, Done = raised),
    (   nonvar(Message), nonvar(Term), Done \== inference_limit_exceeded
    ->  true
    ;   Message = "an error that cannot be printed",
        Term = ""
    ).

kind(rlm_error(Kind0, _), Kind), atom(Kind0) => Kind = Kind0.
kind(error(resource_error(What), _), Kind), stack(What) => Kind = stack_limit.
kind(error(Formal, _), Kind), callable(Formal) => functor(Formal, Kind, _).
kind('$aborted', Kind) => Kind = aborted.
kind(unwind(_), Kind) => Kind = aborted.
kind(_, Kind) => Kind = uncaught.

stack(What) :- What == stack.
stack(What) :- What == stack_overflow.

described(Error, Message, Term) :-
    copy_term(Error, Named, _),
    (   acyclic_term(Named)             % nameless: _123 differs from call to call
    ->  numbervars(Named, 0, _, [singletons(true)])
    ;   true
    ),
    format(string(Term0), '~W', [Named, [quoted(true), max_depth(10), numbervars(true)]]),
    shortened(Term0, Term),
    (   acyclic_term(Error),
        term_size(Error, Cells),
        Cells < 5000
    ->  '$messages':translate_message(Error, Lines, []),
        with_output_to(string(Message0), print_message_lines(current_output, '', Lines)),
        split_string(Message0, "", " \n", [Message1]),
        shortened(Message1, Message)
    ;   Message = Term
    ).

shortened(Text, Short) :-
    most_characters(Most),
    (   string_length(Text, Length),
        Length > Most
    ->  sub_string(Text, 0, Most, _, Head),
        string_concat(Head, "...", Short)
    ;   Short = Text
    ).

:- multifile prolog:message//1.

prolog:message(rlm_error(Kind, What)) -->
    explanation(Kind, What).

explanation(unknown_operation, Operation) -->
    [ 'there is no operation ~q'-[Operation] ].
explanation(failed, Operation) -->
    [ 'operation ~q has no answer for these arguments'-[Operation] ].
explanation(undefined, Operation) -->
    [ 'operation ~q is neither true nor false: its rules contradict themselves'-[Operation] ].
explanation(inference_limit, Operation-Inferences) -->
    [ 'operation ~q needed more than ~D inferences'-[Operation, Inferences] ].
explanation(cancelled, CallId) -->
    [ 'call ~d was cancelled'-[CallId] ].
explanation(invalid_reply, Why-Culprit) -->
    why(Why),
    [ ': ~W'-[Culprit, [quoted(true), max_depth(6)]] ].

why(value) --> [ 'a rule answered with something that is no plain value' ].
why(key)   --> [ 'a rule answered with a dict key that is no ASCII atom' ].
why(depth) --> [ 'a rule answered with a value of more than 32 levels' ].
why(size)  --> [ 'a rule answered with more than two million values' ].

:- encoding(utf8).
:- use_module(library(plunit)).
:- use_module('../../prolog/rlm', []).

:- begin_tests(rlm).

%   flags_after_calm(-Flags): what the flags of mistakes are after calm/0, where they were true.
flags_after_calm(Flags) :-
    Names = [debug_on_error, backtrace],
    findall(Name=Old, ( member(Name, Names), current_prolog_flag(Name, Old) ), Olds),
    setup_call_cleanup(
        forall(member(Name, Names), set_prolog_flag(Name, true)),
        ( rlm:calm,
          findall(Name=Value, ( member(Name, Names), current_prolog_flag(Name, Value) ), Flags) ),
        forall(member(Name=Old, Olds), set_prolog_flag(Name, Old))).

test(rule_a_mistake_at_the_prompt_is_one_line, Flags == [debug_on_error=false, backtrace=false]) :-
    flags_after_calm(Flags).
:- end_tests(rlm).

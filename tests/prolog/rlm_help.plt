:- encoding(utf8).
:- use_module(library(plunit)).
:- use_module('../../prolog/rlm', []).
:- use_module('../../prolog/rlm_help', [asked_with/4, help/0, help/1, topic/1]).

:- begin_tests(rlm_help).

test(rule_help_names_each_question, Missing == []) :-
    with_output_to(string(Text), help),
    findall(Head,
            ( asked_with(Head, _, _, _),
              format(string(Written), "?- ~w.", [Head]),
              \+ sub_string(Text, _, _, _, Written) ),
            Missing).
test(rule_each_question_is_a_predicate_of_the_face, Missing == []) :-
    findall(Name/Arity,
            ( asked_with(Head, _, _, _),
              functor(Head, Name, Arity),
              \+ ( module_property(rlm, exports(Exports)), memberchk(Name/Arity, Exports) ) ),
            Missing).
test(rule_each_predicate_of_the_face_is_told, Missing == []) :-
    module_property(rlm, exports(Exports)),
    findall(Name/Arity,
            ( member(Name/Arity, Exports),
              Name/Arity \== help/0,
              \+ sub_atom(Name, 0, _, _, prompt_),
              \+ ( asked_with(Head, _, _, _), functor(Head, Name, Arity) ) ),
            Missing).
test(rule_each_mode_has_a_place_for_each_argument, Wrong == []) :-
    findall(Head,
            ( asked_with(Head, Modes, _, _),
              functor(Head, _, Arity),
              atomic_list_concat(Parts, ', ', Modes),
              \+ length(Parts, Arity) ),
            Wrong).
test(rule_each_topic_has_a_text, Topics == [units, reasons, sessions, queries]) :-
    findall(Topic, ( topic(Topic), with_output_to(string(Text), help(Topic)), Text \== "" ), Topics).
test(rule_a_predicate_has_its_modes, true(sub_string(Text, _, _, _, "modes: ?, ?"))) :-
    with_output_to(string(Text), help(hidden)).
test(rule_a_predicate_with_its_arity, true(sub_string(Text, _, _, _, "changed(S1,S2,U,How) is nondet"))) :-
    with_output_to(string(Text), help(changed/4)).
test(rule_no_topic_fails, fail) :-
    help(nonsense_of_no_kind).

:- end_tests(rlm_help).

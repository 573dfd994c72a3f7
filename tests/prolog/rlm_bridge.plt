:- encoding(utf8).
:- use_module(library(plunit)).
:- use_module('../../prolog/rlm').
:- use_module('../../prolog/rlm_bridge').

:- begin_tests(rlm_bridge).

test(ok, Reply =@= _{ok:[a, 1, 2.5, "s", _{k:v}]}) :-
    rlm_call(1, 100_000, ping, [a, 1, 2.5, "s", _{k:v}], Reply).

:- end_tests(rlm_bridge).

:- encoding(utf8).
:- module(rlm_negation, [ negated/2 ]).
negated(_, []).

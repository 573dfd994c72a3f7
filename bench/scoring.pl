:- encoding(utf8).
:- module(scoring, [ scored/2 ]).
:- use_module('../prolog/rlm_bridge', []).
:- use_module('../prolog/rlm_catalog', [catalog_module/2, catalog_stemmer/2]).
:- use_module('../prolog/rlm_evidence', [reading/3]).
:- use_module('../prolog/rlm_index', [index_update/1, query_weights/5, word_scores/4]).

/** <module> The word scores alone, for the benchmark: no other evidence, no choice */

:- multifile rlm_bridge:operation/2.

rlm_bridge:operation(bench_scored, scoring:scored).

%   `Reply` is how many units have a score.
scored(Args, N) :-
    catalog_module(Args.catalog, M),
    reading(M, Args.text, reading(_, _, Terms)),
    index_update(M),
    catalog_stemmer(M, Stemmer),
    query_weights(M, all, Stemmer, Terms, Weights),
    word_scores(M, all, Weights, Scores),
    length(Scores, N).

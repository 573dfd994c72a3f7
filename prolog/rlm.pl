:- encoding(utf8).
:- module(rlm, []).

/** <module> The face: loads the rest

    swipl prolog/rlm.pl
*/

:- use_module(rlm_bridge, []).
:- use_module(rlm_catalog, []).
:- use_module(rlm_evidence, []).
:- use_module(rlm_explain, []).
:- use_module(rlm_host, []).
:- use_module(rlm_seal, []).
:- use_module(rlm_select, []).

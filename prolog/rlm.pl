:- encoding(utf8).
:- module(rlm,
          []).
:- use_module(rlm_bridge, []).
:- use_module(rlm_catalog, []).
:- use_module(rlm_evidence, []).
:- use_module(rlm_explain, []).
:- use_module(rlm_frozen, []).
:- use_module(rlm_host, []).
:- use_module(rlm_seal, []).
:- use_module(rlm_select, []).
:- use_module(rlm_solve, []).
:- reexport(rlm_prompt).
:- reexport(rlm_help, [help/0, help/1]).
:- reexport(rlm_open, except([record/1, records/1])).
:- reexport(rlm_relations).
:- reexport(rlm_session, [active/1, explained/3, why/1]).
:- reexport(rlm_what_if).
:- public calm/0.               % called from rlm_repl

/** <module> The face: loads the rest

    swipl prolog/rlm.pl

and then `?- help.`
*/

%!  calm is det.
%
%   A mistake at the prompt is one line: no stack of our calls, and no tracer at the next one. Done where a person
%   loads this file; a program that loads it keeps its own flags.

calm :-
    set_prolog_flag(debug_on_error, false),
    set_prolog_flag(backtrace, false).

:- if(( module_property(rlm, file(File)), source_file_property(File, load_context(user, user, _)) )).
:- calm.
:- endif.

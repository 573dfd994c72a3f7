:- encoding(utf8).
:- module(rlm,
          [ help/0
          ]).
:- use_module(rlm_bridge, []).
:- use_module(rlm_catalog, []).
:- use_module(rlm_evidence, []).
:- use_module(rlm_explain, []).
:- use_module(rlm_host, []).
:- use_module(rlm_seal, []).
:- use_module(rlm_select, []).
:- use_module(rlm_solve, []).
:- reexport(rlm_prompt).
:- reexport(rlm_session).
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

%!  help is det.
%
%   Print what can be asked.

help :-
    format("~w~n",
           [ 'Open a compile that Python saved with view.save("s.rlm"), and ask:

  ?- open_session(\'s.rlm\').
  ?- active(U).                 what is shown
  ?- why(tool(git_diff)).       why a unit is shown, or not
  ?- why_not(tool(slack)).      the same, and what would change it
  ?- what_if(tool(slack)).      only what would change it

Units are terms: tool(git_diff), skill(review), mcp_tool(github, create_issue).' ]).

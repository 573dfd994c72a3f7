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

/** <module> The face: loads the rest

    swipl prolog/rlm.pl

and then `?- help.`
*/

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

:- encoding(utf8).
:- module(rlm_help,
          [ help/0,
            help/1,               % ?Topic
            topic/1,              % ?Topic
            asked_with/4          % ?Head, ?Modes, ?Determinism, ?Text
          ]).
:- use_module(library(lists), [member/2]).
:- use_module(rlm_meant, [likest/3]).

/** <module> Help at the prompt

`help/0` lists the questions, `help(Topic)` says more about one subject or one predicate. The table asked_with/4 is also
the table of `docs/repl.md`.
*/

%!  asked_with(?Head, ?Modes:atom, ?Determinism:atom, ?Text:atom) is nondet.
%
%   The predicates for a person at the prompt. Modes: `+` must be bound, `?` may be, `-` is an answer.

asked_with(open_session('File'), '+', semidet, 'open a session and make it the current one').
asked_with(open_session('File', 'Name'), '+, ?', semidet, 'the same, under a name').
asked_with(session('Name'), '?', nondet, 'the sessions that are open').
asked_with(use_session('Name'), '+', det, 'make another session the current one').
asked_with(current_session('Name'), '-', det, 'the session that questions are about').
asked_with(close_session('Name'), '?', nondet, 'close a session').
asked_with(in('Name', 'Goal'), '?, +', nondet, 'the goal is true in that session').
asked_with(why('U'), '+', nondet, 'print why a unit is shown, or not').
asked_with(why_not('U'), '+', nondet, 'the same, and what would change it').
asked_with(what_if('U'), '+', nondet, 'print only what would change it').
asked_with(what_if('U', 'Changes'), '?, -', nondet, 'the changes of the host that would show it').
asked_with(active('U'), '?', nondet, 'the units that are shown').
asked_with(unit('U', 'Kind'), '?, ?', nondet, 'the units of the catalog').
asked_with(matching('Pattern', 'U'), '+, ?', nondet, 'the units whose id or name matches, as in \'git*\'').
asked_with(state('U', 'State'), '?, ?', nondet, 'active, packed_out, rejected or hidden').
asked_with(reason('U', 'Reason'), '?, ?', nondet, 'each reason of any unit').
asked_with(hidden('U', 'Reason'), '?, ?', nondet, 'the units that were no candidates').
asked_with(rejected('U', 'Reason'), '?, ?', nondet, 'the candidates that the rules turned away').
asked_with(packed_out('U', 'Reason'), '?, ?', nondet, 'the chosen units that the budget had no room for').
asked_with(left_out('U', 'Reason'), '?, ?', nondet, 'all units that are not shown').
asked_with(evidence('U', 'Kind', 'Source', 'Score'), '?, ?, ?, ?', nondet, 'what counts for a unit, word by word').
asked_with(rank('U', 'Rank'), '?, ?', nondet, 'the place among the candidates').
asked_with(requires('U', 'V'), '?, ?', nondet, 'U requires V').
asked_with(suggests('U', 'V'), '?, ?', nondet, 'U suggests V').
asked_with(conflicts('U', 'V'), '?, ?', nondet, 'U is in conflict with V').
asked_with(supersedes('U', 'V'), '?, ?', nondet, 'U supersedes V').
asked_with(cost('U', 'Form', 'Tokens'), '?, ?, ?', nondet, 'the price of a unit').
asked_with(budget('What', 'Tokens'), '?, ?', nondet, 'limit, used and free').
asked_with(turn('Fact'), '?', nondet, 'what this turn brought: text(T), need(T), history(Ago, T)').
asked_with(policy('Fact'), '?', nondet, 'what the host set: denied(P), grants(P), mode(M), floor(S)').
asked_with(changed('S1', 'S2', 'U', 'How'), '?, ?, ?, ?', nondet, 'how a unit differs between two sessions').
asked_with(explained('U', 'State', 'Reasons'), '?, -, -', nondet, 'the state, and the reasons as dicts').
asked_with(help('Topic'), '?', nondet, 'more about a subject or a predicate').

%!  topic(?Topic:atom) is nondet.
%
%   A subject of help/1.

topic(Topic) :-
    subject(Topic, _).

subject(units,
'A unit is a term: tool(git_diff), skill(review), mcp_tool(github, create_issue).
An id will do (tool:git_diff), a name that only one unit has (git_diff), and a pattern in quotes (\'git*\').
A variable enumerates all units, and mcp_tool(github, X) those of one server.').
subject(reasons,
'A reason is a term. What keeps a unit out:
  denied, disabled(By), unavailable, out_of_scope, capability_missing(Capability), negated, vetoed(Rule),
  no_evidence, below_floor(Score, Floor), over_candidate_limit(Rank), over_tool_limit(Limit),
  refused_by_wire(Wire, Text), missing_dependency(U), dependency_out(U, Reason), superseded_by(U),
  conflict_with(U), contradicts_itself([U, V]), packed_out(Tokens, Free)
What speaks for it:
  pinned, selected_by_host, retained, all_tools, name(Name), trigger(Signal, Value, Score), lexical(Score),
  example(Text, Score), history(Ago, Score), need(Text, Score), sensor(Name, Score), intent(Text, Score),
  spared(Origin, Score), boosted(Rule, By), dependency_of(U), suggested_by(U)').
subject(sessions,
'Several saved sessions can be open. Questions are about the one that was opened last.
  ?- open_session(\'monday.rlm\'), open_session(\'friday.rlm\').
  ?- in(monday, active(U)).
  ?- changed(monday, friday, U, How).').
subject(queries,
'Relations can be combined:
  ?- left_out(U, packed_out(Tokens, Free)).          what a larger budget would have shown
  ?- requires(U, V), rejected(V, denied).            what requires a denied unit
  ?- evidence(U, lexical, git, Score), Score > 1.    what the word git counts for
  ?- aggregate_all(count, hidden(_, no_evidence), N).').

%!  help is det.
%
%   Print the questions.

help :-
    format("Open a compile that Python saved with view.save(\"s.rlm\"), and ask:~n~n", []),
    forall(asked_with(Head, _, _, Text), help_line(Head, Text)),
    findall(Topic, topic(Topic), Topics),
    atomic_list_concat(Topics, ', ', Listed),
    format("~nUnits are terms: tool(git_diff), skill(review), mcp_tool(github, create_issue).~n", []),
    format("More: help(Topic), for one of these predicates or for ~w.~n", [Listed]).

help_line(Head, Text) :-
    format("  ?- ~w.~t~40|~w~n", [Head, Text]).

%!  help(?Topic:atom) is nondet.
%
%   Print the text of a subject, or the modes of a predicate. It fails, with the closest topic, for anything else.

help(Topic) :-
    var(Topic),
    !,
    topic(Topic),
    help(Topic).
help(Topic) :-
    subject(Topic, Text),
    !,
    format("~w~n", [Text]).
help(Topic) :-
    name_of(Topic, Name),
    findall(asked(Head, Modes, Det, Text),
            ( asked_with(Head, Modes, Det, Text), functor(Head, Name, _) ),
            Found),
    Found \== [],
    !,
    forall(member(asked(Head, Modes, Det, Text), Found),
           format("~w is ~w~n  modes: ~w~n  ~w~n", [Head, Det, Modes, Text])).
help(Topic) :-
    findall(Name, ( topic(Name) ; asked_with(Head, _, _, _), functor(Head, Name, _) ), Names),
    (   atomic(Topic),
        likest(Topic, Names, Close)
    ->  format(user_error, "no help for ~w; did you mean help(~w)?~n", [Topic, Close])
    ;   format(user_error, "no help for ~p; help. lists the topics~n", [Topic])
    ),
    fail.

name_of(Topic, Name) :-
    (   Topic = Name0/_
    ->  Name = Name0
    ;   callable(Topic),
        functor(Topic, Name, _)
    ).

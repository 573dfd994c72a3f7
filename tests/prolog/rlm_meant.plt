:- encoding(utf8).
:- use_module(library(plunit)).
:- use_module('../../prolog/rlm_meant').

:- begin_tests(rlm_meant).

ids(['tool:git_diff', 'tool:git', 'mcp_tool:hub/git', 'skill:review', 'mcp_tool:hub/issue', 'skill:a:b']).

row(tool(git_diff), unit('tool:git_diff')).
row('tool:git_diff', unit('tool:git_diff')).
row("tool:git_diff", unit('tool:git_diff')).
row(git_diff, unit('tool:git_diff')).
row('hub/git', unit('mcp_tool:hub/git')).
row(mcp_tool(hub, git), unit('mcp_tool:hub/git')).
row(issue, unit('mcp_tool:hub/issue')).
row('hub/issue', unit('mcp_tool:hub/issue')).
row(hub, nothing(hub)).
row(git, several(git, 'tool:git', 'mcp_tool:hub/git')).
row(git_dif, nothing(git_dif, 'tool:git_diff')).
row(tool(git_dfif), nothing('tool:git_dfif', 'tool:git_diff')).
row(skill(reveiw), nothing('skill:reveiw', 'skill:review')).
row(skill(git_diff), nothing('skill:git_diff', 'tool:git_diff')).
row('mcp_tool:hub/isue', nothing('mcp_tool:hub/isue', 'mcp_tool:hub/issue')).
row(zebra, nothing(zebra)).
row([], no_name([])).
row(f(g(x)), no_name(f(g(x)))).

test(rule_the_unit_that_is_meant, [forall(row(Unit, Expected)), Outcome == Expected]) :-
    ids(Ids),
    meant(Unit, Ids, Outcome).

told_row(no_name(f(g(x))), 'a unit is wanted, such as tool(git_diff), not f(g(x))').
told_row(several(git, 'tool:git', 'mcp_tool:hub/git'), 'git may be tool(git) or mcp_tool(hub,git)').
told_row(nothing(zebra), 'no unit zebra').
told_row(nothing(git_dif, 'tool:git_diff'), 'no unit git_dif; did you mean tool(git_diff)?').
told_row(nothing('a\nb'), 'no unit a\\nb').

test(rule_what_is_told_of_a_unit_that_is_not_there, [forall(told_row(Outcome, Expected)), Text == Expected]) :-
    not_meant(Outcome, Text).

like_row(colour, [color, shape], color).
like_row(sahpe, [color, shape], shape).
like_row(shape, [zzz], none).
like_row(shape, [], none).

test(rule_only_what_is_alike_is_proposed, [forall(like_row(Word, Words, Expected)), Like == Expected]) :-
    ( likest(Word, Words, Like0) -> Like = Like0 ; Like = none ).

:- end_tests(rlm_meant).

:- encoding(utf8).
:- use_module(library(plunit)).
:- use_module('../../prolog/rlm_negation', [negated/2]).
:- use_module('../../prolog/rlm_words', [tokens/2]).

% Each row of the tables is a test of its own, named after its text.

:- begin_tests(rlm_negation).

term_expansion(example(Text, Phrases), [(test(Name, Found == Phrases) :- negated_in(Text, Found))]) :-
    atom_string(Name, Text).

negated_in(Text, Phrases) :-
    tokens(Text, Tokens),
    negated(Tokens, Phrases).

% What is not to be used.

example("Please do not use the github tools or Slack, use git instead.", [[github, tools], [slack]]).
example("do not use github", [[github]]).
example("do NOT use GitHub", [[github]]).
example("DO NOT USE GITHUB!", [[github]]).
example("Don't use Slack.", [[slack]]).
example("don’t use Slack", [[slack]]).
example("dont use slack", [[slack]]).
example("don`t use slack", [[slack]]).
example("do  not   use    the  slack   tool", [[slack, tool]]).
example("do not use github, use git", [[github]]).
example("Do not use github; use git.", [[github]]).
example("do not use github but use git", [[github]]).
example("do not use github. Use git.", [[github]]).
example("don't use github, git is better", [[github]]).
example("don't use github and git instead", [[github]]).
example("don't use github, list files", [[github]]).
example("don't use github, list the open issues", [[github]]).
example("don't use github and list the open issues", [[github]]).
example("don't use github, slack, jira", [[github], [slack], [jira]]).
example("don't use github, slack or jira", [[github], [slack], [jira]]).
example("don't use github, slack, and jira for this", [[github], [slack], [jira]]).
example("don't use github & slack", [[github], [slack]]).
example("don't use github nor slack", [[github], [slack]]).
example("don't use the X or Y tool", [[x], [y, tool]]).
example("don't use github for this", [[github]]).
example("don't use the github tool to search; use git", [[github, tool]]).
example("don't use the browser in this task", [[browser]]).
example("don't use the tool that posts to slack", [[tool]]).
example("don't use tools like github or slack", [[tools], [github], [slack]]).
example("don't use external services, e.g. github", [[external, services], [github]]).
example("don't use the web tools (google, bing)", [[web, tools], [google], [bing]]).
example("don't use github (it is slow)", [[github]]).
example("don't use github (git is fine)", [[github]]).
example("Use git (not github).", [[github]]).
example("don't use any of the github tools", [[github, tools]]).
example("don't use github's tools", [[github, tools]]).
example("Do not use `git_diff` or \"web search\".", [[git_diff], [web, search]]).
example("Do not use “web search”.", [[web, search]]).
example("Do not use ‘slack’.", [[slack]]).
example("Do not use 'slack' here", [[slack]]).
example("do not use github/create_issue or foo.bar", [['github/create_issue'], ['foo.bar']]).
example("Never call `git_diff` or the web search tool", [[git_diff], [web, search, tool]]).
example("never ever use curl", [[curl]]).
example("You must never use curl", [[curl]]).
example("don't send email", [[send, email]]).
example("Please don't send my boss email", [[send, boss, email]]).
example("don't send me an email", [[send, email]]).
example("don't send email or create issues", [[send, email], [create, issues]]).
example("don't send email and create an issue", [[send, email]]).
example("don't send email, use slack", [[send, email]]).
example("don't read or write files", [[read, files], [write, files]]).
example("don't delete files or folders", [[delete, files], [delete, folders]]).
example("don't send email to Bob", [[send, email]]).
example("don't search", [[search]]).
example("don't search for tests, search for docs", [[search, for, tests]]).
example("don't send mail using gmail", [[gmail]]).
example("without using curl", [[curl]]).
example("download the page without curl", [[curl]]).
example("download the page w/o curl", [[curl]]).
example("without the use of curl", [[curl]]).
example("Without using curl, download the page.", [[curl]]).
example("do it without sending email", [[send, email]]).
example("answer without wasting time", [[wasting, time]]).
example("avoid curl", [[curl]]).
example("avoid using curl", [[curl]]).
example("Avoid github, slack and jira are fine", [[github]]).
example("try to avoid using curl", [[curl]]).
example("use anything but curl", [[curl]]).
example("everything except Slack", [[slack]]).
example("use all tools except Slack and Jira", [[slack], [jira]]).
example("use any tool but slack", [[slack]]).
example("any tool other than curl", [[curl]]).
example("use git instead of github", [[github]]).
example("use git rather than github", [[github]]).
example("use git rather than use github", [[github]]).
example("I'd rather use git than github", [[github]]).
example("Instead of github, git please", [[github]]).
example("not github but git", [[github]]).
example("use git, not github", [[github]]).
example("use git not github", [[github]]).
example("no github please", [[github]]).
example("No web search!", [[web, search]]).
example("No, don't use github", [[github]]).
example("use no tools", [[tools]]).
example("use none of the github tools", [[github, tools]]).
example("skip the linter", [[linter]]).
example("leave out slack", [[slack]]).
example("leave slack out of this", [[slack]]).
example("stop using curl", [[curl]]).
example("stop sending email", [[send, email]]).
example("exclude slack", [[slack]]).
example("ignore the RLM skills", [[rlm, skills]]).
example("disable the browser", [[browser]]).
example("turn off web search", [[web, search]]).
example("turn web search off", [[web, search]]).
example("stay away from github", [[github]]).
example("please refrain from using curl", [[curl]]).
example("refrain from curl", [[curl]]).
example("curl is not allowed", [[curl]]).
example("github and slack are not allowed", [[github], [slack]]).
example("The use of curl is not allowed", [[curl]]).
example("Using curl is forbidden.", [[curl]]).
example("the web browser is off limits", [[web, browser]]).
example("curl is off-limits", [[curl]]).
example("curl is strictly forbidden", [[curl]]).
example("curl must not be used", [[curl]]).
example("`git_push` should not be called", [[git_push]]).
example("curl should never be used", [[curl]]).
example("curl should be avoided", [[curl]]).
example("email must not be sent", [[send, email]]).
example("use git, github is not allowed", [[github]]).
example("use git, github and slack are not allowed", [[github], [slack]]).
example("Forbidden tools: github, slack", [[github], [slack]]).
example("Not allowed: github, slack", [[github], [slack]]).
example("I don't want you to use curl", [[curl]]).
example("I do not want to use github", [[github]]).
example("I don't want you using curl", [[curl]]).
example("I don't want you to send email", [[send, email]]).
example("I'd rather you didn't use curl", [[curl]]).
example("I'd prefer it if you didn't use curl", [[curl]]).
example("I would rather not use curl", [[curl]]).
example("let's not use curl", [[curl]]).
example("you cannot use curl", [[curl]]).
example("I can't use curl here", [[curl]]).
example("you mustn't use curl", [[curl]]).
example("you shouldn't use curl", [[curl]]).
example("we won't be using curl", [[curl]]).
example("You are not allowed to use curl", [[curl]]).
example("could you not use curl?", [[curl]]).
example("use neither curl nor wget", [[curl], [wget]]).
example("Neither curl nor wget, please.", [[curl], [wget]]).
example("don't you dare use curl", [[curl]]).
example("do not, under any circumstances, use curl", [[curl]]).
example("don't make use of curl", [[curl]]).
example("don't rely on github", [[github]]).
example("don't use curl if possible", [[curl]]).
example("If you need a page, don't use curl", [[curl]]).
example("don't use the\ngithub tools", [[github, tools]]).
example("Don't use github\nList the files", [[github]]).
example("Do not use:\n- github\n- the slack tool\n\nUse git.", [[github], [slack, tool]]).
example("don't use github, don't use slack", [[github], [slack]]).
example("don't use github and never call slack", [[github], [slack]]).
example("Why does git fail? Don't use github.", [[github]]).
example("Do **not** use github", [[github]]).
example("don't forget to skip slack", [[slack]]).

example("Could you please not use the browser?", [[browser]]).
example("Would you mind not using the browser?", [[browser]]).
example("Without github, slack and jira, find the bug.", [[github], [slack], [jira]]).
example("Instead of github, slack or jira, use git.", [[github], [slack], [jira]]).
example("Don't bother with curl.", [[curl]]).
example("Don't try to use curl.", [[curl]]).
example("From now on don't use curl.", [[curl]]).
example("For security reasons do not use curl", [[curl]]).
example("In this task do not use curl.", [[curl]]).
example("I told you not to use curl!", [[curl]]).
example("make sure that curl is not used", [[curl]]).
example("Make sure not to use curl.", [[curl]]).
example("Only use git, not github or slack.", [[github], [slack]]).
example("use git and not github", [[github]]).
example("with git, not with github", [[github]]).
example("My boss said not to use Slack.", [[slack]]).
example("Don't use github until I say so.", [[github]]).
example("When you answer, do not use web search.", [[web, search]]).
example("If you search please don't use google.", [[google]]).
example("don't use either github or slack", [[github], [slack]]).
example("I don't want any web search", [[web, search]]).
example("I don't want github to be used", [[github]]).
example("I don't think you should use github", [[github]]).
example("we don't use npm here, use pnpm", [[npm]]).
example("we no longer use npm", [[npm]]).
example("npm is no longer allowed", [[npm]]).
example("Do not use the file tool, search tool or time tool.", [[file, tool], [search, tool], [time, tool]]).
example("no github, no slack, no jira", [[github], [slack], [jira]]).
example("Neither github nor slack should be used", [[github], [slack]]).
example("No github tools may be used.", [[github, tools]]).
example("don't execute shell commands or open the browser", [[shell, commands], [open, browser]]).
example("do not create, update, or delete issues", [[create, issues], [update, issues], [delete, issues]]).
example("without reading, writing or deleting files", [[read, files], [write, files], [delete, files]]).
example("without wasting time or money", [[wasting, time], [wasting, money]]).
example("keep slack out of this", [[slack]]).
example("Slack is out of bounds", [[slack]]).
example("slack is not an option", [[slack]]).
example("slack is not to be used", [[slack]]).
example("GitHub, Slack and Jira are all off limits.", [[github], [slack], [jira]]).
example("Off limits: slack", [[slack]]).
example("it is not allowed to use slack", [[slack]]).
example("You're forbidden from using slack", [[slack]]).
example("I forbid you to use slack", [[slack]]).
example("I'm not going to use slack", [[slack]]).
example("Use everything but the kitchen sink", [[kitchen, sink]]).
example("use everything apart from git", [[git]]).
example("use git in place of github", [[github]]).
example("use git as opposed to github", [[github]]).
example("don't use the tool called git_diff", [[git_diff]]).
example("don't use @github", [[github]]).
example("do not use .env files", [[env, files]]).
example("Use git — not github", [[github]]).
example("Do not use github (or slack)", [[github], [slack]]).
example("Do _not_ use github", [[github]]).
example("Under no circumstances use github", [[github]]).
example("Absolutely no emails", [[emails]]).
example("do not use github because it is slow", [[github]]).
example("do not use github or anything like it", [[github]]).
example("don't use, call, or invoke git", [[git]]).
example("avoid emails: use slack", [[emails]]).
example("Stop using git and start using svn.", [[git]]).
example("don't do it with google", [[google]]).
example("Do not use these: git, svn", [[git], [svn]]).
example("Tools you must not use: git, svn", [[git], [svn]]).
example("Find files that exist and do not use the web search tool.", [[web, search, tool]]).
example("Don't email me, message me on slack.", [[email]]).
example("Do not use time", [[time]]).
example("Whatever you do, don't use slack", [[slack]]).

% What only looks like it.

example("", []).
example("use git", []).
example("not possible without git", []).
example("It is not possible without git.", []).
example("impossible without git", []).
example("I can't do it without git", []).
example("nothing without git works", []).
example("Without git, nothing works.", []).
example("it works without git", []).
example("with or without git", []).
example("not only github", []).
example("use not only github but also git", []).
example("why does git not work", []).
example("git does not work", []).
example("git isn't working", []).
example("git fails", []).
example("the tests do not use git", []).
example("it doesn't use git", []).
example("do not forget to use git", []).
example("don't hesitate to use git", []).
example("no need to avoid git", []).
example("never mind", []).
example("never mind, use git", []).
example("not sure how to use git", []).
example("I don't know whether git is there", []).
example("isn't git the best?", []).
example("don't stop using git", []).
example("don't skip the linter", []).
example("don't ignore git", []).
example("never disable the linter", []).
example("don't turn off web search", []).
example("without a doubt use git", []).
example("no problem, use git", []).
example("No worries. Use git.", []).
example("why not use git", []).
example("why don't we use git?", []).
example("can't you use git?", []).
example("couldn't you use git", []).
example("should I not use git?", []).
example("if git is not available use svn", []).
example("if git isn't allowed, use svn", []).
example("unless git is not installed", []).
example("unless you can't use git", []).
example("don't use git unless I say so", []).
example("don't push without running the tests", []).
example("The file says \"do not use git\".", []).
example("the error is “git must not be used here”", []).
example("Fix this:\n```\ndo not use git\n```\nthanks", []).
example("> do not use git\nWhat does this mean?", []).
example("use git to find lines that do not contain slack", []).
example("find tools which are not allowed to use git", []).
example("search for files without extension", []).
example("do not use anything except git", []).
example("do not use anything but git", []).
example("don't use any tool other than git", []).
example("use nothing but git", []).
example("nothing but git, please", []).
example("never use anything else than git", []).
example("not without git", []).
example("bash: foo: No such file or directory", []).
example("I don't have git", []).
example("you don't need to use git", []).
example("do not do it", []).
example("don't delete it", []).
example("there is no search function", []).
example("which tests skip git?", []).
example("how to disable git", []).

example("You don't have to use git.", []).
example("Find the function that never returns", []).
example("What does \"do not use\" mean?", []).
example("Translate 'do not use git' into French.", []).
example("git cannot find the file", []).
example("I cannot open the file", []).
example("The search tool could not be found", []).
example("there was no reply from the server", []).
example("no time to explain, use git", []).
example("git no longer works", []).
example("Neither git nor svn works", []).
example("I tried everything but git is slow", []).
example("no tool but git", []).
example("besides git, use svn", []).
example("I prefer git to svn", []).
example("not to mention git", []).
example("whether or not to use git is up to you", []).
example("The skip list is long", []).
example("is git forbidden?", []).
example("Is git not allowed?", []).
example("Who said git is not allowed?", []).
example("it must not be used", []).
example("don't refrain from using git", []).
example("do not use git more than once", []).
example("don't just use git", []).
example("don't use all tools", []).
example("don't use git unless necessary", []).
example("git has not been used", []).
example("You didn't use git, please use it.", []).
example("Don't be shy, use git", []).
example("which is the default for effects other than read", []).
example("the handler never asks", []).
example("the users' tools and the admins' tools are not here", []).

% Long texts take the time of many short ones.

test(long_chain, true) :-
    times("not without ", 50_000, Text),
    within(Text, 20_000_000).
test(long_list, true) :-
    times("foo, bar and ", 33_000, List),
    string_concat("do not use ", List, Text),
    within(Text, 20_000_000).
test(long_phrase, true) :-
    times("not foo bar ", 33_000, Text),
    within(Text, 20_000_000).
test(open_quotes, true) :-
    times("« not ‘ ", 33_000, Text),
    within(Text, 20_000_000).
test(short_query, true) :-
    within("Look at the last ten commits in the repository, tell me who wrote the most lines of code and \c
            please do not use the github tools or Slack, use git instead.", 3_000).

times(Piece, N, Text) :-
    length(Pieces, N),
    maplist(=(Piece), Pieces),
    atomic_list_concat(Pieces, Text).

within(Text, Inferences) :-
    tokens(Text, Tokens),
    statistics(inferences, I0),
    negated(Tokens, _),
    statistics(inferences, I1),
    Used is I1-I0,
    assertion(Used < Inferences).

:- end_tests(rlm_negation).

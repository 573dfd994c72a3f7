:- encoding(utf8).
:- module(rlm_host,
          [ rules_load/2,         % +Args, -Reply
            rules_forget/2,       % +Args, -Reply
            host_rules/5          % +Module, +Args, +Ranked0, -Ranked, -Rules
          ]).
:- use_module(library(error), [existence_error/2]).

rules_load(_, _) :- existence_error(rules, none).
rules_forget(_, _{forgotten: false}).

host_rules(_, Args, Ranked0, Ranked, Rules), Args.rules == null =>
    Ranked = Ranked0,
    Rules = rules([], []).
host_rules(_, Args, _, _, _) =>
    existence_error(rules, Args.rules).

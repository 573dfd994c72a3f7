:- encoding(utf8).
:- module(saved,
          [ saved/2,              % +Terms, -Text
            in_file/2,            % +Text, :Goal
            terms/2               % +More, -Terms
          ]).
:- use_module(library(sha), [hash_atom/2, sha_hash/3]).

/** <module> Saved sessions for tests, written here with their sums */

:- meta_predicate in_file(+, 1).

%!  saved(+Terms:list, -Text:string) is det.
%
%   Each term on a line of its own, with the sum of it and of the sum before.

saved(Terms, Text) :-
    lines(Terms, '', Lines),
    atomic_list_concat(Lines, Text0),
    atom_string(Text0, Text).

lines([], _, []).
lines([Term|Terms], Sum0, [Line|Lines]) :-
    format(atom(Written), '~q.', [Term]),
    atom_concat(Sum0, Written, All),
    sha_hash(All, Hash, [encoding(utf8)]),
    hash_atom(Hash, Hex),
    sub_atom(Hex, 0, 8, _, Sum),
    atomic_list_concat([Written, ' % ', Sum, '\n'], Line),
    lines(Terms, Sum, Lines).

%!  in_file(+Text, :Goal) is nondet.
%
%   Call Goal with the name of a file that holds Text.

in_file(Text, Goal) :-
    setup_call_cleanup(
        ( tmp_file_stream(File, Out, [extension(rlm), encoding(utf8)]),
          write(Out, Text),
          close(Out) ),
        call(Goal, File),
        delete_file(File)).

%!  terms(+More:list, -Terms:list) is det.
%
%   A session in which the tool git_diff is active, deploy lacks the vault's capability, old is negated and lamp is vetoed.

terms(More, Terms) :-
    findall(input(Key, Value), input(Key, Value), Inputs),
    findall(unit(Id, Facts), unit(Id, Facts), Units),
    Source = source(text, 1, [git, chang, deploy], [1000, 800, 1000], [git, changes, deploy], null),
    Out = [[[kind, dependency_out], [unit, 'tool:vault'],
            [reason, [nested, [kind, capability_missing], [capability, money]]]]],
    Answers = [ active('skill:house', full, 8, [[[kind, pinned]]]),
                active('tool:git_diff', short, 43, [[[kind, lexical], [score, 1524]]]),
                active('tool:big', null, 90, [[[kind, lexical], [score, 700]], [[kind, packed_out], [tokens, 90], [free, 10]]]),
                rejected('tool:deploy', Out),
                rejected('tool:old', [[[kind, negated]]]),
                rejected('tool:lamp', [[[kind, vetoed], [rule, 'veto(lamp)']]]),
                nonviable('tool:deploy', Out),
                nonviable('tool:needy', [[[kind, dependency_out], [unit, 'tool:lamp'],
                                          [reason, [nested, [kind, vetoed], [rule, 'veto(lamp)']]]]]),
                nonviable('tool:vault', [[[kind, capability_missing], [capability, money]]]),
                ranked('tool:git_diff', 1), ranked('tool:deploy', 2),
                raised('tool:idle', [[[kind, intent], [part, 'find it'], [score, 500]]]),
                negated('tool:old'), vetoed('tool:lamp', 'veto(lamp)') ],
    append([[session(3, abc, english)], Inputs, [ledger(88, 1000), floor(300), Source], Units, Answers, More, [end]], Terms).

input(abstain, 1000).
input(admitted, []).
input(capabilities, ['tool:*']).
input(denied, []).
input(disabled, []).
input(floor, 300).
input(history, []).
input(limit, 64).
input(mode, compiled).
input(most_tools, 128).
input(needs, []).
input(refused, []).
input(relative_floor, 250).
input(retained, []).
input(scope, null).
input(selected, []).
input(sensors, []).
input(signals, []).
input(text, 'git change, deploy it').
input(withheld, []).

unit(Id, [tool, 100, host, '', Capability, [Pinned, false, true, Available], [Requires, [], [], []], [Name], [], [],
          [Name, '', Description, '', '', '', '', '']]) :-
    row(Id, Capability, Pinned, Requires, Description),
    ( Id == 'tool:gone' -> Available = false ; Available = true ),
    atomic_list_concat([_, Name], ':', Id).

row('skill:house', null, true, [], '').
row('tool:big', 'tool:big', false, [], 'git and so on').
row('tool:deploy', 'tool:deploy', false, ['tool:vault'], 'Deploy the project').
row('tool:git_diff', 'tool:git_diff', false, [], 'Show what changed in git').
row('tool:gone', 'tool:gone', false, [], 'Not there now').
row('tool:idle', 'tool:idle', false, [], 'Nothing of it').
row('tool:lamp', 'tool:lamp', false, [], 'Lights').
row('tool:needy', 'tool:needy', false, ['tool:lamp'], 'Needs light').
row('tool:old', 'tool:old', false, [], 'Old thing').
row('tool:vault', money, false, [], 'Open the vault').

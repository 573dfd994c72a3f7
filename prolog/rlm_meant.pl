:- encoding(utf8).
:- module(rlm_meant,
          [ unit_meant/3          % +Unit, +Ids, -Id
          ]).
:- use_module(library(apply), [maplist/2]).
:- use_module(library(isub), [isub/4, '$isub'/5]).      % the library rewrites a call of the one into the other
:- use_module(library(lists), [last/2, member/2]).
:- use_module(rlm_explain, [visible/2]).
:- use_module(rlm_unit, [unit_name/2, unit_server/2, unit_term/2]).

/** <module> Which unit a person means

People write a term, an id or a mere name, and misspell it. What can mean one unit only is that unit; for anything
else a line on standard error says what was wrong, with the closest unit where there is one.
*/

%!  unit_meant(+Unit, +Ids:list(atom), -Id:atom) is semidet.
%
%   Id is the one of Ids that Unit means: `tool(git_diff)`, `'tool:git_diff'`, or `git_diff` where one unit alone
%   has that name. Otherwise a line is printed.

unit_meant(Unit, Ids, Id) :-
    (   written(Unit, Text)
    ->  findall(Meant, meant(Text, Ids, Meant), Found),
        only(Found, Text, Ids, Id)
    ;   complain("a unit is wanted, such as tool(git_diff), not ~p", [Unit]),
        fail
    ).

%   written(+Unit, -Text:atom) is semidet: what a person wrote, as an id is written.
written(Unit, Text) :-
    (   atomic(Unit)
    ->  atom_string(Text, Unit)
    ;   compound(Unit),
        compound_name_arguments(Unit, Kind, Arguments),
        maplist(atomic, Arguments),
        atomic_list_concat(Arguments, /, Local),
        atomic_list_concat([Kind, :, Local], Text)
    ).

%   meant(+Text, +Ids, -Id) is nondet: the unit with that id, or else each with that name, server or not.
meant(Text, Ids, Id) :-
    (   memberchk(Text, Ids)
    ->  Id = Text
    ;   member(Id, Ids),
        called(Id, Text)
    ).

called(Id, Text) :-
    unit_name(Id, Name),
    (   Name == Text
    ->  true
    ;   unit_server(Id, Server),
        Server \== '',
        atomic_list_concat([Server, Name], /, Text)
    ).

only([], Text, Ids, _) =>
    (   closest(Text, Ids, Close)
    ->  unit_term(Close, Term),
        complain("no unit ~w; did you mean ~q?", [Text, Term])
    ;   complain("no unit ~w", [Text])
    ),
    fail.
only([Meant], _, _, Id) =>
    Id = Meant.
only([A,B|_], Text, _, _) =>
    unit_term(A, First),
    unit_term(B, Second),
    complain("~w may be ~q or ~q", [Text, First, Second]),
    fail.

%   closest(+Text, +Ids, -Id) is semidet: the unit whose name is most like the one in Text, if any is like it.
closest(Text, Ids, Id) :-
    name_in(Text, Name),
    sorted(Name, Letters),
    least(Least),
    findall(Like-Other,
            ( member(Other, Ids),
              unit_name(Other, OtherName),
              sorted(OtherName, OtherLetters),
              alike(Name, OtherName, Like1),
              alike(Letters, OtherLetters, Like2),
              Like is (Like1 + Like2)/2,
              Like > Least ),
            Pairs),
    sort(1, @>=, Pairs, [_-Id|_]).

%   least(?Like): a letter more or less, or two that changed places, are above it; other words are not.
least(0.5).

%   alike(+A, +B, -Like:float): from 0 to 1, by the pieces that both have. The letters in alphabetical order are
%   compared too: they are the same where two have changed places.
alike(A, B, Like) :-
    isub(A, B, Like, [zero_to_one(true), substring_threshold(1)]).

sorted(Name, Letters) :-
    atom_chars(Name, Chars),
    msort(Chars, Sorted),
    atomic_list_concat(Sorted, Letters).

name_in(Text, Name) :-
    (   atomic_list_concat([_|Parts0], :, Text),
        Parts0 \== []
    ->  atomic_list_concat(Parts0, :, Local)
    ;   Local = Text
    ),
    atomic_list_concat(Parts, /, Local),
    last(Parts, Name).

complain(Format, Arguments) :-
    format(atom(Text), Format, Arguments),
    visible(Text, Visible),
    format(user_error, "~w~n", [Visible]).

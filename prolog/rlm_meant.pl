:- encoding(utf8).
:- module(rlm_meant,
          [ unit_meant/3,         % +Unit, +Ids, -Id
            meant/3,              % +Unit, +Ids, -Outcome
            not_meant/2,          % +Outcome, -Text
            likest/3              % +Word, +Words, -Like
          ]).
:- use_module(library(apply), [maplist/2]).
:- use_module(library(isub), [isub/4, '$isub'/5]).      % the library rewrites a call of the one into the other
:- use_module(library(lists), [last/2, member/2]).
:- use_module(rlm_explain, [visible/2]).
:- use_module(rlm_unit, [unit_name/2, unit_server/2, unit_term/2]).
:- use_module(rlm_words, [identifier_words/2]).

/** <module> Which unit somebody means

People write a term, an id or a mere name, and misspell it. What can mean one unit only is that unit; of anything
else it is said what was wrong, with the closest unit where there is one.
*/

%!  unit_meant(+Unit, +Ids:list(atom), -Id:atom) is semidet.
%
%   Id is the one of Ids that Unit means: `tool(git_diff)`, `'tool:git_diff'`, or `git_diff` where one unit alone
%   has that name. Otherwise a line is printed on standard error.

unit_meant(Unit, Ids, Id) :-
    meant(Unit, Ids, Outcome),
    (   Outcome = unit(Id0)
    ->  Id = Id0
    ;   not_meant(Outcome, Text),
        format(user_error, "~w~n", [Text]),
        fail
    ).

%!  meant(+Unit, +Ids:list(atom), -Outcome) is det.
%
%   Outcome is `unit(Id)`, or why it is none: `no_name(Unit)` where nothing can be called so, `several(Text, Id1, Id2)`,
%   `nothing(Text)`, `nothing(Text, Closest)`.

meant(Unit, Ids, Outcome) :-
    (   written(Unit, Text)
    ->  findall(Id, called(Text, Ids, Id), Found),
        only(Found, Text, Ids, Outcome)
    ;   Outcome = no_name(Unit)
    ).

%!  not_meant(+Outcome, -Text:atom) is det.
%
%   What is wrong, for people.

not_meant(no_name(Unit), Text), var(Unit) =>
    said("a unit is wanted, such as tool(git_diff), not a variable; a name with a capital letter is written in quotes: ~q",
         ['Git_diff'], Text).
not_meant(no_name(Unit), Text) =>
    said("a unit is wanted, such as tool(git_diff), not ~p", [Unit], Text).
not_meant(several(Name, A, B), Text) =>
    unit_term(A, First),
    unit_term(B, Second),
    said("~w may be ~q or ~q", [Name, First, Second], Text).
not_meant(nothing(Name), Text) =>
    said("no unit ~w", [Name], Text).
not_meant(nothing(Name, Close), Text) =>
    unit_term(Close, Term),
    said("no unit ~w; did you mean ~q?", [Name, Term], Text).

said(Format, Arguments, Text) :-
    format(atom(Text0), Format, Arguments),
    visible(Text0, Text).

%   written(+Unit, -Text:atom) is semidet: what a person wrote, as an id is written.
written(Unit, Text) :-
    (   part(Unit)
    ->  atom_string(Text, Unit)
    ;   compound(Unit),
        id_parts(Unit, Parts)
    ->  atomic_list_concat(Parts, Text)
    ;   compound(Unit),
        compound_name_arguments(Unit, Kind, Arguments),
        maplist(part, Arguments),
        atomic_list_concat(Arguments, /, Local),
        atomic_list_concat([Kind, :, Local], Text)
    ).

%   id_parts(+Unit, -Parts:list) is semidet: an id that was written without quotes: `tool:git_diff`, `hub/fetch`.
id_parts(Kind:Name, [Kind,:,Name]) :-
    part(Kind),
    part(Name).
id_parts((Kind:Server)/Name, [Kind,:,Server,/,Name]) :-
    part(Kind),
    part(Server),
    part(Name).
id_parts(Server/Name, [Server,/,Name]) :-
    part(Server),
    part(Name).

part(Part) :-
    atomic(Part),
    Part \== [].

%   called(+Text, +Ids, -Id) is nondet: the unit with that id, or else each with that name, server or not, or else each
%   with that name in another case or with other separators.
called(Text, Ids, Id) :-
    (   memberchk(Text, Ids)
    ->  Id = Text
    ;   member(Id, Ids),
        named(Id, Text)
    *-> true
    ;   joined(Text, Joined),
        member(Id, Ids),
        unit_name(Id, Name),
        joined(Name, Joined)
    ).

%   joined(+Name, -Joined) is semidet: its words as one, without case and separators.
joined(Name, Joined) :-
    identifier_words(Name, Words),
    Words \== [],
    atomic_list_concat(Words, Joined).

named(Id, Text) :-
    unit_name(Id, Name),
    (   Name == Text
    ->  true
    ;   unit_server(Id, Server),
        Server \== '',
        atomic_list_concat([Server, Name], /, Text)
    ).

only([], Text, Ids, Outcome) =>
    (   closest(Text, Ids, Close)
    ->  Outcome = nothing(Text, Close)
    ;   Outcome = nothing(Text)
    ).
only([Id], _, _, Outcome) =>
    Outcome = unit(Id).
only([A,B|_], Text, _, Outcome) =>
    Outcome = several(Text, A, B).

%   closest(+Text, +Ids, -Id) is semidet: the unit whose name is most like the one in Text, if any is like it.
closest(Text, Ids, Id) :-
    name_in(Text, Name),
    findall(OtherName-Other, ( member(Other, Ids), unit_name(Other, OtherName) ), Named),
    likest_of(Name, Named, Id).

%!  likest(+Word:atom, +Words:list(atom), -Like:atom) is semidet.
%
%   The one of Words that is most like a misspelt one, if any is like it.

likest(Word, Words, Like) :-
    findall(Other-Other, member(Other, Words), Named),
    likest_of(Word, Named, Like).

likest_of(Word, Named, Thing) :-
    sorted(Word, Letters),
    findall(Like-Other,
            ( member(Name-Other, Named),
              sorted(Name, OtherLetters),
              alike(Word, Name, Like1),
              alike(Letters, OtherLetters, Like2),
              Like is (Like1 + Like2)/2,
              least(Least),
              Like > Least ),
            Pairs),
    sort(1, @>=, Pairs, [_-Thing|_]).

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

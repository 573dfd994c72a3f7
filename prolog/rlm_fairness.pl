:- encoding(utf8).
:- module(rlm_fairness,
          [ ranked/7              % +Module, +View, +Count, +Reading, +Evidence, -Ranked, -Floors
          ]).
:- use_module(library(apply), [include/3]).
:- use_module(library(assoc), [empty_assoc/1, get_assoc/3, list_to_assoc/2, put_assoc/4]).
:- use_module(library(lists), [append/3, member/2]).
:- use_module(library(pairs), [pairs_keys/2]).
:- use_module(rlm_evidence, [evidence/5]).
:- use_module(rlm_origin, [counts/2, in_view/3, mixed/2, several/2, view/5, view_row/3, view_size/3, wordiest/4]).
:- use_module(rlm_rank, [ranked_in/7]).

/** <module> Third parties must not suppress units of others

The words of one third party's units make no word common, raise no floor and take no place for the units of others. So
a unit is also judged as if another party's units had never been registered. If its evidence suffices then, it is kept:

  - a unit of the host: as if there were no third parties;
  - a unit of a third party: as if one other third party were absent. That is the party of the first unit of all, and
    the party whose units have most of the text's words. The first twenty units are kept, for each of the two.

So no third party suppresses a unit of the host or of another third party. Ranks stay as they are: a unit that is kept
in this way stands after those that are kept anyway, and its reason says so.
*/

%!  ranked(+Module, +View, +Count, +Reading, +Evidence, -Ranked, -Floors) is det.
%
%   The units whose evidence suffices, best first (rlm_rank), and after them those that are spared. `Evidence` is that of
%   all units, `View` is of all units, `Count` of which cannot be shown. Where there are more than the candidate limit
%   takes, those who are first in a view of theirs come first.
%
%   @error more_words, more_views(Views), where a scorer outside left out what could matter

ranked(M, View, Count, Reading, Evidence, Ranked, Floors) :-
    ranked_in(M, View, counts(View), Evidence, Merged, Plain, Floors),
    (   mixed(M, View)
    ->  with_spared(M, View, Count, Reading, Evidence, Merged, Plain, Ranked)
    ;   Ranked = Plain
    ).

with_spared(M, All, Count, Reading, Evidence, Merged, Plain, Ranked) :-
    Evidence = evidence(_, _, _, _, Input),
    All = view(_, Hidden, _),
    views(M, All, Count, Reading, Input.words, Plain, Views),
    counted(Views, Input.words),
    findall(Who-Cs,
            ( member(Who, Views),
              spared_limit(Who, Most),
              view(M, Who, Hidden, Count, View),
              evidence(M, View, Reading, Input, Viewed),
              ranked_in(M, View, counts(All), Viewed, _, Cs0, _),
              include(judged(Who, M), Cs0, Cs1),
              first_that_count(Cs1, All, Most, Cs) ),
            Seen),
    numbers(Plain, Is),
    findall(I-in, member(I, Is), Pairs),
    list_to_assoc(Pairs, In),
    spared(Seen, Merged, In, Spared),
    append(Plain, Spared, Candidates),
    findall(Js, ( member(_-Cs, Seen), counting(Cs, All, Js) ), Lists),
    counting(Plain, All, First),
    fair(Candidates, All, [First|Lists], Input.limit, Ranked).

%   first_that_count(+Cs0, +View, +Most, -Cs): up to so many of those that may be shown, and what stands among them.
first_that_count([], _, _, []).
first_that_count([C|Cs0], View, Left, Cs) :-
    (   Left == infinite
    ->  Cs = [C|Cs0]
    ;   arg(1, C, I),
        \+ counts(View, I)
    ->  Cs = [C|Rest],
        first_that_count(Cs0, View, Left, Rest)
    ;   Left > 0
    ->  Cs = [C|Rest],
        Fewer is Left - 1,
        first_that_count(Cs0, View, Fewer, Rest)
    ;   Cs = []
    ).

%   counting(+Cs, +View, -Is): the numbers of those that may be shown.
counting(Cs, View, Is) :-
    numbers(Cs, Js),
    include(counts(View), Js, Is).

%   spared_limit(?View, ?N): the most units of third parties that a view keeps; to show too many has a cost too.
spared_limit(host, infinite).
spared_limit(without(_), 20).

%   judged(+Who, +M, +C) is semidet: the units that a view is for.
judged(host, M, C) :-
    arg(1, C, I),
    in_view(host, M, I).
judged(without(Origin), M, C) :-
    arg(1, C, I),
    M:origin(I, Own),
    Own \== Origin.

%   views(+M, +All, +Count, +Reading, +Words, +Plain, -Views)
views(M, All, Count, Reading, Words, Plain, Views) :-
    findall(Who, viewed(M, All, Count, Reading, Words, Plain, Who), Views0),
    sort(Views0, Views).

viewed(M, view(_, Hidden, _), Count, _, _, _, host) :-
    view(M, host, Hidden, Count, View),
    view_size(M, View, Size),
    Size > 0.
viewed(M, All, _, Reading, Words, Plain, without(Origin)) :-
    several(M, All),                      % without the one that there is, it is the host's view
    loudest(M, All, Reading, Words, Plain, Origin).

%   loudest(+M, +All, +Reading, +Words, +Plain, -Origin) is nondet: the third party of the first unit, and the one with
%   most of the words, which a scorer outside has counted.
loudest(M, All, _, _, Plain, Origin) :-
    once(( member(c(I, _, _, _), Plain),
           M:origin(I, Origin),
           counts(All, I) )).
loudest(M, All, reading(_, _, Terms), Words, _, Origin) :-
    (   Words == null
    ->  pairs_keys(Terms, Said),
        wordiest(M, All, Said, Origin)
    ;   member(Origin, Words.wordiest)
    ).

%   counted(+Views, +Words): a scorer outside has counted them all.
%
%   @error more_views(Views)
counted(Views, Words) :-
    (   Words == null
    ->  true
    ;   findall(View,
                ( member(View, Views),
                  view_row(View, Kind, Origin),
                  \+ memberchk([Kind, Origin, _], Words.views) ),
                Missing),
        ( Missing == [] -> true ; throw(more_views(Missing)) )
    ).

numbers([], []).
numbers([C|Cs], [I|Is]) :-
    arg(1, C, I),
    numbers(Cs, Is).

%   spared(+Seen, +Merged, +In, -Cs): those who are not in yet, with what counts for them among all.
spared(Seen, Merged, In0, Cs) :-
    findall(I-spared(View, Score),
            ( member(View-Found, Seen),
              member(c(I, Score, _, _), Found),
              \+ get_assoc(I, In0, _) ),
            New),
    (   New == []
    ->  Cs = []
    ;   findall(I-(S-L-Es), member(c(I, S, L, Es), Merged), Known0),
        list_to_assoc(Known0, Known),
        spare_each(New, Known, In0, Cs)
    ).

spare_each([], _, _, []).
spare_each([I-Kind|New], Known, In0, Cs) :-
    (   get_assoc(I, In0, _)
    ->  spare_each(New, Known, In0, Cs)
    ;   ( get_assoc(I, Known, S-L-Es) -> true ; S = 0, L = 0, Es = [] ),
        Kind = spared(View, Score),
        Cs = [c(I, S, L, [e(spared(View), Score)|Es])|Rest],
        put_assoc(I, In0, in, In),
        spare_each(New, Known, In, Rest)
    ).

                /*******************************
                *           THE LIMIT          *
                *******************************/

%   fair(+Cs0, +View, +Lists, +Limit, -Cs): where more may be shown than the limit takes, those who are in turn first on
%   the lists of units come before the others.
fair(Cs0, View, Lists, Limit, Cs) :-
    counting(Cs0, View, Counting),
    length(Counting, Length),
    (   Length =< Limit
    ->  Cs = Cs0
    ;   empty_assoc(None),
        in_turn(Lists, Limit, None, First),
        findall(C, ( member(C, Cs0), first(C, First) ), Firsts),
        findall(C, ( member(C, Cs0), \+ first(C, First) ), Others),
        append(Firsts, Others, Cs)
    ).

first(C, First) :-
    arg(1, C, I),
    get_assoc(I, First, _).

in_turn(Lists, Left, First0, First) :-
    (   Lists == []
    ->  First = First0
    ;   turn(Lists, Left, Left1, First0, First1, Lists1),
        (   Left1 =:= 0
        ->  First = First1
        ;   in_turn(Lists1, Left1, First1, First)
        )
    ).

turn([], Left, Left, First, First, []).
turn([Is|Lists0], Left0, Left, First0, First, Lists) :-
    (   Left0 > 0,
        next(Is, First0, I, Rest)
    ->  put_assoc(I, First0, true, First1),
        Left1 is Left0 - 1,
        Lists = [Rest|Lists1],
        turn(Lists0, Left1, Left, First1, First, Lists1)
    ;   turn(Lists0, Left0, Left, First0, First, Lists)
    ).

next([I|Is], First, J, Rest) :-
    (   get_assoc(I, First, _)
    ->  next(Is, First, J, Rest)
    ;   J = I,
        Rest = Is
    ).

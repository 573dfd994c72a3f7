:- encoding(utf8).
:- module(rlm_rank,
          [ ranked_in/7,          % +Module, +View, :Usable, +Evidence, -Merged, -Ranked, -Floors
            best_first/3          % +Module, +Cs0, -Cs
          ]).
:- set_prolog_flag(optimise, true).           % arithmetic in place; this file only
:- use_module(library(aggregate), [aggregate_all/3]).
:- use_module(library(apply), [foldl/4, partition/4]).
:- use_module(library(assoc), [get_assoc/3, list_to_assoc/2, put_assoc/4]).
:- use_module(library(lists), [append/3, member/2]).
:- use_module(library(pairs), [pairs_values/2]).
:- use_module(rlm_change, [reads_first/5]).
:- use_module(rlm_evidence, [intent_least/1]).
:- use_module(rlm_origin, [view_size/3]).

/** <module> How units that may matter stand among each other

All evidence of a unit is added up; what is too little falls out, and the rest is put in one order. Priority and id
break ties. Whether a unit may be shown is asked only to find the best one that may, and to count the places that are
taken; nobody is turned away here for it.
*/

:- meta_predicate
    ranked_in(+, +, 1, +, -, -, -),
    lifted(+, +, 1, +, +, -),
    wanted(+, +, 1, -, -),
    enough_words(+, 1, +, +, +, +, +),
    heard(+, +, 1, -),
    spread_names(+, +, 1, -),
    halved(+, +, 1, +, -).

%   sensor_noise(?Score): what a sensor gives the best unit of a text that asks for none of them.
sensor_noise(1400).

%   handful(?N): in a catalog of fewer units no word is rare, and to show too many costs little.
handful(20).

%   safe(?N): the relative floor holds from the place after these on.
safe(5).

%   rising(?Thousandths): each place that is taken, those first ones too, asks this share of the best score more of the
%   next: a few units come in easily, a crowd does not.
rising(10).

%   intent_factor(?Thousandths): no unit that is best for a part of the text counts less than this share of the
%   best score of all.
intent_factor(800).

%!  ranked_in(+Module, +View, :Usable, +Evidence, -Merged, -Ranked, -Floors) is det.
%
%   The units whose evidence is at or above the floor, best first: `c(I, Score, Lexical, Others)`, by
%   score, then priority, then id. A name is above every floor, and what a need wants is added; for words the floor also rises
%   with the best score of a unit that may be shown (`call(Usable, I)`), and with each such unit that is in, so that a
%   clear answer does not drag a crowd along; the first five need not reach it. Where not even the best reaches
%   `abstain`, words, examples and sensors bring in nothing. `Floors` is `floors(Absolute, Relative)`, the second one as
%   the last place left it. `Merged` are all units with evidence, by I.
%
%   @error more_words, where a scorer outside left out what could matter

ranked_in(M, View, Usable, evidence(Words, Others, _, Intents, Input), Merged, Ranked, floors(Floor, Relative)) :-
    merged(Words, Others, Merged),
    apart(Others, Merged, Unneeded, Needed),
    Floor = Input.floor,
    Least is 1000 * Floor,
    findall(c(I, Score, Lexical, Es),
            ( member(c(I, Score, Lexical, Es), Unneeded),
              above_floor(Es, Score, Floor, Least) ),
            Above),
    best_first(M, Above, Floored0),
    best_usable(Floored0, Usable, Best, ForBest),
    lifted(Intents, M, Usable, Best, Floored0, Floored),
    heard(ForBest, Others, Usable, Heard),
    clear_floor(M, View, Input, Heard, Best, Floor, First, Step, Safe),
    above_relative(Floored, Usable, places(Safe, Best, First), Floor, Step, Kept0, places(Left, Last, Relative0)),
    Relative is (Relative0 + 999) // 1000,        % who is out is below it, in thousandths too
    enough_words(Input.words, Usable, Kept0, First, Step, Left, Last),
    with_needed(Needed, M, Kept0, Kept),
    spread_names(Kept, M, Usable, Placed),
    ( get_dict(wants_change, Input, Wanted) -> true ; Wanted = true ),
    reads_first(M, Usable, Wanted, Placed, Ranked).

%   apart(+Others, +Merged, -Unneeded, -Needed): what units count without what a need says of them, and the needed ones. A need
%   only adds: it raises no floor, takes no place, and gives no other unit a better one.
apart(Others, Merged, Unneeded, Needed) :-
    (   member(_-E, Others),
        needed(E)
    ->  part(Merged, Unneeded, Needed)
    ;   Unneeded = Merged,
        Needed = []
    ).

part([], [], []).
part([C|Merged], Unneeded, Needed) :-
    C = c(I, Score, Lexical, Es),
    partition(needed, Es, Wanted, Own),
    (   Wanted == []
    ->  Unneeded = [C|Unneeded1],
        Needed = Needed1
    ;   foldl(add_score, Wanted, 0, More),
        Rest is Score - More,
        Needed = [c(I, Score, Lexical, Es)-Wanted|Needed1],
        (   Own == [],
            Lexical =:= 0
        ->  Unneeded = Unneeded1
        ;   Unneeded = [c(I, Rest, Lexical, Own)|Unneeded1]
        )
    ),
    part(Merged, Unneeded1, Needed1).

needed(e(need(_), _)).
needed(e(trigger(need, _), _)).

%   with_needed(+Needed, +M, +Kept0, -Kept): those that a need wants too, each with all that speaks for it.
with_needed([], _, Kept0, Kept) =>
    Kept = Kept0.
with_needed(Needed, M, Kept0, Kept) =>
    findall(I-Wanted, ( member(C-Wanted, Needed), arg(1, C, I) ), Pairs),
    list_to_assoc(Pairs, ByUnit),
    findall(C, ( member(C0, Kept0), whole(C0, ByUnit, C) ), Wholes),
    findall(I-in, ( member(C, Kept0), arg(1, C, I) ), In0),
    sort(In0, In1),
    list_to_assoc(In1, In),
    findall(C, ( member(C-_, Needed), arg(1, C, I), \+ get_assoc(I, In, _) ), More),
    append(Wholes, More, Both),
    best_first(M, Both, Kept).

whole(C0, ByUnit, C) :-
    C0 = c(I, Score0, Lexical, Es0),
    (   get_assoc(I, ByUnit, Wanted)
    ->  foldl(add_score, Wanted, Score0, Score),
        append(Es0, Wanted, Es),
        C = c(I, Score, Lexical, Es)
    ;   C = C0
    ).

%!  best_first(+Module, +Cs0, -Cs) is det.
%
%   Candidates `c(I, Score, _, _)` by score, then priority, then id.

best_first(M, Cs0, Cs) :-
    findall(k(Down, Back, Id)-C,
            ( member(C, Cs0),
              C = c(I, Score, _, _),
              M:unit(I, Id, _, Priority, _, _),
              Down is -Score,
              Back is -Priority ),
            Keyed),
    keysort(Keyed, Sorted),
    pairs_values(Sorted, Cs).

%   heard(+ForBest, +Others, :Usable, -N): so many sensors speak for the best unit, and one at least where any says
%   something of a unit here that may be shown; what they say of others does not count.
heard(ForBest, Others, Usable, N) :-
    findall(Name, member(e(sensor(Name), _), ForBest), Names),
    length(Names, N0),
    (   N0 =:= 0,
        member(I-e(sensor(_), _), Others),
        call(Usable, I)
    ->  N = 1
    ;   N = N0
    ).

%   clear_floor(+M, +View, +Input, +Heard, +Best, +Floor, -First, -Step, -Safe): the floor of the first place, in
%   millionths, by how much each place raises it, and how many are safe from it; none, and a floor above the best, where
%   nothing fits. Who asks for no relative floor gets none that rises.
clear_floor(M, View, Input, Heard, Best, Floor, First, Step, Safe) :-
    view_size(M, View, Size),
    handful(Handful),
    sensor_noise(Noise),
    Least is Input.abstain + Heard * Noise,
    (   Size >= Handful,
        Input.abstain > 0,
        Best < Least
    ->  First is 1000 * max(Floor, Least),
        Step = 0,
        Safe = 0
    ;   First is max(1000 * Floor, Best * Input.relative_floor),
        rising(Rising),
        ( Input.relative_floor =:= 0 -> Step = 0 ; Step is Best * Rising ),
        safe(Safe)
    ).

%   lifted(+Intents, +M, :Usable, +Best, +Cs0, -Cs): no intent of a text with several starves: the unit that is best
%   for one is raised to a share of the best score of all.
%
%   @error more_words
lifted(Intents, M, Usable, Best, Cs0, Cs) :-
    intent_factor(Factor),
    Least is Best * Factor // 1000,
    findall(I-Part, ( member(Intent, Intents), wanted(Intent, M, Usable, I, Part) ), Wanted),
    lift(Cs0, Wanted, Least, Cs1, Changed),
    (   Changed == true
    ->  best_first(M, Cs1, Cs)
    ;   Cs = Cs0
    ).

%   wanted(+Intent, +M, :Usable, -I, -Part) is semidet: the unit that may be shown and in which the part counts most.
wanted(intent(Part, Pairs, Rest), M, Usable, I, Part) :-
    findall(k(Down, Back, Id)-J,
            ( member(J-S, Pairs),
              M:unit(J, Id, _, Priority, _, _),
              Down is -S,
              Back is -Priority ),
            Keyed),
    keysort(Keyed, Sorted),
    (   member(k(Most, _, _)-I0, Sorted),
        call(Usable, I0)
    ->  ( -Most > Rest -> true ; throw(more_words) ),
        I = I0
    ;   intent_least(Least),
        Rest >= Least
    ->  throw(more_words)
    ).

%   lift(+Cs0, +Wanted, +Least, -Cs, -Changed)
lift([], _, _, [], _).
lift([C0|Cs0], Wanted, Least, [C|Cs], Changed) :-
    C0 = c(I, Score, Lexical, Es),
    (   Wanted \== [],
        Score < Least,
        memberchk(I-Part, Wanted)
    ->  More is Least - Score,
        C = c(I, Least, Lexical, [e(intent(Part), More)|Es]),
        Changed = true
    ;   C = C0
    ),
    lift(Cs0, Wanted, Least, Cs, Changed).

%   enough_words(+Words, :Usable, +Kept, +First, +Step, +Left, +Last): a scorer outside may leave out units that cannot
%   matter; where one of them could (the floor at its place is no higher, a safe place is left, or was given to less),
%   more are wanted.
%
%   @error more_words
enough_words(Words, Usable, Kept, First, Step, Left, Last) :-
    (   Words \== null,
        Rest = Words.rest,
        Rest > 0,
        (   Left > 0
        ;   Last =< Rest
        ;   aggregate_all(count,
                          ( member(c(I, Score, _, _), Kept),
                            Score > Rest,
                            call(Usable, I) ),
                          Before),
            First + Before * Step =< 1000 * Rest
        )
    ->  throw(more_words)
    ;   true
    ).

%   spread_names(+Kept, +M, :Usable, -Placed): as reads_first/5 takes it (rlm_change). Of units with the
%   same bare name, each further one stands where half the score of the one before would put it, so that one name does
%   not fill the first places. Units that may not be shown do not count.
spread_names(Kept, M, Usable, Placed) :-
    findall(Name-C, ( member(C, Kept), arg(1, C, I), M:called(I, Name) ), Named),
    keysort(Named, Sorted),
    repeated(Sorted, Repeated),
    (   Repeated == []
    ->  Placed = plain(Kept)
    ;   list_to_assoc(Repeated, Counts),
        halved(Named, M, Usable, Counts, Keyed),
        keysort(Keyed, Ordered),
        Placed = keyed(Ordered)
    ).

%   repeated(+Sorted, -Pairs): `Name-0` for each name that more than one unit has.
repeated([], []).
repeated([Name-_|Named], Pairs) :-
    (   Named = [Next-_|_],
        Next == Name
    ->  after_name(Named, Name, Rest),
        Pairs = [Name-0|More],
        repeated(Rest, More)
    ;   repeated(Named, Pairs)
    ).

after_name([Name-_|Named], Name, Rest) :-
    !,
    after_name(Named, Name, Rest).
after_name(Rest, _, Rest).

halved([], _, _, _, []).
halved([Name-C|Named], M, Usable, Counts0, [k(Down, Back, Id)-C|Keyed]) :-
    C = c(I, Score, _, Others),
    M:unit(I, Id, _, Priority, _, _),
    Back is -Priority,
    (   get_assoc(Name, Counts0, Before)
    ->  Count is Before + 1,
        ( call(Usable, I) -> put_assoc(Name, Counts0, Count, Counts) ; Counts = Counts0 )
    ;   Before = 0,
        Counts = Counts0
    ),
    (   Before > 0,
        \+ memberchk(e(name(_), _), Others)
    ->  Down is -(Score >> min(Before, 30))
    ;   Down is -Score
    ),
    halved(Named, M, Usable, Counts, Keyed).

best_usable([], _, 0, []).
best_usable([c(I, Score, _, Es)|Cs], Usable, Best, ForBest) :-
    (   call(Usable, I)
    ->  Best = Score,
        ForBest = Es
    ;   best_usable(Cs, Usable, Best, ForBest)
    ).

%   above_relative(+Cs, :Usable, +Places0, +Floor, +Step, -Kept, -Places): the first places of units that may be
%   shown are safe from the relative floor: `places(Left, Last, Relative)`, how many nothing has taken, the score of
%   what took the last one, and the floor of the next place (millionths).
above_relative([], _, Places, _, _, [], Places).
above_relative([C|Cs], Usable, Places0, Floor, Step, Kept, Places) :-
    C = c(I, Score, _, Es),
    Places0 = places(Left0, Last, Relative0),
    (   ( Left0 > 0 ; above_floor(Es, Score, Floor, Relative0) )
    ->  Kept = [C|Rest],
        (   \+ call(Usable, I)
        ->  Places1 = Places0                   % it would be in
        ;   Left0 > 0
        ->  Left is Left0 - 1,
            Relative is Relative0 + Step,
            Places1 = places(Left, Score, Relative)
        ;   Relative is Relative0 + Step,
            Places1 = places(0, Last, Relative)
        )
    ;   Kept = Rest,
        Places1 = Places0
    ),
    above_relative(Cs, Usable, Places1, Floor, Step, Rest, Places).

%   above_floor(+Others, +Score, +Floor, +Relative): the relative floor in millionths. Names are above every
%   floor; triggers and signals need only reach the absolute one.
above_floor(_, Score, _, Relative) :-
    Score * 1000 >= Relative,
    !.
above_floor(Others, _, Floor, _) :-
    Others = [_|_],
    (   member(e(name(_), _), Others)
    ->  true
    ;   foldl(add_pointed, Others, 0, Pointed),
        Pointed >= Floor,
        Pointed > 0
    ).

%   soft(+Kind): evidence that is counted like words.
soft(history(_)).
soft(intent(_)).
soft(sensor(_)).
soft(example(_)).

add_pointed(e(Kind, Score), Sum0, Sum) :-
    (   soft(Kind)
    ->  Sum = Sum0
    ;   Sum is Sum0 + Score
    ).

%   merged(+Words, +Others, -Merged): both lists stand by I. A scorer outside tells the words of every unit that
%   has other evidence, so a unit without word scores has none of the words.
merged([], [], Merged) =>
    Merged = [].
merged([I-S|Words], [], Merged) =>
    Merged = [c(I, S, S, [])|Rest],
    merged(Words, [], Rest).
merged(Words, [J-E|Others], Merged) =>
    (   Words = [I-S|Rest],
        I < J
    ->  Merged = [c(I, S, S, [])|More],
        merged(Rest, [J-E|Others], More)
    ;   same_unit([J-E|Others], J, Es, After),
        (   Words = [J-S|Rest]
        ->  Lexical = S
        ;   Rest = Words,
            Lexical = 0
        ),
        foldl(add_score, Es, Lexical, Score),
        Merged = [c(J, Score, Lexical, Es)|More],
        merged(Rest, After, More)
    ).

same_unit([J-E|Others], J, [E|Es], After) :-
    !,
    same_unit(Others, J, Es, After).
same_unit(After, _, [], After).

add_score(e(_, S), Sum0, Sum) :-
    Sum is Sum0 + S.

:- encoding(utf8).
:- module(rlm_negation_list,
          [ asked_for/2, objects//2, objects//3, spoken_of/2
          ]).
:- use_module(library(lists), [append/3, member/2]).
:- use_module(rlm_negation_clause, [by_means//0, clause_rest//0, exceptive//1, harmless//0]).
:- use_module(rlm_negation_phrase,
              [ ahead//1, articles//0, here//1, joint//1, noun_phrase//1, optional//1, using//1,
                verb_ahead//0, verb_phrase//3
              ]).
:- use_module(rlm_negation_words,
              [ article/1, closed/1, content/1, finite/1, limits/1, noun/1, object_pronoun/1,
                universal/1, use/3, verb/3
              ]).

/** <module> What a negation speaks of

From *github, slack or the web tools, use git* the list, up to where its scope ends: at a comma that begins a new
clause, at another verb, at a word that belongs to no name. An item is `item(Joint, Kind, Verb, Words)`: Joint
stands before it (`first`, `comma`, `and`, `or`, `item`, `'('`), Kind is `noun`, `verb`, `use` or `using`, and
Verb is what nouns after it take (*do not read files or folders*).

    ?- phrase(objects(noun, Phrases), [use, the, github, tools, or, slack, p(','), use, git], Rest).
    Phrases = [[github, tools], [slack]], Rest = [p(','), use, git].
*/

%   objects(+Context, -Phrases)//: what a negation speaks of; nothing, if it only holds under a condition.
%   Context is `verb` (the first word is one), `lead` (a list before its clause) or `noun`.
objects(Context, Phrases) -->
    optional(p(':')),
    optional(p(item)),
    all_of(All),
    objects(Context, All, Phrases).

objects(Context, All, Phrases) -->
    items(Context, Items),
    { Items == [] -> All == all ; true },
    (   limited(All)
    ->  { Phrases = [] }
    ;   instrument(Items, Instruments)
    ->  { named(Instruments, none, Phrases) }
    ;   { named(Items, none, Phrases) }
    ).

%   all_of(-All)//: `all` if the list begins with a word like *any*.
all_of(All) -->
    (   ahead(Word),
        { universal(Word) }
    ->  { All = all },
        ( { closed(Word) } -> [_] ; [] )
    ;   { All = some }
    ).

%   limited(+All)//: *unless I say so*, *without asking*, *except Y*: not a prohibition of the whole.
limited(All) -->
    ( [p(',')] -> [] ; optional(p('(')) ),
    [Word],
    (   { limits(Word) }
    ->  clause_rest
    ;   { Word == more }
    ->  [than]
    ;   { Word == too }
    ->  [Often],
        { memberchk(Often, [often, much, many]) }
    ;   { Word == if }
    ->  \+ harmless,
        clause_rest
    ;   { Word == but }
    ->  { All == all },
        \+ verb_ahead,
        items(noun, [_|_])
    ;   exceptive(Word),
        items(noun, _)
    ).

%   instrument(+Items, -Instruments)//: *do not send mail using X* is about X.
instrument([item(_, verb, _, _)|_], Instruments) -->
    [Word],
    { memberchk(Word, [using, via]) },
    items(noun, Instruments).

%   named(+Items, +Verb, -Phrases): a noun in a list of verbs takes the verb before it, and a verb without
%   an object the object of the next.
named([], _, []).
named([item(_, Kind, Verb0, Words)|Items], Verb, Phrases) :-
    (   Kind == verb
    ->  Verb1 = Verb0,
        with_object(Words, Items, Words1)
    ;   Kind == noun, Verb \== none
    ->  Verb1 = Verb,
        (   Words = [Single],
            verb(Single, _, _)
        ->  with_object(Words, Items, Words1)
        ;   Words1 = [Verb|Words]
        )
    ;   Verb1 = none,
        Words1 = Words
    ),
    ( Words1 == [] -> Phrases = Rest ; Phrases = [Words1|Rest] ),
    named(Items, Verb1, Rest).

with_object(Words, Items, Full) :-
    (   Words = [Verb],
        member(item(_, verb, _, [_|Object]), Items),
        Object = [_|_]
    ->  Full = [Verb|Object]
    ;   Full = Words
    ).

%   items(+Context, -Items)//: `item(Joint, Kind, Verb, Words)`; Kind is `noun`, `verb`, `use` or `using`.
items(Context, Items) -->
    (   item(Context, Kind, Verb, Words)
    ->  more_items(24, Context, Kind, More0, End),
        here(Next),
        { kept(Context, End, Next, More0, More),
          Items = [item(first, Kind, Verb, Words)|More] }
    ;   { Items = [] }
    ).

%   more_items(+Bound, +Context, +First, -Items, -End)//: End is the joint after which there was no item but
%   the subject of a clause, else `none`.
more_items(N, Context, First, Items, End) -->
    here(Before),
    (   { N > 0 },
        joint(Joint),
        item(next(Context), Kind, Verb, Words),
        { joined(Joint, Context, First, Kind) }
    ->  (   { Context \== neither },
            another_clause(Joint)
        ->  { Items = [], End = Joint },
            return(Before)
        ;   { N1 is N-1,
              Items = [item(Joint, Kind, Verb, Words)|More] },
            ( { Joint == '(' } -> optional(p(')')) ; [] ),
            more_items(N1, Context, First, More, End)
        )
    ;   { Items = [], End = none }
    ).

return(Tokens, _, Tokens).

%   kept(+Context, +End, +Next, +Items, -Kept): a comma may also end the list. In *avoid A, B and C are fine* it
%   does; after *A or B* it does; after verbs only *or* holds the list together; before its clause only *and*
%   and *or* do, and a comma follows.
kept(Context, End, Next, Items, Kept) :-
    (   memberchk(End, [and, or])
    ->  before_last_comma(Items, Kept)
    ;   last_conjunction(Items, Front, Last, Commas)
    ->  (   comma_item(Front, Kind),
            (   Context == lead, \+ clause_over(Next)
            ;   Kind == verb, Last = item(and, _, _, _)
            ;   Context == verb, Last = item(and, _, _, _)
            )
        ->  before_first_comma(Items, Kept)
        ;   Commas = [item(comma, _, _, _)|_]
        ->  append(Front, [Last], Kept)
        ;   Kept = Items
        )
    ;   ( Context \== noun ; memberchk(item(comma, verb, _, _), Items) )
    ->  before_first_comma(Items, Kept)
    ;   Kept = Items
    ).

clause_over([]).
clause_over([p(_)|_]).

comma_item(Items, Kind) :-
    member(item(comma, Kind, _, _), Items).

last_conjunction(Items, Front, Last, Rest) :-
    append(Front, [Last|Rest], Items),
    conjoined(Last),
    \+ ( member(Item, Rest), conjoined(Item) ),
    !.

conjoined(item(Joint, _, _, _)) :- memberchk(Joint, [and, or]).

before_first_comma([], []).
before_first_comma([Item|Items], Kept) :-
    (   Item = item(comma, _, _, _)
    ->  Kept = []
    ;   Kept = [Item|Rest],
        before_first_comma(Items, Rest)
    ).

before_last_comma(Items, Kept) :-
    (   append(Front, [item(comma, _, _, _)|After], Items),
        \+ memberchk(item(comma, _, _, _), After)
    ->  Kept = Front
    ;   Kept = Items
    ).

%   joined(+Joint, +Context, +First, +Kind) is semidet: may an item of this kind go on the list?
joined(or, _, _, _).
joined(and, _, _, noun).
joined(and, _, _, using).
joined(and, Context, verb, verb) :- Context \== verb.
joined(comma, _, _, noun).
joined(comma, _, _, using).
joined(comma, _, verb, verb).
joined('(', _, _, noun).
joined(item, _, _, noun).

%   another_clause(+Joint)//: what was read as an item begins a clause: *and git is*, *and print the*.
another_clause(Joint) -->
    ahead(Word),
    { atom(Word),
      (   finite(Word)
      ;   article(Word)
      ;   use(Word, _, _)
      ;   use(_, Word, _)
      ;   object_pronoun(Word)
      ;   Joint \== or,
          memberchk(Word, [instead, only, rather])
      ),
      ! }.

%   item(+Context, -Kind, -Verb, -Words)//
item(Context, Kind, Verb, Words) -->
    (   using(Kind0)
    ->  { Kind = Kind0, Verb = none },
        ( noun_phrase(Words0) -> { Words = Words0 } ; these, { Words = [] } )
    ;   verb_phrase(Context, Verb0, Words0)
    ->  { Kind = verb, Verb = Verb0, Words = Words0 }
    ;   { Kind = noun, Verb = none },
        noun_phrase(Words)
    ).

%   these//: *these: X, Y*
these --> ( articles, ahead(p(':')) -> [] ; [] ).

                /*******************************
                *           SUBJECTS          *
                *******************************/

%   spoken_of(+Before, -Phrases) is semidet: the subject of *is not allowed*, from its last word back.
spoken_of(Before, Phrases) :-
    segment(Before, 16, [], Segment0, Stop),
    subject_list(Segment0, Stop, Segment),
    phrase((by_means, items(noun, Items)), Segment),
    Items = [_|_],
    named(Items, none, Phrases).

%   asked_for(+Before, -Phrases) is semidet: *make sure that X is* not used.
asked_for(Before, Phrases) :-
    segment(Before, 16, [], Segment, Stop),
    content(Stop),
    phrase((by_means, items(noun, Items)), Segment),
    named(Items, none, Phrases).

segment(Before, N, Segment0, Segment, Stop) :-
    (   Before = [Token|Earlier],
        N > 0,
        of_subject(Token)
    ->  N1 is N-1,
        segment(Earlier, N1, [Token|Segment0], Segment, Stop)
    ;   Segment = Segment0,
        ( Before = [Stop|_] -> true ; Stop = p(stop) )
    ).

of_subject(name(_)).
of_subject(p(',')).
of_subject(Word) :- noun(Word), \+ use(_, Word, _), \+ content(Word), !.
of_subject(Word) :- memberchk(Word, [and, or, nor, of]), !.
of_subject(Word) :- article(Word).

%   subject_list(+Segment0, +Stop, -Segment): the commas of the subject are those of a list that *and* closes.
subject_list([of|Segment], _, Segment) :- !.
subject_list(Segment0, Stop, Segment) :-
    (   (   \+ ( member(Word, Segment0), memberchk(Word, [and, or, nor]) )
        ;   atom(Stop), ( use(Stop, _, _) ; verb(Stop, _, _) )
        ;   Segment0 = [p(',')|_]
        ),
        append(_, [p(',')|Segment1], Segment0)
    ->  subject_list(Segment1, p(','), Segment)
    ;   Segment = Segment0
    ).

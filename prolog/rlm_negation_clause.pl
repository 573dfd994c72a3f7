:- encoding(utf8).
:- module(rlm_negation_clause,
          [ adverbs//0, by_means//0, choosing/1, clause_rest//0, closing//0, exceptive//1, flipped/2, harmless//0,
            hopeless//1, imperative/2, in_favour//2, invites/1, main_clause//1, opens/1, place/2,
            polite/1, preferring/1, questioned/1, relative/2, subject/2, subject_ahead//0, universal/2,
            without_adverb/2, works/1
          ]).
:- use_module(rlm_negation_phrase, [ahead//1, ahead_using//0, articles//0, literal//1, optional//1]).
:- use_module(rlm_negation_words,
              [ adverb/1, adverbial/2, article/1, auxiliary/1, closed/1, closer/1, content/1, cue/2,
                gerund/1, hopeless/1, negative/2, noun/1, polite_word/1, preferring_word/1,
                preposition/1, pronoun/2, reminds/1, universal/1, use/3, verb/3, wishing/1,
                working_word/1
              ]).

:- meta_predicate among(1, +, +).

/** <module> The clause around a negation

Who is speaking, whether the clause is negative already, whether it is a question, a condition or a report: from
the words *before* (a list, the last word first), and from those *ahead* (DCGs on plain tokens). Each looks at a
bounded number of words; only clause_rest//0 reads on, and what it reads is not read again.
*/

                /*******************************
                *            BEFORE           *
                *******************************/

%   flipped(+Kind, +Before) is semidet: the same clause is negative already.
flipped(Kind, Before) :-
    flipped(Before, 16, none, Kind).

flipped([Token|Before], N, Later, Kind) :-
    N > 0,
    (   negative(Token, Kind)
    ->  \+ ( Token == not, ( Later == only ; reminds(Later) ) )
    ;   ends_clause(Token, Kind, Later, Before)
    ->  fail
    ;   ( reminds(Later) -> Later1 = Later ; Later1 = Token ),
        N1 is N-1,
        flipped(Before, N1, Later1, Kind)
    ).

ends_clause(p(stop), _, _, _).
ends_clause(p(item), _, _, _).
ends_clause(p(','), without, _, _).
ends_clause(p(','), except, Later, _) :- starts_clause(Later).
ends_clause(but, _, _, _).
ends_clause(so, _, _, _).
ends_clause(then, _, _, _).
ends_clause(instead, _, _, _).
ends_clause(please, _, _, _).
ends_clause(and, _, Later, _) :- starts_clause(Later).
ends_clause(use, _, _, Before) :- ( Before = [] ; Before = [p(_)|_] ), !.

starts_clause(Word) :-
    atom(Word),
    ( use(Word, _, _) ; verb(Word, _, _) ; cue(Word, _) ; memberchk(Word, [do, just]) ),
    !.

%   subject(+Earlier, -Who): of whom the verb speaks: of `you`, often unsaid; of `me`; of a `thing` or of `things`,
%   by their name; of some `other`.
subject(Earlier, Who) :-
    (   Earlier = [Word|Words],
        atom(Word)
    ->  (   pronoun(Word, Who0)
        ->  Who = Who0
        ;   noun(Word),
            \+ use(Word, _, _),
            phrase(noun_back(8), Words, Rest),
            \+ ( Rest = [W|_], atom(W), ( preposition(W) ; use(W, _, _) ; use(_, W, _) ) )
        ->  ( plural(Word) -> Who = things ; Who = thing )
        ;   Who = you
        )
    ;   Who = you
    ).

plural(people).
plural(Word) :- sub_atom(Word, _, 1, 0, s).

noun_back(N) -->
    (   { N > 0 },
        [Word],
        { noun(Word) ; article(Word) }
    ->  { N1 is N-1 },
        noun_back(N1)
    ;   tail
    ).

tail(Tokens, Tokens).

%   imperative(+Word, +Before) is semidet: the verb is said to the model, or as a wish.
imperative(Word, Before0) :-
    without_adverb(Before0, Before),
    (   Before = [Last|Earlier],
        atom(Last),
        \+ gerund(Word)
    ->  told(Last, Word, Earlier)
    ;   true
    ).

told(Last, Word, Earlier) :-
    (   Last == to
    ->  Earlier = [Wish|_],
        ( Word == avoid -> Wish \== how ; wishing(Wish) )
    ;   pronoun(Last, Who)
    ->  memberchk(Who, [you, me]),
        \+ questioned([Last|Earlier])
    ;   auxiliary(Last)
    ->  \+ memberchk(Last, [did, does])
    ;   ( article(Last) ; preposition(Last) )
    ->  fail
    ;   Word == avoid
    ->  true
    ;   closed(Last)
    ->  true
    ;   reminds(Last)
    ).

%   questioned(+Before) is semidet: *should I not*; but *could you not* asks for it.
questioned([Who, Aux|_]) :-
    pronoun(Who, _),
    auxiliary(Aux),
    \+ ( Who == you, memberchk(Aux, [can, could, would, will]) ).

invites(Before) :-
    (   Before = [Word|_],
        atom(Word)
    ->  memberchk(Word, [please, rather, better, and, or, but, so, 'let\'s', lets, you, just])
    ;   true
    ).

%   opens(+Before) is semidet: a clause or an object begins here.
opens(Before) :-
    (   Before = [Word|_],
        atom(Word)
    ->  (   use(Word, _, _)
        ;   use(_, Word, _)
        ;   memberchk(Word, [and, but, so, with, please, or, then, want])
        )
    ;   true
    ), !.

%   place(+Before, -Context): a phrase before its clause is ended by a comma.
place(Before, Place) :-
    (   ( Before = [] ; Before = [p(_)|_] ; Before = [Word|_], memberchk(Word, [and, but, so]) )
    ->  Place = lead
    ;   Place = noun
    ).

%   universal(+Before, +N) is semidet: *all tools* but X.
universal([Word|Before], N) :-
    N > 0,
    (   universal(Word)
    ->  true
    ;   ( noun(Word) ; article(Word) ),
        N1 is N-1,
        universal(Before, N1)
    ).

%   works(+Before) is semidet: *it works without X*, *with or without X*: a report.
works(Before) :-
    (   Before = [or, with|_]
    ->  true
    ;   among(working_word, 3, Before)
    ).

%   choosing(+Before) is semidet: *any tool* other than X, *use something* other than X.
choosing(Before) :-
    (   universal(Before, 4)
    ->  true
    ;   among(chooses, 4, Before)
    ).

chooses(Word) :- use(Word, _, _), !.
chooses(Word) :- use(_, Word, _).

%   polite(+Before) is semidet: *I would rather you did not*, *I would prefer it if*.
polite(Before) :-
    among(polite_word, 6, Before).

%   preferring(+Before) is semidet: *I would rather use X* than Y.
preferring(Before) :-
    among(preferring_word, 10, Before).

%   among(:Class, +N, +Before) is semidet: one of the last N words of the sentence is of this class.
among(Class, N, [Word|Before]) :-
    N > 0,
    Word \== p(stop),
    (   call(Class, Word)
    ->  true
    ;   N1 is N-1,
        among(Class, N1, Before)
    ).

%   relative(+Word, +Before) is semidet
relative(Word, Before) :-
    (   Word == that
    ->  Before = [Last|_],
        noun(Last),
        \+ content(Last),
        \+ use(Last, _, _),
        \+ verb(Last, _, _)
    ;   true
    ).

%   without_adverb(+Before0, -Before)
without_adverb(Before0, Before) :-
    (   Before0 = [Adverb|Before1],
        ( adverb(Adverb) ; memberchk(Adverb, [both, all]) )
    ->  without_adverb(Before1, Before)
    ;   Before = Before0
    ).

                /*******************************
                *            AHEAD            *
                *******************************/

%   clause_rest//: up to where another wish can begin.
clause_rest -->
    (   ahead(Token),
        { Token = p(Mark), Mark \== gap, Mark \== ':', Mark \== '('
        ; memberchk(Token, [please, then, but])
        }
    ->  []
    ;   ahead_wish
    ->  []
    ;   [_]
    ->  clause_rest
    ;   []
    ).

ahead_wish(Tokens, Tokens) :- phrase(new_wish, Tokens, _).

new_wish --> [and], ( [do, not] ; [never] ), ahead_using, !.
new_wish --> [without], ahead_using, !.
new_wish --> [instead, of], !.
new_wish --> [rather, than].

%   harmless//: *if possible*
harmless -->
    [Word],
    { memberchk(Word, [possible, necessary, you, not, at, needed, it, avoidable]) },
    (   { memberchk(Word, [possible, necessary, needed, avoidable]) }
    ->  []
    ;   { Word == you }
    ->  [can],
        \+ [not]
    ;   { Word == it }
    ->  [Is], { memberchk(Is, [can, is]) }, ( [possible] ; [be, avoided] )
    ;   [all, possible]
    ).

main_clause(that) --> subject_ahead, !.
main_clause(_) --> [case], !.
main_clause(_) --> harmless.

subject_ahead --> ahead(Word), { atom(Word), pronoun(Word, _) }.

%   hopeless(+N)//: *without X, nothing works*
hopeless(N) -->
    [Token],
    (   { Token == p(stop) }
    ->  { fail }
    ;   { hopeless(Token) }
    ->  []
    ;   { auxiliary(Token), \+ memberchk(Token, [do, must, should, may, shall]) },
        [not]
    ->  []
    ;   { N > 0, N1 is N-1 },
        hopeless(N1)
    ).

adverbs -->
    (   [Adverb], { adverb(Adverb) }
    ->  adverbs
    ;   optional(p(',')), an_adverb
    ->  optional(p(',')),
        adverbs
    ;   []
    ).

an_adverb --> [First], { adverbial(First, Rest) }, literal(Rest), !.
an_adverb --> [Adverb], { adverb(Adverb) }.

%   by_means//: *without the use of*
by_means -->
    (   articles, [Use], { memberchk(Use, [use, usage, help, aid, assistance]) }, ( [of] ; [from] )
    ->  []
    ;   [Having, to], { memberchk(Having, [having, needing, recourse]) }
    ->  []
    ;   [needing]
    ->  []
    ;   optional(to)
    ).

exceptive(except) --> \+ [that], optional(for).
exceptive(excluding) --> [].
exceptive(besides) --> [].
exceptive(other) --> [than].
exceptive(apart) --> [from].
exceptive(aside) --> [from].
exceptive(save) --> [for].

%   in_favour(+Word, +Previous)//: *instead of*, *in place of*
in_favour(instead, _) --> [of].
in_favour(rather, _) --> [than].
in_favour(place, in) --> [of].
in_favour(lieu, in) --> [of].
in_favour(opposed, as) --> [to].

%   closing//: here the phrase ends, and its clause with it.
closing -->
    (   [Token]
    ->  { Token = p(_) -> true ; closer(Token) }
    ;   []
    ).

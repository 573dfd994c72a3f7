:- encoding(utf8).
:- module(rlm_negation_phrase,
          [ ahead//1, ahead_using//0, articles//0, finite_ahead//0, here//1, joint//1, literal//1,
            noun_phrase//1, optional//1, using//1, verb_ahead//0, verb_phrase//3
          ]).
:- use_module(library(lists), [append/3]).
:- use_module(rlm_negation_words,
              [ article/1, cue/2, exemplifies/1, finite/1, generic/1, gerund/1, noun/1,
                object_pronoun/1, partitive/1, preposition/1, use/3, use_phrase/2, verb/3
              ]).

/** <module> Phrases that name a thing or a deed

A noun phrase, a verb with its object, what stands between the items of a list, and looking ahead. The DCGs read
plain tokens (rlm_negation_text.pl); each is semidet and reads a bounded number of words.

    ?- phrase(noun_phrase(Words), [the, github, tools, for, this], Rest).
    Words = [github, tools], Rest = [for, this].
*/

                /*******************************
                *           PHRASES           *
                *******************************/

%   noun_phrase(-Words)//: up to eight words; a longer run is no name. *The tool called X* is X.
noun_phrase([Word|Words]) -->
    articles,
    noun_words(8, [Word0|Words0]),
    (   [Called],
        { memberchk(Called, [called, named]) },
        articles,
        noun_words(8, [Word1|Words1])
    ->  { Word = Word1, Words = Words1 }
    ;   { Word = Word0, Words = Words0 }
    ).

articles --> ( article -> articles ; [] ).

article --> [Word, of], { partitive(Word) }, !.
article --> [Word], { article(Word) }.

noun_words(N, Words) -->
    (   [name(Name)]
    ->  { N > 0, N1 is N-1,
          append(Name, Rest, Words) },
        noun_words(N1, Rest)
    ;   [Word],
        { noun(Word) }
    ->  { N > 0, N1 is N-1,
          owner(Word, Owner),
          Words = [Owner|Rest] },
        noun_words(N1, Rest)
    ;   { N < 8 },
        [of],
        articles,
        ahead(Next),
        { Next = name(_) ; noun(Next) }
    ->  { N > 0, N1 is N-1,
          Words = [of|Rest] },
        noun_words(N1, Rest)
    ;   { Words = [] }
    ).

owner(Word, Owner) :-
    (   atom_concat(Owner0, '\'s', Word)
    ->  Owner = Owner0
    ;   Owner = Word
    ).

%   using(-Kind)//: *use*, *using*, *use or call*
using(Kind) -->
    use_word(Kind),
    more_use(4).

more_use(N) -->
    (   { N > 0 },
        joint(_),
        use_word(_)
    ->  { N1 is N-1 },
        more_use(N1)
    ;   []
    ).

use_word(use) --> [First], { use_phrase(First, Rest) }, literal(Rest), !.
use_word(use) --> [Word], { use(Word, _, _) }, !.
use_word(using) --> [Word], { use(_, Word, _) }, !.

ahead_using(Tokens, Tokens) :- phrase(using(_), Tokens, _).

%   verb_phrase(+Context, -Verb, -Words)//
verb_phrase(Context, Verb, Words) -->
    [Word],
    { atom(Word),
      verb_of(Context, Word, Verb, Form) },
    object(Form, Word, Verb, Words),
    { \+ ( Form == base, append(_, [Last], Words), generic(Last) ) }.

%   verb_of(+Context, +Word, -Verb, -Form) is semidet: Verb is what nouns after it take; `none` where a verb may
%   be the first word of a name.
verb_of(Context, Word, Verb, Form) :-
    (   Context == verb
    ->  Verb = Word, Form = verb
    ;   verb(Verb0, Word, _)
    ->  Verb = Verb0, Form = gerund
    ;   gerund(Word)
    ->  Verb = Word, Form = gerund
    ;   verb(Word, _, _),
        ( Context == next(verb) -> Verb = Word ; Verb = none ),
        Form = base
    ).

object(Form, Word, Verb, Words) -->
    { Verb == none -> Lead = Word ; Lead = Verb },
    (   [Pronoun], { object_pronoun(Pronoun) }
    ->  (   noun_phrase(Words0)
        ->  { Words = [Lead|Words0] }
        ;   { memberchk(Pronoun, [it, them, so]) }
        ->  { Words = [] }
        ;   { Words = [Lead] }
        )
    ;   [Preposition], { preposition(Preposition) }, noun_phrase(Words0)
    ->  { Words = [Lead,Preposition|Words0] }
    ;   noun_phrase(Words0)
    ->  { Words = [Lead|Words0] }
    ;   { Form \== base,
          Words = [Lead] }
    ).

                /*******************************
                *            JOINTS           *
                *******************************/

%   joint(-Joint)//: what stands between two items.
joint(Joint) -->
    (   [p(',')]
    ->  ( conjunction(Joint0) -> { Joint = Joint0 } ; example -> { Joint = or } ; { Joint = comma } )
    ;   conjunction(Joint0)
    ->  { Joint = Joint0 }
    ;   example
    ->  { Joint = or }
    ;   [p('(')]
    ->  ( example -> [] ; conjunction(_) -> [] ; [] ),
        { Joint = '(' }
    ;   [p(':')]
    ->  optional(p(item)),
        { Joint = item }
    ;   [p(item)],
        { Joint = item }
    ).

conjunction(or) --> [or], !, optional(else).
conjunction(or) --> [nor], !.
conjunction(or) --> ['and/or'], !.
conjunction(and) --> [and], !.
conjunction(and) --> [as, well, as].

example --> [such, as], !.
example --> [for, Example], { memberchk(Example, [example, instance]) }, !, optional(p(',')).
example --> [Word], { exemplifies(Word) }, optional(p(',')).

                /*******************************
                *            TOKENS           *
                *******************************/

finite_ahead --> ahead(Word), { atom(Word), finite(Word) }.

verb_ahead --> ahead_using, !.
verb_ahead --> [Word], { verb(Word, _, _) ; cue(Word, _) }, !.

ahead(Token, Tokens, Tokens) :-
    Tokens = [Token|_].

optional(Token) --> ( [Token] -> [] ; [] ).

literal([]) --> [].
literal([Word|Words]) --> [Word], literal(Words).

%   here(-Tokens)//: where the reading is.
here(Tokens, Tokens, Tokens).

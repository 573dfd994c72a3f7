:- encoding(utf8).
:- module(rlm_negation,
          [ negated/2             % +Tokens, -Phrases
          ]).
:- use_module(library(lists), [append/3, list_to_set/2, member/2]).
:- use_module(rlm_negation_clause,
              [ adverbs//0, by_means//0, choosing/1, clause_rest//0, closing//0, exceptive//1, flipped/2,
                harmless//0, hopeless//1, imperative/2, in_favour//2, invites/1, main_clause//1,
                opens/1, place/2, polite/1, preferring/1, questioned/1, relative/2, subject/2,
                subject_ahead//0, universal/2, without_adverb/2, works/1
              ]).
:- use_module(rlm_negation_list, [asked_for/2, objects//2, objects//3, spoken_of/2]).
:- use_module(rlm_negation_phrase,
              [ ahead//1, ahead_using//0, finite_ahead//0, here//1, literal//1, optional//1, using//1,
                verb_ahead//0
              ]).
:- use_module(rlm_negation_text, [plain_tokens/2]).
:- use_module(rlm_negation_words,
              [ adds/1, allowed/1, apart/2, article/1, aside/1, attribute/1, auxiliary/1, cue/2,
                generic/1, gerund/1, idle/1, in_no_case/2, is/1, noun/1, object_pronoun/1, obliges/1,
                off/2, parted/2, pronoun/2, short/2, use/3, verb/3
              ]).

/** <module> What the user does not want used

English prose is read for its negations and nothing else: *do not use the github tools*, *without curl*,
*anything but Slack*, *the browser is off limits*. The answer is the phrases that such a negation speaks of,
as they are written, without articles. Which units they name is for the caller to find out: it compares whole
phrases with whole names, so a phrase that names no unit does no harm.

    ?- tokens("Please don't use the github tools or Slack, use git instead.", Ts), negated(Ts, Phrases).
    Phrases = [[github, tools], [slack]].

The text is read once, in three steps:

  1. *plain*: contractions in full, quoted names as one token, quotations and code left out;
  2. *wishes*: word by word; a word that can begin a negation (cue/2) gets its rule, which looks back at
     the words before it for who is speaking and for a second negation, and reads on;
  3. *list*: the things that the negation speaks of, up to where its scope ends.

Where it is unclear whether something is forbidden, nothing is: the model reads the same words, but it cannot
call a tool that it was not given. So reports (*git does not work*), questions (*can't you use git?*),
conditions (*if git is not there*) and double negations (*not possible without git*) forbid nothing.

Every rule reads a bounded number of words, forwards and back.
*/

:- det(negated/2).

%!  negated(+Tokens:list, -Phrases:list(list(atom))) is det.
%
%   The phrases that the text, given as the tokens of rlm_words:tokens/2, wants left out; each a list of folded
%   words, identifiers whole, in the order of the text and without repetition.

negated(Tokens, Phrases) :-
    (   hinted(Tokens)
    ->  plain_tokens(Tokens, Plain),
        phrase(wishes([], Found), Plain),
        list_to_set(Found, Phrases)
    ;   Phrases = []
    ).

%   hinted(+Tokens) is semidet: most texts forbid nothing; this is all the time they take.
hinted([Token|Tokens]) :-
    (   Token = w(Word, _),
        hint(Word)
    ->  true
    ;   hinted(Tokens)
    ).

hint(Word) :-
    (   cue(Word, Kind)
    ->  \+ aside(Kind)
    ;   short(Word, Full)
    ->  ends_in_cue(Full)
    ;   Word == t                               % don`t
    ).

ends_in_cue(Full) :-
    append(_, [Last], Full),
    !,
    cue(Last, Kind),
    \+ aside(Kind).

%   wishes(+Before, -Phrases)//: `Before` holds the words read so far, the last one first.
wishes(Before, Phrases) -->
    (   [Word]
    ->  here(From),
        (   { cue(Word, Kind) },
            wish(Kind, Word, Before, Found)
        ->  { append(Found, Rest, Phrases) }
        ;   { Phrases = Rest }
        ),
        here(To),
        { read_on(From, To, [Word|Before], Before1) },
        wishes(Before1, Rest)
    ;   { Phrases = [] }
    ).

read_on(From, To, Before0, Before) :-
    (   same_term(From, To)
    ->  Before = Before0
    ;   From = [Token|Tokens],
        read_on(Tokens, To, [Token|Before0], Before)
    ).

%   wish(+Kind, +Word, +Before, -Phrases)// is semidet: the rule of a cue, after its word; it fails where
%   nothing is forbidden.

%   *if git is not there*, *lines that do not match*, *why not git*: not read.
wish(condition, _, Before, []) -->
    { \+ polite(Before) },
    ( harmless -> [] ; clause_rest ).
wish(relative, Word, Before, []) -->
    { relative(Word, Before) },
    \+ main_clause(Word),
    clause_rest.
wish(question, _, _, []) -->
    clause_rest.

%   *do not use X*, *X is not allowed*, *use Y, not X*
wish(not, _, Before0, Phrases) -->
    { without_adverb(Before0, Before) },
    (   { Before = [Aux|Earlier], auxiliary(Aux) }
    ->  (   subject_ahead
        ->  asked(Phrases)
        ;   verbal(Aux, Earlier, Phrases)
        )
    ;   bare_not(Before, Phrases)
    ).

%   *never use X*, *X must never be used*
wish(never, _, Before0, Phrases) -->
    { without_adverb(Before0, Before) },
    (   { Before = [Aux|Earlier], auxiliary(Aux) }
    ->  verbal(Aux, Earlier, Phrases)
    ;   [to]
    ->  complement(known, Phrases)
    ;   verbal(do, Before, Phrases)
    ).

%   *no X please*, *use no X*, *we no longer use X*
wish(no, _, Before, Phrases) -->
    (   [longer]
    ->  (   allowance
        ->  { Before = [Be|Subject],
              is(Be),
              spoken_of(Subject, Phrases) }
        ;   complement(use, Phrases)
        )
    ;   [Case],
        { Before = [Preposition|_], in_no_case(Preposition, Case) }
    ->  optional(p(',')),
        ( [Should, you], { obliges(Should) } -> [] ; [] ),
        ( complement(all, Phrases0) -> { Phrases = Phrases0 } ; objects(noun, Phrases) )
    ;   { without_adverb(Before, Before1),
          opens(Before1) },
        \+ [such],
        objects(noun, all, Phrases),
        { \+ ( Phrases = [[Noun]], idle(Noun) ) },
        ( barred -> [] ; closing )
    ).
wish(none, _, Before, Phrases) -->
    { Before = [Use|_], use(Use, _, _) },
    ( [of] ; [from] ),
    objects(noun, Phrases).

%   *neither X nor Y*; not *neither X nor Y works*
wish(neither, _, Before, Phrases) -->
    { \+ ( Before = [Aux|_], auxiliary(Aux) ) },
    objects(neither, Phrases),
    (   finite_ahead
    ->  barred
    ;   { \+ ( member(Phrase, Phrases), append(_, [work], Phrase) ) }
    ).
wish(nor, _, Before, Phrases) -->
    { opens(Before) },
    objects(noun, Phrases),
    closing.

%   *without X*, *without using X*
wish(without, _, Before, Phrases) -->
    { \+ works(Before),
      place(Before, Place) },
    by_means,
    objects(Place, Phrases),
    { \+ ( Phrases = [[Noun]], ( idle(Noun) ; attribute(Noun) ) ) },
    ( { Place == lead } -> \+ hopeless(12) ; [] ),
    { \+ flipped(without, Before) }.

%   *all tools except X*, *anything but X*; *nothing but X* forbids all else.
wish(except, Word, Before, Phrases) -->
    exceptive(Word),
    { place(Before, Place),
      \+ ( Place == lead, adds(Word) ) },
    by_means,
    objects(Place, Phrases),
    { \+ flipped(except, Before) }.
wish(but, _, Before, Phrases) -->
    { universal(Before, 4) },
    \+ verb_ahead,
    objects(noun, Phrases),
    \+ finite_ahead,
    closing,
    { \+ flipped(except, Before) }.

%   *instead of X*, *rather than use X*
wish(instead, Word, Before, Phrases) -->
    { Before = [Previous|_] -> true ; Previous = p(stop) },
    in_favour(Word, Previous),
    { place(Before, Place) },
    by_means,
    objects(Place, Phrases),
    { \+ flipped(except, Before) }.
wish(than, _, Before, Phrases) -->
    { Before = [other|Earlier] -> choosing(Earlier) ; preferring(Before) },
    by_means,
    objects(noun, Phrases),
    { \+ flipped(except, Before) }.

%   *avoid X*, *stop using X*, *stay away from X*, *turn X off*, *I forbid the use of X*
wish(avoid, Word, Before, Phrases) -->
    { imperative(Word, Before) },
    by_means,
    objects(noun, Phrases),
    { \+ flipped(except, Before) }.
wish(stop, Word, Before, Phrases) -->
    { imperative(Word, Before) },
    ahead(Gerund),
    { gerund(Gerund), \+ cue(Gerund, _) },
    objects(noun, Phrases),
    { \+ flipped(except, Before) }.
wish(apart, Word, Before, Phrases) -->
    { imperative(Word, Before) },
    (   { apart(Word, Particles) },
        literal(Particles)
    ->  by_means,
        objects(noun, Phrases)
    ;   objects(noun, Phrases),
        [Particle],
        { parted(Word, Particle) }
    ),
    { \+ flipped(except, Before) }.
wish(forbid, _, Before, Phrases) -->
    (   [you, to]
    ->  complement(all, Phrases)
    ;   by_means,
        objects(noun, Phrases)
    ),
    { \+ flipped(except, Before) }.

%   *X is forbidden*, *X is off limits*, *X should be avoided*, *forbidden: X*
wish(forbidden, _, Before0, Phrases) -->
    { without_adverb(Before0, Before) },
    (   { Before = [Be|_], is(Be) },
        ( [to] ; [from] )
    ->  complement(known, Phrases)
    ;   { Before = [Be|Subject], is(Be) }
    ->  { spoken_of(Subject, Phrases) }
    ;   { opens(Before) },
        ( [Kind], { generic(Kind) } -> [] ; [] ),
        ahead(p(':')),
        objects(noun, Phrases)
    ).
wish(off, Word, Before0, Phrases) -->
    { off(Word, Rest),
      append(Rest, Before1, Before0),
      without_adverb(Before1, Before) },
    (   { Before = [Be|Subject], is(Be) }
    ->  { spoken_of(Subject, Phrases) }
    ;   { opens(Before) },
        ahead(p(':')),
        objects(noun, Phrases)
    ).
wish(avoided, _, Before, Phrases) -->
    { (   Before = [be, Must|Subject], obliges(Must)
      ->  true
      ;   Before = [be, to, Be|Subject], is(Be)
      ),
      spoken_of(Subject, Phrases) }.

                /*******************************
                *        NEGATED VERBS        *
                *******************************/

%   verbal(+Auxiliary, +Earlier, -Phrases)//: what `not` or `never` says after an auxiliary; `Earlier` are the
%   words before that.
verbal(Aux, Earlier, Phrases) -->
    adverbs,
    (   passive(Aux, Verb)
    ->  { spoken_of(Earlier, Phrases0),
          with_verb(Phrases0, Verb, Phrases) }
    ;   { is(Aux) },
        [Done],
        { done(Done, use) }
    ->  { asked_for(Earlier, Phrases) }
    ;   { subject(Earlier, Who) },
        (   { is(Aux) }
        ->  progressive(Who, Earlier, Phrases)
        ;   { scope(Aux, Who, Earlier, Scope) },
            complement(Scope, Phrases)
        )
    ).

with_verb([], _, []).
with_verb([Phrase|Phrases], Verb, [Full|Fulls]) :-
    (   Verb == use
    ->  Full = Phrase
    ;   Full = [Verb|Phrase]
    ),
    with_verb(Phrases, Verb, Fulls).

%   progressive(+Who, +Earlier, -Phrases)//: *we are not using X*, *you are not allowed to use X*, *it is not
%   allowed to use X*.
progressive(Who, Earlier, Phrases) -->
    (   [Allowed, to],
        { allowed(Allowed) ; Allowed == going }
    ->  { Earlier = [it|_] -> true ; speaker(Who) },
        complement(known, Phrases)
    ;   { speaker(Who) },
        (   [to],
            \+ [be]
        ->  complement(known, Phrases)
        ;   ahead(Using),
            { use(_, Using, _) },
            objects(noun, Phrases)
        )
    ).

%   passive(+Auxiliary, -Verb)//: *is not allowed*, *must not be used*, *must not be sent*.
passive(Aux, use) -->
    { is(Aux) },
    allowance,
    \+ [to].
passive(Aux, Verb) -->
    { is(Aux) },
    [to, be, Done],
    { done(Done, Verb) }.
passive(Aux, Verb) -->
    { obliges(Aux) },
    [be, Done],
    { done(Done, Verb) }.

allowance --> [Allowed], { allowed(Allowed) }.
allowance --> [an, option].

%   barred//: *no X may be used*
barred --> [Must, be, Done], { obliges(Must), done(Done, use) }.
barred --> [Be, to, be, Done], { is(Be), done(Done, use) }.
barred --> [Be, Allowed], { is(Be), allowed(Allowed) }.

done(Done, Verb) :-
    (   use(_, _, Done)
    ->  Verb = use
    ;   verb(Verb, _, Done)
    ->  true
    ).

%   scope(+Auxiliary, +Who, +Earlier, -Scope) is semidet: which verbs make it a wish: `all`, the `known` ones,
%   or those of `use` only.
scope(do, you, _, all).
scope(do, me, _, use).
scope(must, Who, _, known) :- speaker(Who).
scope(should, Who, _, known) :- speaker(Who).
scope(shall, Who, _, known) :- speaker(Who).
scope(Must, Who, _, use) :- memberchk(Must, [must, should, shall]), memberchk(Who, [thing, things]).
scope(do, thing, _, all).
scope(may, Who, _, known) :- speaker(Who).
scope(can, you, _, known).
scope(can, me, _, use).
scope(will, you, _, use).
scope(will, me, _, use).
scope(would, me, _, use).
scope(did, you, Earlier, all) :- polite(Earlier).

%   speaker(?Who): one of those who speak here.
speaker(you).
speaker(me).

%   asked(-Phrases)//: *can't you use X?* is a question, *don't you dare use X* is none.
asked(Phrases) -->
    (   [you, dare]
    ->  optional(to),
        complement(all, Phrases)
    ;   clause_rest,
        { Phrases = [] }
    ).

%   bare_not(+Before, -Phrases)//: `not` without an auxiliary.
bare_not(Before, Phrases) -->
    (   [to, be, Done]
    ->  { done(Done, Verb),
          spoken_of(Before, Phrases0),
          with_verb(Phrases0, Verb, Phrases) }
    ;   [to]
    ->  complement(known, Phrases)
    ;   allowance,
        ahead(p(':'))
    ->  objects(noun, Phrases)
    ;   { \+ questioned(Before) },
        ahead(Word),
        (   { use(Word, _, _) ; use(_, Word, _) }
        ->  complement(use, Phrases)
        ;   { verb(Word, _, _), invites(Before) }
        ->  complement(known, Phrases)
        ;   { \+ idle(Word), \+ gerund(Word) },
            ( [Preposition], { memberchk(Preposition, [with, via]) } -> [] ; [] ),
            objects(noun, Phrases),
            closing
        )
    ).

%   complement(+Scope, -Phrases)//: the negated verb and what it speaks of.
complement(Scope, Phrases) -->
    adverbs,
    (   [be]
    ->  ahead(Using),
        { use(_, Using, _) },
        objects(noun, Phrases)
    ;   wanting(Verb)
    ->  (   to_do
        ->  complement(all, Phrases)
        ;   { Verb == want },
            objects(noun, Phrases)
        )
    ;   supposing
    ->  complement(use, Phrases)
    ;   bothering
    ->  objects(noun, Phrases)
    ;   [try, to]
    ->  complement(Scope, Phrases)
    ;   ahead_using
    ->  \+ part,
        objects(noun, Phrases)
    ;   [do, It, With],
        { object_pronoun(It) ; article(It) },
        { memberchk(With, [with, using, via]) }
    ->  objects(noun, Phrases)
    ;   ahead(Verb),
        { in_scope(Scope, Verb) },
        objects(verb, Phrases)
    ).

%   part//: *do not use all tools* leaves some.
part --> using(_), [Word], { memberchk(Word, [all, every]) }.

in_scope(all, Verb) :- noun(Verb), \+ idle(Verb), \+ cue(Verb, _), \+ third_person(Verb).
in_scope(known, Verb) :- verb(Verb, _, _).

third_person(Verb) :-
    sub_atom(Verb, _, 1, 0, s),
    \+ sub_atom(Verb, _, 2, 0, ss).

wanting(Verb) --> [Verb], { memberchk(Verb, [want, wish, like, intend, plan, expect]) }.

to_do --> [to], !.
to_do --> [Who, to], { object_pronoun(Who) }, !.
to_do --> optional(that), [Who], ahead_using, { object_pronoun(Who) ; pronoun(Who, _) }, !.

supposing --> [think], optional(that), [Who, Should], { pronoun(Who, _), obliges(Should) }.

bothering --> [bother], ( [to] ; [with] ; ahead_using ), !.

:- encoding(utf8).
:- module(rlm_named,
          [ token_elements/3,     % +Tokens, +Before, -Elements
            scan/5,               % +Module, +Elements, -Key, -Length, -Marked
            name_hit/6,           % +Module, +View, +Elements, -Key, -Length, -I
            first_names/4,        % +Module, +View, +Hits, -Pairs
            trigger_hit/7,        % +Module, +Stemmer, +Elements, -Signal, -Value, -I, -Weight
            negated_units/3,      % +Module, +Reading, -Is
            name_score/1,         % ?Score
            quotes/2              % ?Open, ?Close
          ]).
:- use_module(library(apply), [maplist/3]).
:- use_module(library(lists), [append/2, append/3, member/2]).
:- use_module(library(pairs), [pairs_values/2]).
:- use_module(rlm_negation, [negated/2]).
:- use_module(rlm_origin, [counts/2, in_view/3]).
:- use_module(rlm_words, [identifier_words/2, stems/3]).

/** <module> Where a text says the words by which a unit is called

Its name and its aliases, the host's triggers, and what the user does not want. Whole words only, side by side.
*/

%!  name_score(?Score)
%
%   A name counts as much as two words that no other unit has.

name_score(2000).

%   name_limit(?N): so many units of a view (rlm_origin) at most come in by name.
name_limit(16).

%!  quotes(?Open, ?Close) is nondet.

quotes('"', '"').
quotes('`', '`').
quotes('\'', '\'').
quotes('“', '”').
quotes('‘', '’').
quotes('«', '»').

%!  token_elements(+Tokens, +Before, -Elements) is det.
%
%   The words of a text as `el(Word, Marked)`, and `|` where a sequence ends. A word is `marked` where it stands
%   quoted, called or mentioned.

token_elements([], _, []).
token_elements([p(Char)|Tokens], _, ['|'|Elements]) :-
    token_elements(Tokens, Char, Elements).
token_elements([w(_, Raw)|Tokens], Before, Elements) :-
    identifier_words(Raw, Words),
    marked(Before, Tokens, Marked),
    word_elements(Words, Marked, Elements, Rest),
    token_elements(Tokens, ' ', Rest).

word_elements([], _, Rest, Rest).
word_elements([Word|Words], Marked, [el(Word, Marked)|Elements], Rest) :-
    word_elements(Words, Marked, Elements, Rest).

marked(Before, Tokens, Marked) :-
    (   quotes(Before, After),
        Tokens = [p(After)|_]
    ->  Marked = true
    ;   Before == '@'
    ->  Marked = true
    ;   Tokens = [p('('), p(')')|_]
    ->  Marked = true
    ;   Marked = false
    ).

%!  scan(+Module, +Elements, -Key, -Length, -Marked) is nondet.
%
%   The keys of the catalog that the text holds.

scan(M, Elements, Key, Length, Marked) :-
    append(_, [el(Word, Marked)|Rest], Elements),
    M:start(Word, Length),
    More is Length - 1,
    window(More, Rest, Words),
    atomic_list_concat([Word|Words], ' ', Key).

%   window(+N, +Elements, -Words) is semidet: the words of the first N elements.
window(0, _, Words) =>
    Words = [].
window(N, [el(Word, _)|Rest], Words) =>
    Words = [Word|Others],
    Fewer is N - 1,
    window(Fewer, Rest, Others).
window(_, _, _) =>
    fail.

%!  name_hit(+Module, +View, +Elements, -Key, -Length, -I) is nondet.
%
%   A unit of the view whose name stands in the text: in full where it has several words, else marked.

name_hit(M, View, Elements, Key, Length, I) :-
    scan(M, Elements, Key, Length, Marked),
    ( Length > 1 -> true ; Marked == true ),
    M:key(Key, I, name),
    in_view(View, M, I).

%!  first_names(+Module, +View, +Hits, -Pairs) is det.
%
%   Hits are `Length-I-Key`: the longest names first, then by id; no more than the limit. A unit that cannot be shown
%   takes no place.

first_names(M, View, Hits, Pairs) :-
    findall(k(Shorter, Id)-(I-Key),
            ( member(Length-I-Key, Hits),
              Shorter is -Length,
              M:unit(I, Id, _, _, _, _) ),
            Keyed0),
    sort(Keyed0, Keyed),
    pairs_values(Keyed, Named),
    name_limit(Limit),
    name_score(Score),
    take_names(Named, View, Limit, [], Score, Pairs).

take_names([], _, _, _, _, []).
take_names([I-Key|Named], View, Left, Seen, Score, Pairs) :-
    (   Left =:= 0
    ->  Pairs = []
    ;   memberchk(I, Seen)
    ->  take_names(Named, View, Left, Seen, Score, Pairs)
    ;   Pairs = [I-e(name(Key), Score)|Rest],
        ( counts(View, I) -> Fewer is Left - 1 ; Fewer = Left ),
        take_names(Named, View, Fewer, [I|Seen], Score, Rest)
    ).

%!  trigger_hit(+Module, +Stemmer, +Elements, -Signal, -Value, -I, -Weight) is nondet.
%
%   Triggers read the text: phrases and keywords as they are written, verbs and objects by their stem.

trigger_hit(M, _, Elements, Signal, Value, I, Weight) :-
    scan(M, Elements, Key, _, _),
    M:key(Key, I, trigger(Signal, Value, Weight)),
    memberchk(Signal, [phrase, keyword]).
trigger_hit(M, Stemmer, Elements, Signal, Value, I, Weight) :-
    stem_elements(Elements, Stemmer, Stemmed),
    scan(M, Stemmed, Key, _, _),
    M:key(Key, I, trigger(Signal, Value, Weight)),
    memberchk(Signal, [verb, object]).

stem_elements([], _, []).
stem_elements(['|'|Es], Stemmer, ['|'|Ss]) :-
    stem_elements(Es, Stemmer, Ss).
stem_elements([el(Word, Marked)|Es], Stemmer, [el(Stem, Marked)|Ss]) :-
    stems(Stemmer, [Word], [Stem]),
    stem_elements(Es, Stemmer, Ss).

                /*******************************
                *           NEGATION           *
                *******************************/

%!  negated_units(+Module, +Reading, -Is:ordset) is det.
%
%   The units that the user's own words forbid: those whose name, alias, path, namespace or server is just
%   what a negation in the text speaks of.

negated_units(M, reading(Tokens, _, _), Is) :-
    negated(Tokens, Phrases),
    findall(I,
            ( member(Phrase, Phrases),
              maplist(identifier_words, Phrase, Lists),
              append(Lists, Words),
              bare_phrase(Words, Bare),
              atomic_list_concat(Bare, ' ', Key),
              M:key(Key, I, What),
              memberchk(What, [name, group]) ),
            Is0),
    sort(Is0, Is).

%   bare_phrase(+Words, -Bare): with and without the words that only say what kind of thing is meant.
bare_phrase(Words, Words).
bare_phrase([Word|Words], Bare) :-
    filler(Word),
    bare_phrase(Words, Bare).
bare_phrase(Words, Bare) :-
    append(Front, [Word], Words),
    Front \== [],
    generic(Word),
    bare_phrase(Front, Bare).

filler(the). filler(a). filler(an). filler(any). filler(all). filler(that). filler(this). filler(these).
filler(those). filler(my). filler(our). filler(your). filler(its). filler(of).
filler(Word) :- generic(Word).

generic(tool). generic(tools). generic(function). generic(functions). generic(command). generic(commands).
generic(server). generic(servers). generic(skill). generic(skills). generic(plugin). generic(plugins).
generic(api). generic(apis). generic(mcp). generic(service). generic(services).

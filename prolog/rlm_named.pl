:- encoding(utf8).
:- module(rlm_named,
          [ token_elements/3,     % +Tokens, +Before, -Elements
            scan/5,               % +Module, +Elements, -Key, -Length, -Marked
            name_hit/6,           % +Module, +View, +Reading, -Key, -Length, -I
            name_possible/3,      % +Module, +Reading, -I
            first_names/4,        % +Module, +View, +Hits, -Pairs
            trigger_hit/7,        % +Module, +Stemmer, +Elements, -Signal, -Value, -I, -Weight
            negated_units/3,      % +Module, +Reading, -Is
            name_score/1,         % ?Score
            quotes/2              % ?Open, ?Close
          ]).
:- use_module(library(apply), [include/3, maplist/3]).
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

%!  name_hit(+Module, +View, +Reading, -Key, -Length, -I) is nondet.
%
%   A unit of the view whose name stands in the text: in full where it has several words, else marked; or written in
%   another case or with other separators, where that can mean one unit only. Key is the name as the text has it, Length
%   its words. What another spelling means is not asked where the view does not say which units count (rlm_origin).

name_hit(M, View, reading(_, Elements, _), Key, Length, I) :-
    scan(M, Elements, Key, Length, Marked),
    ( Length > 1 -> true ; Marked == true ),
    M:key(Key, I, name),
    in_view(View, M, I).
name_hit(M, View, reading(Tokens, _, _), Key, Length, I) :-
    View = view(_, _, _),
    respelt(M, Tokens, Joined, Words, Whole),
    findall(J, ( called_so(M, Joined, J), in_view(View, M, J) ), Js0),
    sort(Js0, Js),
    one_meant(Js, View, I),
    once(meant_by(M, Joined, Whole, I)),
    atomic_list_concat(Words, ' ', Key),
    length(Words, Length).

%!  name_possible(+Module, +Reading, -I) is nondet.
%
%   The units that have a name hit in some view: what is left out of a view can make a spelling mean one unit only.

name_possible(M, Reading, I) :-
    name_hit(M, all, Reading, _, _, I).
name_possible(M, reading(Tokens, _, _), I) :-
    respelt(M, Tokens, Joined, _, Whole),
    meant_by(M, Joined, Whole, I).

%   one_meant(+Is, +View, -I) is nondet: the only one that counts; those that cannot be shown where none counts.
one_meant(Is, View, I) :-
    include(counts(View), Is, Counting),
    (   Counting == []
    ->  member(I, Is)
    ;   Counting = [I]
    ).

%   called_so(+M, +Joined, -I) is nondet: the units whose name is this without case and separators.
called_so(M, Joined, I) :-
    (   M:joined(Joined, I, name)
    ;   M:key(Joined, I, name)
    ).

%   meant_by(+M, +Joined, +Whole, ?I) is nondet: of these, those that the text can mean. A name of one word is a word
%   like others: it is meant where the text has it Whole, marked or with separators.
meant_by(M, Joined, _, I) :-
    M:joined(Joined, I, name).
meant_by(M, Joined, true, I) :-
    M:key(Joined, I, name).

%   respelt(+M, +Tokens, -Joined, -Words, -Whole) is nondet: runs of words inside one word of the text that are the name
%   of some unit without their separators: `addperson` for `addPerson`, `get_userid` for `get_user_id`.
respelt(M, Tokens, Joined, Words, Whole) :-
    word_at(Tokens, '|', Folded, Raw, Marked),
    (   separated(Folded)
    ->  identifier_words(Raw, All),
        run_in(All, Words),
        atomic_list_concat(Words, Joined),
        ( ( Marked == true ; Words = [_, _|_] ) -> Whole = true ; Whole = false ),
        once(meant_by(M, Joined, Whole, _))
    ;   Joined = Folded,                      % most words of a text: looked up, not taken apart
        Whole = Marked,
        once(meant_by(M, Joined, Whole, _)),
        identifier_words(Raw, Words)
    ).

separated(Folded) :-
    split_string(Folded, "_-./@#'", "", [_, _|_]).

%   word_at(+Tokens, +Before, -Folded, -Raw, -Marked) is nondet.
word_at([p(Char)|Tokens], _, Folded, Raw, Marked) :-
    word_at(Tokens, Char, Folded, Raw, Marked).
word_at([w(Folded, Raw)|Tokens], Before, Folded, Raw, Marked) :-
    marked(Before, Tokens, Marked).
word_at([w(_, _)|Tokens], _, Folded, Raw, Marked) :-
    word_at(Tokens, ' ', Folded, Raw, Marked).

%   respelt_limit(?N): an identifier of more words is not put together.
respelt_limit(12).

%   run_in(+Words, -Run) is nondet: some words in a row.
run_in(Words, [First|More]) :-
    length(Words, Length),
    respelt_limit(Most),
    Length =< Most,
    append(_, [First|Rest], Words),
    append(More, _, Rest).

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
%   what a negation in the text speaks of, in whatever case and with whatever separators.

negated_units(M, reading(Tokens, _, _), Is) :-
    negated(Tokens, Phrases),
    findall(I,
            ( member(Phrase, Phrases),
              maplist(identifier_words, Phrase, Lists),
              append(Lists, Words),
              bare_phrase(Words, Bare),
              ruled_out(M, Bare, I) ),
            Is0),
    sort(Is0, Is).

%   ruled_out(+M, +Words, -I) is nondet: case and separators make no difference, and every unit that may be meant is
%   out: which of them could be shown is not known before.
ruled_out(M, Words, I) :-
    atomic_list_concat(Words, ' ', Key),
    atomic_list_concat(Words, Joined),
    (   M:key(Key, I, What)
    ;   M:joined(Joined, I, What)
    ;   Joined \== Key,
        M:key(Joined, I, What)
    ),
    memberchk(What, [name, group]).

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

:- encoding(utf8).
:- module(rlm_evidence,
          [ analysis/5,           % +Module, +View, +Reading, +Args, -Analysis
            reading/3,            % +Module, +Text, -Reading
            evidence/5,           % +Module, +View, +Reading, +Input, -Evidence
            source_weights/5,     % +Module, +View, +Input, +Weights, -Sources
            intent_least/1,       % ?Score
            need_share/1          % ?Thousandths
          ]).
:- set_prolog_flag(optimise, true).           % arithmetic in place; this file only
:- use_module(library(apply), [foldl/4, maplist/3, maplist/4, maplist/5]).
:- use_module(library(lists), [append/2, append/3, list_to_set/2, member/2, nth1/3, reverse/2, subtract/3]).
:- use_module(library(pairs), [pairs_keys_values/3]).
:- use_module(library(solution_sequences), [limit/2]).
:- use_module(rlm_catalog, [catalog_stemmer/2]).
:- use_module(rlm_examples, [example_scores/3, example_weights/4, has_examples/1]).
:- use_module(rlm_index,
              [ index_update/1, query_weights/5, summed_pairs/2, word_pairs/4, word_scores/4 ]).
:- use_module(rlm_named,
              [ first_names/4, name_hit/6, name_possible/3, name_score/1, quotes/2, scan/5, token_elements/3, trigger_hit/7 ]).
:- use_module(rlm_origin, [counts/2, in_view/3, mixed/2, view_row/3, view_who/2]).
:- use_module(rlm_thesaurus, [synonyms/3]).
:- use_module(rlm_words, [fold/2, identifier_words/2, joined_words/3, tokens/2, words_terms/3]).

/** <module> Why a unit might matter now

Evidence is a score in thousandths with what a reader needs to check it. Words of the text are the one kind
that many units have; they travel as plain `I-Score` pairs. All other kinds are few, `I-e(Kind, Score)`:

| kind                   | from                                                               |
|------------------------|--------------------------------------------------------------------|
| name(Key)              | the unit's name: in full, quoted, or written as an identifier      |
| trigger(Signal, Value) | a trigger that the host gave the unit                              |
| need(Text)             | what the model said it needs: evidence for it, never authority     |
| history(Turn)          | earlier turns of the user, decaying                                |
| sensor(Name)           | a scorer of the host, bounded in weight                            |
| example(Text)          | the unit's example that is most like the text                      |
| intent(Part)           | the unit is the best one for a part of the text (rlm_rank)         |
| spared(View)           | third parties may not keep the unit out (rlm_fairness)             |

The input is a dict: `text`, `needs`, `history` (last turn first), `signals` ([Name, Values]), `sensors`
([Name, Ids, Scores]), `floor`, `relative_floor`, `abstain`, and `words`: `null`, or the word scores that a scorer
outside has counted from the same vectors (see analysis/5).
*/

%   history_factor(?Turn, ?Thousandths): what a word of the Turn-th last turn still counts.
history_factor(1, 100).
history_factor(2, 50).
history_factor(3, 25).

%   need_share(?Thousandths): a need brings in the units in which its words count this share of the best.
need_share(400).

%   need_units(?N): each part of a need brings in so many units, and those that count as much as the last of them.
need_units(5).

%   sensor_weight(?Thousandths): what a sensor's score counts, and so the most that one sensor can add: three and a half
%   words of one unit only.
sensor_weight(3500).

%   quoted_factor(?Thousandths): what a word counts that stands in quotes only.
quoted_factor(400).

%   quoted_length(?Tokens): no quotation is longer.
quoted_length(60).

%   intent_least(?Score): what the words of a part must count in a unit for it to be a wish of its own.
intent_least(2000).

%   intent_limit(?N): so many parts of a text are looked at.
intent_limit(8).

%   text_limit(?Characters): of a longer text the beginning and the end are read.
text_limit(65_536).

                /*******************************
                *        WORDS OF TEXTS        *
                *******************************/

%!  analysis(+Module, +View, +Reading, +Args:dict, -Analysis:dict) is det.
%
%   What a scorer outside needs: the terms of `text`, of each of `needs` and of each of `history` ([Terms, Factors,
%   Synonyms]), the `intents` of the text ([Part, Terms]), how much each history counts (`factors`), and the units
%   that have evidence of another kind (`watch`).

analysis(M, View, Reading, Args, Analysis) :-
    Analysis = _{text: Terms, intents: Intents, needs: Needs, history: History, factors: Factors, watch: Watch},
    catalog_stemmer(M, Stemmer),
    Reading = reading(_, _, Said),
    plain_terms(Stemmer, Said, Terms),
    intents(Stemmer, Reading, Parts),
    findall([Part, Ts], member(Part-Ts, Parts), Intents),
    maplist(text_terms(Stemmer), Args.needs, Needs),
    findall(Ts-Factor,
            ( history_factor(N, Factor),
              nth1(N, Args.history, Text),
              text_terms(Stemmer, Text, Ts) ),
            Histories),
    pairs_keys_values(Histories, History, Factors),
    findall(I, watched(M, View, Reading, Args, I), Is),
    sort(Is, Watch).

watched(M, View, Reading, Args, I) :-
    wordless_evidence(M, View, Reading, Args, Pairs),
    member(I-_, Pairs).
watched(M, View, Reading, _, I) :-
    mixed(M, View),                       % in a view others have the places that there are for names
    name_possible(M, Reading, I).
watched(M, _, _, Args, I) :-
    member(Need, Args.needs),
    reading(M, Need, Reading),
    (   keyed_need(M, all, Reading, Need, I-_)
    ;   name_possible(M, Reading, I)
    ).

%!  reading(+Module, +Text, -Reading) is det.
%
%   A text read once: `reading(Tokens, Elements, Terms)`. Terms are `Term-Factor`, each once: a word that
%   stands in quotes only is a value more often than a wish, and counts less.

reading(M, Text, Reading) :-
    catalog_stemmer(M, Stemmer),
    read_text(Stemmer, Text, Reading).

read_text(Stemmer, Text, reading(Tokens, Elements, Terms)) :-
    readable(Text, Read),
    tokens(Read, Tokens),
    token_elements(Tokens, '|', Elements),
    unquoted(Tokens, Outside),
    distinct_terms(Stemmer, Outside, Said),
    (   ( Outside == Tokens ; Said == [] )
    ->  Quoted = []
    ;   distinct_terms(Stemmer, Tokens, All),
        subtract(All, Said, Quoted)
    ),
    (   Said == []
    ->  distinct_terms(Stemmer, Tokens, Plain)
    ;   Plain = Said
    ),
    quoted_factor(Factor),
    findall(T-F, ( member(T, Plain), F = 1000 ; member(T, Quoted), F = Factor ), Terms).

distinct_terms(Stemmer, Tokens, Terms) :-
    counted_words(Tokens, Words),
    words_terms(Stemmer, Words, All),
    list_to_set(All, Terms).

%   unquoted(+Tokens, -Outside): without what stands between quotes. A quote that is not closed near by
%   is none.
unquoted([], []).
unquoted([p(Open)|Tokens], Outside) :-
    quotes(Open, Close),
    quoted_length(Most),
    skip_quoted(Most, Close, Tokens, Rest),
    !,
    unquoted(Rest, Outside).
unquoted([Token|Tokens], [Token|Outside]) :-
    unquoted(Tokens, Outside).

skip_quoted(_, Close, [p(Close)|Rest], Rest) :- !.
skip_quoted(Left, Close, [Token|Tokens], Rest) :-
    Left > 0,
    Token \== p('\n'),
    Fewer is Left - 1,
    skip_quoted(Fewer, Close, Tokens, Rest).

%   counted_words(+Tokens, -Words): all words that count, those that case splits also joined.
counted_words([], []).
counted_words([p(_)|Tokens], Words) :-
    counted_words(Tokens, Words).
counted_words([w(_, Raw)|Tokens], Words) :-
    identifier_words(Raw, Split),
    joined_words(Raw, Split, Joined),
    append(Split, More, Words),
    append(Joined, Rest, More),
    counted_words(Tokens, Rest).

text_terms(Stemmer, Text, Plain) :-
    read_text(Stemmer, Text, reading(_, _, Terms)),
    plain_terms(Stemmer, Terms, Plain).

plain_terms(Stemmer, Terms, [Ts, Factors, Synonyms]) :-
    pairs_keys_values(Terms, Ts, Factors),
    maplist(synonyms(Stemmer), Ts, Synonyms).

%   intents(+Stemmer, +Reading, -Parts): `Part-Terms` for each part of a text that says more than one thing: its
%   sentences and clauses, as written, without what is quoted. A text of one part has none.
intents(Stemmer, reading(Tokens, _, _), Parts) :-
    unquoted(Tokens, Outside),
    clauses(Outside, [], Clauses),
    intent_limit(Most),
    findall(Part-Terms,
            limit(Most,
                  ( member(Clause, Clauses),
                    distinct_terms(Stemmer, Clause, Terms),
                    Terms \== [],
                    findall(Raw, member(w(_, Raw), Clause), Raws),
                    atomic_list_concat(Raws, ' ', Part) )),
            Found),
    (   Found = [_, _|_]
    ->  Parts = Found
    ;   Parts = []
    ).

%   clauses(+Tokens, +Reversed, -Clauses): the tokens between full stops, commas and joining words.
clauses([], Clause0, [Clause]) :-
    reverse(Clause0, Clause).
clauses([Token|Tokens], Clause0, Clauses) :-
    (   clause_end(Token)
    ->  reverse(Clause0, Clause),
        Clauses = [Clause|Rest],
        clauses(Tokens, [], Rest)
    ;   clauses(Tokens, [Token|Clause0], Clauses)
    ).

clause_end(p(Char)) :-
    memberchk(Char, ['.', ',', ';', ':', '!', '?', '\n', '。', '，', '；', '！', '？', '、']).
clause_end(w(Word, _)) :-
    memberchk(Word, [and, then, also, plus, afterwards, before, while, but]).

readable(Text, Read) :-
    atom_length(Text, Length),
    text_limit(Limit),
    (   Length =< Limit
    ->  Read = Text
    ;   Half is Limit // 2,
        sub_atom(Text, 0, Half, _, Head),
        sub_atom(Text, _, Half, 0, Tail),
        atomic_list_concat([Head, '\n', Tail], Read)
    ).

%   term_scores(+M, +View, +Given, +Terms, -Scores, -Weights): of one text, counted here or given.
term_scores(M, View, null, Terms, Scores, Weights) =>
    index_update(M),
    catalog_stemmer(M, Stemmer),
    query_weights(M, View, Stemmer, Terms, Weights),
    word_scores(M, View, Weights, Scores).
term_scores(_, _, Given, _, Scores, Weights) =>
    maplist(pair, Given.numbers, Given.scores, Scores),
    maplist(weight, Given.terms, Given.rarities, Given.words, Weights).

pair(I, Score, I-Score).

weight(Term, Rarity, Word, w(Term, Rarity, Word)).

%   text_scores(+M, +View, +Given, +Reading, +Floor, -Scores, -Weights, -Intents): of the text itself. Intents are
%   `intent(Part, Pairs, Rest)`: what the words of a part count in the units where they count enough, by I, and the
%   most that they count in a unit that a scorer outside has not told.
text_scores(M, View, null, Reading, Floor, Scores, Weights, Intents) =>
    Reading = reading(_, _, Terms),
    index_update(M),
    catalog_stemmer(M, Stemmer),
    query_weights(M, View, Stemmer, Terms, Weights),
    word_pairs(M, View, Weights, Worded),
    summed_pairs(Worded, Scores),
    intents(Stemmer, Reading, Parts),
    intent_least(Least0),
    Least is max(Least0, Floor),
    findall(intent(Part, Pairs, 0),
            ( member(Part-Words, Parts),
              findall(Word-Shares, ( member(Word-Shares, Worded), memberchk(Word, Words) ), Here),
              summed_pairs(Here, All),
              findall(I-S, ( member(I-S, All), S >= Least ), Pairs) ),
            Intents).
text_scores(M, View, Given, reading(_, _, Terms), _, Scores, Weights, Intents) =>
    term_scores(M, View, Given, Terms, Scores, Weights),
    (   get_dict(intents, Given, Told)
    ->  maplist(told_intent, Told, Intents)
    ;   Intents = []
    ).

told_intent(Told, intent(Part, Pairs, Rest)) :-
    _{part: Part, rest: Rest, numbers: Is, scores: Scores} :< Told,
    pairs_keys_values(Pairs, Is, Scores).

%   view_input(+View, +Input0, -Input): with the scores from outside that were counted in the view.
view_input(View, Input0, Input) :-
    Words = Input0.words,
    view_who(View, Who),
    (   ( Who == all ; Words == null )
    ->  Input = Input0
    ;   view_row(Who, Kind, Origin),
        member([Kind, Origin, Told], Words.views)
    ->  Input = Input0.put(words, Told)
    ;   throw(more_views([Who]))
    ).

%   given(+Words, +Source, +N, -Given) is semidet: the scores from outside for the N-th text of a source; turns that
%   count no more have none.
given(null, _, _, Given) =>
    Given = null.
given(Words, Source, N, Given) =>
    get_dict(Source, Words, Texts),
    nth1(N, Texts, Given).

                /*******************************
                *           EVIDENCE           *
                *******************************/

%!  evidence(+Module, +View, +Reading, +Input:dict, -Evidence) is det.
%
%   What speaks for the units of a view (rlm_origin), as if there were no others:
%   `evidence(Words, Others, Weights, Intents, Input)`, the scores of the text's words (by I), all other evidence (by
%   I), what each word of the text weighs (`w(Term, Rarity, Word)`), what its parts ask for, and the input with the word
%   scores of the view. `Reading` is that of the text.
%
%   @error more_views([View]), where a scorer outside has not counted this one

evidence(M, View, Reading, Input0, evidence(Words, Others, Weights, Intents, Input)) :-
    view_input(View, Input0, Input),
    given(Input.words, text, 1, Given),
    text_scores(M, View, Given, Reading, Input.floor, Words, Weights, Intents),
    findall(Pairs, other_evidence(M, View, Reading, Input, Pairs), Lists),
    append(Lists, Unsorted),
    sort(0, @=<, Unsorted, Others).

%!  source_weights(+Module, +View, +Input:dict, +Weights, -Sources:dict) is det.
%
%   What each word of each text weighs, so that evidence for a single unit can be counted again later:
%   `text`, `needs`, `history` and `examples`, each a list of `terms`, their `rarities` and the `words` that they stand
%   for. `Weights` are those of the text.

source_weights(M, View, Input, Weights, _{text: [Text], needs: Needs, history: History, examples: Examples}) :-
    weights_dict(Weights, Text),
    findall(Dict,
            ( has_examples(M),
              reading(M, Input.text, Reading),
              said_weights(M, View, Reading, Input, Said),
              weights_dict(Said, Dict) ),
            Examples),
    texts_weights(M, View, Input, needs, Input.needs, Needs),
    texts_weights(M, View, Input, history, Input.history, History).

texts_weights(_, _, _, _, [], Dicts) =>
    Dicts = [].
texts_weights(M, View, Input, Source, Texts, Dicts) =>
    findall(Dict,
            ( nth1(N, Texts, Text),
              given(Input.words, Source, N, Given),
              reading(M, Text, Reading),
              Reading = reading(_, _, Terms),
              term_scores(M, View, Given, Terms, Scores, Weights),
              weights_dict(Weights, Dict0),
              source_dict(Source, M, View, Input, Given, Reading, Scores, Dict0, Dict) ),
            Dicts).

%   source_dict(+Source, +M, +View, +Input, +Given, +Reading, +Scores, +Dict0, -Dict): a need is told with what a unit
%   must count to be brought in by it.
source_dict(needs, M, View, Input, Given, Reading, Scores, Dict0, Dict) =>
    need_least(M, View, Input, Given, Reading, Scores, Least),
    Dict = Dict0.put(least, Least).
source_dict(_, _, _, _, _, _, _, Dict0, Dict) =>
    Dict = Dict0.

weights_dict(Weights, _{terms: Terms, rarities: Rarities, words: Words}) :-
    unweighed(Weights, Terms, Rarities, Words).

unweighed([], [], [], []).
unweighed([w(T, R, W)|Weights], [T|Ts], [R|Rs], [W|Ws]) :-
    unweighed(Weights, Ts, Rs, Ws).

%   other_evidence(+M, +View, +Reading, +Input, -Pairs) is multi: one solution a kind and text.
other_evidence(M, View, Reading, Input, Pairs) :-
    wordless_evidence(M, View, Reading, Input, Pairs).
other_evidence(M, View, _, Input, Pairs) :-
    nth1(N, Input.needs, Need),
    need_evidence(M, View, Input, N, Need, Pairs).
other_evidence(M, View, _, Input, Pairs) :-
    history_factor(N, Factor),
    nth1(N, Input.history, Text),
    given(Input.words, history, N, Given),
    reading(M, Text, reading(_, _, Terms)),
    term_scores(M, View, Given, Terms, Scores, _),
    findall(I-e(history(N), Score),
            ( member(I-S, Scores),
              Score is S * Factor // 1000,
              Score > 0 ),
            Pairs).

%   wordless_evidence(+M, +View, +Reading, +Input, -Pairs) is multi: names, triggers, examples, signals and sensors.
wordless_evidence(M, View, Reading, _, Pairs) :-
    findall(Length-I-Key, name_hit(M, View, Reading, Key, Length, I), Hits),
    first_names(M, View, Hits, Pairs).
wordless_evidence(M, View, reading(_, Elements, _), _, Pairs) :-
    has_triggers(M),
    catalog_stemmer(M, Stemmer),
    findall(I-e(trigger(Signal, Value), Weight),
            ( trigger_hit(M, Stemmer, Elements, Signal, Value, I, Weight),
              in_view(View, M, I) ),
            Pairs).
wordless_evidence(M, View, Reading, Input, Pairs) :-
    has_examples(M),
    said_weights(M, View, Reading, Input, Weights),
    example_scores(M, Weights, Pairs0),
    findall(I-E, ( member(I-E, Pairs0), in_view(View, M, I) ), Pairs).
wordless_evidence(M, View, _, Input, Pairs) :-
    findall(I-e(trigger(Signal, Value), Weight),
            ( member([Signal, Values], Input.signals),
              member(Value, Values),
              fold(Value, Folded),
              M:signal(Signal, Folded, I, Weight),
              in_view(View, M, I) ),
            Pairs).
wordless_evidence(M, View, _, Input, Pairs) :-
    sensor_weight(Weight),
    findall(I-e(sensor(Name), Score),
            ( member([Name, Ids, Scores], Input.sensors),
              pairs_keys_values(Given, Ids, Scores),
              member(Id-S, Given),
              M:number(Id, I),
              in_view(View, M, I),
              Score is min(S, 1000) * Weight // 1000,
              Score > 0 ),
            Pairs).

%   said_weights(+M, +View, +Reading, +Input, -Weights): what the words of the text weigh in examples; told along where
%   a unit is looked at without its catalog.
said_weights(M, View, reading(_, _, Terms), Input, Weights) :-
    (   Words = Input.words,
        Words \== null,
        get_dict(examples, Words, [Told])
    ->  maplist(weight, Told.terms, Told.rarities, Told.words, Weights)
    ;   index_update(M),
        example_weights(M, View, Terms, Weights)
    ).

%   A need is a text of its own: its words count in full, but only in a few units near the best that it finds.
need_evidence(M, View, Input, N, Need, Pairs) :-
    given(Input.words, needs, N, Given),
    reading(M, Need, Reading),
    Reading = reading(_, _, Terms),
    term_scores(M, View, Given, Terms, Scores, _),
    need_least(M, View, Input, Given, Reading, Scores, Least),
    findall(I-e(need(Need), S),
            ( member(I-S, Scores),
              S >= Least ),
            Worded),
    findall(Pair, keyed_need(M, View, Reading, Need, Pair), Keyed0),
    sort(Keyed0, Keyed),
    append(Worded, Keyed, Pairs).

%   need_least(+M, +View, +Input, +Given, +Reading, +Scores, -Least): what a unit must count in the words of a need to be
%   brought in by it. It is told along where a unit is looked at without its catalog. A unit that cannot be shown takes
%   no place.
need_least(_, _, _, Given, _, _, Least), Given \== null, get_dict(least, Given, Least0) =>
    Least = Least0.
need_least(M, View, Input, _, Reading, Scores, Least) =>
    foldl(best(View), Scores, 0, Best),
    need_share(Share),
    Least0 is max(Input.floor, Best * Share // 1000),
    findall(S, ( member(I-S, Scores), S >= Least0, counts(View, I) ), Ss0),
    sort(0, @>=, Ss0, Ss),
    need_places(M, Reading, Most),
    (   nth1(Most, Ss, Last)
    ->  Least = Last
    ;   Least = Least0
    ).

%   need_places(+M, +Reading, -Most): a need of several sentences or clauses asks for several things.
need_places(M, Reading, Most) :-
    catalog_stemmer(M, Stemmer),
    intents(Stemmer, Reading, Parts),
    length(Parts, Length),
    need_units(Each),
    Most is Each * max(1, Length).

%   keyed_need(+M, +View, +Elements, +Need, -Pair) is nondet: a need that names a unit, or that it has a trigger for.
keyed_need(M, View, Reading, Need, I-e(need(Need), Score)) :-
    name_score(Score),
    name_hit(M, View, Reading, _, _, I).
keyed_need(M, View, reading(_, Elements, _), _, I-e(trigger(need, Value), Weight)) :-
    scan(M, Elements, Key, _, _),
    M:key(Key, I, trigger(need, Value, Weight)),
    in_view(View, M, I).

%   best(+View, +Pair, +Best0, -Best): a unit that cannot be shown is no measure for the others.
best(View, I-Score, Best0, Best) :-
    (   Score > Best0,
        counts(View, I)
    ->  Best = Score
    ;   Best = Best0
    ).

has_triggers(M) :-
    M:signal(_, _, _, _),
    !.

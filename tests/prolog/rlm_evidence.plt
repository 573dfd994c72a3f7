:- encoding(utf8).
:- use_module(library(plunit)).
:- use_module('../../prolog/rlm_select', [analyse/2, select/2]).
:- use_module('../../prolog/rlm_evidence', []).
:- use_module(units).

:- begin_tests(rlm_evidence).

%   analysis_of(+Changes, -Analysis): of a turn over a small catalog.
analysis_of(Changes, Analysis) :-
    with_units(['tool:git', 'tool:a'-[description(stone)]], analysed(Changes, Analysis)),
    !.

analysed(Changes, Analysis, Handle) :-
    question(Changes, Args),
    analyse(Args.put(catalog, Handle), Analysis).

%   factors_of(+Text, -Pairs): each term of a text with its factor, in thousandths.
factors_of(Text, Pairs) :-
    rlm_evidence:read_text(english, Text, reading(_, _, Pairs)).

parts_of(Text, Parts) :-
    analysis_of(_{text: Text}, Analysis),
    findall(Part, member([Part, _], Analysis.intents), Parts).

test(rule_analysis_has_terms_factors_and_synonyms, Ts-Fs == [stone, river]-[1000, 1000]) :-
    analysis_of(_{text: 'stone river'}, Analysis),
    Analysis.text = [Ts, Fs, [_, _]].
test(rule_analysis_of_needs_and_history, Ns-Hs-Fs == [[list, file]]-[[river], [bridg]]-[100, 50]) :-
    analysis_of(_{needs: ['list files'], history: [river, bridge]}, Analysis),
    findall(N, member([N|_], Analysis.needs), Ns),
    findall(H, member([H|_], Analysis.history), Hs),
    Fs = Analysis.factors.
test(rule_a_word_in_quotes_counts_less, Ps == [send-1000, river-400]) :- factors_of('send "river"', Ps).
test(rule_a_word_in_and_out_of_quotes_counts_once, Ps == [river-1000]) :- factors_of('river "river"', Ps).
test(rule_a_text_in_quotes_alone_counts, Ps == [river-1000]) :- factors_of('"river"', Ps).
test(rule_a_quote_that_is_not_closed_is_none, Ps == [send-1000, river-1000]) :- factors_of('send "river', Ps).
test(rule_a_quote_ends_with_the_line, Ps == [send-1000, river-1000, stone-1000]) :- factors_of('send "river\nstone"', Ps).
test(rule_a_quotation_has_sixty_tokens_at_most, A-B == 400-1000) :-
    quoted_words(60, A),
    quoted_words(61, B).
test(rule_a_part_for_each_wish, Parts == ['find the stone bridge', 'send mail']) :-
    parts_of('find the stone bridge, then send mail', Parts).
test(rule_one_wish_has_no_parts, Parts == []) :- parts_of('find the stone bridge', Parts).
test(rule_what_is_quoted_is_no_part, Parts == []) :- parts_of('find "stone, bridge"', Parts).
test(rule_eight_parts_at_most, Count == 8) :-
    parts_of('stone. river. bridge. tower. wall. house. garden. window. forest', Parts),
    length(Parts, Count).
test(rule_a_long_text_is_read_at_both_ends, Ps == [stone-1000, river-1000]) :-
    padding(40_000, Padding),
    atomic_list_concat(['stone ', Padding, ' forest ', Padding, ' river'], Text),
    factors_of(Text, Ps).
test(rule_a_text_at_the_limit_is_read_whole, Ps == [stone-1000, forest-1000, river-1000]) :-
    padding(32_700, Padding),
    atomic_list_concat(['stone ', Padding, ' forest ', Padding, ' river'], Text),
    factors_of(Text, Ps).

padding(Count, Padding) :-
    findall('.', between(1, Count, _), Dots),
    atomic_list_concat(Dots, Padding).

%   watched(+Changes, -Is): the numbers of the units that a scorer outside must count, of three.
watched(Changes, Is) :-
    Units = ['tool:a'-[description(stone)], 'skill:s'-[triggers([[phrase, 'look over', 1000]])], 'tool:git_diff'],
    once(with_units(Units, analysed(Changes, Analysis))),
    Is = Analysis.watch.

watch_row(_{text: 'look over it'}, [2]).
watch_row(_{text: 'a stone'}, []).
watch_row(_{text: 'the git diff'}, [3]).
watch_row(_{needs: ['git_diff']}, [3]).
watch_row(_{sensors: [[ear, ['tool:a'], [500]]]}, [1]).

test(rule_units_with_other_evidence_are_watched, [forall(watch_row(Changes, Expected)), Is == Expected]) :-
    watched(Changes, Is).

% The language of the catalog

%   scores_in(+Stemmer, -Scores): of "photo" for a unit that says picture and one that says photo.
scores_in(Stemmer, Scores) :-
    scores_in(Stemmer, _{text: photo}, Scores).

scores_in(Stemmer, Changes, Scores) :-
    Units = ['tool:a'-[description(picture)], 'tool:b'-[description(photo)], 'tool:c', 'tool:d', 'tool:e'],
    question(Changes, Args),
    once(with_units(Stemmer, Units, scored(Args, Scores))).

scored(Args, Ids, Handle) :-
    select(Args.put(catalog, Handle), Reply),
    findall(Id, member([Id|_], Reply.active), Ids).

test(rule_a_catalog_in_english_knows_synonyms, Ids == ['tool:b', 'tool:a']) :- scores_in(english, Ids).
test(rule_a_catalog_in_german_knows_none, Ids == ['tool:b']) :- scores_in(german, Ids).
test(rule_needs_know_synonyms_in_english_only, A-B == ['tool:b', 'tool:a']-['tool:b']) :-
    scores_in(english, _{needs: [photo], floor: 1}, A),
    scores_in(german, _{needs: [photo], floor: 1}, B).
test(rule_history_knows_synonyms_in_english_only, A-B == ['tool:b', 'tool:a']-['tool:b']) :-
    scores_in(english, _{history: [photo], floor: 1}, A),
    scores_in(german, _{history: [photo], floor: 1}, B).
test(rule_a_catalog_without_a_stemmer_knows_none, Ids == ['tool:b']) :- scores_in(none, Ids).

% Needs

%   brought(+Needs, +Denied, -Count): how many of four equal units, five lesser ones and ten of another kind needs bring.
brought(Needs, Denied, Count) :-
    findall(Id-[description('stone river')],
            ( between(1, 4, N), format(atom(Id), 'tool:best~d', [N]) ),
            Best),
    findall(Id-[description('stone river forest garden harbor engine')],
            ( between(5, 9, N), format(atom(Id), 'tool:next~d', [N]) ),
            Next),
    findall(Id-[description(cloud)], ( between(10, 19, N), format(atom(Id), 'tool:last~d', [N]) ), Last),
    append([Best, Next, Last], Units),
    chosen(Units, _{needs: Needs, denied: Denied, floor: 1}, Ids),
    length(Ids, Count).

test(rule_a_need_brings_five_and_the_equals_of_the_fifth, A-B == 9-4) :-
    brought(['stone river'], [], A),
    brought(['stone river'], ['tool:next*'], B).
test(rule_what_is_below_the_fifth_is_not_brought, Count == 5) :-
    findall(Id-[description('stone river')],
            ( between(1, 5, N), format(atom(Id), 'tool:best~d', [N]) ),
            Best),
    findall(Id, ( between(1, 20, N), format(atom(Id), 'tool:other~d', [N]) ), Others),
    append([['tool:next'-[description('stone river forest garden harbor engine')]], Best, Others], Units),
    chosen(Units, _{needs: ['stone river'], floor: 1}, Ids),
    length(Ids, Count).
test(rule_a_unit_that_cannot_be_shown_takes_no_place_of_a_need, Count == 8) :-
    brought(['stone river'], ['tool:best1'], Count).
test(rule_each_part_of_a_need_brings_five, Count == 19) :- brought(['stone river. cloud'], [], Count).

%   beside_need(+Needs, -Ids): what a text brings in beside a need that counts much more.
beside_need(Needs, Ids) :-
    findall(Id-[description('stone bridge over a river')],
            ( between(1, 9, N), format(atom(Id), 'tool:t~d', [N]) ), Text),
    findall(Id, ( between(1, 12, N), format(atom(Id), 'tool:o~d', [N]) ), Others),
    append([Text, Others, ['tool:n'-[description('quartz zephyr amber cobalt jasper')]]], Units),
    chosen(Units, _{text: bridge, needs: Needs, relative_floor: 250, abstain: 300}, Ids0),
    msort(Ids0, Ids).

test(rule_a_need_only_adds, More == ['tool:n'|Ids]) :-
    beside_need([], Ids),
    beside_need(['quartz zephyr amber cobalt jasper'], More).

%   quoted_words(+Count, -Factor): how much the last of so many quoted words counts.
quoted_words(Count, Factor) :-
    Fewer is Count - 1,
    findall(stone, between(1, Fewer, _), Stones),
    append(Stones, [river], Words),
    atomic_list_concat(Words, ' ', Quoted),
    format(atom(Text), 'send "~w"', [Quoted]),
    factors_of(Text, Pairs),
    memberchk(river-Factor, Pairs).

:- end_tests(rlm_evidence).

:- encoding(utf8).
:- use_module(library(plunit)).
:- use_module('../../prolog/rlm_catalog').
:- use_module('../../prolog/rlm_rank').
:- use_module(units).

:- begin_tests(rlm_rank).

%   ranked(+Scores, +Changes, -Ranked, -Floors): what of units with these word scores is a candidate, as scores. Changes
%   are to the input, `hidden` the places of units that may not be shown, `others` evidence of another kind by place.
ranked(Scores, Changes, Ranked, Floors) :-
    length(Scores, Count),
    findall(Id, ( between(1, Count, N), format(atom(Id), 'tool:u~|~`0t~d~2+', [N]) ), Ids),
    with_units(Ids, ranked_there(Ids, Scores, Changes, Ranked, Floors)),
    !.

ranked_there(Ids, Scores, Changes, Ranked, Floors, Handle) :-
    catalog_module(Handle, M),
    Input = _{ floor: 300, relative_floor: 250, abstain: 1000, sensors: [], words: null,
               hidden: [], others: [] }.put(Changes),
    findall(I-S, ( nth1(N, Scores, S), S > 0, nth1(N, Ids, Id), M:number(Id, I) ), Words),
    findall(I-E, ( member(N-E, Input.others), nth1(N, Ids, Id), M:number(Id, I) ), Others),
    findall(I, ( member(N, Input.hidden), nth1(N, Ids, Id), M:number(Id, I) ), Hidden),
    ranked_in(M, all, shown(Hidden), evidence(Words, Others, [], [], Input), _, Cs, Floors),
    findall(S, member(c(_, S, _, _), Cs), Ranked).

shown(Hidden, I) :- \+ memberchk(I, Hidden).

%   times(+N, +Score, -Scores)
times(N, Score, Scores) :- findall(Score, between(1, N, _), Scores).

% The relative floor

test(the_first_five_need_not_reach_it, Ranked == [4000, 400, 400, 400, 400]) :-
    times(8, 400, Others),
    ranked([4000|Others], _{}, Ranked, _).
test(it_rises_with_each_place, Count-Floors == 6-floors(300, 1240)) :-
    times(9, 1200, Others),               % the sixth place asks 1.00 and five times 0.04, the seventh 0.04 more
    ranked([4000|Others], _{}, Ranked, Floors),
    length(Ranked, Count).
test(who_is_out_is_below_it_in_thousandths_too, Count-Floor == 6-1241) :-
    times(9, 1240, Others),               % the seventh place asks 1.24031
    ranked([4001|Others], _{}, Ranked, floors(_, Floor)),
    length(Ranked, Count).
test(a_crowd_of_middling_ones_is_cut_short, Count == 26) :-
    times(60, 2000, Others),
    ranked([4000|Others], _{}, Ranked, _),
    length(Ranked, Count).
test(equals_of_the_best_may_be_many, Count == 76) :-
    times(90, 4000, Scores),
    ranked(Scores, _{}, Ranked, _),
    length(Ranked, Count).
test(where_it_is_nought_it_does_not_rise, Count-Floors == 61-floors(300, 300)) :-
    times(60, 400, Others),
    ranked([4000|Others], _{relative_floor: 0}, Ranked, Floors),
    length(Ranked, Count).
test(who_may_not_be_shown_takes_no_place, Ranked == [4000, 3000, 3000, 3000, 1200, 1200, 1200, 1200, 1200]) :-
    times(9, 1200, Others),
    ranked([4000, 3000, 3000, 3000|Others], _{hidden: [2, 3, 4]}, Ranked, _).
test(who_may_not_be_shown_raises_no_floor, Floors == floors(300, 340)) :-
    ranked([9000, 1000], _{hidden: [1], relative_floor: 330}, _, Floors).
test(a_name_is_above_it, Ranked == [4000, 3000, 3000, 3000, 3000, 3000, 350]) :-
    times(5, 3000, Others),
    append([4000|Others], [50, 300], Scores),
    ranked(Scores, _{others: [7-e(name(u), 300)]}, Ranked, _).

test(rule_what_is_at_the_floor_is_in, A-B == [300]-[]) :-
    ranked([300], _{relative_floor: 0, abstain: 0}, A, _),
    ranked([299], _{relative_floor: 0, abstain: 0}, B, _).

% Nothing fits

test(rule_without_a_bar_no_sensor_raises_one, Ranked == [400]) :-
    times(19, 0, Others),
    ranked([400|Others], _{abstain: 0, others: [2-e(sensor(mine), 1)]}, Ranked0, _),
    include(=(400), Ranked0, Ranked).

abstained(Count, Score, Changes, Ranked) :-
    Rest is Count - 1,
    times(Rest, 0, Others),
    ranked([Score|Others], Changes, Ranked, _).

test(below_the_bar_there_is_nothing, Ranked == []) :- abstained(20, 999, _{}, Ranked).
test(at_the_bar_there_is, Ranked == [1000]) :- abstained(20, 1000, _{}, Ranked).
test(a_handful_never_abstains, Ranked == [999]) :- abstained(19, 999, _{}, Ranked).
test(with_a_sensor_the_bar_is_higher, A-B == []-[2400]) :-
    Heard = _{others: [2-e(sensor(mine), 1), 3-e(sensor(mine), 1)]},
    abstained(20, 2399, Heard, A),
    abstained(20, 2400, Heard, B).
test(each_sensor_that_speaks_for_the_best_raises_it, A-B == []-[3800]) :-
    Heard = _{others: [1-e(sensor(mine), 1), 1-e(sensor(other), 1)]},
    abstained(20, 3797, Heard, A),
    abstained(20, 3798, Heard, B).
test(another_that_speaks_for_others_does_not, A-B == []-[2400]) :-
    Heard = _{others: [2-e(sensor(mine), 1), 2-e(sensor(other), 1)]},
    abstained(20, 2399, Heard, A),
    abstained(20, 2400, Heard, B).
test(a_sensor_that_says_nothing_of_a_unit_here_raises_no_bar, Ranked == [1000]) :-
    abstained(20, 1000, _{sensors: [[mine, ['tool:elsewhere'], [1]]]}, Ranked).

% What a scorer outside left out: units that count `rest` at most

enough(Scores, Rest, Changes) :-
    catch(ranked(Scores, Changes.put(words, _{rest: Rest}), _, _), more_words, fail).

test(a_safe_place_is_left, fail) :- enough([4000, 3000, 3000, 3000], 301, _{}).
test(a_safe_place_was_given_to_less, fail) :- enough([4000, 3000, 3000, 3000, 1100], 1100, _{}).
test(the_floor_of_the_next_place_is_above_the_rest) :- enough([4000, 3000, 3000, 3000, 1300], 1199, _{}).
test(the_floor_of_the_next_place_is_not, fail) :- enough([4000, 3000, 3000, 3000, 1300], 1200, _{}).
test(only_those_before_it_raise_its_floor, fail) :-
    enough([4000, 3000, 3000, 3000, 3000, 1210], 1215, _{}).
test(who_may_not_be_shown_is_not_before_it, fail) :-
    enough([4000, 3000, 3000, 3000, 3000, 3000], 1200, _{hidden: [6]}).
test(all_before_it_may_be_shown) :- enough([4000, 3000, 3000, 3000, 3000, 3000], 1200, _{}).
test(where_the_floor_does_not_rise, fail) :-
    enough([4000, 3000, 3000, 3000, 3000, 3000], 300, _{relative_floor: 0}).
test(nothing_was_left_out) :- enough([4000], 0, _{}).

:- end_tests(rlm_rank).

:- encoding(utf8).
:- use_module(library(plunit)).
:- use_module('../../prolog/rlm_plain').

:- begin_tests(rlm_plain).

%   told(+Value, -Outcome): `plain`, or why it is not.
told(Value, Outcome) :-
    catch(( plain(Value), Outcome = plain ), rlm_error(invalid_reply, Why-_), Outcome = Why).

row(a, plain).
row("a", plain).
row(12, plain).
row(1.5, plain).
row(1.7976931348623157e308, plain).
row(-1.7976931348623157e308, plain).
row(1.0Inf, value).
row(-1.0Inf, value).
row(1.5NaN, value).
row(1r3, value).
row(_, value).
row(f(x), value).
row(a-b, value).
row('[]', plain).
row([], plain).
row(@(true), plain).
row(@(false), plain).
row(@(none), plain).
row(@(null), value).
row(@(_), value).
row([a|_], value).
row([a|b], value).
row([f(x)], value).
row([a, 1, "s", [1.5], @(true)], plain).
row([[f(x)]], value).
row([1.0Inf], value).
row(_{}, plain).
row(_{a: 1, b: [x], c: "s", d: 1.5, e: _{f: @(none)}}, plain).
row(_{a: f(x)}, value).
row(_{a: [f(x)]}, value).
row(_{a: 1, b: f(x)}, value).
row(_{a: x, b: f(x)}, value).
row(_{a: "s", b: f(x)}, value).
row(_{a: [x], b: f(x)}, value).
row([1, f(x)], value).
row([x, f(x)], value).
row(["s", f(x)], value).
row([[x], f(x)], value).
row(_{'é': 1}, key).
row(_{'a\x7f\': 1}, plain).
row(_{'a\x80\': 1}, key).
row(_{1: a}, key).

test(rule_what_python_can_take, [forall(row(Value, Expected)), Outcome == Expected]) :- told(Value, Outcome).

nested(0, a) :- !.
nested(N, [Inner]) :- N1 is N - 1, nested(N1, Inner).

nested_dict(0, a) :- !.
nested_dict(N, _{k: Inner}) :- N1 is N - 1, nested_dict(N1, Inner).

test(rule_at_most_32_levels, Outcomes == [plain, depth, plain, depth]) :-
    nested(32, A), nested(33, B), nested_dict(32, C), nested_dict(33, D),
    maplist(told, [A, B, C, D], Outcomes).

%   room(+Value, +Most, -Outcome): with room for so many values.
room(Value, Most, Outcome) :-
    catch(( rlm_plain:plain(Value, 32, Most, Left), Outcome = Left ), rlm_error(invalid_reply, Why-_), Outcome = Why).

room_row([a, b, c], 3, 0).
room_row([a, b, c], 2, size).
room_row([[a], [b, c]], 5, 0).
room_row([[a], [b, c]], 4, size).
room_row([@(true), 1.5, [x]], 4, 0).
room_row(_{a: 1, b: 2}, 5, 0).
room_row(_{a: 1, b: 2}, 4, size).
room_row(_{a: [x, y], b: _{c: 1}}, 10, 0).
room_row(_{a: [x, y], b: _{c: 1}}, 9, size).

test(rule_all_values_share_the_room, [forall(room_row(Value, Most, Expected)), Outcome == Expected]) :-
    room(Value, Most, Outcome).
test(rule_a_thousand_keys_are_remembered, true(Known =< 1000)) :-
    forall(between(1, 1200, N),
           ( atom_concat(key, N, Key), dict_pairs(Dict, _, [Key-N]), plain(Dict) )),
    predicate_property(rlm_plain:known_key(_), number_of_clauses(Known)).

:- end_tests(rlm_plain).

:- encoding(utf8).
:- module(engine_probe,
          [ seen/2, loop/2, spin/2, stubborn/2, grow/2, fails/2, wrong/2, thrown/2, undefined/2, odd/2,
            odd_key/2, halts/2, aborts/2, choices/2, atoms/2, remember/2, state/2, says/2, count/2
          ]).
:- use_module('../../prolog/rlm_bridge', []).
:- use_module(library(error), [type_error/2]).
:- use_module(library(lists), [numlist/3]).

/** <module> Operations that misbehave, for the engine's tests */

:- multifile rlm_bridge:operation/2.

rlm_bridge:operation(seen, engine_probe:seen).
rlm_bridge:operation(loop, engine_probe:loop).
rlm_bridge:operation(spin, engine_probe:spin).
rlm_bridge:operation(stubborn, engine_probe:stubborn).
rlm_bridge:operation(grow, engine_probe:grow).
rlm_bridge:operation(fails, engine_probe:fails).
rlm_bridge:operation(wrong, engine_probe:wrong).
rlm_bridge:operation(thrown, engine_probe:thrown).
rlm_bridge:operation(undefined, engine_probe:undefined).
rlm_bridge:operation(odd, engine_probe:odd).
rlm_bridge:operation(odd_key, engine_probe:odd_key).
rlm_bridge:operation(halts, engine_probe:halts).
rlm_bridge:operation(aborts, engine_probe:aborts).
rlm_bridge:operation(choices, engine_probe:choices).
rlm_bridge:operation(atoms, engine_probe:atoms).
rlm_bridge:operation(remember, engine_probe:remember).
rlm_bridge:operation(state, engine_probe:state).
rlm_bridge:operation(says, engine_probe:says).
rlm_bridge:operation(count, engine_probe:count).
rlm_bridge:operation(nowhere, engine_probe:nowhere).

%   What arrived, as Prolog writes it.
seen(Args, Text) :- format(string(Text), '~W', [Args, [quoted(true), ignore_ops(true)]]).

loop(_, _) :- repeat, fail.

%   Counts to a number; the same inferences on every machine.
spin(N, done) :- count_down(N).

count_down(0) => true.
count_down(N) => N1 is N-1, count_down(N1).

%   Catches whatever would stop it.
stubborn(_, _) :- repeat, catch(( repeat, fail ), _, true), fail.

grow(_, L) :- longer([], L).

longer(L0, L) :- longer([x|L0], L).

fails(_, _) :- fail.

wrong(type, _) :- atom_length(_{}, _).
wrong(unbound, _) :- atom_length(_, _).
wrong(huge, _) :- numlist(1, 100_000, L), type_error(integer, L).
wrong(cyclic, _) :- X = f(X), atom_length(X, _).

thrown(ball, _) :- throw(my_own(ball)).
thrown(number, _) :- throw(42).
thrown(limit, _) :- throw(inference_limit_exceeded).
thrown(text, _) :- throw("a string").

:- table p/0, q/0.

p :- tnot(q).
q :- tnot(p).

undefined(_, yes) :- p.

odd(pair, a-b).
odd(nested_pair, [_{k: [a-b]}]).
odd(compound, f(x)).
odd(curly, {a}).
odd(variable, _).
odd(variable_inside, [a, _]).
odd(constraint, X) :- freeze(X, true).
odd(partial, [a|_]).
odd(cyclic_list, L) :- L = [a|L].
odd(cyclic_item, L) :- L = [a, L].
odd(cyclic_dict, D) :- L = [D], D = _{l: L}.
odd(deep, L) :- nested(100_000, L).
odd(too_deep, L) :- nested(33, L).
odd(shared, L) :- doubled(30, a, L).
odd(stream, S) :- current_output(S).
odd(rational, R) :- R is 1 rdiv 3.
odd(infinite, F) :- F is inf.
odd(nan, F) :- F is nan.
odd(constant, @(undefined)).
odd(set, py_set([a])).
odd(hash, #(a)).
odd(surrogate, A) :- atom_codes(A, [0'a, 0xDC00]).
odd(surrogate_inside, [_{t: A}]) :- atom_codes(A, [0xDC00]).
odd(many, L) :- numlist(1, 10_000_001, L).
odd(accent_key, D) :- dict_pairs(D, _, ['é'-1]).
odd(far_key, D) :- dict_pairs(D, _, ['中'-1]).
odd(number_key, D) :- dict_pairs(D, _, [1-a]).
odd(zero_key, D) :- atom_codes(K, [0'a, 0, 0'b]), dict_pairs(D, _, [K-1]).
odd(none, @(none)).
odd(true, @(true)).
odd(false, @(false)).
odd(deepest, L) :- nested(32, L).
odd(big, N) :- N is -(7**100).
odd(text, "é中\U0001F600\000x").
odd(empty, [[], _{}, '', ""]).

nested(N, L) :- nested(N, [], L).

nested(1, L0, L) => L = L0.
nested(N, L0, L) => N1 is N-1, nested(N1, [L0], L).

doubled(0, L0, L) => L = L0.
doubled(N, L0, L) => N1 is N-1, doubled(N1, [L0,L0], L).

%   A dict with a key of its own each time.
odd_key(N, D) :- atom_concat(key_, N, K), dict_pairs(D, _, [K-N]).

halts(Code, done) :- halt(Code).

aborts(_, done) :- abort.

choices(_, N) :- between(1, 3, N).

%   Makes N atoms that nobody keeps.
atoms(N, N) :- forall(between(1, N, I), atom_concat(passing_, I, _)).

:- thread_local remembered/1.

remember(X, All) :- assertz(remembered(X)), findall(Y, remembered(Y), All).

state(_, _{thread:T, stack:S, atoms:A, texts:C, call:Call}) :-
    thread_self(T0),
    term_to_atom(T0, T),
    current_prolog_flag(stack_limit, S),
    garbage_collect_atoms,
    statistics(atoms, A),
    (   predicate_property(janus:py_call_cache(_, _, _, _, _, _, _, _), number_of_clauses(C))
    ->  true
    ;   C = 0
    ),
    nb_getval(rlm_call, Call).

says(_, 'Grüße, 世界').

%   How many of a list: the whole of it goes in and next to nothing comes out.
count(L, N) :- length(L, N).

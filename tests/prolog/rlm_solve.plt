:- encoding(utf8).
:- use_module(library(plunit)).
:- use_module(library(apply), [foldl/4, maplist/3]).
:- use_module(library(http/json), [atom_json_dict/3]).
:- use_module(library(lists), [member/2, min_list/2, nth0/3, numlist/3]).
:- use_module('../../prolog/rlm_bridge').
:- use_module('../../prolog/rlm_solve').

%   said(+Value, -Said): JSON as the bridge gives it.
said(Value, Said), is_dict(Value) =>
    dict_pairs(Value, _, Pairs),
    findall([K,V], ( member(K-V0, Pairs), said(V0, V) ), Object),
    Said = _{object:Object}.
said(Value, Said), is_list(Value) =>
    maplist(said, Value, Said).
said(Value, Said), string(Value) =>
    atom_string(Text, Value),
    Said = _{text:Text}.
said(Value, Said) =>
    Said = Value.

solved(JSON, Reply) :-
    solved(JSON, 20_000_000, Reply).

solved(JSON, Inferences, Reply) :-
    atom_json_dict(JSON, Problem, []),
    said(Problem, Said),
    solve(_{problem:Said, inferences:Inferences}, Reply).

status(JSON, Status) :-
    solved(JSON, Reply),
    get_dict(status, Reply, Status).

value(Reply, Name, Value) :-
    get_dict(assignment, Reply, Assignment),
    memberchk([Name,Value], Assignment).

%   wrong(+JSON, -Path, -Got): what is said of a problem that is none.
wrong(JSON, Path, Got) :-
    solved(JSON, Reply),
    get_dict(error, Reply, Error),
    get_dict(path, Error, Path),
    get_dict(expected, Error, Expected),
    get_dict(got, Error, Got),
    string(Expected).

:- begin_tests(solve).

test(loads_no_solver_before_the_first_problem, Modules == [rlm_solve]) :-
    findall(M, ( member(M, [rlm_solve,rlm_problem,rlm_fd,clpfd]), current_module(M) ), Modules).

test(send_more_money, [S,E,N,D,M,O,R,Y] == [9,5,6,7,1,0,8,2]) :-
    solved('{"variables": {"S": [1,9], "E": [0,9], "N": [0,9], "D": [0,9], "M": [1,9], "O": [0,9], "R": [0,9], "Y": [0,9]},
             "constraints": [
               {"all_different": ["S","E","N","D","M","O","R","Y"]},
               {"left": [{"S":1000,"E":100,"N":10,"D":1}, {"M":1000,"O":100,"R":10,"E":1}], "op": "=",
                "right": {"M":10000,"O":1000,"N":100,"E":10,"Y":1}}]}', Reply),
    maplist(value(Reply), ['S','E','N','D','M','O','R','Y'], [S,E,N,D,M,O,R,Y]).

queens(N, Problem) :-
    Last is N-1,
    numlist(0, Last, Is),
    findall([Q,[0,Last]], ( member(I, Is), atom_concat(q, I, Q) ), Domains),
    findall(_{text:Q}, member([Q,_], Domains), Qs),
    findall([_{text:Q},I], ( member(I, Is), atom_concat(q, I, Q) ), Ups),
    findall([_{text:Q},J], ( member(I, Is), atom_concat(q, I, Q), J is -I ), Downs),
    findall(_{object:[[all_different,Sums]]}, member(Sums, [Qs,Ups,Downs]), Constraints),
    Problem = _{object:[[variables,_{object:Domains}], [constraints,Constraints]]}.

test(queens, [forall(member(N, [4,8,16])), true(Safe == true)]) :-
    queens(N, Problem),
    solve(_{problem:Problem, inferences:20_000_000}, Reply),
    get_dict(assignment, Reply, Assignment),
    findall(Row, member([_,Row], Assignment), Rows),
    ( safe(Rows) -> Safe = true ; Safe = Rows ).

safe([]).
safe([Q|Qs]) :-
    foldl(safe(Q), Qs, 1, _),
    safe(Qs).

safe(Q, R, D0, D) :-
    R =\= Q,
    abs(R-Q) =\= D0,
    D is D0+1.

test(three_queens, Status == infeasible) :-
    queens(3, Problem),
    solve(_{problem:Problem, inferences:20_000_000}, Reply),
    get_dict(status, Reply, Status).

test(knapsack, Objective-Optimal == 90- @(true)) :-
    solved('{"variables": {"a": [0,1], "b": [0,1], "c": [0,1], "d": [0,1]},
             "constraints": [{"left": {"a":5,"b":4,"c":6,"d":3}, "op": "<=", "right": 10}],
             "maximize": {"a":10,"b":40,"c":30,"d":50}}', Reply),
    get_dict(objective, Reply, Objective),
    get_dict(optimal, Reply, Optimal).

test(schedule, End-Optimal == 9- @(true)) :-
    solved('{"variables": {"a": [0,20], "b": [0,20], "c": [0,20], "end": [0,20]},
             "constraints": [
               {"no_overlap": [{"start": "a", "duration": 4}, {"start": "b", "duration": 3}, {"start": "c", "duration": 2}]},
               {"left": ["c", 2], "op": "<=", "right": "a"},
               {"left": ["a", 4], "op": "<=", "right": "end"},
               {"left": ["b", 3], "op": "<=", "right": "end"}],
             "minimize": "end"}', Reply),
    value(Reply, end, End),
    get_dict(optimal, Reply, Optimal).

test(assignment_with_costs, Objective == Least) :-
    solved('{"variables": {"x": [0,2], "y": [0,2], "z": [0,2], "cx": [0,9], "cy": [0,9], "cz": [0,9]},
             "constraints": [
               {"all_different": ["x","y","z"]},
               {"element": "x", "of": [4,2,8], "is": "cx"},
               {"element": "y", "of": [4,3,7], "is": "cy"},
               {"element": "z", "of": [3,1,6], "is": "cz"}],
             "minimize": ["cx","cy","cz"]}', Reply),
    get_dict(objective, Reply, Objective),
    brute_costs(Least).

brute_costs(Least) :-
    findall(C, ( member(X, [0,1,2]), member(Y, [0,1,2]), member(Z, [0,1,2]), X =\= Y, X =\= Z, Y =\= Z,
                 nth0(X, [4,2,8], A), nth0(Y, [4,3,7], B), nth0(Z, [3,1,6], D), C is A+B+D ), Cs),
    min_list(Cs, Least).

%   implied(+X, +More, -Reply): from x >= 1 follows y <= 4.
implied(X, More, Reply) :-
    format(string(JSON),
           '{"variables": {"x": [~d,~d], "y": [5,9]}, "constraints": [{"if": {"left": "x", "op": ">=", "right": 1}, "then": {"left": "y", "op": "<=", "right": 4}}]~w}',
           [X, X, More]),
    solved(JSON, Reply).

test(rule_what_is_implied_holds, Status == infeasible) :-
    implied(1, '', Reply),
    get_dict(status, Reply, Status).
test(rule_nothing_is_implied_where_the_condition_fails, Y == 9) :-
    implied(0, ', "maximize": "y"', Reply),
    value(Reply, y, Y).
test(element_counts_from_zero, X == 0) :-
    solved('{"variables": {"x": [-5,5]}, "constraints": [{"element": "x", "of": [7,8], "is": 7}]}', Reply),
    value(Reply, x, X).
test(implication, X == 0) :-
    solved('{"variables": {"x": [0,1], "y": [0,1]},
             "constraints": [{"if": {"left":"x","op":"=","right":1}, "then": {"left":"y","op":"=","right":1}},
                             {"left":"y","op":"=","right":0}]}', Reply),
    value(Reply, x, X).
test(any, X == 7) :-
    solved('{"variables": {"x": [0,9]},
             "constraints": [{"any": [{"left":"x","op":">","right":20}, {"left":{"x":2},"op":"=","right":14}]}]}', Reply),
    value(Reply, x, X).
test(operators, [forall(member(Op-X, ['='-4,'!='-3,'<'-3,'<='-3,'>'-5,'>='-4])), true(Got == X)]) :-
    format(atom(JSON), '{"variables": {"x": [3,9]}, "constraints": [{"left":"x","op":"~w","right":4}]}', [Op]),
    solved(JSON, Reply),
    value(Reply, x, Got).
test(values, X == 5) :-
    solved('{"variables": {"x": {"values": [5,-2,3]}}, "maximize": "x"}', Reply),
    value(Reply, x, X).
test(no_constraints, Status == solved) :-
    status('{"variables": {"x": [1,1]}}', Status).
test(null_is_no_aim, true(Reply =@= _{status:solved, assignment:[[x,1]]})) :-
    solved('{"variables": {"x": [1,1]}, "minimize": null, "maximize": null}', Reply).
test(integers_only, [forall(member(Op-Status, ['='-infeasible,'<'-solved])), true(Got == Status)]) :-
    format(atom(JSON), '{"variables": {"x": [3,9]}, "constraints": [{"left":1,"op":"~w","right":[2,{"x":0}]}]}', [Op]),
    status(JSON, Got).
test(same_twice_is_never_different, Status == infeasible) :-
    status('{"variables": {"x": [0,9]}, "constraints": [{"all_different": ["x",{"x":1}]}]}', Status).
test(repeated_names_add_up, X == 3) :-
    solved('{"variables": {"x": [0,9]}, "constraints": [{"left":["x",{"x":2},"x"],"op":"=","right":[12]}]}', Reply),
    value(Reply, x, X).
test(constant_objective, Objective == 7) :-
    solved('{"variables": {"x": [0,9]}, "maximize": [3,4]}', Reply),
    get_dict(objective, Reply, Objective).
test(infeasible, Status == infeasible) :-
    status('{"variables": {"x": [0,2], "y": [0,2], "z": [0,2], "w": [0,2]},
             "constraints": [{"all_different": ["x","y","z","w"]}]}', Status).
test(names_of_any_kind, X-Y == 2-1) :-
    solved('{"variables": {"Müller, Anna": [1,2], "true": [1,1]},
             "constraints": [{"all_different": ["Müller, Anna", "true"]}]}', Reply),
    value(Reply, 'Müller, Anna', X),
    value(Reply, true, Y).

:- end_tests(solve).

:- begin_tests(limits).

%   Pigeons: no bound reasoning helps, and the proof is long.
pigeons(JSON) :-
    numlist(1, 30, Is),
    findall(V, ( member(I, Is), format(atom(V), '"p~d": [0,28]', [I]) ), Vs),
    findall(C, ( member(I, Is), member(J, Is), I < J,
                 format(atom(C), '{"left":"p~d","op":"!=","right":"p~d"}', [I,J]) ), Cs),
    atomic_list_concat(Vs, ',', V),
    atomic_list_concat(Cs, ',', C),
    format(atom(JSON), '{"variables": {~w}, "constraints": [~w]}', [V,C]).

test(used_up, Status == limit) :-
    pigeons(JSON),
    solved(JSON, 3_000_000, Reply),
    get_dict(status, Reply, Status).

test(the_best_so_far_is_told, Status-Optimal == solved- @(false)) :-
    numlist(1, 40, Is),
    findall(V, ( member(I, Is), format(atom(V), '"x~d": [0,1]', [I]) ), Vs),
    findall(W, ( member(I, Is), C is 17+(I*7919) mod 83, format(atom(W), '"x~d": ~d', [I,C]) ), Ws),
    findall(W, ( member(I, Is), C is 11+(I*6007) mod 89, format(atom(W), '"x~d": ~d', [I,C]) ), Gs),
    atomic_list_concat(Vs, ',', V),
    atomic_list_concat(Ws, ',', W),
    atomic_list_concat(Gs, ',', G),
    format(atom(JSON),
           '{"variables": {~w}, "constraints": [{"left": {~w}, "op": "<=", "right": 1000}], "maximize": {~w}}', [V,W,G]),
    solved(JSON, 4_000_000, Reply),
    get_dict(status, Reply, Status),
    get_dict(optimal, Reply, Optimal).

test(creeping_bounds_end_in_seconds, true(Status-Quick == limit-true)) :-
    get_time(T0),
    status('{"variables": {"x": [0,1000000], "y": [0,1000000]},
             "constraints": [{"left":"x","op":"<","right":"y"}, {"left":"y","op":"<","right":"x"}]}', Status),
    get_time(T),
    ( T-T0 < 10 -> Quick = true ; Quick = T-T0 ).

test(after_a_limit_all_is_well, X-Y == 1-2) :-
    pigeons(JSON),
    solved(JSON, 500_000, _),
    solved('{"variables": {"x": [1,2], "y": [1,2]}, "constraints": [{"left":"x","op":"<","right":"y"}]}', Reply),
    value(Reply, x, X),
    value(Reply, y, Y).

test(after_a_cancelled_call_all_is_well, Kind-X == cancelled-2) :-
    pigeons(JSON),
    atom_json_dict(JSON, Problem, []),
    said(Problem, Said),
    thread_self(Me),
    thread_create(( rlm_call(7, 1_000_000_000, solve, _{problem:Said, inferences:1_000_000_000}, First),
                    atom_json_dict('{"variables": {"x": [1,2]}, "maximize": "x"}', Small, []),
                    said(Small, Next),
                    rlm_call(8, 1_000_000_000, solve, _{problem:Next, inferences:1_000_000}, Second),
                    thread_send_message(Me, replied(First, Second)) ), Thread),
    repeat,
    rlm_cancel(Thread, 7, throw, _),
    thread_get_message(Me, replied(First, Second), [timeout(0.05)]),
    !,
    thread_join(Thread),
    get_dict(kind, First, Kind),
    value(Second.ok, x, X).

test(nothing_constrained_is_left, Vars == []) :-
    status('{"variables": {"x": [1,9], "y": [1,9]}, "constraints": [{"left":"x","op":"<","right":"y"}]}', _),
    solved('{"variables": {"x": [1,9], "y": [1,9]}, "constraints": [{"left":"x","op":"<","right":"y"}]}', Reply),
    get_dict(assignment, Reply, Assignment),
    ground(Assignment),
    term_attvars(Reply, Vars).

:- end_tests(limits).

:- begin_tests(wrong).

%   in(+Constraint, -JSON): a problem with that one constraint.
in(Constraint, JSON) :-
    format(atom(JSON), '{"variables": {"x": [0,9]}, "constraints": [{"left":"x","op":"=","right":1}, ~w]}', [Constraint]).

bad('[1]', "", "a list of 1").
bad('"x"', "", "\"x\"").
bad('{}', "", "nothing").
bad('{"variables": {"x": [0,1]}, "solver": "x"}', "", "\"solver\"").
bad('{"variables": [1]}', "variables", "a list of 1").
bad('{"variables": {}}', "variables", "{}").
bad('{"variables": {"": [0,1]}}', "variables", "\"\"").
bad('{"variables": {"a\\nb": [0,1]}}', "variables", "\"a\nb\"").
bad('{"variables": {"x": 3}}', "variables.x", "3").
bad('{"variables": {"x": "0..9"}}', "variables.x", "\"0..9\"").
bad('{"variables": {"x": [0]}}', "variables.x", "a list of 1").
bad('{"variables": {"x": [0,1,2]}}', "variables.x", "a list of 3").
bad('{"variables": {"x": [2,1]}}', "variables.x", "a list of 2").
bad('{"variables": {"x": [0,1.5]}}', "variables.x[1]", "1.5").
bad('{"variables": {"x": ["0",1]}}', "variables.x[0]", "\"0\"").
bad('{"variables": {"x": [0,2000000]}}', "variables.x[1]", "2000000").
bad('{"variables": {"x": {"values": []}}}', "variables.x", "an object with values").
bad('{"variables": {"x": {"values": [1,true]}}}', "variables.x.values[1]", "true").
bad('{"variables": {"x": {"from": 1, "to": 2}}}', "variables.x", "an object with from, to").
bad('{"variables": {"x": [0,1]}, "constraints": {}}', "constraints", "{}").
bad('{"variables": {"x": [0,1]}, "constraints": ["x < 1"]}', "constraints[0]", "\"x < 1\"").
bad('{"variables": {"x": [0,1]}, "minimize": "y"}', "minimize", "\"y\"").
bad('{"variables": {"x": [0,1]}, "minimize": "x", "maximize": "x"}', "maximize", "\"x\"").
bad('{"variables": {"x": [0,1]}, "maximize": {"x": "2"}}', "maximize.x", "\"2\"").
bad('{"variables": {"x": [0,1]}, "maximize": [["x"]]}', "maximize[0]", "a list of 1").
bad(JSON, Path, Got) :-
    bad_constraint(Constraint, Path0, Got),
    in(Constraint, JSON),
    string_concat("constraints[1]", Path0, Path).

bad_constraint('{}', "", "{}").
bad_constraint('{"x": 1}', "", "an object with x").
bad_constraint('{"left":"x","op":"="}', "", "nothing").
bad_constraint('{"left":"x","op":"==","right":1}', ".op", "\"==\"").
bad_constraint('{"left":"x","op":"shell","right":1}', ".op", "\"shell\"").
bad_constraint('{"left":"x","op":3,"right":1}', ".op", "3").
bad_constraint('{"left":"y","op":"=","right":1}', ".left", "\"y\"").
bad_constraint('{"left":"x","op":"=","right":null}', ".right", "null").
bad_constraint('{"left":"x","op":"=","right":[1,{"x":2,"y":1}]}', ".right[1]", "\"y\"").
bad_constraint('{"left":"x","op":"=","right":{"x":1.0}}', ".right.x", "1.0").
bad_constraint('{"left":"x","op":"=","right":1,"if":"y"}', "", "\"left\"").
bad_constraint('{"all_different":[]}', ".all_different", "[]").
bad_constraint('{"all_different":"x"}', ".all_different", "\"x\"").
bad_constraint('{"all_different":["x","y"]}', ".all_different[1]", "\"y\"").
bad_constraint('{"all_different":["x"],"weight":1}', "", "\"weight\"").
bad_constraint('{"no_overlap":[{"start":"x"}]}', ".no_overlap[0]", "nothing").
bad_constraint('{"no_overlap":[{"start":"x","duration":0}]}', ".no_overlap[0].duration", "0").
bad_constraint('{"no_overlap":[{"start":"x","duration":"x"}]}', ".no_overlap[0].duration", "\"x\"").
bad_constraint('{"no_overlap":["x"]}', ".no_overlap[0]", "\"x\"").
bad_constraint('{"element":"x","of":[1],"value":1}', "", "\"value\"").
bad_constraint('{"element":"x","of":[],"is":1}', ".of", "[]").
bad_constraint('{"element":"x","of":[1,"q"],"is":1}', ".of[1]", "\"q\"").
bad_constraint('{"any":[]}', ".any", "[]").
bad_constraint('{"any":[{"all_different":["x"]}]}', ".any[0]", "\"all_different\"").
bad_constraint('{"if":{"left":"x","op":"=","right":1}}', "", "nothing").
bad_constraint('{"if":{"left":"x","op":"=","right":1},"then":"x"}', ".then", "\"x\"").
bad_constraint('{"if":{"left":"x","op":"=","right":1},"then":{"left":"x","op":"=","right":"z"}}', ".then.right", "\"z\"").

test(told_where_and_what, [forall(bad(JSON, Path, Got)), true(P-G == Path-Got)]) :-
    wrong(JSON, P, G).

test(too_many_variables, P-G == "variables"-"201") :-
    numlist(1, 201, Is),
    findall(V, ( member(I, Is), format(atom(V), '"x~d": [0,1]', [I]) ), Vs),
    atomic_list_concat(Vs, ',', V),
    format(atom(JSON), '{"variables": {~w}}', [V]),
    wrong(JSON, P, G).
test(too_many_constraints, P-G == "constraints"-"1,001") :-
    numlist(1, 1001, Is),
    findall('{"left":"x","op":"=","right":1}', member(_, Is), Cs),
    atomic_list_concat(Cs, ',', C),
    format(atom(JSON), '{"variables": {"x": [0,1]}, "constraints": [~w]}', [C]),
    wrong(JSON, P, G).
test(too_many_terms_in_all, P == "constraints") :-
    numlist(1, 100, Is),
    findall(V, ( member(I, Is), format(atom(V), '"x~d": [0,1]', [I]) ), Vs),
    findall(T, ( member(I, Is), format(atom(T), '"x~d": 1', [I]) ), Ts),
    atomic_list_concat(Vs, ',', V),
    atomic_list_concat(Ts, ',', T),
    numlist(1, 101, Js),
    format(atom(C), '{"left":{~w},"op":"<=","right":50}', [T]),
    findall(C, member(_, Js), Cs),
    atomic_list_concat(Cs, ',', All),
    format(atom(JSON), '{"variables": {~w}, "constraints": [~w]}', [V,All]),
    wrong(JSON, P, _).
test(nothing_of_the_problem_is_called, P-G == "constraints[0].left"-"\"halt\"") :-
    wrong('{"variables": {"x": [0,1]}, "constraints": [{"left":"halt","op":"=","right":"shell(true)"}]}', P, G).
test(long_texts_are_shortened, true(Length < 80)) :-
    numlist(1, 500, Is),
    findall(a, member(_, Is), As),
    atomic_list_concat(As, A),
    format(atom(JSON), '{"variables": {"x": "~w"}}', [A]),
    wrong(JSON, _, G),
    string_length(G, Length).

:- end_tests(wrong).

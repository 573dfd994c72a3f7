:- encoding(utf8).
:- module(rlm_fd, []).
:- use_module(library(apply), [foldl/4, maplist/2, maplist/3]).
:- use_module(library(clpfd),
              [ (#=)/2, (#<)/2, (#>)/2, (#==>)/2, (#<==>)/2, (in)/2,
                all_different/1, all_distinct/1, element/3, labeling/2, op(_,_,_) ]).
:- use_module(library(lists), [append/3, same_length/2]).
:- public solved/3.                     % called by rlm_solve

/** <module> Finite constraint problems: the search

CLP(FD) over a problem that rlm_problem has read. Everything that is posted is posted within one goal that
fails in the end, so that no constrained variable is left anywhere; what was found is kept as plain integers.
*/

%!  solved(+Problem, +Inferences:integer, -Reply:dict) is det.
%
%   Reply is as rlm_solve:solve/2 says. Each solution found is better than the one before, so that what is
%   there when the inferences are used up is the best so far.

solved(Problem, Inferences, Reply) :-
    Best = best(none),
    catch(call_with_inference_limit(search(Problem, Best), Inferences, Limit), rlm_late, Limit = late),
    ended(Limit, Ended),
    arg(1, Best, Found),
    Problem = problem(Names, _, _, Objective),
    reply(Found, Ended, Objective, Names, Reply).

ended(inference_limit_exceeded, Ended) => Ended = early.
ended(late, Ended) => Ended = early.
ended(_, Ended) => Ended = done.

reply(none, done, _, _, Reply) =>
    Reply = _{status:infeasible}.
reply(none, early, _, _, Reply) =>
    Reply = _{status:limit}.
reply(found(Values, _), _, none, Names, Reply) =>
    assignment(Names, Values, Assignment),
    Reply = _{status:solved, assignment:Assignment}.
reply(found(Values, Objective), Ended, _, Names, Reply) =>
    assignment(Names, Values, Assignment),
    optimal(Ended, Optimal),
    Reply = _{status:solved, assignment:Assignment, objective:Objective, optimal:Optimal}.

optimal(done, @(true)).
optimal(early, @(false)).

assignment([], [], []).
assignment([Name|Names], [Value|Values], [[Name,Value]|Pairs]) :-
    assignment(Names, Values, Pairs).

                 /*******************************
                 *            SEARCH            *
                 *******************************/

%   search(+Problem, +Best): always true, and leaves the last solution in Best.
search(problem(_, Domains, Constraints, Objective), Best) :-
    \+ ( maplist(variable, Domains, Vars),
         watched(Vars),
         Row =.. [vars|Vars],
         foldl(post(Row), Constraints, [], Orders),
         aim(Objective, Row, Aim),
         improve(Aim, Orders, Vars, Best),
         fail ).

%   watched(+Vars): look at the clock whenever a domain changes. Bounds that creep towards each other (X #< Y,
%   Y #< X over a million values) take few inferences a step, and a time that grows with every step.

watched(Vars) :-
    most_seconds(Most),
    get_time(Now),
    Until is Now+Most,
    clpfd:make_propagator(rlm_clock(Until), Clock),
    maplist(watch(Clock), Vars).

watch(Clock, Var) :-
    clpfd:init_propagator(Var, Clock).

most_seconds(2.0).

:- multifile clpfd:run_propagator/2.

clpfd:run_propagator(rlm_clock(Until), _) :-
    get_time(Now),
    (   Now < Until
    ->  true
    ;   throw(rlm_late)
    ).

aim(none, _, none).
aim(min(Sum), Row, min(Value)) :-
    value(Row, Sum, Value).
aim(max(Sum), Row, max(Value)) :-
    value(Row, Sum, Value).

%   improve(+Aim, +Orders, +Vars, +Best): one solution after the other, each better than the last, until there
%   is none. Who comes before whom is decided first: then the least start times fit.
improve(Aim, Orders, Vars, Best) :-
    (   \+ \+ ( better(Aim, Best),
                towards(Aim, Way),
                labeling([], Orders),
                labeling([ff,Way], Vars),
                keep(Aim, Vars, Best) )
    ->  again(Aim, Orders, Vars, Best)
    ;   true
    ).

again(none, _, _, _) => true.
again(Aim, Orders, Vars, Best) => improve(Aim, Orders, Vars, Best).

better(_, best(none)) => true.
better(min(Value), best(found(_, So))) => Value #< So.
better(max(Value), best(found(_, So))) => Value #> So.

towards(none, up).
towards(min(_), up).
towards(max(_), down).

keep(none, Vars, Best) => nb_setarg(1, Best, found(Vars, none)).
keep(min(Value), Vars, Best) => nb_setarg(1, Best, found(Vars, Value)).
keep(max(Value), Vars, Best) => nb_setarg(1, Best, found(Vars, Value)).

                 /*******************************
                 *            POSTING           *
                 *******************************/

variable(range(Low, High), Var) :-
    Var in Low..High.
variable(values([V|Vs]), Var) :-
    foldl(or_value, Vs, V, Domain),
    Var in Domain.

or_value(V, Domain, Domain\/V).

%   post(+Row, +Constraint, +Orders0, -Orders): Orders are 0 or 1, one for each pair of tasks that may not
%   overlap.
post(Row, compare(Terms, Op, K), Orders0, Orders) =>
    comparison(Row, compare(Terms, Op, K), Comparison),
    call(clpfd:Comparison),
    Orders = Orders0.
post(Row, different(Sums), Orders0, Orders) =>
    sort(Sums, Distinct),
    same_length(Sums, Distinct),        % two that are the same are never different
    maplist(value(Row), Sums, Values),
    different(Values),
    Orders = Orders0.
post(Row, any(Compares), Orders0, Orders) =>
    maplist(comparison(Row), Compares, [C|Cs]),
    foldl(or, Cs, C, Any),
    call(clpfd:Any),
    Orders = Orders0.
post(Row, implies(If0, Then0), Orders0, Orders) =>
    comparison(Row, If0, If),
    comparison(Row, Then0, Then),
    If #==> Then,
    Orders = Orders0.
post(Row, element(Index, Sums, Is), Orders0, Orders) =>
    value(Row, Index, From0),
    maplist(value(Row), Sums, Values),
    value(Row, Is, Value),
    From1 #= From0+1,
    element(From1, Values, Value),
    Orders = Orders0.
post(Row, apart(Tasks), Orders0, Orders) =>
    maplist(span(Row), Tasks, Spans),
    apart(Spans, [], Apart, []),
    append(Orders0, Apart, Orders).

or(C, Any, Any #\/ C).

%   Reasoning over all values at once prunes far more, and costs more with each variable.
different(Values) :-
    length(Values, Count),
    (   Count =< 24
    ->  all_distinct(Values)
    ;   all_different(Values)
    ).

span(Row, task(Sum, Duration), Start-End) :-
    value(Row, Sum, Start),
    End = Start+Duration.

%   apart(+Spans, +Before, -Orders, ?Rest): each with all those before it, so that whatever has been decided is
%   the order of some tasks, whole.
apart([], _, Orders, Orders).
apart([Span|Spans], Before, Orders0, Orders) :-
    foldl(either(Span), Before, Orders0, Orders1),
    apart(Spans, [Span|Before], Orders1, Orders).

either(Start2-End2, Start1-End1, [First|Orders], Orders) :-
    First #<==> (End1 #=< Start2),
    #\ First #<==> (End2 #=< Start1).

%   comparison(+Row, +Compare, -Goal): a goal of CLP(FD), made of integers and variables.
comparison(Row, compare(Terms, Op, K), Goal) :-
    expression(Row, Terms, 0, Sum),
    Goal =.. [Op,Sum,K].

%   value(+Row, +Sum, -Value): an integer or a variable that is the sum.
value(Row, sum([N-1], 0), Value) =>
    arg(N, Row, Value).
value(_, sum([], Constant), Value) =>
    Value = Constant.
value(Row, sum(Terms, Constant), Value) =>
    expression(Row, Terms, Constant, Sum),
    Value #= Sum.

expression(Row, Terms, Constant, Sum) :-
    foldl(plus(Row), Terms, Constant, Sum).

plus(Row, N-C, Sum, Sum+C*Var) :-
    arg(N, Row, Var).

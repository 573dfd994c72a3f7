:- encoding(utf8).
:- module(rlm_problem, []).
:- use_module(library(apply), [foldl/4, maplist/3]).
:- use_module(library(assoc), [empty_assoc/1, get_assoc/3, put_assoc/4]).
:- use_module(library(lists), [append/3, member/2, reverse/2, sum_list/2]).
:- public problem/2.                    % called by rlm_solve

/** <module> What a finite constraint problem may say

    {"variables": {"x": [0, 9], "y": {"values": [1, 3, 5]}},
     "constraints": [{"left": ["x", 2], "op": "<=", "right": {"y": 3}}],
     "minimize": "x"}

  | word       | is                                                                              |
  |------------|---------------------------------------------------------------------------------|
  | domain     | `[lowest, highest]` or `{"values": [integer, ...]}`                             |
  | sum        | an integer, a name, `{name: coefficient, ...}`, or a list of these, added up    |
  | comparison | `{"left": sum, "op": op, "right": sum}`, op one of = != < <= > >=               |
  | constraint | a comparison; `{"all_different": [sum, ...]}`; `{"any": [comparison, ...]}`;    |
  |            | `{"if": comparison, "then": comparison}`;                                       |
  |            | `{"no_overlap": [{"start": sum, "duration": integer}, ...]}`;                   |
  |            | `{"element": sum, "of": [sum, ...], "is": sum}`, where the first one is 0       |

It is read whole and against this table only. What comes out is made of integers: a variable is its place
in the problem, a sum `sum(Terms, Constant)` with `Terms` a list of `Place-Coefficient`, each place once.

JSON comes in as `_{object: [[Key, Value], ...]}`, `_{text: Text}`, lists, numbers (`_{number: Text}` where one is too
large) and the atoms `true`, `false` and `null`, so that no text can pass for something else.
*/

most(variables, 200).
most(constraints, 1000).
most(values, 1000).                     % of a domain, or of an element constraint
most(different, 200).                   % in one constraint; likewise below
most(tasks, 40).
most(alternatives, 32).
most(terms, 10_000).                    % of the whole problem
most(name, 64).                         % characters
most(number, 1_000_000).                % and not less than its negative

%!  problem(+Value, -Problem) is det.
%
%   Problem is `problem(Names, Domains, Constraints, Objective)`. A domain is `range(Low, High)` or
%   `values(Integers)`, an objective `none`, `min(Sum)` or `max(Sum)`, a constraint one of
%
%     - `compare(Terms, Op, K)`: the terms together are Op K
%     - `different(Sums)`, `any(Compares)`, `implies(Compare, Compare)`
%     - `apart(Tasks)` with tasks `task(Sum, Duration)`, `element(Sum, Sums, Sum)`
%
%   @error rlm_problem(Path, Expected, Got), all text.

problem(Value, problem(Names, Domains, Constraints, Objective)) :-
    object(Value, at([]), "an object with variables, constraints, and minimize or maximize", Pairs),
    keys(Pairs, at([]), [variables, constraints, minimize, maximize]),
    variables(Pairs, Names, Domains, Places),
    constraints(Pairs, Places, Constraints),
    objective(Pairs, Places, Objective),
    terms(Constraints, Objective, Terms),
    within(terms, Terms, at([constraints])).

                 /*******************************
                 *           VARIABLES          *
                 *******************************/

variables(Pairs, Names, Domains, Places) :-
    At = at([variables]),
    field(variables, Pairs, at([]), Value),
    object(Value, At, "an object from names to domains", Variables),
    length(Variables, Count),
    within(variables, Count, At),
    (   Count > 0
    ->  true
    ;   wrong(At, "at least one variable", Value)
    ),
    maplist(variable(At), Variables, Named),
    findall(Name, member(Name-_, Named), Names),
    findall(Domain, member(_-Domain, Named), Domains),
    empty_assoc(None),
    foldl(numbered, Names, 1-None, _-Places).

numbered(Name, N0-Places0, N-Places) :-
    put_assoc(Name, Places0, N0, Places),
    N is N0+1.

control(Code) :- Code < 0x20, !.
control(Code) :- Code >= 0x7f, Code =< 0x9f.

variable(At, [Name,Value], Name-Domain) :-
    deeper(At, Name, Here),
    most(name, Most),
    (   atom_length(Name, Length),
        between(1, Most, Length),
        \+ ( atom_codes(Name, Codes), member(Code, Codes), control(Code) )
    ->  true
    ;   format(string(Expected), "a name of 1 to ~d characters, without control characters", [Most]),
        wrong(At, Expected, _{text:Name})
    ),
    domain(Value, Here, Domain).

domain([Low,High], At, Domain) =>
    deeper(At, 0, LowAt),
    deeper(At, 1, HighAt),
    number(Low, LowAt),
    number(High, HighAt),
    (   Low =< High
    ->  Domain = range(Low, High)
    ;   wrong(At, "[lowest, highest], the lowest first", [Low,High])
    ).
domain(_{object:[[values,Values]]}, At, Domain), is_list(Values), Values \== [] =>
    deeper(At, values, Here),
    length(Values, Count),
    within(values, Count, Here),
    items(integer, Values, Here, none, Integers),
    Domain = values(Integers).
domain(Value, At, _) =>
    wrong(At, "[lowest, highest] or {\"values\": [integer, ...]}", Value).

                 /*******************************
                 *          CONSTRAINTS         *
                 *******************************/

constraints(Pairs, Places, Constraints) :-
    (   memberchk([constraints,Value], Pairs)
    ->  list(constraints, constraint, Value, at([constraints]), Places, "a list of constraints", Constraints)
    ;   Constraints = []
    ).

constraint(Value, At, Places, Constraint) :-
    kinds(Kinds),
    object(Value, At, Kinds, Pairs),
    (   form(Key, Form, Keys),
        memberchk([Key,_], Pairs)
    ->  keys(Pairs, At, Keys),
        form(Form, Pairs, At, Places, Constraint)
    ;   wrong(At, Kinds, Value)
    ).

kinds("a constraint: left, op, right; all_different; no_overlap; element, of, is; any; or if, then").

%   form(?Key, ?Form, ?Keys): the key that tells a constraint's form, and all of its keys.
form(all_different, different, [all_different]).
form(no_overlap,    apart,     [no_overlap]).
form(element,       element,   [element,of,is]).
form(any,           any,       [any]).
form(if,            implies,   [if,then]).
form(then,          implies,   [if,then]).
form(op,            compare,   [left,op,right]).
form(left,          compare,   [left,op,right]).
form(right,         compare,   [left,op,right]).

form(compare, Pairs, At, Places, Compare) =>
    sum_field(left, Pairs, At, Places, sum(Left, L)),
    field(op, Pairs, At, Op),
    deeper(At, op, OpAt),
    sum_field(right, Pairs, At, Places, sum(Right, R)),
    (   Op = _{text:Text},
        comparison(Text, Sign)
    ->  true
    ;   wrong(OpAt, "one of = != < <= > >=", Op)
    ),
    findall(N-Minus, ( member(N-C, Right), Minus is -C ), Negated),
    append(Left, Negated, Terms0),
    merged(Terms0, Terms),
    K is R-L,
    Compare = compare(Terms, Sign, K).
form(different, Pairs, At, Places, Constraint) =>
    list_field(all_different, different, sum, Pairs, At, Places, "a list of sums", Sums),
    Constraint = different(Sums).
form(apart, Pairs, At, Places, Constraint) =>
    list_field(no_overlap, tasks, task, Pairs, At, Places, "a list of tasks", Tasks),
    Constraint = apart(Tasks).
form(element, Pairs, At, Places, Constraint) =>
    sum_field(element, Pairs, At, Places, Index),
    list_field(of, values, sum, Pairs, At, Places, "a list of sums", Sums),
    sum_field(is, Pairs, At, Places, Is),
    Constraint = element(Index, Sums, Is).
form(any, Pairs, At, Places, Constraint) =>
    list_field(any, alternatives, compare, Pairs, At, Places, "a list of comparisons", Compares),
    Constraint = any(Compares).
form(implies, Pairs, At, Places, Constraint) =>
    compare_field(if, Pairs, At, Places, If),
    compare_field(then, Pairs, At, Places, Then),
    Constraint = implies(If, Then).

comparison(=, #=).
comparison('!=', #\=).
comparison(<, #<).
comparison(<=, #=<).
comparison(>, #>).
comparison(>=, #>=).

compare_field(Key, Pairs, At, Places, Compare) :-
    field(Key, Pairs, At, Value),
    deeper(At, Key, Here),
    item(compare, Value, Here, Places, Compare).

%   item(+Kind, +Value, +At, +Places, -Item): one entry of a list.
item(constraint, Value, At, Places, Constraint) =>
    constraint(Value, At, Places, Constraint).
item(integer, Value, At, _, Integer) =>
    number(Value, At),
    Integer = Value.
item(sum, Value, At, Places, Sum) =>
    sum(Value, At, Places, Sum).
item(compare, Value, At, Places, Compare) =>
    object(Value, At, "a comparison: left, op, right", Pairs),
    keys(Pairs, At, [left,op,right]),
    form(compare, Pairs, At, Places, Compare).
item(task, Value, At, Places, Task) =>
    object(Value, At, "a task: start, duration", Pairs),
    keys(Pairs, At, [start,duration]),
    sum_field(start, Pairs, At, Places, Start),
    field(duration, Pairs, At, Duration),
    deeper(At, duration, Here),
    number(Duration, Here),
    (   Duration > 0
    ->  true
    ;   wrong(Here, "an integer above 0", Duration)
    ),
    Task = task(Start, Duration).

                 /*******************************
                 *             SUMS             *
                 *******************************/

objective(Pairs, Places, Objective) :-
    aim(minimize, Pairs, Least),
    aim(maximize, Pairs, Most),
    objective(Least, Most, Places, Objective).

objective(none, none, _, Objective) =>
    Objective = none.
objective(value(Value), none, Places, Objective) =>
    sum(Value, at([minimize]), Places, Sum),
    Objective = min(Sum).
objective(none, value(Value), Places, Objective) =>
    sum(Value, at([maximize]), Places, Sum),
    Objective = max(Sum).
objective(value(_), value(Value), _, _) =>
    wrong(at([maximize]), "minimize or maximize, not both", Value).

%   A model that has to fill in every field writes null for the other aim.
aim(Key, Pairs, Aim) :-
    (   memberchk([Key,Value], Pairs),
        Value \== null
    ->  Aim = value(Value)
    ;   Aim = none
    ).

sum_field(Key, Pairs, At, Places, Sum) :-
    field(Key, Pairs, At, Value),
    deeper(At, Key, Here),
    sum(Value, Here, Places, Sum).

sum(Value, At, Places, sum(Terms, Constant)) :-
    (   is_list(Value)
    ->  length(Value, Count),
        within(terms, Count, At),
        parts(Value, 0, At, Places, Parts)
    ;   part(Value, At, Places, Parts)
    ),
    findall(N, ( member(Part, Parts), integer(Part), N = Part ), Integers),
    sum_list(Integers, Constant),
    findall(Place-C, member(Place-C, Parts), Terms0),
    merged(Terms0, Terms).

parts([], _, _, _, []).
parts([Value|Values], I, At, Places, Parts) :-
    deeper(At, I, Here),
    part(Value, Here, Places, First),
    append(First, Rest, Parts),
    I1 is I+1,
    parts(Values, I1, At, Places, Rest).

part(Value, At, _, Parts), integer(Value) =>
    number(Value, At),
    Parts = [Value].
part(_{text:Name}, At, Places, Parts) =>
    place(Name, At, Places, Place),
    Parts = [Place-1].
part(_{object:Pairs}, At, Places, Parts) =>
    maplist(scaled(At, Places), Pairs, Parts).
part(Value, At, _, _) =>
    wrong(At, "an integer, a name, {name: coefficient}, or a list of these", Value).

scaled(At, Places, [Name,C], Place-C) :-
    place(Name, At, Places, Place),
    deeper(At, Name, Here),
    number(C, Here).

place(Name, At, Places, Place) :-
    (   get_assoc(Name, Places, Place)
    ->  true
    ;   wrong(At, "the name of a variable", _{text:Name})
    ).

%   merged(+Terms0, -Terms): each place once, and none for nothing.
merged(Terms0, Terms) :-
    keysort(Terms0, Sorted),
    added(Sorted, Terms).

added([N-C1,N-C2|Ts0], Ts) :-
    !,
    C is C1+C2,
    added([N-C|Ts0], Ts).
added([_-0|Ts0], Ts) :-
    !,
    added(Ts0, Ts).
added([T|Ts0], [T|Ts]) :-
    added(Ts0, Ts).
added([], []).

                 /*******************************
                 *             SIZE             *
                 *******************************/

%   terms(+Constraints, +Objective, -Count): what the problem weighs once it is posted.
terms(Constraints, Objective, Count) :-
    maplist(weight, [Objective|Constraints], Weights),
    sum_list(Weights, Count).

weight(none, Weight) => Weight = 0.
weight(min(Sum), Weight) => weight(Sum, Weight).
weight(max(Sum), Weight) => weight(Sum, Weight).
weight(sum(Terms, _), Weight) => length(Terms, N), Weight is N+1.
weight(compare(Terms, _, _), Weight) => length(Terms, N), Weight is N+1.
weight(different(Sums), Weight) => weights(Sums, Weight).
weight(any(Compares), Weight) => weights(Compares, Weight).
weight(implies(If, Then), Weight) => weights([If,Then], Weight).
weight(element(Index, Sums, Is), Weight) => weights([Index,Is|Sums], Weight).
weight(task(Sum, _), Weight) => weight(Sum, Weight).
weight(apart(Tasks), Weight) => weights(Tasks, Sum), length(Tasks, N), Weight is Sum*N.

weights(Items, Weight) :-
    maplist(weight, Items, Weights),
    sum_list(Weights, Weight).

                 /*******************************
                 *            SHAPES            *
                 *******************************/

object(_{object:Pairs0}, _, _, Pairs) =>
    Pairs = Pairs0.
object(Value, At, Expected, _) =>
    wrong(At, Expected, Value).

%   keys(+Pairs, +At, +Known): there is no key but those.
keys(Pairs, At, Known) :-
    (   member([Key,_], Pairs),
        \+ memberchk(Key, Known)
    ->  atomic_list_concat(Known, ', ', Names),
        format(string(Expected), "no keys but ~w", [Names]),
        wrong(At, Expected, _{text:Key})
    ;   true
    ).

field(Key, Pairs, At, Value) :-
    (   memberchk([Key,Value0], Pairs)
    ->  Value = Value0
    ;   format(string(Expected), "a value for ~w", [Key]),
        wrong(At, Expected, missing)
    ).

list_field(Key, Limit, Kind, Pairs, At, Places, Expected, Items) :-
    field(Key, Pairs, At, Value),
    deeper(At, Key, Here),
    (   Value == []
    ->  wrong(Here, Expected, Value)
    ;   list(Limit, Kind, Value, Here, Places, Expected, Items)
    ).

list(Limit, Kind, Value, At, Places, Expected, Items) :-
    (   is_list(Value)
    ->  length(Value, Count),
        within(Limit, Count, At),
        items(Kind, Value, At, Places, Items)
    ;   wrong(At, Expected, Value)
    ).

items(Kind, Values, At, Places, Items) :-
    items(Values, 0, Kind, At, Places, Items).

items([], _, _, _, _, []).
items([Value|Values], I, Kind, At, Places, [Item|Items]) :-
    deeper(At, I, Here),
    item(Kind, Value, Here, Places, Item),
    I1 is I+1,
    items(Values, I1, Kind, At, Places, Items).

number(Value, At) :-
    most(number, Most),
    (   integer(Value),
        abs(Value) =< Most
    ->  true
    ;   format(string(Expected), "an integer from -~D to ~D", [Most,Most]),
        wrong(At, Expected, Value)
    ).

within(What, Count, At) :-
    most(What, Most),
    (   Count =< Most
    ->  true
    ;   format(string(Expected), "at most ~D ~w", [Most,What]),
        format(string(Got), "~D", [Count]),
        path(At, Path),
        throw(rlm_problem(Path, Expected, Got))
    ).

                 /*******************************
                 *         WHAT IS WRONG        *
                 *******************************/

%   at(Steps): where we are; the last step first.
deeper(at(Steps), Step, at([Step|Steps])).

wrong(At, Expected, Value) :-
    path(At, Path),
    got(Value, Got),
    throw(rlm_problem(Path, Expected, Got)).

path(at(Steps0), Path) :-
    reverse(Steps0, Steps),
    foldl(step, Steps, '', Path0),
    atom_string(Path0, Path).

step(Step, Path0, Path), integer(Step) =>
    format(atom(Path), "~w[~d]", [Path0,Step]).
step(Step, '', Path) =>
    Path = Step.
step(Step, Path0, Path) =>
    format(atom(Path), "~w.~w", [Path0,Step]).

got(missing, Got) =>
    Got = "nothing".
got(_{text:Text0}, Got) =>
    shortened(Text0, Text),
    format(string(Got), "\"~w\"", [Text]).
got(_{number:Text}, Got) =>
    atom_string(Text, Got).
got(_{object:[]}, Got) =>
    Got = "{}".
got(_{object:Pairs}, Got) =>
    findall(Key, member([Key,_], Pairs), Keys),
    atomic_list_concat(Keys, ', ', Names0),
    shortened(Names0, Names),
    format(string(Got), "an object with ~w", [Names]).
got([], Got) =>
    Got = "[]".
got(List, Got), is_list(List) =>
    length(List, Length),
    format(string(Got), "a list of ~D", [Length]).
got(Value, Got) =>
    format(string(Got), "~w", [Value]).

shortened(Text0, Text) :-
    (   sub_atom(Text0, 0, 60, After, Start),
        After > 0
    ->  atom_concat(Start, ..., Text)
    ;   Text = Text0
    ).

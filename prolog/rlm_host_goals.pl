:- encoding(utf8).
:- module(rlm_host_goals,
          [ goals//4,             % +Body, +Position, +Where, -Goals
            body//4,              % +Goal, +Position, +Where, -Target
            arguments//4,         % +Types, +N, +Term, +Position
            form/2,               % ?Goal, -Kinds
            inner/3,              % +Position, +Arity, -Positions
            rule_head/5           % ?Head, ?Name, ?Unit, ?Turn, ?Answer
          ]).
:- use_module(library(apply), [maplist/3]).
:- use_module(library(assoc), [assoc_to_keys/2, get_assoc/3]).
:- use_module(library(lists), [append/3, member/2, nth1/3]).
:- use_module(rlm_host_read, [start/2, within/4]).
:- use_module(rlm_host_words, [word/3]).
:- use_module(rlm_unit, [unit_kinds/1, unit_term/2]).

/** <module> What a body may call

Every goal is looked at before anything is loaded, inside negations, conditions and findall/3 too. What is
not expressly allowed is a finding where it stands: `found(Offset, error, Message, Fix)`. A call of a
predicate of the same file is noted as `use(Name/Arity)`.
*/

%!  rule_head(?Head, ?Name, ?Unit, ?Turn, ?Answer) is nondet.
%
%   What the head of a rule looks like.

rule_head(veto(Unit, Turn, Why), veto/3, Unit, Turn, Why).
rule_head(boost(Unit, Turn, By, Why), boost/4, Unit, Turn, By-Why).
rule_head(requires(Unit, Turn, Other), requires/3, Unit, Turn, Other).

                /*******************************
                *            BODIES            *
                *******************************/

%!  goals(+Body, +Position, +Where, -Goals)// is det.
%
%   `g(Goal, Target)` for each goal of the outer conjunction: as it was written, and what will run. Where is
%   `rule(Defined)` or `helper(Defined)`, with the file's own predicates in an assoc.

goals(Goal, parentheses_term_position(_, _, Position), Where, Goals) -->
    !,
    goals(Goal, Position, Where, Goals).
goals(Goal, Position, Where, Goals) -->
    { nonvar(Goal),
      Goal = (A, B) },
    !,
    { inner(Position, Goal, 1, AtA),
      inner(Position, Goal, 2, AtB) },
    goals(A, AtA, Where, GoalsA),
    goals(B, AtB, Where, GoalsB),
    { append(GoalsA, GoalsB, Goals) }.
goals(Goal, Position, Where, [g(Goal, Target)]) -->
    body(Goal, Position, Where, Target).

%!  body(+Goal, +Position, +Where, -Target)// is det.
%
%   Findings and uses in one goal; Target is what will run.

body(Goal, parentheses_term_position(_, _, Position), Where, Target) -->
    !,
    body(Goal, Position, Where, Target).
body(Goal, Position, _, true) -->
    { var(Goal) },
    !,
    wrong(Position, 'a variable is no goal', 'write the goal itself').
body(Goal, Position, Where, Target) -->
    { form(Goal, Kinds) },
    !,
    { Goal =.. [Name|Arguments] },
    forms(Kinds, Arguments, 1, Goal, Position, Where, Targets),
    { Target =.. [Name|Targets] }.
body(!, Position, Where, !) -->
    !,
    (   { Where = rule(_) }
    ->  wrong(Position, 'a cut in a rule: every rule stands alone', 'cut in a helper, or use ( -> ; )')
    ;   []
    ).
body(Goal, Position, _, Target) -->
    { arithmetic(Goal, Variables, Expressions, Target) },
    !,
    expressions(Expressions, Goal, Position),
    { term_variables(Expressions, Variables) }.
body(_:_, Position, _, true) -->
    !,
    wrong(Position, 'a goal in another module', 'leave the module out').
body(Goal, Position, _, true) -->
    { \+ callable(Goal),
      format(atom(Message), '~q is no goal', [Goal]) },
    !,
    wrong(Position, Message, '').
body(Goal, Position, _, Target) -->
    { word(Goal, Target0, Types) },
    !,
    { Target = Target0 },
    arguments(Types, 1, Goal, Position).
body(Goal, Position, Where, Goal) -->
    { functor(Goal, Name, Arity),
      arg(1, Where, Defined) },
    (   { rule_head(_, Name/_, _, _, _),
          format(atom(Message), '~q is asked by the compiler, never by a rule', [Name/Arity]) }
    ->  wrong(Position, Message, 'put the condition into a helper and use it in both')
    ;   { get_assoc(Name/Arity, Defined, _) }
    ->  [ use(Name/Arity) ]
    ;   { unknown(Name/Arity, Goal, Defined, Message, Fix) },
        wrong(Position, Message, Fix)
    ).

wrong(Position, Message, Fix) -->
    { start(Position, Offset) },
    [ found(Offset, error, Message, Fix) ].

%!  form(?Goal, -Kinds) is nondet.
%
%   Goal has goals in it: Kinds says `goal` or `term` for each argument.

form((_, _), [goal, goal]).
form((_ ; _), [goal, goal]).
form((_ -> _), [goal, goal]).
form((_ *-> _), [goal, goal]).
form(\+ _, [goal]).
form(once(_), [goal]).
form(ignore(_), [goal]).
form(forall(_, _), [goal, goal]).
form(findall(_, _, _), [term, goal, term]).

forms([], [], _, _, _, _, []) -->
    [].
forms([Kind|Kinds], [Argument|Arguments], N, Goal, Position, Where, [Target|Targets]) -->
    (   { Kind == goal }
    ->  { inner(Position, Goal, N, At) },
        body(Argument, At, Where, Target)
    ;   { Target = Argument }
    ),
    { N1 is N + 1 },
    forms(Kinds, Arguments, N1, Goal, Position, Where, Targets).

%   arithmetic(+Goal, -Variables, -Expressions, -Target): Expressions are the numbers of Goal's arguments.
arithmetic(Value is Expression, Variables, [2-Expression],
           ( rlm_host_words:numbers(Variables),
             Result is Expression,
             rlm_host_words:bounded(Result),
             Value = Result )).
arithmetic(Goal, Variables, [1-A, 2-B], ( rlm_host_words:numbers(Variables), Goal )) :-
    compound(Goal),
    Goal =.. [Name, A, B],
    memberchk(Name, [<, >, =<, >=, =:=, =\=]).

expressions([], _, _) -->
    [].
expressions([N-Expression|More], Goal, Position) -->
    { inner(Position, Goal, N, At),
      findall(found(Offset, error, Message, Fix), no_number(Expression, At, Offset, Message, Fix), Found) },
    Found,
    expressions(More, Goal, Position).

no_number(Expression, At, Offset, Message, Fix) :-
    Fix = 'write numbers, variables, and: + - * / // mod rem div min max abs sign round truncate floor ceiling',
    within(Expression, At, Part, Offset),
    nonvar(Part),
    \+ number(Part),
    \+ ( compound(Part), functor(Part, Name, Arity), function(Name/Arity) ),
    format(atom(Message), '~q is no arithmetic of a rule', [Part]).

function((+)/2).
function((-)/2).
function((*)/2).
function((/)/2).
function((//)/2).
function((mod)/2).
function((rem)/2).
function((div)/2).
function(min/2).
function(max/2).
function((+)/1).
function((-)/1).
function(abs/1).
function(sign/1).
function(round/1).
function(truncate/1).
function(floor/1).
function(ceiling/1).

unknown(Id, Goal, Defined, Message, Fix) :-
    (   predicate_property(system:Goal, built_in)
    ->  format(atom(Message), 'a rule may not call ~q', [Id]),
        Fix = 'rules decide from the facts of a turn; they read, write and remember nothing'
    ;   format(atom(Message), 'there is no ~q', [Id]),
        (   similar(Id, Defined, Meant)
        ->  format(atom(Fix), 'did you mean ~q?', [Meant])
        ;   Fix = 'define it in this file'
        )
    ).

similar(Name/_, Defined, Meant) :-
    assoc_to_keys(Defined, Own),
    findall(Word, ( word(Goal, _, _), functor(Goal, W, A), Word = W/A ), Words),
    append(Own, Words, Known),
    (   member(Name/Arity, Known)
    ->  Meant = Name/Arity
    ;   member(Other/Arity, Known),
        dwim_match(Name, Other)
    ->  Meant = Other/Arity
    ).

                /*******************************
                *           ARGUMENTS          *
                *******************************/

%!  arguments(+Types, +N, +Term, +Position)// is det.
%
%   What is written in the arguments of Term, from the N-th, and could never match.

arguments([], _, _, _) -->
    [].
arguments([Type|Types], N, Term, Position) -->
    { arg(N, Term, Argument),
      inner(Position, Term, N, At),
      start(At, Offset),
      N1 is N + 1 },
    (   { nonvar(Argument),
          mistake(Type, Argument, Message, Fix) }
    ->  [ found(Offset, error, Message, Fix) ]
    ;   []
    ),
    arguments(Types, N1, Term, Position).

%   mistake(+Type, +Value, -Message, -Fix) is semidet: what is written could never match.
mistake(turn, _, 'a turn is seen through its facts only', 'write a variable').
mistake(unit, Value, Message, Fix) :-
    \+ unit_pattern(Value),
    format(atom(Message), '~q is no unit', [Value]),
    unit_fix(Value, Fix).
mistake(name, Value, Message, Fix) :-
    \+ atom(Value),
    format(atom(Message), '~q where an atom stands', [Value]),
    (   string(Value)
    ->  atom_string(Atom, Value),
        format(atom(Fix), 'write ~q', [Atom])
    ;   Fix = 'write an atom'
    ).
mistake(kind, Value, Message, Fix) :-
    unit_kinds(Kinds),
    none_of(Value, Kinds, kind, Message, Fix).
mistake(mode, Value, Message, Fix) :-
    none_of(Value, [compiled, all_tools], mode, Message, Fix).
mistake(trust, Value, Message, Fix) :-
    none_of(Value, [host, stranger], trust, Message, Fix).
mistake(why, Value, Message, 'say why in an atom or a string') :-
    \+ atom(Value),
    \+ string(Value),
    format(atom(Message), '~q is no reason', [Value]).
mistake(by, Value, Message, 'a boost is a whole number of thousandths from -2000 to 2000') :-
    \+ ( integer(Value), Value >= -2000, Value =< 2000 ),
    format(atom(Message), '~q is no boost', [Value]).

none_of(Value, Known, What, Message, Fix) :-
    \+ memberchk(Value, Known),
    format(atom(Message), 'there is no ~w ~q', [What, Value]),
    (   atomic(Value),
        member(Meant, Known),
        dwim_match(Value, Meant)
    ->  format(atom(Fix), 'did you mean ~q?', [Meant])
    ;   atomic_list_concat(Known, ', ', List),
        format(atom(Fix), 'one of: ~w', [List])
    ).

%   unit_pattern(+Term): with names for its variables it is a unit.
unit_pattern(Term) :-
    compound(Term),
    compound_name_arguments(Term, Kind, Arguments0),
    maplist(some_name, Arguments0, Arguments),
    compound_name_arguments(Given, Kind, Arguments),
    unit_term(_, Given).

some_name(Argument, Name) :-
    (   var(Argument)
    ->  Name = any
    ;   Name = Argument
    ).

%   unit_fix(+Value, -Fix): the unit that was meant, where that can be told.
unit_fix(Value, Fix) :-
    (   meant(Value, Id),
        catch(unit_term(Id, Term), error(type_error(_, _), _), fail)
    ->  format(atom(Fix), 'did you mean ~q?', [Term])
    ;   unit_kinds(Kinds),
        atomic_list_concat(Kinds, ', ', List),
        format(atom(Fix), 'write Kind(Name) or Kind(Server, Name) with atoms; kinds: ~w', [List])
    ).

meant(Value, Id) :-
    atomic(Value),
    !,
    atom_string(Id, Value).
meant(Value, Id) :-
    compound(Value),
    compound_name_arguments(Value, Kind, Arguments),
    forall(member(Argument, Arguments), atomic(Argument)),
    atomic_list_concat(Arguments, /, Local),
    atomic_list_concat([Kind, :, Local], Id).

                /*******************************
                *           POSITIONS          *
                *******************************/

%   inner(+Position, +Term, +N, -At): the place of an argument.
inner(Position, Term, N, At) :-
    functor(Term, _, Arity),
    inner(Position, Arity, Ats),
    nth1(N, Ats, At).

%!  inner(+Position, +Arity, -Positions:list) is det.
%
%   The places of a term's arguments; of the term itself where they are not known.

inner(parentheses_term_position(_, _, Position), Arity, Ats) =>
    inner(Position, Arity, Ats).
inner(term_position(_, _, _, _, Positions), _, Ats) =>
    Ats = Positions.
inner(Position, Arity, Ats) =>
    findall(Position, between(1, Arity, _), Ats).

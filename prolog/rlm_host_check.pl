:- encoding(utf8).
:- module(rlm_host_check,
          [ checked/4             % +Items, -Clauses, -Rules, -Findings
          ]).
:- use_module(library(apply), [foldl/4, maplist/3, partition/4]).
:- use_module(library(assoc), [assoc_to_keys/2, empty_assoc/1, get_assoc/3, put_assoc/4]).
:- use_module(library(lists), [append/2, append/3, member/2, nth1/3]).
:- use_module(rlm_host_read, [start/2, within/4]).
:- use_module(rlm_host_words, [word/3]).
:- use_module(rlm_unit, [unit_kinds/1, unit_term/2]).

/** <module> What a host's rules may be, and what becomes of them

A file of rules is checked as a whole: every head, every goal that a body can reach, every term that could
never match. What is not expressly allowed is refused. A clause that passes becomes one of our own:

  - a helper keeps its name and arity; its goals call what rlm_host_words:word/3 says;
  - the N-th rule becomes `'$rule N'(Turn, I, Answer)` for the unit with number I. What its body asks
    about the turn alone is asked once, and what then narrows down the unit (its kind, server or trust, a
    list, a table of facts) chooses the units that the rest is tried on.
*/

%   rule_head(?Head, ?Name, ?Unit, ?Turn, ?Answer)
rule_head(veto(Unit, Turn, Why), veto/3, Unit, Turn, Why).
rule_head(boost(Unit, Turn, By, Why), boost/4, Unit, Turn, By-Why).
rule_head(requires(Unit, Turn, Other), requires/3, Unit, Turn, Other).

%!  checked(+Items, -Clauses:list, -Rules:list, -Findings:list) is det.
%
%   Items as terms_read/3 gives them. `Clauses` are ready to be asserted; `Rules` has `rule(N, Name, Offset)`
%   for each that may veto, boost or require; `Findings` has `found(Offset, Level, Message, Fix)`, and the
%   others mean nothing where one of them is an `error`.

checked(Items, Clauses, Rules, Findings) :-
    maplist(parsed, Items, Parsed0),
    partition(is_found, Parsed0, Found0, Parsed),
    empty_assoc(Empty),
    foldl(define, Parsed, Empty, Defined),
    clauses(Parsed, 1, Defined, Clauses, Rules, Notes),
    partition(is_found, Notes, Found1, Uses),
    findall(Finding, unused(Parsed, Uses, Finding), Found2),
    findall(Finding, no_rule(Items, Rules, Finding), Found3),
    append([Found0, Found1, Found2, Found3], Found),
    sort(Found, Findings).

is_found(found(_, _, _, _)).

no_rule(Items, [], found(0, warning, 'nothing here decides anything', Fix)) :-
    \+ member(found(_, error, _, _), Items),
    Fix = 'write clauses of veto/3, boost/4 or requires/3'.

unused(Parsed, Uses, found(Offset, warning, Message, 'use it or remove it')) :-
    member(clause(Name/Arity, _, _, _, Offset, _), Parsed),
    \+ rule_head(_, Name/_, _, _, _),
    \+ ( member(use(Name/Arity, By), Uses), By \== Name/Arity ),
    once(( member(clause(Name/Arity, _, _, _, First, _), Parsed) )),
    First == Offset,
    format(atom(Message), '~q is never used', [Name/Arity]).

                /*******************************
                *           CLAUSES            *
                *******************************/

%   parsed(+Item, -Parsed): `clause(Name/Arity, Head, Body, at(Head, Body, Term), Offset, Term-Singletons)`,
%   with positions under `at`, or what is wrong with it.
parsed(Item, Parsed), is_found(Item) =>
    Parsed = Item.
parsed(term(Term, Position, Singletons), Parsed) =>
    start(Position, Offset),
    (   odd(Term, Position, Finding)
    ->  Parsed = Finding
    ;   no_clause(Term, Message, Fix)
    ->  Parsed = found(Offset, error, Message, Fix)
    ;   parts(Term, Position, Head, Body, At),
        callable(Head),
        functor(Head, Name, Arity),
        (   no_head(Head, Message, Fix)
        ->  Parsed = found(Offset, error, Message, Fix)
        ;   Parsed = clause(Name/Arity, Head, Body, At, Offset, Term-Singletons)
        )
    ).

parts((Head :- Body), Position, Head0, Body0, At) =>
    Head0 = Head,
    Body0 = Body,
    inner(Position, 2, [HeadAt, BodyAt]),
    At = at(HeadAt, BodyAt, Position).
parts(Head, Position, Head0, Body, At) =>
    Head0 = Head,
    Body = true,
    At = at(Position, Position, Position).

%   odd(+Term, +Position, -Finding): something in Term that is no ordinary term.
odd(Term, Position, found(Offset, error, Message, Fix)) :-
    within(Term, Position, Part, Offset),
    odd_term(Part, Message, Fix),
    !.

odd_term(Part, 'a dict', 'write a list or an ordinary term') :-
    is_dict(Part),
    !.
odd_term(Part, Message, Fix) :-
    compound(Part),
    compound_name_arity(Part, Name, Arity),
    (   memberchk(Name, [., dict])
    ->  Message = 'a dict call',
        Fix = 'end a clause with a full stop and a blank'
    ;   Arity =:= 0
    ->  Message = 'a term without arguments',
        Fix = 'leave the brackets out'
    ;   sub_atom(Name, 0, _, _, $)
    ->  format(atom(Message), '~q: names with a dollar are the system\'s', [Name]),
        Fix = 'choose another name'
    ).

%   no_clause(+Term, -Message, -Fix)
no_clause(Term, 'a variable is no clause', '') :-
    var(Term),
    !.
no_clause((:- Directive), Message, Fix) :-
    !,
    directive(Directive, Message, Fix).
no_clause((?- _), 'a query', 'remove it: a policy holds clauses only').
no_clause((_ --> _), 'a grammar rule', 'write an ordinary clause').
no_clause((_ => _), 'a rule with =>', 'write an ordinary clause with :-').
no_clause((Head :- _), Message, Fix) :-
    !,
    no_callable(Head, Message, Fix).
no_clause(Head, Message, Fix) :-
    no_callable(Head, Message, Fix).

directive(Directive, Message, Fix) :-
    (   nonvar(Directive),
        Directive = encoding(_)
    ->  Message = 'a directive',
        Fix = 'remove it: a policy is always read as UTF-8'
    ;   nonvar(Directive),
        Directive = op(_, _, _)
    ->  Message = 'a directive: operators cannot be declared',
        Fix = 'write the term without the operator'
    ;   Message = 'a directive: nothing runs while a policy is loaded',
        Fix = 'remove it: a policy holds clauses only'
    ).

no_callable(Head, 'a variable is no head', 'name the predicate') :-
    var(Head),
    !.
no_callable(_:_, 'a clause for another module', 'leave the module out').
no_callable(Head, Message, 'begin with a predicate') :-
    \+ callable(Head),
    format(atom(Message), '~p is no clause', [Head]).

%   no_head(+Head, -Message, -Fix): a predicate that is not the file's to define.
no_head(Head, Message, Fix) :-
    functor(Head, Name, Arity),
    (   rule_head(Rule, Name/_, _, _, _)
    ->  functor(Rule, _, Right),
        Arity =\= Right,
        format(atom(Message), '~q where ~q is asked', [Name/Arity, Name/Right]),
        format(atom(Fix), 'write ~p', [Rule])
    ;   Fix = 'choose another name',
        (   word(Head, _, _)
        ->  format(atom(Message), '~q is given to every policy and cannot be redefined', [Name/Arity])
        ;   reserved(Name/Arity, Head)
        ->  format(atom(Message), '~q is the system\'s and cannot be redefined', [Name/Arity])
        )
    ).

reserved(_, Head) :-
    predicate_property(system:Head, built_in),
    !.
reserved(_, Head) :-
    form(Head, _, _),
    !.
reserved(Name/_, _) :-
    memberchk(Name,
              [ term_expansion, goal_expansion, dcg_translate_rule, portray, message_hook, exception,
                attr_unify_hook, attr_portray_hook, attribute_goals, project_attributes,
                prolog_load_file, file_search_path, library_directory, expand_query, expand_answer,
                '|', ',', ;, ->, *->, :-, -->, =>, ?-, :, {}, [], '[|]', !, ^ ]).

%   define(+Clause, +Defined0, -Defined): what the file defines, as a table of `facts` or with `rules`.
define(clause(Id, _, Body, _, _, _), Defined0, Defined) :-
    (   Body == true,
        \+ get_assoc(Id, Defined0, rules)
    ->  Kind = facts
    ;   Kind = rules
    ),
    put_assoc(Id, Defined0, Kind, Defined).

%   clauses(+Parsed, +N, +Defined, -Clauses, -Rules, -Notes): N numbers the rules. Notes has findings and
%   `use(Called, By)`.
clauses([], _, _, [], [], []).
clauses([Parsed|More], N, Defined, [Clause|Clauses], Rules, Notes) :-
    Parsed = clause(Id, Head, Body, at(HeadAt, BodyAt, At), Offset, Term-Singletons),
    findall(F, singleton(Term, At, Singletons, F), Notes0),
    (   rule_head(Head, Id, Unit, Turn, Answer)
    ->  phrase(arguments(Id, Head, HeadAt), Notes1),
        phrase(conjuncts(Body, BodyAt, rule(Defined), Goals), Notes2),
        atom_concat('$rule ', N, Name),
        rule_body(Goals, Unit, Turn, Answer, Defined, I, NewBody),
        compound_name_arguments(NewHead, Name, [Turn, I, Answer]),
        Clause = (NewHead :- NewBody),
        Rules = [rule(N, Id, Offset)|Rules1],
        N1 is N + 1
    ;   Notes1 = [],
        phrase(body(Body, BodyAt, helper(Defined), NewBody), Notes2),
        Clause = (Head :- NewBody),
        Rules = Rules1,
        N1 = N
    ),
    findall(Note, ( member(Note0, Notes2), by(Note0, Id, Note) ), Notes3),
    clauses(More, N1, Defined, Clauses, Rules1, Notes4),
    append([Notes0, Notes1, Notes3, Notes4], Notes).

by(use(Called), By, Note) =>
    Note = use(Called, By).
by(Finding, _, Note) =>
    Note = Finding.

singleton(Term, At, Singletons, found(Offset, warning, Message, Fix)) :-
    member(Name=Variable, Singletons),
    once(( within(Term, At, Part, Offset), Part == Variable )),
    format(atom(Message), '~w occurs only once', [Name]),
    format(atom(Fix), 'if that is meant, write _~w', [Name]).

                /*******************************
                *             HEADS            *
                *******************************/

%   arguments(+Id, +Head, +Position)// of findings: what a rule's head says, where it says it.
arguments(Id, Head, Position) -->
    { rule_types(Id, Types) },
    arguments_of(Types, 1, Head, Position).

rule_types(veto/3, [unit, turn, why]).
rule_types(boost/4, [unit, turn, by, why]).
rule_types(requires/3, [unit, turn, unit]).

arguments_of([], _, _, _) -->
    [].
arguments_of([Type|Types], N, Term, Position) -->
    { arg(N, Term, Argument),
      inner(Position, Term, N, At),
      start(At, Offset),
      N1 is N + 1 },
    (   { nonvar(Argument),
          mistake(Type, Argument, Message, Fix) }
    ->  [ found(Offset, error, Message, Fix) ]
    ;   []
    ),
    arguments_of(Types, N1, Term, Position).

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
                *            BODIES            *
                *******************************/

%   body(+Goal, +Position, +Where, -Target)// of findings and `use(Name/Arity)`. Where is `rule(Defined)` or
%   `helper(Defined)`. Target is what will run.
body(Goal, parentheses_term_position(_, _, Position), Where, Target) -->
    !,
    body(Goal, Position, Where, Target).
body(Goal, Position, _, true) -->
    { var(Goal) },
    !,
    wrong(Position, 'a variable is no goal', 'write the goal itself').
body(Goal, Position, Where, Target) -->
    { form(Goal, Kinds, _) },
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
    arguments_of(Types, 1, Goal, Position).
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

%   form(?Goal, -Kinds, -Name): what has goals in it: `goal` or `term` for each argument.
form((_, _), [goal, goal], ',').
form((_ ; _), [goal, goal], ;).
form((_ -> _), [goal, goal], ->).
form((_ *-> _), [goal, goal], *->).
form(\+ _, [goal], \+).
form(once(_), [goal], once).
form(ignore(_), [goal], ignore).
form(forall(_, _), [goal, goal], forall).
form(findall(_, _, _), [term, goal, term], findall).

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

no_number(Expression, At, Offset, Message, 'numbers, variables, and: + - * / // mod rem div min max abs sign round') :-
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
                *      FROM CLAUSE TO RULE     *
                *******************************/

%   conjuncts(+Body, +Position, +Where, -Goals)// : `g(Goal, Target)` for each goal of the outer conjunction.
conjuncts(Goal, parentheses_term_position(_, _, Position), Where, Goals) -->
    !,
    conjuncts(Goal, Position, Where, Goals).
conjuncts(Goal, Position, Where, Goals) -->
    { nonvar(Goal),
      Goal = (A, B) },
    !,
    { inner(Position, Goal, 1, AtA),
      inner(Position, Goal, 2, AtB) },
    conjuncts(A, AtA, Where, GoalsA),
    conjuncts(B, AtB, Where, GoalsB),
    { append(GoalsA, GoalsB, Goals) }.
conjuncts(Goal, Position, Where, [g(Goal, Target)]) -->
    body(Goal, Position, Where, Target).

%   rule_body(+Goals, ?Unit, ?Turn, ?Answer, +Defined, -I, -Body): what does not ask about the unit comes
%   first, then the units, then the rest.
rule_body(Goals, Unit, Turn, Answer, Defined, I, Body) :-
    term_variables(Unit, Variables),
    about_turn(Goals, Variables, Before0, Rest0),
    (   Variables == []
    ->  Before = [],
        After = Goals,
        Listed = rlm_host_words:listed(Turn, I, Unit, filter(_, _, _, _))
    ;   Rest0 = [g(Goal, Target)|Rest1],
        chooses(Goal, Unit, Defined)
    ->  append(Before0, [g(Goal, Target)], Before),
        After = Rest1,
        Listed = rlm_host_words:listed(Turn, I, Unit, filter(_, _, _, _))
    ;   Before = Before0,
        pattern(Unit, Kind, Server),
        narrowed(Rest0, Unit, Turn, Kind, Server, Trust, After),
        prefix(Kind, Server, Prefix),
        shown(Unit, After, Answer, Shown),
        Listed = rlm_host_words:listed(Turn, I, Shown, filter(Kind, Server, Prefix, Trust))
    ),
    targets(Before, Targets0),
    targets(After, Targets1),
    append(Targets0, [Listed|Targets1], Targets),
    conjunction(Targets, Body).

about_turn([G|Goals], Variables, [G|Before], Rest) :-
    G = g(Goal, _),
    term_variables(Goal, Own),
    \+ ( member(V, Own), member(W, Variables), V == W ),
    !,
    about_turn(Goals, Variables, Before, Rest).
about_turn(Rest, _, [], Rest).

%   chooses(+Goal, ?Unit, +Defined): Goal may be asked for the units instead of about one.
chooses(Goal, Unit, Defined) :-
    var(Unit),
    callable(Goal),
    (   Goal = member(U, _)
    ->  U == Unit
    ;   Goal = (A = B)
    ->  ( A == Unit ; B == Unit )
    ->  true
    ;   functor(Goal, Name, Arity),
        get_assoc(Name/Arity, Defined, facts)
    ).

pattern(Unit, Kind, Server) :-
    (   var(Unit)
    ->  true
    ;   functor(Unit, Kind, 2)
    ->  arg(1, Unit, Server)
    ;   functor(Unit, Kind, 1)
    ->  Server = ''
    ).

%   narrowed(+Goals, ?Unit, ?Turn, ?Kind, ?Server, ?Trust, -Rest): what the first goals say of the unit.
narrowed([g(Goal, _)|Goals], Unit, Turn, Kind, Server, Trust, Rest) :-
    var(Unit),
    narrows(Goal, Unit, Turn, Slot, Value, Kind, Server, Trust),
    atom(Value),
    ( var(Slot) ; Slot == Value ),
    !,
    Slot = Value,
    narrowed(Goals, Unit, Turn, Kind, Server, Trust, Rest).
narrowed(Rest, _, _, _, _, _, Rest).

narrows(Goal, Unit, Turn, Slot, Value, Kind, Server, Trust) :-
    nonvar(Goal),
    (   Goal = kind(U, Value)
    ->  U == Unit,
        Slot = Kind
    ;   Goal = server(U, Value)
    ->  U == Unit,
        Slot = Server
    ;   Goal = trust(T, U, Value),
        T == Turn,
        U == Unit,
        Slot = Trust
    ).

prefix(Kind, Server, Prefix) :-
    (   atom(Kind),
        atom(Server),
        Server \== ''
    ->  atomic_list_concat([Kind, :, Server, /], Prefix)
    ;   true
    ).

shown(Unit, After, Answer, Shown) :-
    (   var(Unit),
        term_variables(After-Answer, Variables),
        \+ ( member(V, Variables), V == Unit )
    ->  Shown = any
    ;   Shown = Unit
    ).

targets(Goals, Targets) :-
    maplist(target, Goals, Targets).

target(g(_, Target), Target).

conjunction([Goal], Goal) :- !.
conjunction([Goal|Goals], (Goal, More)) :-
    conjunction(Goals, More).

                /*******************************
                *           POSITIONS          *
                *******************************/

%   inner(+Position, +Term, +N, -At): the place of an argument; of the term where that is not known.
inner(Position, Term, N, At) :-
    functor(Term, _, Arity),
    inner(Position, Arity, Ats),
    nth1(N, Ats, At).

inner(parentheses_term_position(_, _, Position), Arity, Ats) =>
    inner(Position, Arity, Ats).
inner(term_position(_, _, _, _, Positions), _, Ats) =>
    Ats = Positions.
inner(Position, Arity, Ats) =>
    findall(Position, between(1, Arity, _), Ats).

:- det(checked/4).

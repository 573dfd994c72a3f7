:- encoding(utf8).
:- module(rlm_host_check,
          [ checked/4             % +Items, -Clauses, -Rules, -Findings
          ]).
:- use_module(library(apply), [foldl/4, maplist/3, partition/4]).
:- use_module(library(assoc), [empty_assoc/1, get_assoc/3, list_to_assoc/2, put_assoc/4]).
:- use_module(library(lists), [append/2, append/3, member/2]).
:- use_module(library(pairs), [group_pairs_by_key/2]).
:- use_module(rlm_host_goals, [arguments//4, body//4, form/2, goals//4, inner/3, rule_head/5]).
:- use_module(rlm_host_read, [start/2, within/4]).
:- use_module(rlm_host_rule, [rule_body/7]).
:- use_module(rlm_host_words, [word/3]).

/** <module> What a host's rules may be, and what becomes of them

A file of rules is checked as a whole: every head, every goal that a body can reach, every term that could
never match. What is not expressly allowed is refused. A clause that passes becomes one of our own:

  - a helper keeps its name and arity; its goals call what rlm_host_words:word/3 says;
  - the N-th rule becomes `'$rule N'(Turn, I, Answer)` for the units with number I (rlm_host_rule).
*/

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
    unused(Parsed, Uses, Found2),
    append([Found0, Found1, Found2], Found3),
    findall(Finding, no_rule(Rules, Found3, Finding), Found4),
    append(Found4, Found3, Found),
    sort(Found, Findings).

is_found(found(_, _, _, _)).

no_rule([], Found, found(0, warning, 'nothing here decides anything', Fix)) :-
    \+ memberchk(found(_, error, _, _), Found),
    Fix = 'write clauses of veto/3, boost/4 or requires/3'.

%   unused(+Parsed, +Uses, -Findings): helpers that no other predicate calls, at their first clause.
unused(Parsed, Uses, Findings) :-
    findall(Called-true, ( member(use(Called, By), Uses), By \== Called ), Called0),
    sort(Called0, Called1),
    list_to_assoc(Called1, Called),
    findall(Id-Offset,
            ( member(clause(Id, _, _, _, Offset, _), Parsed),
              \+ get_assoc(Id, Called, _),
              \+ rule_head(_, Id, _, _, _) ),
            Unused0),
    sort(Unused0, Unused1),
    group_pairs_by_key(Unused1, Unused),
    findall(found(Offset, warning, Message, 'use it or remove it'),
            ( member(Id-[Offset|_], Unused),
              format(atom(Message), '~q is never used', [Id]) ),
            Findings).

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
        numbervars(Rule, 0, _, [singletons(true)]),
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
    form(Head, _),
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
    ->  rule_types(Id, Types),
        phrase(arguments(Types, 1, Head, HeadAt), Notes1),
        phrase(goals(Body, BodyAt, rule(Defined), Goals), Notes2),
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

%   rule_types(?Name, ?Types): what stands in a rule's head.
rule_types(veto/3, [unit, turn, why]).
rule_types(boost/4, [unit, turn, by, why]).
rule_types(requires/3, [unit, turn, unit]).

:- det(checked/4).

:- encoding(utf8).
:- module(rlm_body,
          [ bodies/4              % +World, +Args, +Active, -Rows
          ]).
:- use_module(library(assoc), [gen_assoc/3, get_assoc/3]).
:- use_module(library(lists), [member/2]).
:- use_module(rlm_catalog, [catalog_stemmer/2, unit_id/3]).
:- use_module(rlm_eligible, [permits/2]).
:- use_module(rlm_words, [terms/3]).

/** <module> Which body of a unit does a request hold?

A unit may have a body for each role (`planner`, `child`, `leaf`, `repair`, `tools`), and one line in place of the
planner's. The role of a request is the host's signal `rlm.role`. A role without a body of its own has the planner's.
The body `acting` stands in the place of all others where a tool is active.
The line stands for the planner's body unless there is an occasion for the whole of it:

  * a tool that the unit suggests is active;
  * `material`: the signal `rlm.material` is `outside`, and the capability `runtime:model` is granted;
  * `puzzle`: the words of the task state a choice under limits.

Only evidence decides. The budget never does: a pinned body that does not fit is an error.
*/

%!  bodies(+World, +Args:dict, +Active:assoc, -Rows:list) is det.
%
%   Rows `[Id, Body]` for the active units with more than one body, by number.

bodies(World, Args, Active, Rows) :-
    World = world(M, _, _, _, _, _),
    findall(I, M:body(I, _), Is0),
    sort(Is0, Is),
    findall([Id, Body],
            ( member(I, Is),
              get_assoc(I, Active, _),
              unit_id(M, I, Id),
              body(World, Args, Active, I, Body) ),
            Rows).

%   body(+World, +Args, +Active, +I, -Body) is det.
body(World, Args, Active, I, Body) :-
    World = world(M, _, _, _, _, _),
    (   M:body(I, acting),
        shows_tool(M, Active)
    ->  Body = acting
    ;   signal(Args, 'rlm.role', Role)
    ->  (   M:body(I, Role)
        ->  Body = Role
        ;   M:body(I, line),
            \+ whole(World, Args, Active, I)
        ->  Body = line
        ;   Body = planner
        )
    ;   Body = planner
    ).

%   shows_tool(+M, +Active) is semidet: a tool is active.
shows_tool(M, Active) :-
    gen_assoc(I, Active, _),
    M:unit(I, _, Kind, _, _, _),
    memberchk(Kind, [tool, mcp_tool]),
    !.

signal(Args, Name, Value) :-
    member([Name, Values], Args.signals),
    member(Value, Values),
    !.

%   whole(+World, +Args, +Active, +I) is semidet: there is an occasion for the whole body.
whole(world(M, _, _, _, _, _), _, Active, I) :-
    M:suggests(I, Id),
    M:number(Id, J),
    get_assoc(J, Active, _),
    !.
whole(World, Args, _, I) :-
    World = world(M, _, _, _, _, _),
    M:occasion(I, Occasion),
    occasion(Occasion, World, Args),
    !.

%   occasion(+Occasion, +World, +Args) is semidet.
occasion(material, world(_, Policy, _, _, _, _), Args) :-
    signal(Args, 'rlm.material', outside),
    permits(Policy, 'runtime:model').
occasion(puzzle, world(M, _, _, _, _, _), Args) :-
    catalog_stemmer(M, Stemmer),
    task(Args, Text),
    terms(Stemmer, Text, Terms0),
    sort(Terms0, Terms),
    puzzle(Stemmer, Terms).

%   task(+Args, -Text): the user's text; a child has its task as a need.
task(Args, Text) :-
    (   Args.text \== ''
    ->  Text = Args.text
    ;   atomic_list_concat(Args.needs, ' ', Text)
    ).

%   puzzle(+Stemmer, +Terms) is semidet: one word that names such a task, or four that state relations.
puzzle(Stemmer, Terms) :-
    naming(Names),
    terms(Stemmer, Names, Naming),
    member(Term, Terms),
    memberchk(Term, Naming),
    !.
puzzle(Stemmer, Terms) :-
    relating(Words),
    terms(Stemmer, Words, Relating0),
    sort(Relating0, Relating),
    findall(Term, ( member(Term, Terms), memberchk(Term, Relating) ), [_, _, _, _|_]).

naming('puzzle riddle sudoku crossword knapsack timetable roster rota schedule scheduling allocate allocation assign \c
        assignment constraint constraints satisfy feasible optimise optimize optimal minimise minimize maximise maximize \c
        shift shifts seating solver').

relating('before after beside next adjacent between behind front left right opposite neighbour neighbor exactly least \c
          most fewer fewest more every each different distinct same place position order queue row stand stands sit \c
          sits').

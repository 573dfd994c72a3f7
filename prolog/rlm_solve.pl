:- encoding(utf8).
:- module(rlm_solve,
          [ solve/2                     % +Args, -Reply
          ]).
:- use_module(rlm_load, [load_strictly/2, load_the_rest/1]).

/** <module> Finite constraint problems: the way in

A problem is data (rlm_problem says which), and so is the answer. What solves it, and CLP(FD) under it, is
loaded by the first problem that comes: a process that never solves anything pays for this page only.

No term of the problem is ever called: it is read against a closed grammar, whole, before anything is
posted, and what is posted is built from integers and fresh variables.
*/

%!  solve(+Args:dict, -Reply:dict) is det.
%
%   `Args`: `problem`, a JSON value as rlm_problem:problem/2 takes it, and `inferences`, how many logical
%   inferences the search may take. `Reply` is one of
%
%     - `_{status: solved, assignment: [[Name, Value], ...]}`, with an objective also `objective: N` and
%       `optimal`, which is false where the limit came before the proof;
%     - `_{status: infeasible}`: there is no solution;
%     - `_{status: limit}`: none was found within the limit;
%     - `_{error: _{path, expected, got}}`: it is no problem.
%
%   @error rlm_error(load_failed, Findings) where the solver itself cannot be loaded.

solve(Args, Reply) :-
    part(reading, Reading),
    catch(( call(Reading, Args.problem, Problem),
            part(searching, Searching),
            call(Searching, Problem, Args.inferences, Reply) ),
          rlm_problem(Path, Expected, Got),
          Reply = _{error: _{path: Path, expected: Expected, got: Got}}).

%   part(+Name, -Closure): ready to be called. A part is named by data alone, for it is not there from the
%   start. Nothing may interrupt its loading: half of a library would stay, for good.
part(Name, Module:Predicate) :-
    part(Name, Module, Predicate),
    (   current_module(Module)
    ->  true
    ;   sig_atomic(load(Module))
    ).

part(reading, rlm_problem, problem).
part(searching, rlm_fd, solved).

load(Module) :-
    module_property(rlm_solve, file(Here)),
    file_directory_name(Here, Folder),
    atomic_list_concat([Folder,/,Module,'.pl'], File),
    load_strictly(File, Findings),
    (   Findings == []
    ->  load_the_rest(_)
    ;   throw(rlm_error(load_failed, Findings))
    ).

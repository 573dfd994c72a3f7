:- encoding(utf8).
:- module(rlm_load,
          [ load_strictly/2,            % +File, -Findings
            load_the_rest/1,            % -Done
            identity/1                  % -Text
          ]).
:- public load_the_rest/1, identity/1.  % called from Python

/** <module> Load a file, and let no warning pass

`load_files/2` prints a syntax error or a failed directive and goes on. Here whatever would have been
printed as a warning or an error becomes a finding, and the caller decides:

    ?- load_strictly('rules.pl', Findings).
    Findings = [_{file:'/tmp/rules.pl', line:3, severity:error, message:'Syntax error: ...'}].
*/

:- multifile user:message_hook/3.
:- dynamic user:message_hook/3.

:- thread_local
    found/1.                            % found(Finding), while this thread loads

%!  load_strictly(+File:atom, -Findings:list(dict)) is det.
%
%   Load File, again if it was loaded before. Findings is `[]` when there was nothing to say; then, and
%   only then, its clauses are there. What is wrong with a file that File loads is found when that one
%   is loaded, which may be only once. Each finding has `file`, `line` (0: unknown), `severity` (`warning`,
%   `error`) and `message`.

load_strictly(File, Findings) :-
    retractall(found(_)),
    thread_self(Me),
    setup_call_cleanup(
        asserta((user:message_hook(Term, Kind, Lines) :- rlm_load:note(Me, File, Term, Kind, Lines)), Hook),
        catch(load_files(user:File, [silent(true)]), Error, load_error(Error)),
        erase(Hook)),
    findall(Finding, retract(found(Finding)), Findings),
    (   Findings == []
    ->  true
    ;   unload_file(File)
    ).

load_error(Error) :-
    (   Error = rlm_error(_, _)         % cancelled: not the file's fault
    ->  throw(Error)
    ;   print_message(error, Error)
    ).

%!  load_the_rest(-Done) is det.
%
%   Load what libraries would load at their first need (autoload/1,2). That need would arise within a call,
%   and a call that is stopped while a library loads leaves half of it. Done is 1, or 0 if something of a
%   library's could not be loaded, which then only happens later.

load_the_rest(Done) :-
    current_prolog_flag(autoload, Before),
    current_prolog_flag(verbose, Verbose),
    set_prolog_flag(verbose, silent),
    (   catch(set_prolog_flag(autoload, false), _, fail)
    ->  Done = 1
    ;   Done = 0
    ),
    set_prolog_flag(autoload, Before),
    set_prolog_flag(verbose, Verbose).

%!  identity(-Text:string) is det.
%
%   Text names this Prolog so far as compiled files depend on it: two Prologs of one Text load each other's.

identity(Text) :-
    current_prolog_flag(arch, Arch),
    current_prolog_flag(version, Version),
    current_prolog_flag(abi_version, Abi),
    get_dict(qlf, Abi, Format),
    get_dict(vmi, Abi, Instructions),
    get_dict(built_in, Abi, Predicates),
    format(string(Text), "~w ~w ~w ~w ~w", [Arch, Version, Format, Instructions, Predicates]).

%!  note(+Loader, +Loaded, +Term, +Kind, +Lines) is semidet.
%
%   Called by print_message/2 for every message while the thread Loader loads; true, so that nothing is
%   printed, for what Loader itself has to complain of.

note(Loader, Loaded, Term, Kind, Lines) :-
    complaint(Kind),
    thread_self(Loader),
    place(Term, Loaded, File, Line),
    message_text(Lines, File, Message),
    assertz(found(_{file:File, line:Line, severity:Kind, message:Message})).

complaint(warning).
complaint(error).

place(error(_, Context), _, File, Line) :-
    nonvar(Context),
    position(Context, File0, Line),
    atom(File0),
    !,
    File = File0.
place(initialization_error(_, _, File:Line), _, File, Line) :- !.
place(initialization_failure(_, File:Line), _, File, Line) :- !.
place(_, _, File, Line) :- source_location(File, Line), !.
place(_, Loaded, Loaded, 0).

position(file(File, Line, _, _), File, Line).
position(file(File, Line), File, Line).

message_text(Lines, File, Message) :-
    with_output_to(string(Text), print_message_lines(current_output, '', Lines)),
    normalize_space(atom(Said), Text),
    (   atom_concat(File, Rest, Said),  % the place is said elsewhere
        sub_atom(Rest, Before, 2, _, ': ')
    ->  Start is Before+2,
        sub_atom(Rest, Start, _, 0, Message)
    ;   Message = Said
    ).

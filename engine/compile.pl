:- encoding(utf8).
:- module(compile, [main/0]).

/** <module> Compiles the libraries of a new engine

    swipl engine/compile.pl -- RULES

Every library that the rules in RULES, their prompt, their tests and a toplevel load gets a `.qlf` beside its source.
SWI-Prolog itself decides at load time which of the two it takes: an older `.qlf` is compiled anew, or taken all the
same where the folder cannot be written.

Each library is compiled in a process of its own. Where another has loaded what a library would load at its first need
(autoload/2), the compiled code refers to that need as if it were there, and calls an unknown procedure later.
*/

:- use_module(library(process)).

:- initialization(main, main).

main :-
    current_prolog_flag(argv, [Rules]),
    current_prolog_flag(executable, Program),
    load_what_is_used(Rules),
    findall(File, library_file(File), Files0),
    sort(Files0, Files),
    forall(member(File, Files), compile_apart(Program, File)),
    length(Files, Count),
    format(user_error, "~d libraries compiled~n", [Count]).

compile_apart(Program, File) :-
    format(atom(Goal), "qcompile(~q)", [File]),
    process_create(Program, ['-q', '-f', none, '--on-warning=status', '--on-error=status', '-g', Goal, '-t', halt], []).

load_what_is_used(Rules) :-
    forall(member(Name, ['rlm.pl', 'rlm_repl.pl']),
           ( directory_file_path(Rules, Name, File),
             load_files(user:File, [silent(true)])
           )),
    forall(used(Library), load_files(user:library(Library), [imports([]), silent(true)])),
    set_prolog_flag(autoload, false),   % loads what autoload/1,2 put off
    set_prolog_flag(autoload, true).

used(clpfd).
used(clpb).
used(plunit).
used(prolog_coverage).
used(editline).
used(prolog_history).
used(ansi_term).
used(prolog_stack).
used(prolog_xref).
used(listing).
used(check).
used(http/json).

library_file(File) :-
    current_prolog_flag(home, Home),
    source_file(File),
    atom_concat(Home, '/library/', Prefix),
    atom_concat(Prefix, _, File).

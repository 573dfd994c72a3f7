:- encoding(utf8).
:- module(rlm_test_coverage, []).
:- use_module(library(plunit), [run_tests/0, set_test_options/1]).
:- use_module(library(prolog_coverage), [coverage/2]).

/** <module> How many clauses of the rules plunit runs

    swipl tests/prolog/coverage.pl

prints, for each file of prolog/, the percentage of its clauses that were called, and of those that were called the
percentage that never succeeded.
*/

:- initialization(main, main).

main :-
    source_file(rlm_test_coverage:main, This),
    file_directory_name(This, Folder),
    file_directory_name(Folder, Tests),
    file_directory_name(Tests, Root),
    atom_concat(Folder, '/*.plt', Pattern),
    expand_file_name(Pattern, Files),
    forall(member(File, Files), load_files(File, [silent(true)])),
    atom_concat(Root, '/prolog', Rules),
    set_test_options([output(on_failure), format(log)]),
    coverage(ignore(run_tests), [roots([Rules]), width(100)]).

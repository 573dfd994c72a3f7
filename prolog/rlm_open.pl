:- encoding(utf8).
:- module(rlm_open,
          [ open_session/1,       % +File
            open_session/2,       % +File, ?Name
            close_session/1,      % ?Name
            session/1,            % ?Name
            current_session/1,    % -Name
            use_session/1,        % +Name
            in/2,                 % ?Name, :Goal
            record/1,             % ?Record
            records/1             % -Module
          ]).
:- use_module(library(error), [existence_error/2, type_error/2]).
:- use_module(library(gensym), [gensym/2]).
:- use_module(library(lists), [append/3, member/2]).
:- use_module(rlm_session_read, [session_records/2]).

/** <module> The sessions that are open

A session is a saved compile (rlm_session_read). Several can be open at once, each under a name. One of them is the
current session: every question is about that one.

    ?- open_session('monday.rlm'), open_session('friday.rlm').
    ?- session(S).
    S = monday ;
    S = friday.
    ?- in(monday, active(U)).

The records of a session are facts in a module of its own. They are data from a file: they are looked up and never
called as goals.
*/

:- meta_predicate in(?, 0).

:- dynamic
    opened/2,                   % Name, Module: in the order of opening
    last_used/1.                % Name

%!  open_session(+File) is semidet.
%!  open_session(+File, ?Name:atom) is semidet.
%
%   Open a session and make it the current one. Name is the file's name without `.rlm` where it is not given. A session
%   that was open under the same name is closed. It fails, with a line on standard error, where File is no name.
%
%   @error existence_error(rlm_session_file, File), domain_error(rlm_session, What): see
%   rlm_session_read:session_records/2. The sessions that were open stay so.

open_session(File) :-
    open_session(File, _).

open_session(File, _) :-
    \+ atomic(File),
    !,
    format(user_error, "the name of a file is expected, in quotes: open_session('review.rlm').~n", []),
    fail.
open_session(File, Name) :-
    session_records(File, Records),
    named(File, Name),
    forget(Name),
    gensym('rlm session ', Module),
    set_module(Module:base(system)),
    forall(record_kind(Kind), dynamic(Module:Kind)),
    forall(member(Record, Records), assertz(Module:Record)),
    assertz(opened(Name, Module)),
    use_session(Name).

named(File, Name) :-
    var(Name),
    !,
    file_base_name(File, Base),
    file_name_extension(Name, _, Base).
named(_, Name) :-
    (   atom(Name)
    ->  true
    ;   type_error(atom, Name)
    ).

%   record_kind(?Kind): the records of a session, as in rlm_session_read.
record_kind(session/3).
record_kind(input/2).
record_kind(unit/2).
record_kind(active/4).
record_kind(rejected/2).
record_kind(nonviable/2).
record_kind(ranked/2).
record_kind(raised/2).
record_kind(negated/1).
record_kind(vetoed/2).
record_kind(source/6).
record_kind(floor/1).
record_kind(ledger/2).

%!  close_session(?Name:atom) is nondet.
%
%   Close a session. The one that was opened last of the rest becomes the current one.

close_session(Name) :-
    session(Name),
    forget(Name),
    findall(Other, opened(Other, _), Others),
    (   append(_, [Last], Others)
    ->  use_session(Last)
    ;   true
    ).

:- multifile closed/1.          % Name: other modules forget what they keep of a session

forget(Name) :-
    forall(retract(opened(Name, Module)),
           ( forall(record_kind(Kind/Arity), ( functor(Head, Kind, Arity), retractall(Module:Head) )),
             forall(closed(Name), true) )),
    retractall(last_used(Name)).

%!  session(?Name:atom) is nondet.
%
%   The session Name is open; in the order of opening.

session(Name) :-
    opened(Name, _).

%!  current_session(-Name:atom) is det.
%
%   The session that questions are about.
%
%   @error existence_error(rlm_session, What) where none is open

current_session(Name) :-
    (   nb_current(rlm_session, Here),
        Here \== []
    ->  Name = Here
    ;   last_used(Last)
    ->  Name = Last
    ;   existence_error(rlm_session, 'open_session/1 was not called')
    ).

%!  use_session(+Name:atom) is det.
%
%   Questions are about this session from now on.
%
%   @error existence_error(rlm_session, Name) where no session of that name is open

use_session(Name) :-
    is_open(Name),
    retractall(last_used(_)),
    assertz(last_used(Name)).

is_open(Name) :-
    (   atom(Name),
        opened(Name, _)
    ->  true
    ;   findall(Other, opened(Other, _), Others),
        not_open(Others, Name, What),
        existence_error(rlm_session, What)
    ).

not_open([], _, 'open_session/1 was not called') :- !.
not_open(Others, Name, What) :-
    format(atom(What), "there is no ~p among ~p", [Name, Others]).

%!  in(?Name:atom, :Goal) is nondet.
%
%   Goal is true in the session Name, whichever is the current one. Name enumerates.

in(Name, Goal) :-
    (   var(Name)
    ->  session(Name)
    ;   is_open(Name)
    ),
    (   nb_current(rlm_session, Before)
    ->  true
    ;   Before = []
    ),
    b_setval(rlm_session, Name),
    call(Goal),
    b_setval(rlm_session, Before).

%!  record(?Record) is nondet.
%
%   Record is a term of the current session (rlm_session_read:session_term/2).
%
%   @error existence_error(rlm_session, What)

record(Record) :-
    records(Module),
    catch(Module:clause(Record, true), _, fail).

%!  records(-Module:atom) is det.
%
%   The module that holds the records of the current session, for loops over all units.

records(Module) :-
    current_session(Name),
    opened(Name, Module),
    !.

                /*******************************
                *           MESSAGES           *
                *******************************/

:- multifile prolog:error_message//1.

prolog:error_message(existence_error(rlm_session, What)) -->
    [ 'no session is open: ~w'-[What] ].

:- encoding(utf8).
:- module(rlm_unit,
          [ unit_term/2,          % ?Id, ?Term
            unit_kind/2,          % +Id, -Kind
            unit_server/2,        % +Id, -Server
            unit_name/2,          % +Id, -Name
            unit_kinds/1          % -Kinds
          ]).
:- use_module(library(error), [instantiation_error/1, type_error/2]).
:- use_module(library(lists), [append/3]).

/** <module> What a unit is called: ids and terms

An id is `kind:name` or `kind:server/name`; the server is all that stands before the last slash. Rules and
people at a prompt say the same as a term:

    ?- unit_term('mcp_tool:github/create_issue', Term).
    Term = mcp_tool(github, create_issue).
    ?- unit_term(Id, tool('a/b', c)).
    Id = 'tool:a/b/c'.

Each id has one term and each such term one id: a name without a server holds no slash, nor does a name
after one.
*/

%!  unit_kinds(-Kinds:list(atom)) is det.
%
%   The kinds of unit.

unit_kinds([instruction, skill, tool, mcp_server, mcp_tool, mcp_prompt, resource]).

%!  unit_term(+Id:atom, -Term) is det.
%!  unit_term(-Id:atom, +Term) is semidet.
%
%   Term says what Id says. From a term it fails where that is none of a unit (an unknown kind, a name that
%   is no atom, a slash where none may be).
%
%   @error type_error(unit_id, Id)

unit_term(Id, Term), atom(Id) =>
    parts(Id, Kind, Server, Name),
    (   Server = server(S)
    ->  compound_name_arguments(Term0, Kind, [S, Name])
    ;   compound_name_arguments(Term0, Kind, [Name])
    ),
    Term = Term0.
unit_term(Id, Term), var(Id), nonvar(Term) =>
    compound(Term),
    compound_name_arguments(Term, Kind, Arguments),
    kind(Kind),
    local_id(Arguments, Local),
    atomic_list_concat([Kind, :, Local], Id).
unit_term(Id, _), var(Id) =>
    instantiation_error(Id).
unit_term(Id, _) =>
    type_error(unit_id, Id).

local_id([Name], Local) =>
    plain_name(Name),
    Local = Name.
local_id([Server, Name], Local) =>
    atom(Server),
    Server \== '',
    plain_name(Name),
    atomic_list_concat([Server, /, Name], Local).
local_id(_, _) =>
    fail.

plain_name(Name) :-
    atom(Name),
    Name \== '',
    \+ sub_atom(Name, _, 1, _, /).

%!  unit_kind(+Id:atom, -Kind:atom) is det.
%
%   @error type_error(unit_id, Id)

unit_kind(Id, Kind) :-
    parts(Id, Kind0, _, _),
    Kind = Kind0.

%!  unit_server(+Id:atom, -Server:atom) is det.
%
%   `''` where the id names none.
%
%   @error type_error(unit_id, Id)

unit_server(Id, Server) :-
    parts(Id, _, Server0, _),
    (   Server0 = server(S)
    ->  Server = S
    ;   Server = ''
    ).

%!  unit_name(+Id:atom, -Name:atom) is det.
%
%   @error type_error(unit_id, Id)

unit_name(Id, Name) :-
    parts(Id, _, _, Name0),
    Name = Name0.

%   parts(+Id, -Kind, -Server, -Name): Server is `server(S)` or `none`.
parts(Id, Kind, Server, Name) :-
    (   atom(Id),
        sub_atom(Id, Before, 1, After, :)
    ->  sub_atom(Id, 0, Before, _, Kind),
        sub_atom(Id, _, After, 0, Local),
        (   kind(Kind),
            split(Local, Server, Name)
        ->  true
        ;   type_error(unit_id, Id)
        )
    ;   type_error(unit_id, Id)
    ).

split(Local, Server, Name) :-
    (   sub_atom(Local, Before, 1, After, /)
    ->  sub_atom(Local, _, After, 0, Rest),
        (   sub_atom(Rest, _, 1, _, /)
        ->  atomic_list_concat(Parts, /, Local),
            append(Front, [Name], Parts),
            atomic_list_concat(Front, /, S)
        ;   Name = Rest,
            sub_atom(Local, 0, Before, _, S)
        ),
        S \== '',
        Server = server(S)
    ;   Name = Local,
        Server = none
    ),
    Name \== ''.

kind(instruction).
kind(skill).
kind(tool).
kind(mcp_server).
kind(mcp_tool).
kind(mcp_prompt).
kind(resource).

%   For people at a prompt.
:- public unit_kind/2, unit_name/2.

:- det(unit_kind/2).
:- det(unit_server/2).
:- det(unit_name/2).
:- det(unit_kinds/1).

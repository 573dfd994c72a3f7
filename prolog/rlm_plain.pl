:- encoding(utf8).
:- module(rlm_plain,
          [ plain/1                     % +Result
          ]).

/** <module> What may go out to Python

Atoms, strings, integers, finite floats, `@(true)`, `@(false)`, `@(none)`, and lists and dicts of these
with ASCII atoms for keys, not deeper than 32 levels. Janus leaks pairs, mangles other keys, and ends the
process on a cycle or on great depth, so a rule's mistake has to become an error here.

Every value of every reply passes through: the commonest are tested in place, without a call.
*/

most_levels(32).
most_values(2_000_000).

%!  plain(+Result) is det.
%
%   @throws rlm_error(invalid_reply, Why-Culprit) if Python could not take Result.

plain(Result) :-
    most_levels(Depth),
    most_values(Most),
    plain(Result, Depth, Most, _).

plain(Value, Depth, Room0, Room) :-
    (   is_dict(Value)
    ->  compound_name_arguments(Value, _, [_Tag|ValuesAndKeys]),
        compound_name_arity(Value, _, Arity),
        enter(Value, Depth, Arity, Room0, Inner, Room1),
        entries(ValuesAndKeys, Inner, Room1, Room)
    ;   is_list(Value)
    ->  length(Value, Length),
        enter(Value, Depth, Length, Room0, Inner, Room1),
        items(Value, Inner, Room1, Room)
    ;   scalar(Value)
    ->  Room = Room0
    ;   throw(rlm_error(invalid_reply, value-Value))
    ).

enter(Value, Depth, Length, Room0, Inner, Room) :-
    (   Depth > 0
    ->  Inner is Depth-1
    ;   throw(rlm_error(invalid_reply, depth-Value))
    ),
    Room is Room0-Length,
    (   Room >= 0
    ->  true
    ;   throw(rlm_error(invalid_reply, size-Length))
    ).

scalar(Value) :- atom(Value), !.
scalar(Value) :- integer(Value), !.
scalar(Value) :- string(Value), !.
scalar(Value) :-
    float(Value),
    !,
    Value >= -1.7976931348623157e308,   % neither infinite nor NaN
    Value =<  1.7976931348623157e308.
scalar(Value) :-
    compound(Value),
    Value = @(Constant),
    ( Constant == true ; Constant == false ; Constant == none ),
    !.

items([], _, Room, Room).
items([Value|Values], Depth, Room0, Room) :-
    (   atom(Value)
    ->  items(Values, Depth, Room0, Room)
    ;   integer(Value)
    ->  items(Values, Depth, Room0, Room)
    ;   string(Value)
    ->  items(Values, Depth, Room0, Room)
    ;   plain(Value, Depth, Room0, Room1),
        items(Values, Depth, Room1, Room)
    ).

entries([], _, Room, Room).
entries([Value,Key|Rest], Depth, Room0, Room) :-
    (   known_key(Key)
    ->  true
    ;   learn_key(Key)
    ),
    (   atom(Value)
    ->  entries(Rest, Depth, Room0, Room)
    ;   integer(Value)
    ->  entries(Rest, Depth, Room0, Room)
    ;   string(Value)
    ->  entries(Rest, Depth, Room0, Room)
    ;   plain(Value, Depth, Room0, Room1),
        entries(Rest, Depth, Room1, Room)
    ).

% Keys are few and repeat, so those found good are remembered: at most a thousand, because a
% remembered atom is never collected.

:- dynamic known_key/1.

learn_key(Key) :-
    (   atom(Key),
        atom_codes(Key, Codes),
        ascii(Codes)
    ->  (   predicate_property(known_key(_), number_of_clauses(Known)),
            Known >= 1000
        ->  true
        ;   assertz(known_key(Key))
        )
    ;   throw(rlm_error(invalid_reply, key-Key))
    ).

ascii([]).
ascii([Code|Codes]) :-
    Code > 0,
    Code < 128,
    ascii(Codes).

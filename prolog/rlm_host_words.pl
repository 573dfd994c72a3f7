:- encoding(utf8).
:- module(rlm_host_words,
          [ word/3,               % ?Goal, -Target, -Types
            turn/5,               % +Module, +Args, +Spoken, +Range, -Turn
            ranged/3,             % +Turn0, +Range, -Turn
            listed/4,             % +Turn, -I, ?Unit, +Filter
            numbers/1,            % +Values
            bounded/1,            % +Number
            uncharged/0,
            charged/1             % +Text
          ]).
:- use_module(library(error),
              [domain_error/2, instantiation_error/1, must_be/2, representation_error/1, type_error/2]).
:- use_module(library(lists), [member/2, nth0/3, nth1/3]).
:- use_module(library(sandbox), []).
:- use_module(rlm_letters, [lower_text/2, upper_text/2]).
:- use_module(rlm_unit, [unit_kinds/1, unit_server/2, unit_term/2]).
:- use_module(rlm_words, [identifier_words/2, token_words/2, tokens/2]).

/** <module> The words that a host's rules are written in

All that the body of a host's rule may call, besides its own predicates and the control constructs: facts
about a turn and its units, comparison, arithmetic on plain numbers, lists, atoms and strings. Nothing here
writes, reads, waits, remembers, or answers differently from one day or one order of registration to the
next.

What one step could make too big to count is bounded: an atom that a rule makes has at most 4,096
characters, a string that it joins 1,048,576, a whole number fits in 64 bits. Atoms are no part of the stacks, whose
limit bounds all else: the rules of one compile make atoms of at most 33,554,432 characters.
*/

%   What word/3 makes of a goal.
:- public
    turn_text/2, turn_says/2, turn_need/2, turn_signal/3, turn_mode/2,
    kind_of/2, server_of/2, name_of/2, priority_of/3, trust_of/3,
    at0/3, at1/3, joined/3, all_joined/2, all_joined/3, part/5, atom_of/2, lower/2, upper/2, strings_joined/3.

%   longest_atom(?Characters), longest_string(?Characters); most_characters(?Characters): of all atoms in a compile.
longest_atom(4096).
longest_string(1_048_576).
most_characters(33_554_432).

%!  word(?Goal, -Target, -Types) is nondet.
%
%   A rule may call Goal, and calls Target. Types has one of `any`, `turn`, `unit`, `name`, `kind`, `mode`,
%   `trust` for each argument of Goal: what must stand there if something is written there.

word(text(T, Text), rlm_host_words:turn_text(T, Text), [turn, name]).
word(says(T, Phrase), rlm_host_words:turn_says(T, Phrase), [turn, any]).
word(need(T, Need), rlm_host_words:turn_need(T, Need), [turn, name]).
word(signal(T, Name, Value), rlm_host_words:turn_signal(T, Name, Value), [turn, name, name]).
word(mode(T, Mode), rlm_host_words:turn_mode(T, Mode), [turn, mode]).
word(kind(U, Kind), rlm_host_words:kind_of(U, Kind), [unit, kind]).
word(server(U, Server), rlm_host_words:server_of(U, Server), [unit, name]).
word(name(U, Name), rlm_host_words:name_of(U, Name), [unit, name]).
word(priority(T, U, P), rlm_host_words:priority_of(T, U, P), [turn, unit, any]).
word(trust(T, U, Trust), rlm_host_words:trust_of(T, U, Trust), [turn, unit, trust]).
word(nth0(N, List, X), rlm_host_words:at0(N, List, X), [any, any, any]).
word(nth1(N, List, X), rlm_host_words:at1(N, List, X), [any, any, any]).
word(atom_concat(A, B, C), rlm_host_words:joined(A, B, C), [any, any, any]).
word(atomic_list_concat(As, C), rlm_host_words:all_joined(As, C), [any, any]).
word(atomic_list_concat(As, Sep, C), rlm_host_words:all_joined(As, Sep, C), [any, any, any]).
word(sub_atom(A, B, L, R, Sub), rlm_host_words:part(A, B, L, R, Sub), [any, any, any, any, any]).
word(atom_string(A, S), rlm_host_words:atom_of(A, S), [any, any]).
word(downcase_atom(A, B), rlm_host_words:lower(A, B), [any, any]).
word(upcase_atom(A, B), rlm_host_words:upper(A, B), [any, any]).
word(string_concat(A, B, C), rlm_host_words:strings_joined(A, B, C), [any, any, any]).
word(string_lower(A, B), rlm_host_words:lower_string(A, B), [any, any]).
word(string_upper(A, B), rlm_host_words:upper_string(A, B), [any, any]).
word(Goal, lists:Goal, Types) :-
    from_lists(Name/Arity),
    functor(Goal, Name, Arity),
    any_types(Arity, Types).
word(Goal, Goal, Types) :-
    built_in(Name/Arity),
    functor(Goal, Name, Arity),
    any_types(Arity, Types).

any_types(Arity, Types) :-
    findall(any, between(1, Arity, _), Types).

from_lists(member/2).
from_lists(memberchk/2).
from_lists(append/2).
from_lists(append/3).
from_lists(last/2).
from_lists(reverse/2).
from_lists(list_to_set/2).
from_lists(subtract/3).
from_lists(intersection/3).
from_lists(union/3).

built_in(true/0).
built_in(fail/0).
built_in(false/0).
built_in((=)/2).
built_in((\=)/2).
built_in((==)/2).
built_in((\==)/2).
built_in((@<)/2).
built_in((@=<)/2).
built_in((@>)/2).
built_in((@>=)/2).
built_in(compare/3).
built_in(var/1).
built_in(nonvar/1).
built_in(atom/1).
built_in(atomic/1).
built_in(compound/1).
built_in(ground/1).
built_in(integer/1).
built_in(float/1).
built_in(number/1).
built_in(string/1).
built_in(is_list/1).
built_in(between/3).
built_in(succ/2).
built_in(length/2).
built_in(msort/2).
built_in(sort/2).
built_in(sort/4).
built_in(atom_length/2).
built_in(string_length/2).
built_in(sub_string/5).
built_in(split_string/4).

                /*******************************
                *             TURN             *
                *******************************/

%!  turn(+Module, +Args:dict, +Spoken:boolean, +Range, -Turn) is det.
%
%   What rules may ask about a turn. Range is `all` units of the catalog or the `c(I, _, _, _)` that the
%   evidence found. The words of the text are made ready where rules will ask for them (Spoken).
%   Needs and signals stand in their own order, whatever order the host gave them in.

turn(M, Args, Spoken, Range, '$turn'(M, Range, Args.text, Words, Needs, Signals, Args.mode)) :-
    (   Spoken == true
    ->  spoken(Args.text, Words)
    ;   Words = ''
    ),
    sort(Args.needs, Needs),
    findall(Name-Value,
            ( member([Name, Values], Args.signals),
              member(Value, Values) ),
            Signals0),
    sort(Signals0, Signals).

%!  ranged(+Turn0, +Range, -Turn) is det.
%
%   The same turn, about other units.

ranged('$turn'(M, _, Text, Words, Needs, Signals, Mode), Range,
       '$turn'(M, Range, Text, Words, Needs, Signals, Mode)).

%   spoken(+Text, -Words): ` do it | then stop `; a mark ends a phrase, the end of a line does not.
spoken(Text, Words) :-
    tokens(Text, Tokens0),
    findall(Token, ( member(Token, Tokens0), Token \== p('\n') ), Tokens),
    token_words(Tokens, List),
    atomic_list_concat(List, ' ', Inner),
    atomic_list_concat([' ', Inner, ' '], Words).

turn_text('$turn'(_, _, Text, _, _, _, _), Text).

turn_says('$turn'(_, _, _, Words, _, _, _), Phrase) :-
    must_be(text, Phrase),
    identifier_words(Phrase, List),
    List \== [],
    atomic_list_concat(List, ' ', Inner),
    atomic_list_concat([' ', Inner, ' '], Spoken),
    once(sub_atom(Words, _, _, _, Spoken)).

turn_need('$turn'(_, _, _, _, Needs, _, _), Need) :-
    member(Need, Needs).

turn_signal('$turn'(_, _, _, _, _, Signals, _), Name, Value) :-
    member(Name-Value, Signals).

turn_mode('$turn'(_, _, _, _, _, _, Mode), Mode).

                /*******************************
                *             UNITS            *
                *******************************/

%   These are asked of a given unit and never go looking for one: what they found first would depend on the
%   order of registration.
kind_of(Unit, Kind) :-
    parts(Unit, Kind, _, _).

server_of(Unit, Server) :-
    parts(Unit, _, Server, _).

name_of(Unit, Name) :-
    parts(Unit, _, _, Name).

parts(Unit, _, _, _), var(Unit) =>
    instantiation_error(Unit).
parts(Unit, Kind, Server, Name) =>
    (   compound(Unit),
        compound_name_arguments(Unit, Kind0, Arguments),
        unit_kinds(Kinds),
        memberchk(Kind0, Kinds),
        local(Arguments, Server0, Name0)
    ->  Kind = Kind0,
        Server = Server0,
        Name = Name0
    ;   type_error(unit, Unit)
    ).

local([Name], '', Name).
local([Server, Name], Server, Name).

priority_of('$turn'(M, _, _, _, _, _, _), Unit, Priority) :-
    given_number(M, Unit, I),
    M:unit(I, _, _, Priority, _, _).

trust_of('$turn'(M, _, _, _, _, _, _), Unit, Trust) :-
    given_number(M, Unit, I),
    M:unit(I, _, _, _, Trust, _).

given_number(M, Unit, I) :-
    (   ground(Unit)
    ->  (   unit_term(Id, Unit)
        ->  M:number(Id, I)
        ;   type_error(unit, Unit)
        )
    ;   instantiation_error(Unit)
    ).

%!  listed(+Turn, -I, ?Unit, +Filter) is nondet.
%
%   Each unit in the turn's range that is a Unit. Filter is `filter(Kind, Server, Trust)`, each given or a
%   variable; or `unseen(Kind, Server, Trust)` where nobody wants to see the Unit.
%
%   @error type_error(unit, Unit) where Unit is ground and none.

listed('$turn'(M, Range, _, _, _, _, _), I, Unit, Filter) :-
    listed(Filter, Unit, M, Range, I).

listed(unseen(Kind, Server, Trust), _, M, Range, I) =>
    narrowed(Kind, Server, Prefix),
    among(Range, M, I, Id, Kind, Trust),
    fits(Server, Prefix, Id).
listed(filter(_, _, _), Unit, M, Range, I), ground(Unit) =>
    given_number(M, Unit, I),
    within(Range, I).
listed(filter(Kind, Server, Trust), Unit, M, Range, I) =>
    pattern(Unit, Kind, Server),
    narrowed(Kind, Server, Prefix),
    among(Range, M, I, Id, Kind, Trust),
    fits(Server, Prefix, Id),
    unit_term(Id, Unit).

%   pattern(?Unit, ?Kind, ?Server): what an open term says of the units that it stands for.
pattern(Unit, Kind, Server) :-
    (   var(Unit)
    ->  true
    ;   compound(Unit),
        compound_name_arguments(Unit, Kind, Arguments),
        local(Arguments, Server, _)
    ).

%   narrowed(?Kind, ?Server, -Prefix): what the ids of that kind and server begin with.
narrowed(Kind, Server, Prefix) :-
    (   atom(Kind),
        atom(Server),
        Server \== ''
    ->  atomic_list_concat([Kind, :, Server, /], Prefix)
    ;   Prefix = ''
    ).

among(all, M, I, Id, Kind, Trust) =>
    M:unit(I, Id, Kind, _, Trust, _).
among(Ranked, M, I, Id, Kind, Trust) =>
    member(c(I, _, _, _), Ranked),
    M:unit(I, Id, Kind, _, Trust, _).

fits(Server, _, _), var(Server) =>
    true.
fits(Server, Prefix, Id) =>
    sub_atom(Id, 0, _, _, Prefix),
    unit_server(Id, Server0),
    Server0 == Server.

within(all, _) =>
    true.
within(Ranked, I) =>
    memberchk(c(I, _, _, _), Ranked).

                /*******************************
                *            BOUNDS            *
                *******************************/

%!  numbers(+Values:list) is det.
%
%   What an expression is to be made of: a number for each of its variables, never another expression.

numbers([]).
numbers([Value|Values]) :-
    ( number(Value) -> true ; must_be(number, Value) ),
    numbers(Values).

%!  bounded(+Number) is det.
%
%   @error representation_error(int64_t)

bounded(Number) :-
    (   integer(Number),
        ( Number < -9_223_372_036_854_775_808 ; Number > 9_223_372_036_854_775_807 )
    ->  representation_error(int64_t)
    ;   true
    ).

%!  uncharged is det.
%
%   The rules of a compile begin.

uncharged :-
    nb_setval(rlm_host_characters, 0).

%!  charged(+Text) is det.
%
%   A rule made Text, an atom. What is collected as garbage counts too: so the outcome is the same on every machine.
%
%   @error resource_error(rlm_atoms(Most))

charged(Text) :-
    ( nb_current(rlm_host_characters, Before) -> true ; Before = 0 ),
    atom_length(Text, Length),
    Characters is Before + Length,
    nb_setval(rlm_host_characters, Characters),
    most_characters(Most),
    (   Characters =< Most
    ->  true
    ;   throw(error(resource_error(rlm_atoms(Most)), _))
    ).

%   In a list that never ends the library would count in one step for ever.
at0(N, List, X) :-
    must_be(list, List),
    nth0(N, List, X).

at1(N, List, X) :-
    must_be(list, List),
    nth1(N, List, X).

%   short(+Atom): an atom that a rule makes, or takes apart without knowing the part.
short(Atom) :-
    (   atomic(Atom)
    ->  atom_length(Atom, Length),
        short_length(Length)
    ;   true
    ).

short_length(Length) :-
    longest_atom(Most),
    (   Length =< Most
    ->  true
    ;   domain_error(atom_of_at_most(Most), Length)
    ).

joined(A, B, C) :-
    (   atomic(A),
        atomic(B)
    ->  atom_length(A, LengthA),
        atom_length(B, LengthB),
        Length is LengthA + LengthB,
        short_length(Length),
        atom_concat(A, B, C),
        charged(C)
    ;   short(C),
        atom_concat(A, B, C),
        charged(A),
        charged(B)
    ).

strings_joined(A, B, C) :-
    longest_string(Most),
    (   atomic(A),
        atomic(B),
        atom_length(A, LengthA),
        atom_length(B, LengthB),
        Length is LengthA + LengthB,
        Length > Most
    ->  domain_error(string_of_at_most(Most), Length)
    ;   string_concat(A, B, C)
    ).

all_joined(As, C) :-
    short_list(As, 0),
    atomic_list_concat(As, C),
    charged(C).

all_joined(As, Separator, C) :-
    must_be(atomic, Separator),
    atom_length(Separator, Each),
    (   is_list(As),
        ground(As)
    ->  short_list(As, Each)
    ;   short(C)
    ),
    atomic_list_concat(As, Separator, C),
    charged(C).

short_list(As, Each) :-
    must_be(list, As),
    lengths(As, Each, 0, Length),
    short_length(Length).

lengths([], _, Length, Length).
lengths([A|As], Each, Length0, Length) :-
    must_be(atomic, A),
    atom_length(A, Here),
    Length1 is Length0 + Here + Each,
    lengths(As, Each, Length1, Length).

part(Atom, Before, Length, After, Sub) :-
    (   nonvar(Sub)
    ->  true
    ;   integer(Length)
    ->  short_length(Length)
    ;   short(Atom)
    ),
    sub_atom(Atom, Before, Length, After, Sub),
    charged(Sub).

atom_of(Atom, String) :-
    (   var(Atom)
    ->  short(String)
    ;   true
    ),
    atom_string(Atom, String),
    charged(Atom).

lower(Atom0, Atom) :-
    short(Atom0),
    lower_text(Atom0, Atom),
    charged(Atom).

upper(Atom0, Atom) :-
    short(Atom0),
    upper_text(Atom0, Atom),
    charged(Atom).

lower_string(Text, String) :-
    lower(Text, Atom),
    atom_string(Atom, String).

upper_string(Text, String) :-
    upper(Text, Atom),
    atom_string(Atom, String).

%   What library(sandbox) cannot see through, but may rely on.
:- multifile sandbox:safe_primitive/1.

sandbox:safe_primitive(rlm_host_words:turn_text(_, _)).
sandbox:safe_primitive(rlm_host_words:turn_says(_, _)).
sandbox:safe_primitive(rlm_host_words:turn_need(_, _)).
sandbox:safe_primitive(rlm_host_words:turn_signal(_, _, _)).
sandbox:safe_primitive(rlm_host_words:turn_mode(_, _)).
sandbox:safe_primitive(rlm_host_words:kind_of(_, _)).
sandbox:safe_primitive(rlm_host_words:server_of(_, _)).
sandbox:safe_primitive(rlm_host_words:name_of(_, _)).
sandbox:safe_primitive(rlm_host_words:priority_of(_, _, _)).
sandbox:safe_primitive(rlm_host_words:trust_of(_, _, _)).
sandbox:safe_primitive(rlm_host_words:listed(_, _, _, _)).
sandbox:safe_primitive(rlm_host_words:numbers(_)).
sandbox:safe_primitive(rlm_host_words:bounded(_)).
sandbox:safe_primitive(rlm_host_words:at0(_, _, _)).
sandbox:safe_primitive(rlm_host_words:at1(_, _, _)).
sandbox:safe_primitive(rlm_host_words:joined(_, _, _)).
sandbox:safe_primitive(rlm_host_words:all_joined(_, _)).
sandbox:safe_primitive(rlm_host_words:all_joined(_, _, _)).
sandbox:safe_primitive(rlm_host_words:part(_, _, _, _, _)).
sandbox:safe_primitive(rlm_host_words:atom_of(_, _)).
sandbox:safe_primitive(rlm_host_words:lower(_, _)).
sandbox:safe_primitive(rlm_host_words:upper(_, _)).
sandbox:safe_primitive(rlm_host_words:strings_joined(_, _, _)).
sandbox:safe_primitive(rlm_host_words:lower_string(_, _)).
sandbox:safe_primitive(rlm_host_words:upper_string(_, _)).

:- det(turn/5).
:- det(ranged/3).
:- det(numbers/1).
:- det(bounded/1).
:- det(uncharged/0).
:- det(charged/1).

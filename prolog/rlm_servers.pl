:- encoding(utf8).
:- module(rlm_servers,
          [ server_declare/1,     % +Module
            server_add/5,         % +Module, +Stemmer, +I, +Unit, +NameWords
            server_forget/2,      % +Module, +I
            lone_weak_hits/5,     % +Module, +View, +Turn, +Ranked, -Weak
            with_producers/5      % +Module, +View, +Turn, +Roots0, -Roots
          ]).
:- set_prolog_flag(optimise, true).           % arithmetic in place; this file only
:- use_module(library(aggregate), [aggregate_all/3]).
:- use_module(library(assoc), [get_assoc/3, list_to_assoc/2]).
:- use_module(library(lists), [append/3, last/2, member/2, nth0/3]).
:- use_module(library(ordsets), [list_to_ord_set/2, ord_memberchk/2]).
:- use_module(library(solution_sequences), [limit/2]).
:- use_module(rlm_change, [change_words/1]).
:- use_module(rlm_index, [vector_shares/3]).
:- use_module(rlm_origin, [counts/2]).
:- use_module(rlm_words, [identifier_words/2, stems/3]).

/** <module> What the tools of one server are to each other

A *producer* lists what another tool of its server takes: a status tool asks for a project key, and the project list has
it. It comes in behind that tool.

A *lone weak hit* is the only root of its server, of one matched word: it is left out where another server is clearly
meant.

Facts of a catalog module:

| fact                              |                                                                  |
|-----------------------------------|------------------------------------------------------------------|
| server(I, Server)                 | its server                                                       |
| effect(I, Effect)                 | the effect of the tool, where the host says one                  |
| identifier(I, Parameter, Key)     | a parameter that identifies something: its server and noun (key/3) |
| demands(I, Parameter)             | a required one                                                   |
| lister(Key, I)                    | a tool that lists such things, and changes nothing               |
*/

%!  server_declare(+Module) is det.

server_declare(M) :-
    dynamic([ M:server/2, M:effect/2, M:identifier/3, M:demands/2, M:lister/2 ], [incremental(false)]).

%!  server_add(+Module, +Stemmer, +I, +Unit:dict, +NameWords:list) is det.

server_add(M, Stemmer, I, Unit, NameWords) :-
    ( Unit.effect == '' -> true ; assertz(M:effect(I, Unit.effect)) ),
    (   Unit.server == ''
    ->  true
    ;   assertz(M:server(I, Unit.server)),
        forall(identifying(Stemmer, Unit.identifiers, Parameter, Required, Stem),
               ( key(Unit.server, Stem, Key),
                 assertz(M:identifier(I, Parameter, Key)),
                 ( Required == true -> assertz(M:demands(I, Parameter)) ; true ) )),
        forall(listed(Stemmer, Unit, NameWords, Stem),
               ( key(Unit.server, Stem, Key),
                 assertz(M:lister(Key, I)) ))
    ).

%   key(+Server, +Stem, -Key): things of this noun on this server, as one atom, so that they are found by one index.
key(Server, Stem, Key) :-
    atomic_list_concat([Server, ' ', Stem], Key).

%!  server_forget(+Module, +I) is det.

server_forget(M, I) :-
    retractall(M:server(I, _)),
    retractall(M:effect(I, _)),
    retractall(M:identifier(I, _, _)),
    retractall(M:demands(I, _)),
    retractall(M:lister(_, I)).

%   identifying(+Stemmer, +Identifiers, -Parameter, -Required, -Stem) is nondet: the parameter is a noun, followed by a
%   word for an identifier. Names are written in many ways: a name identifies only where it is required.
identifying(Stemmer, Identifiers, Parameter, Required, Stem) :-
    member([Parameter, Required], Identifiers),
    identifier_words(Parameter, Words),
    append(_, [Noun, Last], Words),
    (   memberchk(Last, [id, key, slug, uuid])
    ->  true
    ;   Last == name,
        Required == true
    ),
    stems(Stemmer, [Noun], [Stem]).

%   listed(+Stemmer, +Unit, +NameWords, -Stem) is nondet: the name has a verb of looking up, and the noun.
listed(Stemmer, Unit, NameWords, Stem) :-
    memberchk(Unit.kind, [tool, mcp_tool]),
    member(Verb, NameWords),
    memberchk(Verb, [list, search, find, query]),
    !,
    ( Unit.effect == '' -> \+ change_words(NameWords) ; Unit.effect == read ),
    stems(Stemmer, NameWords, Stems0),
    sort(Stems0, Stems),
    member(Stem, Stems).

                /*******************************
                *          WEAK HITS           *
                *******************************/

%!  lone_weak_hits(+Module, +View, +Turn, +Ranked, -Weak:list) is det.
%
%   `I-Server` for each third party's candidate that is the one root of its server, was found by one word alone, and
%   counts less than half of the best, where another server has two roots and no tool of its own server is retained.
%   All of them are found before any is left out. `Turn` is `turn(Tokens, Weights, Firm, Retained)`: the text's tokens,
%   what its words weigh, the other roots, and those of them that are retained.

lone_weak_hits(M, View, turn(_, Weights, Firm, Retained), Ranked, Weak) :-
    (   M:brought(_, _),
        roots_by_server(M, View, Firm, Ranked, Counts),
        member(_-N, Counts),
        N >= 2
    ->  list_to_assoc(Counts, ByServer),
        list_to_ord_set(Firm, Wanted),
        best_score(View, Ranked, Best),
        findall(I-Server,
                ( member(c(I, Score, Lexical, Es), Ranked),
                  2 * Score < Best,
                  Lexical > 0,
                  M:origin(I, _),
                  M:server(I, Server),
                  get_assoc(Server, ByServer, 1),
                  counts(View, I),
                  \+ ord_memberchk(I, Wanted),
                  \+ ( member(e(Kind, _), Es), \+ faint(Kind) ),
                  \+ ( member(J, Retained), M:server(J, Server) ),
                  M:vector(I, Vector),
                  vector_shares(Vector, Weights, [_]) ),
                Weak)
    ;   Weak = []
    ).

%   faint(?Kind): evidence that every unit has some of.
faint(sensor(_)).
faint(history(_)).

roots_by_server(M, View, Firm, Ranked, Counts) :-
    findall(Server-I,
            ( (   member(I, Firm)
              ;   member(c(I, _, _, _), Ranked),
                  counts(View, I)
              ),
              M:server(I, Server) ),
            Pairs0),
    sort(Pairs0, Pairs),
    run_lengths(Pairs, Counts).

run_lengths([], []).
run_lengths([Server-_|Pairs], [Server-N|Counts]) :-
    same(Pairs, Server, 1, N, Rest),
    run_lengths(Rest, Counts).

same([Server-_|Pairs], Server0, N0, N, Rest), Server == Server0 =>
    N1 is N0 + 1,
    same(Pairs, Server0, N1, N, Rest).
same(Pairs, _, N0, N, Rest) =>
    N = N0,
    Rest = Pairs.

best_score(View, Ranked, Best) :-
    (   aggregate_all(max(Score), ( member(c(I, Score, _, _), Ranked), counts(View, I) ), Most)
    ->  Best = Most
    ;   Best = 0
    ).

                /*******************************
                *           PRODUCERS          *
                *******************************/

%   most_producers(?N): so many for one root.
most_producers(2).

%!  with_producers(+Module, +View, +Turn, +Roots0, -Roots) is det.
%
%   Roots with the producers of each directly behind it, as `root(J, producer, after(I, Parameter))`. A producer is a
%   tool of the same server that lists what the root takes as Parameter, that does not itself require it, and for which
%   the text has no value. It is no root, comes in for one root only, and brings no producers of its own. `Firm` in Turn
%   are roots too.

with_producers(M, View, turn(Tokens, _, Firm, _), Roots0, Roots) :-
    (   M:lister(_, _),
        member(root(I, evidence, _), Roots0),
        M:identifier(I, _, _)
    ->  findall(J, ( member(J, Firm) ; member(root(J, _, _), Roots0) ), Js),
        sort(Js, Known),
        produced(Roots0, M, View, text(Tokens, _), Known, [], Roots)
    ;   Roots = Roots0
    ).

%   produced(+Roots0, +M, +View, ?Text, +Known, +Taken, -Roots): Known are the roots, Taken the producers so far.
produced([], _, _, _, _, _, []).
produced([Root|Roots0], M, View, Text, Known, Taken0, [Root|Roots]) :-
    Root = root(I, Tier, _),
    (   Tier == evidence,
        \+ \+ ( M:identifier(I, _, Key), M:lister(Key, _) ),
        looked_through(Text),
        producers(M, View, Text, Known, Taken0, I, Found),
        Found \== []
    ->  findall(J, member(J-_, Found), Js),
        append(Js, Taken0, Taken),
        placed(Found, I, Roots, Rest),
        produced(Roots0, M, View, Text, Known, Taken, Rest)
    ;   produced(Roots0, M, View, Text, Known, Taken0, Roots)
    ).

producers(M, View, Text, Known, Taken, I, Found) :-
    findall(k(Id, J, Parameter),
            ( M:identifier(I, Parameter, Key),
              M:lister(Key, J),
              J =\= I,
              \+ ord_memberchk(J, Known),
              \+ memberchk(J, Taken),
              counts(View, J),
              \+ M:demands(J, Parameter),
              \+ has_value(Text, Parameter),
              M:unit(J, Id, _, _, _, _) ),
            Found0),
    sort(Found0, Found1),
    sort(1, @<, Found1, Found2),
    most_producers(Most),
    findall(J-Parameter, limit(Most, member(k(_, J, Parameter), Found2)), Found).

placed([], _, Rest, Rest).
placed([J-Parameter|Found], I, [root(J, producer, after(I, Parameter))|Roots], Rest) :-
    placed(Found, I, Roots, Rest).

%   has_value(+Text, +Parameter) is semidet: the noun of the parameter stands beside something that looks like a value:
%   it is quoted, has a digit, or is written in capitals. At most three words are between them ("the project with key
%   ACME"). `Text` is `text(Tokens, Values)`: most texts have no value at all.
has_value(text(Tokens, [First|Values]), Parameter) :-
    identifier_words(Parameter, Words),
    append(Nouns, [_], Words),
    last(Nouns, Noun),
    nth0(Place, Tokens, w(Word, _)),
    named_by(Word, Noun),
    member(Value, [First|Values]),
    Distance is Value - Place,
    Distance =\= 0,
    Distance >= -2,
    Distance =< 4,
    !.

%   looked_through(+Text): the values are looked for once, where they matter.
looked_through(text(Tokens, Values)) :-
    (   var(Values)
    ->  value_places(Tokens, Values)
    ;   true
    ).

%   value_places(+Tokens, -Places): where something stands that looks like a value.
value_places(Tokens, Places) :-
    findall(Place, ( nth0(Place, Tokens, Token), value_like(Token) ), Places).

named_by(Word, Noun) :-
    (   Word == Noun
    ->  true
    ;   atom_concat(Noun, Rest, Word),
        memberchk(Rest, [s, 'id', '_id', '-id', '\'s'])
    ).

value_like(p(Quote)) :-
    memberchk(Quote, ['"', '\'', '`', '“', '«', '#']).
value_like(w(_, Raw)) :-
    atom_codes(Raw, Codes),
    (   member(Code, Codes),
        code_type(Code, digit)
    ->  true
    ;   Codes = [_, _|_],
        \+ ( member(Code, Codes), \+ code_type(Code, upper) )
    ).

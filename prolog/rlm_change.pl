:- encoding(utf8).
:- module(rlm_change,
          [ wants_change/3,       % +Module, +Reading, +Needs
            change_words/1,       % +Words
            reads/2,              % +Module, +I
            reads_first/5         % +Module, :Usable, +Wanted, +Placed, -Ranked
          ]).
:- set_prolog_flag(optimise, true).           % arithmetic in place; this file only
:- use_module(library(lists), [append/3, member/2, nth1/3]).
:- use_module(library(pairs), [pairs_values/2]).
:- use_module(rlm_catalog, [catalog_stemmer/2]).
:- use_module(rlm_evidence, [reading/3]).
:- use_module(rlm_negation_words, [short/2]).
:- use_module(rlm_words, [identifier_words/2]).

/** <module> Tools that change the world stand behind tools that read

Where neither the user's text nor a need has a verb of change ("delete", "send"), a tool that reads stands before one
that writes and counts about as much. This is a matter of order: nothing else comes in or stays out by it.

A tool reads where the host says so (`effect(I, read)` in the catalog's module). One of which the host says nothing
counts as writing. What is no tool changes nothing.
*/

:- meta_predicate reads_first(+, 1, +, +, -).

%!  wants_change(+Module, +Reading, +Needs:list(atom)) is semidet.
%
%   The text or a need has a verb of change that is not negated. Other languages than English have no table of verbs:
%   there any text may want a change.

wants_change(M, _, _) :-
    catalog_stemmer(M, Stemmer),
    Stemmer \== english,
    !.
wants_change(_, Reading, _) :-
    asks(Reading),
    !.
wants_change(M, _, Needs) :-
    member(Need, Needs),
    reading(M, Need, Reading),
    asks(Reading),
    !.

asks(reading(Tokens, _, _)) :-
    asks(Tokens, []).

%   asks(+Tokens, +Before): Before are the last words of the clause so far, latest first.
asks([p(_)|Tokens], _) :-
    asks(Tokens, []).
asks([w(Word, Raw)|Tokens], Before) :-
    (   short(Word, Words)
    ->  true
    ;   identifier_words(Raw, Words)
    ),
    words_ask(Words, Before, Tokens).

words_ask([], Before, Tokens) :-
    asks(Tokens, Before).
words_ask([Word|Words], Before, Tokens) :-
    (   change_verb(Word),
        \+ denied(Before)
    ->  true
    ;   words_ask(Words, [Word|Before], Tokens)
    ).

%   denied(+Before): one of the last four words negates what follows.
denied(Before) :-
    nth1(Place, Before, Word),
    Place =< 4,
    memberchk(Word, [not, never, no, without, neither, nor, avoid, cannot]),
    !.

%!  change_words(+Words:list(atom)) is semidet.
%
%   One of the words of a name is a verb of change: what `delete_page` does is no reading.

change_words(Words) :-
    member(Word, Words),
    change_verb(Word),
    !.

%!  reads(+Module, +I) is semidet.
%
%   The unit changes nothing: the host says so, or it is no tool.

reads(M, I) :-
    (   M:effect(I, Effect)
    ->  Effect == read
    ;   M:unit(I, _, Kind, _, _, _),
        \+ memberchk(Kind, [tool, mcp_tool])
    ).

%!  reads_first(+Module, :Usable, +Wanted:bool, +Placed, -Ranked) is det.
%
%   Candidates by the tenth of the best score that they reach, within it those that read before the others, else in
%   their order. Placed has them best first: `plain(Cs)`, or `keyed(Pairs)` of `k(Down, _, _)-C`, where -Down is the score
%   by which the candidate stands. Wanted is `true` where a change may be wanted; then nothing moves. The best one is one
%   that may be shown.

reads_first(M, Usable, false, Placed, Ranked), M:effect(_, read) =>
    scored(Placed, Scored),
    (   member(Best-C, Scored),
        arg(1, C, First),
        call(Usable, First),
        Best > 0
    ->  findall(k(Band, Writes, Place)-Candidate,
                ( nth1(Place, Scored, Score-Candidate),
                  arg(1, Candidate, I),
                  Band is -(Score * 10 // Best),
                  ( reads(M, I) -> Writes = 0 ; Writes = 1 ) ),
                Keyed),
        keysort(Keyed, Sorted),
        pairs_values(Sorted, Ranked)
    ;   pairs_values(Scored, Ranked)
    ).
reads_first(_, _, _, plain(Cs), Ranked) =>
    Ranked = Cs.
reads_first(_, _, _, keyed(Pairs), Ranked) =>
    pairs_values(Pairs, Ranked).

scored(plain(Cs), Scored) :-
    findall(Score-C, ( member(C, Cs), arg(2, C, Score) ), Scored).
scored(keyed(Pairs), Scored) :-
    findall(Score-C, ( member(k(Down, _, _)-C, Pairs), Score is -Down ), Scored).

%   change_verb(?Verb): it asks for something to be different afterwards.
change_verb(add).       change_verb(append).    change_verb(apply).     change_verb(approve).
change_verb(archive).   change_verb(assign).    change_verb(book).      change_verb(build).
change_verb(buy).       change_verb(cancel).    change_verb(change).    change_verb(clear).
change_verb(close).     change_verb(comment).   change_verb(commit).    change_verb(configure).
change_verb(convert).   change_verb(copy).      change_verb(create).    change_verb(delete).
change_verb(deploy).    change_verb(deposit).   change_verb(disable).   change_verb(drop).
change_verb(edit).      change_verb(enable).    change_verb(execute).   change_verb(fix).
change_verb(fork).      change_verb(grant).     change_verb(insert).    change_verb(install).
change_verb(invite).    change_verb(kill).      change_verb(lock).      change_verb(make).
change_verb(mark).      change_verb(merge).     change_verb(modify).    change_verb(move).
change_verb(open).      change_verb(order).     change_verb(pay).       change_verb(pin).
change_verb(place).     change_verb(post).      change_verb(publish).   change_verb(purchase).
change_verb(push).      change_verb(put).       change_verb(register).  change_verb(reject).
change_verb(remind).    change_verb(remove).    change_verb(rename).    change_verb(replace).
change_verb(reply).     change_verb(reserve).   change_verb(reset).     change_verb(restart).
change_verb(restore).   change_verb(revoke).    change_verb(rotate).    change_verb(run).
change_verb(save).      change_verb(schedule).  change_verb(send).      change_verb(set).
change_verb(share).     change_verb(sign).      change_verb(start).     change_verb(stop).
change_verb(store).     change_verb(submit).    change_verb(subscribe). change_verb(sync).
change_verb(tag).       change_verb(transfer).  change_verb(trigger).   change_verb(turn).
change_verb(undo).      change_verb(uninstall). change_verb(unlock).    change_verb(unsubscribe).
change_verb(update).    change_verb(upgrade).   change_verb(upload).    change_verb(withdraw).
change_verb(write).

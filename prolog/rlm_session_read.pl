:- encoding(utf8).
:- module(rlm_session_read,
          [ session_records/2     % +File, -Records
          ]).
:- autoload(library(sha), [hash_atom/2, sha_hash/3]).
:- use_module(library(apply), [maplist/2]).
:- use_module(library(error), [domain_error/2, existence_error/2, must_be/2]).
:- use_module(rlm_explain, [visible/2]).
:- use_module(rlm_host_read, [nested/3]).

/** <module> Reading a saved compile

A session is a file of plain terms, one a line. They are read one by one against a closed grammar, never consulted and
never called. Behind each stands a sum, of it and of all lines before it, and the last one says that it is the last: a
file that was cut or changed anywhere is known at that line. The sums say that nothing was lost, not who wrote it.
*/

%   session_format(?N): as in Python's rlm.compiler.save; raised whenever a reader of the format before would be lost.
session_format(3).

%   session_limit(?Bytes): no session is larger.
session_limit(268_435_456).

%!  session_records(+File, -Records:list) is det.
%
%   The terms of a session: `session/3` first, then as in session_term/2.
%
%   @error existence_error(rlm_session_file, File) for a file that is not there.
%   @error domain_error(rlm_session, What) for anything that is not one: another suffix, no regular file, a term
%   outside the grammar, a line that was changed or cut, an end that is missing (each with its line), a file that is too
%   large, one of an older or a newer version.

session_records(File, Records) :-
    must_be(atomic, File),
    (   file_name_extension(_, rlm, File)
    ->  true
    ;   domain_error(rlm_session, suffix(File))
    ),
    catch(size_file(File, Size), error(existence_error(_, _), _), existence_error(rlm_session_file, File)),
    (   exists_file(File)               % a pipe would be waited for, a device read for ever
    ->  true
    ;   domain_error(rlm_session, no_regular_file(File))
    ),
    session_limit(Most),
    (   Size =< Most
    ->  true
    ;   domain_error(rlm_session, size(Size))
    ),
    setup_call_cleanup(
        both_open(File, In),
        first_record(In, File, Records),
        both_close(In)).

%   A file is read twice at once, `in(Bytes, Text)`: the sums are those of its bytes, and what is no UTF-8 is not
%   decoded.
both_open(File, in(Bytes, Text)) :-
    open(File, read, Bytes, [encoding(octet)]),
    open(File, read, Text, [encoding(utf8)]).

both_close(in(Bytes, Text)) :-
    close(Bytes),
    close(Text).

%   first_record(+In, +File, -Records): a session begins with its format, so nothing of another one is looked at.
first_record(In, File, Records) :-
    next_line(In, 1, Bytes),
    (   Bytes == end_of_file
    ->  domain_error(rlm_session, format(File))
    ;   summed(Bytes, '', Sum)
    ->  true
    ;   other_session(Bytes, File)
    ),
    (   written(In, First),
        First = session(_, _, _)
    ->  of_this_version(First),
        Records = [First|Rest],
        read_records(In, 2, Sum, Rest)
    ;   domain_error(rlm_session, format(File))
    ).

%   other_session(+Bytes, +File): why a first line has no sum of ours.
other_session(Bytes, File) :-
    (   shallow(Bytes),
        catch(line_term(Bytes, First), error(_, _), fail),
        grammatical(First),
        First = session(_, _, _)
    ->  of_this_version(First),
        domain_error(rlm_session, changed(1))
    ;   domain_error(rlm_session, format(File))
    ).

%   read_records(+In, +Line, +Sum, -Records): the rest, where Sum is that of all lines before.
read_records(In, Line, Sum0, Records) :-
    next_line(In, Line, Bytes),
    Next is Line + 1,
    (   Bytes == end_of_file
    ->  Last is Line - 1,
        domain_error(rlm_session, cut(Last))
    ;   blank(Bytes)
    ->  written_line(In, _),
        read_records(In, Next, Sum0, Records)
    ;   summed(Bytes, Sum0, Sum)
    ->  record_of(In, Line, Term),
        (   Term == end
        ->  Records = [],
            nothing_more(In, Next)
        ;   Records = [Term|Rest],
            read_records(In, Next, Sum, Rest)
        )
    ;   domain_error(rlm_session, changed(Line))
    ).

record_of(In, Line, Term) :-
    (   written(In, Term0),
        Term0 \= session(_, _, _)
    ->  Term = Term0
    ;   domain_error(rlm_session, line(Line))
    ).

nothing_more(In, Line) :-
    next_line(In, Line, Bytes),
    (   Bytes == end_of_file
    ->  true
    ;   blank(Bytes)
    ->  Next is Line + 1,
        nothing_more(In, Next)
    ;   domain_error(rlm_session, line(Line))
    ).

%   next_line(+In, +Line, -Bytes): the next line as a string of its bytes, or `end_of_file`.
next_line(in(Stream, _), Line, Bytes) :-
    read_string(Stream, "\n", "", End, Bytes0),
    (   End =:= 0                       % a NUL ends a line for the reader, and is nothing that is ever saved
    ->  domain_error(rlm_session, changed(Line))
    ;   End =:= -1,
        Bytes0 == ""
    ->  Bytes = end_of_file
    ;   Bytes = Bytes0
    ).

%   summed(+Bytes, +Sum0, -Sum) is semidet: a line ends in its sum, and that is right. As in Python's rlm.compiler.save.
summed(Bytes, Sum0, Sum) :-
    mark_length(Length),
    sub_string(Bytes, Before, Length, 0, Mark),
    string_concat(" % ", Sum, Mark),
    sub_string(Bytes, 0, Before, _, Written),
    string_concat(Sum0, Written, All),
    sha_hash(All, Hash, [encoding(octet)]),
    hash_atom(Hash, Hex),
    string_length(Sum, Digits),
    sub_string(Hex, 0, Digits, _, Sum).

%   mark_length(?Characters): of what stands behind a term: ` % ` and the sum.
mark_length(11).

%   written(+In, -Term) is semidet: the term of the line that comes next, where it is one of a session.
written(In, Term) :-
    written_line(In, Text),
    shallow(Text),
    line_term(Text, Term),
    grammatical(Term).

written_line(in(_, Stream), Text) :-
    read_string(Stream, "\n", "", _, Line),
    (   mark_length(Length),
        sub_string(Line, 0, _, Length, Text0)
    ->  Text = Text0
    ;   Text = Line
    ).

%   of_this_version(+Session)
of_this_version(session(Format, _, _)) :-
    session_format(Ours),
    (   Format == Ours
    ->  true
    ;   domain_error(rlm_session, version(Format, Ours))
    ).

blank(Text) :-
    split_string(Text, "", " \t\r", [""]).

%   shallow(+Text) is semidet: Prolog's reader recurs in C, and where the stack of a thread is small it ends the
%   process, so what is nested deeper than any session never gets to it. Few brackets cannot be deep.
shallow(Text) :-
    split_string(Text, "([{", "", Parts),
    length(Parts, Count),
    (   Count =< 256
    ->  true
    ;   most_levels(Most),
        \+ nested(Text, Most, _)
    ).

%   most_levels(?N): of brackets in a line.
most_levels(32).

%   line_term(+Text, -Term) is semidet: the one term of a line; it fails where there is none, or more follows.
line_term(Text, Term) :-
    setup_call_cleanup(
        open_string(Text, In),
        catch(( read_term(In, Term, [ syntax_errors(error), module(rlm_session_data) ]),
                read_term(In, Rest, [ syntax_errors(error), module(rlm_session_data) ]) ),
              error(syntax_error(_), _),
              fail),
        close(In)),
    Rest == end_of_file.

%   grammatical(+Term): one of the terms that a session is made of, and nothing but plain data in it.
grammatical(Term) :-
    ground(Term),
    acyclic_term(Term),
    (   Term == end
    ->  true
    ;   compound(Term),
        compound_name_arity(Term, Name, Arity),
        session_term(Name, Arity),
        Term =.. [_|Args],
        maplist(data(16), Args),
        named(Name, Args)
    ).

%   named(+Name, +Args): ids are printed as they are, so there is nothing in them that a terminal would obey.
named(Name, [Id|_]) :-
    (   memberchk(Name, [unit, active, rejected, nonviable, ranked, raised, negated, vetoed])
    ->  atom(Id),
        visible(Id, Id)
    ;   true
    ).

session_term(session, 3).       % Format, Fingerprint, Stemmer
session_term(input, 2).         % Key, Value: of the compile's question
session_term(unit, 2).          % Id, Facts
session_term(active, 4).        % Id, Form (null: packed out), Tokens, Reasons
session_term(rejected, 2).      % Id, Reasons
session_term(nonviable, 2).     % Id, Reasons
session_term(ranked, 2).        % Id, Rank
session_term(raised, 2).        % Id, Reasons: what raised a candidate that is not active
session_term(negated, 1).       % Id
session_term(vetoed, 2).        % Id, Rule
session_term(source, 6).        % Kind, N, Terms, Rarities, Words, Best (null: of the text itself)
session_term(floor, 1).         % Thousandths
session_term(ledger, 2).        % Total, Limit

data(Depth, Value) :-
    (   is_list(Value)
    ->  Depth > 0,
        Next is Depth - 1,
        maplist(data(Next), Value)
    ;   atomic(Value)
    ).

                /*******************************
                *           MESSAGES           *
                *******************************/

:- multifile prolog:error_message//1.

prolog:error_message(existence_error(rlm_session_file, File)) -->
    [ 'there is no file ~w'-[File] ].
prolog:error_message(domain_error(rlm_session, What)) -->
    no_session(What).

no_session(suffix(File)) -->
    [ 'no session: the name of ~w does not end in .rlm'-[File] ].
no_session(no_regular_file(File)) -->
    [ 'no session: ~w is no regular file'-[File] ].
no_session(size(Bytes)) -->
    [ 'no session: it has ~D bytes'-[Bytes] ].
no_session(format(File)) -->
    [ 'no session: ~w does not begin as one of this version'-[File] ].
no_session(version(Format, Ours)) -->
    [ 'no session of this version: its format is ~p, and this version reads ~d only; compile and save it anew'-
      [Format, Ours] ].
no_session(changed(Line)) -->
    [ 'no session, line ~d: it is not what was saved there; it was changed, or cut off'-[Line] ].
no_session(cut(Line)) -->
    [ 'no session, line ~d: the file ends there, and the end that was saved is missing'-[Line] ].
no_session(line(Line)) -->
    [ 'no session, line ~d: this is no term of one'-[Line] ].

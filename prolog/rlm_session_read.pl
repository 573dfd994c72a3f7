:- encoding(utf8).
:- module(rlm_session_read,
          [ session_records/2     % +File, -Records
          ]).
:- autoload(library(sha), [hash_atom/2, sha_hash/3]).
:- use_module(library(apply), [maplist/2]).
:- use_module(library(error), [domain_error/2, existence_error/2, must_be/2]).
:- use_module(library(lists), [member/2]).
:- use_module(rlm_explain, [visible/2]).
:- use_module(rlm_tokens, [text_trouble/4, trouble_message/3]).

/** <module> Reading a saved compile

A session is a file of plain terms, one a line. They are read one by one against a closed grammar, never consulted and
never called. Behind each stands a sum, of it and of all lines before it, and the last one says that it is the last: a
file that was cut or changed anywhere is known at that line. The sums say that nothing was lost, not who wrote it.
*/

%   session_format(?N): as in Python's rlm.compiler.save; raised whenever a reader of the format before would be lost.
session_format(3).

%   session_limit(?Bytes), line_limit(?Bytes): no session is larger; no line of one.
session_limit(268_435_456).
line_limit(16_777_216).

%   most_brackets(?N), most_digits(?N): a line with fewer brackets and no longer number is read at once; any other is
%   looked at, token by token, where it has at most looked_at_limit(Characters).
most_brackets(256).
most_digits(4096).
looked_at_limit(4_194_304).

%!  session_records(+File, -Records:list) is det.
%
%   The terms of a session: `session/3` first, then as in session_term/2.
%
%   @error existence_error(rlm_session_file, File) for a file that is not there.
%   @error domain_error(rlm_session, What) for anything that is not one: another suffix, no regular file, a term
%   outside the grammar, a line that was changed or cut, an end that is missing (each with its line), a line that is
%   too long, a token or a nesting beyond its bound (with line and column), a file that is too large, one of an older or
%   a newer version.

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
        ( short_lines(In), first_record(In, File, Records) ),
        both_close(In)).

%   A file is read twice at once, `in(Bytes, Text, File)`: the sums are those of its bytes, and what is no UTF-8 is not
%   decoded.
both_open(File, in(Bytes, Text, File)) :-
    open(File, read, Bytes, [encoding(octet)]),
    open(File, read, Text, [encoding(utf8)]).

both_close(in(Bytes, Text, _)) :-
    close(Bytes),
    close(Text).

%   short_lines(+In): no line needs more memory than there is; nothing is kept of them here.
short_lines(in(Bytes, _, File)) :-
    line_limit(Most),
    short_lines(Bytes, File, Most, 1),
    seek(Bytes, 0, bof, _).

short_lines(Stream, File, Most, Line) :-
    (   at_end_of_stream(Stream)
    ->  true
    ;   byte_count(Stream, Before),
        skip(Stream, 0'\n),
        byte_count(Stream, After),
        (   After - Before > Most
        ->  domain_error(rlm_session, long(File, Line, Most))
        ;   Next is Line + 1,
            short_lines(Stream, File, Most, Next)
        )
    ).

%   first_record(+In, +File, -Records): a session begins with its format, so nothing of another one is looked at.
first_record(In, File, Records) :-
    next_line(In, 1, Bytes),
    (   Bytes == end_of_file
    ->  domain_error(rlm_session, format(File))
    ;   summed(Bytes, '', Sum)
    ->  true
    ;   other_session(Bytes, File)
    ),
    (   written(In, 1, First),
        First = session(_, _, _)
    ->  of_this_version(First),
        Records = [First|Rest],
        read_records(In, 2, Sum, Rest)
    ;   domain_error(rlm_session, format(File))
    ).

%   other_session(+Bytes, +File): why a first line has no sum of ours.
other_session(Bytes, File) :-
    readable(Bytes, 1, File),
    (   catch(line_term(Bytes, First), error(_, _), fail),
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
    (   written(In, Line, Term0),
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
next_line(in(Stream, _, _), Line, Bytes) :-
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

%   written(+In, +Line, -Term) is semidet: the term of the line that comes next, where it is one of a session.
written(In, Line, Term) :-
    written_line(In, Text),
    In = in(_, _, File),
    readable(Text, Line, File),
    line_term(Text, Term),
    grammatical(Term).

written_line(in(_, Stream, _), Text) :-
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

%   readable(+Text, +Line, +File): nothing in Text is beyond what Prolog's reader may see (rlm_tokens).
%
%   @error domain_error(rlm_session, What)
readable(Text, Line, File) :-
    (   plain(Text)
    ->  true
    ;   looked_at_limit(Longest),
        string_length(Text, Length),
        Length > Longest
    ->  domain_error(rlm_session, unseen(File, Line, Longest))
    ;   bounds(Bounds),
        text_trouble(Text, Bounds, Offset, Trouble)
    ->  Column is Offset + 1,
        domain_error(rlm_session, trouble(File, Line, Column, Trouble))
    ;   true
    ).

%   bounds(?Bounds): 32 levels of brackets are more than any session has.
bounds(bounds(32, 4_194_304, Digits, 4_194_304)) :-
    most_digits(Digits).

%   plain(+Text) is semidet: no token of Text need be looked at. Few brackets cannot be deep. A number has no comma,
%   bracket or quote in it but in a comment, so none is longer than what stands between those.
plain(Text) :-
    split_string(Text, "([{", "", Parts),
    length(Parts, Count),
    most_brackets(MostBrackets),
    Count =< MostBrackets,
    \+ sub_string(Text, _, _, _, "{|"),
    most_digits(Most),
    string_length(Text, Length),
    (   Length =< Most
    ->  true
    ;   \+ sub_string(Text, _, _, _, "/*"),
        split_string(Text, ",()[]'\"`", "", Pieces),
        \+ ( member(Piece, Pieces), string_length(Piece, Long), Long > Most )
    ).

%   line_term(+Text, -Term) is semidet: the one term of a line; it fails where there is none, or more follows.
line_term(Text, Term) :-
    line_options(Options),
    setup_call_cleanup(
        open_string(Text, In),
        catch(( read_term(In, Term, Options),
                read_term(In, Rest, Options) ),
              error(syntax_error(_), _),
              fail),
        close(In)),
    Rest == end_of_file.

%   line_options(-Options): whatever flags the program that loads this has set.
line_options([ syntax_errors(error), module(rlm_session_data), double_quotes(string), back_quotes(codes),
               character_escapes(true), var_prefix(false), cycles(false), dotlists(false) ]).

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
no_session(long(File, Line, Most)) -->
    [ 'no session: ~w, line ~d: it has more than ~D bytes'-[File, Line, Most] ].
no_session(unseen(File, Line, Most)) -->
    [ 'no session: ~w, line ~d: it has more than ~D characters, with more brackets or a longer word than those have'-
      [File, Line, Most] ].
no_session(trouble(File, Line, Column, Trouble)) -->
    { trouble_message(Trouble, Message, _) },
    [ 'no session: ~w, line ~d, column ~d: ~w'-[File, Line, Column, Message] ].
